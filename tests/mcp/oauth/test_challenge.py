"""`WWW-Authenticate` as servers write it, and as nobody should.

Source: RFC 9110, 11.6.1; RFC 6750, 3; RFC 9728, 5.1; RFC 9449, 7.1.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.mcp.oauth.challenge import NO_CHALLENGE, Challenge, read_challenges, token_challenge

PRM = "https://a.example/.well-known/oauth-protected-resource"


@pytest.mark.parametrize(
    ("text", "challenges"),
    [
        ("", ()),
        ("Bearer", (Challenge("bearer"),)),
        ("bearer ,", (Challenge("bearer"),)),
        (
            f'Bearer error="invalid_token", resource_metadata="{PRM}", scope="a b"',
            (Challenge("bearer", {"error": "invalid_token", "resource_metadata": PRM, "scope": "a b"}),),
        ),
        (f"BEARER resource_metadata={PRM}", (Challenge("bearer", {"resource_metadata": PRM}),)),
        ('Bearer scope = "a"  ,  error=x', (Challenge("bearer", {"scope": "a", "error": "x"}),)),
        (
            'Basic realm="a, b", Bearer realm="x", error="y", DPoP algs="ES256 RS256"',
            (
                Challenge("basic", {"realm": "a, b"}),
                Challenge("bearer", {"realm": "x", "error": "y"}),
                Challenge("dpop", {"algs": "ES256 RS256"}),
            ),
        ),
        (
            r'Bearer realm="say \"hi\", Basic x=y", scope="a"',
            (Challenge("bearer", {"realm": 'say "hi", Basic x=y', "scope": "a"}),),
        ),
        ('Bearer scope="a", SCOPE="b"', (Challenge("bearer", {"scope": "a"}),)),
        ('Negotiate dGVzdA==, Bearer scope="a"', (Challenge("negotiate"), Challenge("bearer", {"scope": "a"}))),
        ('Bearer scope="never ends', (Challenge("bearer", {"scope": "never ends"}),)),
        ('Bearer error="x" scope="y"', (Challenge("bearer", {"error": "x", "scope": "y"}),)),
        (',,, Bearer ,, scope="a",,', (Challenge("bearer", {"scope": "a"}),)),
        ('scope="a"', ()),
        ('"quoted", Bearer scope=a', (Challenge("bearer", {"scope": "a"}),)),
    ],
)
def test_challenges_are_read(text: str, challenges: tuple[Challenge, ...]) -> None:
    assert [(c.scheme, c.parameters) for c in read_challenges(text)] == [
        (c.scheme, c.parameters) for c in challenges
    ]


@given(st.text(alphabet=st.sampled_from('Bearer Basic="\\, \t\n=scope;é\x00'), max_size=200))
def test_nothing_that_is_written_fails_or_hangs(text: str) -> None:
    for challenge in read_challenges(text):
        assert challenge.scheme == challenge.scheme.lower()


def test_a_header_that_never_ends_is_cut() -> None:
    (challenge,) = read_challenges(f'Bearer scope="{"a" * 10_000_000}')
    assert len(challenge.parameters["scope"]) < 20_000


@pytest.mark.parametrize(
    ("headers", "scheme", "scopes"),
    [
        ({}, "", ()),
        ({"www-authenticate": 'Basic realm="x"'}, "", ()),
        ({"WWW-Authenticate": 'Bearer scope="a a b"'}, "bearer", ("a", "b")),
        ({"www-authenticate": 'DPoP algs="ES256", scope="a", Bearer'}, "dpop", ("a",)),
    ],
)
def test_the_challenge_for_a_token_is_that_which_says_more(
    headers: dict[str, str], scheme: str, scopes: tuple[str, ...]
) -> None:
    challenge = token_challenge(headers)
    assert (challenge.scheme, challenge.scopes) == (scheme, scopes)
    assert scheme or challenge is NO_CHALLENGE
