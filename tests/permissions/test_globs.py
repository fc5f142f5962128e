"""What the globs of rules take: paths, commands and addresses, and the ways around them that fail.

Source: protocol.md, "Permissions"; the syntax and the two ways of matching are our own choice.
"""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.permissions.globs import matches_exactly, matches_generously, name_matches, quoted

BOTH = [matches_exactly, matches_generously]


@pytest.mark.parametrize("matches", BOTH)
@pytest.mark.parametrize(
    ("glob", "text", "taken"),
    [
        ("src/**", "src/a.py", True),
        ("src/**", "src/deep/er/a.py", True),
        ("src/**", "srcs/a.py", False),
        ("src/**", "lib/src/a.py", False),
        ("src/*", "src/a.py", True),
        ("src/*", "src/deep/a.py", False),
        ("*.py", "a.py", True),
        ("*.py", "src/a.py", False),
        ("**/*.py", "a.py", True),
        ("**/*.py", "src/deep/a.py", True),
        ("src/**/test_*.py", "src/test_a.py", True),
        ("src/**/test_*.py", "src/x/y/test_a.py", True),
        ("a?c", "abc", True),
        ("a?c", "a/c", False),
        ("a[bx]c", "abc", True),
        ("a[!bx]c", "abc", False),
        ("a[!bx]c", "a/c", False),
        ("a[!bx]c", "adc", True),
        ("[*]", "*", True),
        ("[*]", "a", False),
        ("[z-a]", "[z-a]", True),
        ("a[", "a[", True),
        ("git status", "git status", True),
        ("git log **", "git log --oneline -- src/a.py", True),
        ("**rm**-rf**", "sudo rm /x -rf /", True),
        ("**rm**-rf**", "sudo rm /x", False),
        ("https://api.example.com/**", "https://api.example.com/v1/users?id=1", True),
        ("https://api.example.com/**", "https://api.example.com.evil.test/", False),
        ("https://*.example.com/**", "https://a.example.com/x", True),
        ("https://*.example.com/**", "https://evil.test?.example.com/x", False),
        ("https://*.example.com/**", "https://evil.test#.example.com/x", False),
        ("https://*.example.com/**", "https://evil.test\\.example.com/x", False),
        ("", "", True),
        ("", "a", False),
        ("**", "", True),
        ("a**b**c", "a1\nb2\nc", True),
    ],
)
def test_a_glob_takes_a_text(matches, glob: str, text: str, taken: bool) -> None:  # type: ignore[no-untyped-def]
    assert matches(glob, text) is taken


@pytest.mark.parametrize(
    ("glob", "text"),
    [
        ("src/**", "src/../secret"),
        ("src/**", "src/a/../../secret"),
        ("src/**", "src/.."),
        ("src/**", "src\\..\\..\\secret"),
        ("src/**", "src/..\\..\\secret"),
        ("**", "../outside"),
        ("**", "a/../../outside"),
        ("*", ".."),
        ("/home/me/**", "/home/me/../you/a"),
        ("../common/**", "../common/../../x"),
        ("https://example.com/v1/**", "https://example.com/v1/../admin"),
        ("https://example.com/v1/**", "https://example.com/v1/%2e%2e/admin"),
        ("https://example.com/v1/**", "https://example.com/v1/..%2Fadmin"),
        ("src/**", "SRC/a.py"),
        ("src/**", "/project/src/a.py"),
        ("src/**", "./src/a.py"),
    ],
)
def test_a_glob_that_allows_takes_nothing_that_may_lead_elsewhere(glob: str, text: str) -> None:
    assert not matches_exactly(glob, text)


@pytest.mark.parametrize(
    ("glob", "text"),
    [
        ("src/**", "src/a/../b.py"),
        ("../x", "../x"),
        ("src/../x", "src/../x"),
        ("../common/**", "../common/a/../b"),
        ("**", "a..b/c"),
    ],
)
def test_a_glob_that_allows_takes_dots_that_stay_inside_it(glob: str, text: str) -> None:
    assert matches_exactly(glob, text)


@pytest.mark.parametrize(
    "text",
    [
        "secret/key",
        "secret/deep/key",
        "./secret/key",
        "public/../secret/key",
        "secret\\key",
        "Secret/KEY",
        "secret",
        "/project/secret/key",
        "C:\\project\\secret\\key",
        "file:///project/secret/key",
        "/project/x/../secret/key",
    ],
)
def test_a_glob_that_denies_takes_every_spelling_of_a_path(text: str) -> None:
    assert matches_generously("secret/**", text)


@pytest.mark.parametrize("text", ["public/key", "secrets/key", "public/secret/key", "/project/secrets/key"])
def test_a_glob_that_denies_takes_no_other_path(text: str) -> None:
    assert not matches_generously("secret/**", text)


@pytest.mark.parametrize(
    ("glob", "name", "taken"),
    [
        ("*", "any/thing", True),
        ("mcp:*", "mcp:git/hub", True),
        ("mcp:*", "mcp:", True),
        ("mcp:*", "xmcp:a", False),
        ("git__*", "git__log", True),
        ("git__*", "GIT__log", False),
        ("tool[1]", "tool1", True),
        ("tool[1]", "tool[1]", True),
        ("a?c", "abc", True),
        ("a.c", "abc", False),
    ],
)
def test_a_glob_over_names_takes_a_name(glob: str, name: str, taken: bool) -> None:
    assert name_matches(glob, name) is taken


@given(st.text())
def test_a_quoted_text_is_a_glob_that_takes_the_text(text: str) -> None:
    assert matches_exactly(quoted(text), text)
    assert name_matches(quoted(text), text)


@given(st.text(alphabet="a*?[]!./\\-"), st.text(alphabet="a*?[]!./\\-"))
def test_a_quoted_text_takes_nothing_else_and_no_glob_breaks(glob: str, text: str) -> None:
    assert matches_exactly(quoted(glob), text) is (glob == text)
    matches_exactly(glob, text)
    matches_generously(glob, text)


@pytest.mark.timeout(5)
@pytest.mark.parametrize("glob", ["**a**b**c**d", "**/a/**/b**/c", "a*a*a*c", "a*a*a**b*c**d", "x**"])
@pytest.mark.parametrize("text", ["a" * 300_000, "a/" * 100_000, "/" + "b/" * 100_000])
def test_no_long_text_keeps_a_glob_busy(glob: str, text: str) -> None:
    assert not matches_generously(glob, text)


def taken_by_trying_everything(glob: str, text: str) -> bool:
    """The meaning of stars, as plainly as it can be said."""
    if not glob:
        return not text
    if glob.startswith("**"):
        rest = glob.lstrip("*")
        return any(taken_by_trying_everything(rest, text[start:]) for start in range(len(text) + 1))
    if glob.startswith("*"):
        reach = len(text.partition("/")[0])
        return any(taken_by_trying_everything(glob[1:], text[start:]) for start in range(reach + 1))
    return text[:1] == glob[0] and taken_by_trying_everything(glob[1:], text[1:])


@given(
    st.text(alphabet="ab*/", max_size=9).filter(lambda glob: "**/" not in glob),
    st.text(alphabet="ab/", max_size=12),
)
def test_matching_fast_takes_what_trying_everything_takes(glob: str, text: str) -> None:
    assert matches_exactly(glob, text) is taken_by_trying_everything(glob, text)
