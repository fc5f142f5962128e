"""What is known as a secret shows nowhere. Source: protocol.md, Security; what counts as one is our own choice."""

import json

import pytest

from sidecar.protocol.secrets import Secrets

KEY = 'sk-live-"quoted"-0123456789'


@pytest.fixture
def secrets() -> Secrets:
    return Secrets([KEY, "short", "", "-----BEGIN KEY-----\nMIIEvQIBADANBg\n-----END KEY-----\n"])


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        (f"key {KEY}!", "key ***!"),
        (json.dumps({"key": KEY}), '{"key": "***"}'),
        (KEY * 2, "******"),
        ("a short word", "a short word"),
        ("only MIIEvQIBADANBg of it", "only *** of it"),
        ("", ""),
    ],
)
def test_a_secret_is_hidden_in_every_spelling(secrets: Secrets, text: str, shown: str) -> None:
    assert secrets.hide(text) == shown


def test_secrets_are_hidden_anywhere_in_json(secrets: Secrets) -> None:
    value = {"a": [KEY, {KEY: 1, "b": True}], "n": None, "x": 1.5}
    assert secrets.hide_in(value) == {"a": ["***", {"***": 1, "b": True}], "n": None, "x": 1.5}
    assert secrets.hide_in(["plain"]) == ["plain"]


def test_a_secret_within_another_leaves_nothing_of_it() -> None:
    secrets = Secrets(["abcdef"])
    secrets.add(["abcdefghi"])
    assert secrets.hide("abcdefghi abcdef") == "*** ***"


def test_they_do_not_show_themselves(secrets: Secrets) -> None:
    assert KEY not in repr(secrets)
