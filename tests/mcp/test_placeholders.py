"""Placeholders in server entries. Source: protocol.md, configuration of MCP servers."""

import os

import pytest

from sidecar.mcp.placeholders import PlaceholderError, Surroundings, expand, input_ids

SURROUNDINGS = Surroundings(
    workspace="/repo",
    home="/home/ada",
    environ={"TOKEN": "t0k", "EMPTY": "", "NESTED": "${TOKEN}"},
    inputs={"api-key": "k3y"},
)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain $HOME {x} $TOKEN", "plain $HOME {x} $TOKEN"),
        ("${workspaceFolder}/src", "/repo/src"),
        ("${workspaceFolderBasename}${/}src${pathSeparator}", f"repo{os.sep}src{os.sep}"),
        ("${userHome}/.cache", "/home/ada/.cache"),
        ("~/bin/server", "/home/ada/bin/server"),
        ("a/~/b", "a/~/b"),
        ("~", "~"),
        ("${env:TOKEN}", "t0k"),
        ("${TOKEN}", "t0k"),
        ("Bearer ${TOKEN}!", "Bearer t0k!"),
        ("${TOKEN:-other}", "t0k"),
        ("${MISSING:-other}", "other"),
        ("${MISSING:-}", ""),
        ("${EMPTY:-other}", "other"),
        ("${EMPTY}", ""),
        ("${env:MISSING:-a:-b}", "a:-b"),
        ("${input:api-key}", "k3y"),
        ("${NESTED}", "${TOKEN}"),
        ("${TOKEN}${TOKEN}", "t0kt0k"),
    ],
)
def test_a_placeholder_is_replaced_by_what_it_stands_for(text: str, expected: str) -> None:
    assert expand(text, SURROUNDINGS) == expected


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("${MISSING}", "MISSING"),
        ("${env:MISSING}", "MISSING"),
        ("${input:other}", "${input:other}"),
        ("${command:pick}", "${command:pick}"),
        ("${}", "${}"),
        ("${a b}", "${a b}"),
    ],
)
def test_an_unset_or_unknown_placeholder_is_named(text: str, named: str) -> None:
    with pytest.raises(PlaceholderError) as caught:
        expand(text, SURROUNDINGS)
    assert named in str(caught.value)


@pytest.mark.parametrize("text", ["${workspaceFolder}", "${userHome}", "~/x"])
def test_folders_that_are_not_known_are_named(text: str) -> None:
    with pytest.raises(PlaceholderError):
        expand(text, Surroundings())


def test_inputs_are_found_once_each_and_in_order() -> None:
    texts = ["${input:b} ${TOKEN}", "x", "${input:a}${input:b}", "${env:input}"]
    assert input_ids(texts) == ("b", "a")
