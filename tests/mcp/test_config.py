"""Entries of `mcpServers`. Source: protocol.md, configuration of MCP servers; files of other hosts."""

import sys
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp.config import StdioServer, decode_server, expand_server, ignored_settings, plan_launch
from sidecar.mcp.placeholders import Surroundings
from sidecar.protocol.errors import ConfigurationError

PATH = "mcpServers.git"


def test_an_entry_becomes_a_value() -> None:
    raw = {
        "type": "stdio",
        "command": "uvx",
        "args": ["mcp-server-git"],
        "env": {"A": "1", "PORT": 3000, "GONE": None},
        "cwd": "sub",
        "inheritEnv": ["SSH_AUTH_SOCK"],
        "timeoutSecs": 5,
        "startTimeoutSecs": 7.5,
        "disabled": True,
        "permissions": {"git_*": ["read"]},
        "gallery": "of another host",
    }
    assert decode_server("git", raw) == StdioServer(
        command="uvx",
        args=("mcp-server-git",),
        env={"A": "1", "PORT": 3000, "GONE": None},
        cwd="sub",
        inherit_env=("SSH_AUTH_SOCK",),
        timeout_secs=5.0,
        start_timeout_secs=7.5,
        disabled=True,
        permissions={"git_*": ("read",)},
    )


def test_what_is_null_or_missing_takes_its_default() -> None:
    raw = {"command": "x", "args": None, "env": [], "cwd": None, "timeoutSecs": None}
    assert decode_server("git", raw) == StdioServer(command="x")


@pytest.mark.parametrize(
    ("raw", "path"),
    [
        ("uvx", ""),
        ([], ""),
        ({}, ".command"),
        ({"command": ["npx", "-y"]}, ".command"),
        ({"command": "  "}, ".command"),
        ({"command": "x", "args": "-y"}, ".args"),
        ({"command": "x", "args": ["-y", 3]}, ".args[1]"),
        ({"command": "x", "env": {"DEBUG": True}}, ".env.DEBUG"),
        ({"command": "x", "inheritEnv": "HOME"}, ".inheritEnv"),
        ({"command": "x", "timeoutSecs": "30"}, ".timeoutSecs"),
        ({"command": "x", "timeoutSecs": 0}, ".timeoutSecs"),
        ({"command": "x", "startTimeoutSecs": -1}, ".startTimeoutSecs"),
        ({"command": "x", "disabled": "false"}, ".disabled"),
        ({"command": "x", "permissions": {"*": "read"}}, ".permissions.*"),
    ],
)
def test_a_fault_is_named_by_its_path(raw: Any, path: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        decode_server("git", raw)
    assert caught.value.path == PATH + path
    assert str(caught.value).startswith(PATH + path + ": ")


def test_approvals_of_other_hosts_are_noticed_where_they_would_do_something() -> None:
    assert ignored_settings({"autoApprove": ["a"], "alwaysAllow": [], "trust": True}) == ("autoApprove", "trust")


def test_placeholders_are_replaced_everywhere_but_in_names() -> None:
    server = StdioServer(
        command="${BIN}/x", args=("a", "${BIN}"), env={"${BIN}": "${BIN}", "N": 1, "GONE": None}, cwd="~/${BIN}"
    )
    surroundings = Surroundings(home="/home/ada", environ={"BIN": "bin"})
    assert expand_server(server, surroundings, path=PATH) == StdioServer(
        command="bin/x", args=("a", "bin"), env={"${BIN}": "bin", "N": 1, "GONE": None}, cwd="/home/ada/bin"
    )


@pytest.mark.parametrize(
    ("server", "place"),
    [
        (StdioServer(command="${NO}"), "command"),
        (StdioServer(command="x", args=("a", "${NO}")), "args[1]"),
        (StdioServer(command="x", env={"KEY": "${NO}"}), "env.KEY"),
        (StdioServer(command="x", cwd="${NO}"), "cwd"),
    ],
)
def test_an_unset_placeholder_is_named_with_its_place(server: StdioServer, place: str) -> None:
    with pytest.raises(ConfigurationError, match="environment variable NO is not set") as caught:
        expand_server(server, Surroundings(), path=PATH)
    assert caught.value.path == f"{PATH}.{place}"


def test_relative_paths_start_at_the_folder(tmp_path: Path) -> None:
    (tmp_path / "tools").mkdir()
    program = tmp_path / "tools" / "server"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    server = StdioServer(command="tools/server", cwd="tools", args=("x",))
    launch = plan_launch(server, path=PATH, environ={}, folder=tmp_path)
    assert (launch.program, launch.args, launch.folder) == (str(program), ("x",), tmp_path / "tools")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is not a folder") as caught:
        plan_launch(StdioServer(command=sys.executable, cwd="nowhere"), path=PATH, environ={}, folder=tmp_path)
    assert caught.value.path == f"{PATH}.cwd"


@pytest.mark.parametrize(
    ("fields", "place"),
    [
        ({"command": "a\0b"}, "command"),
        ({"args": ("x", "a\0b")}, "args[1]"),
        ({"cwd": "a\0b"}, "cwd"),
        ({"env": {"TOKEN": "s3cr3t\0"}}, "env.TOKEN"),
        ({"env": {"": "x"}}, "env."),
        ({"env": {"A=B": "x"}}, "env.A=B"),
        ({"env": {"A\0": None}}, "env.A\0"),
        ({"inherit_env": ("A=B",)}, "inheritEnv"),
    ],
)
def test_what_no_program_can_be_started_with_is_named(fields: Any, place: str, tmp_path: Path) -> None:
    server = StdioServer(**{"command": sys.executable, **fields})
    with pytest.raises(ConfigurationError) as caught:
        plan_launch(server, path=PATH, environ={}, folder=tmp_path)
    assert caught.value.path == f"{PATH}.{place}"
    assert "s3cr3t" not in str(caught.value)


def test_a_folder_that_is_no_path_is_no_crash() -> None:
    with pytest.raises(ConfigurationError, match="cwd: must not hold a NUL character"):
        plan_launch(StdioServer(command=sys.executable), path=PATH, environ={}, folder=Path("/a\0b"))


@pytest.mark.parametrize(
    ("command", "advice"),
    [("no-such-program", "install it, or give its full path"), ("npx -y server", "put its arguments into args")],
)
def test_a_program_that_is_not_there_is_named_with_what_to_do(command: str, advice: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError) as caught:
        plan_launch(StdioServer(command=command), path=PATH, environ={"PATH": str(tmp_path)}, folder=tmp_path)
    assert str(caught.value) == f"{PATH}.command: the program {command!r} was not found; {advice}"


def test_the_program_is_looked_up_in_the_path_that_the_entry_gives(tmp_path: Path) -> None:
    program = tmp_path / "only-here"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    server = StdioServer(command="only-here", env={"PATH": str(tmp_path)})
    launch = plan_launch(server, path=PATH, environ={"PATH": "/usr/bin"}, folder=tmp_path)
    assert launch.program == str(program)


def test_secrets_are_known_by_the_name_of_their_variable_and_never_shown(tmp_path: Path) -> None:
    server = StdioServer(
        command=sys.executable,
        env={"GITHUB_TOKEN": "s3cr3t-1", "MODE": "production", "KEY": "abc"},
        args=("s3cr3t-2",),
    )
    launch = plan_launch(server, path=PATH, environ={}, folder=tmp_path, inputs=("s3cr3t-3",))
    assert launch.secrets == ("s3cr3t-3", "s3cr3t-1")
    assert "s3cr3t" not in repr(launch) + repr(server)


# envFile ------------------------------------------------------------------------------------------------


def planned(folder: Path, **entry: Any) -> dict[str, str]:
    server = decode_server("git", {"command": sys.executable, **entry})
    return plan_launch(server, path=PATH, environ={}, folder=folder).environ


def test_variables_come_from_a_file_and_the_entry_outweighs_them(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text(
        "\ufeff# made by hand\n\nA=1\r\nexport B = \"two\\nlines\" # note\nC='x # y'\nD=plain value # note\n"
        'E=\nF=a#b\nG=gone\nH="over\ntwo"\nA=last',
        encoding="utf-8",
    )
    environ = planned(tmp_path, envFile=".env", env={"D": "mine", "G": None})
    assert environ == {
        "A": "last",
        "B": "two\nlines",
        "C": "x # y",
        "D": "mine",
        "E": "",
        "F": "a#b",
        "H": "over\ntwo",
    }


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (None, "cannot be read: No such file or directory"),
        (b"A=1\n\nsk-secret\n", "line 3 must be NAME=value"),
        (b"A=1\n=x", "line 2 must be NAME=value"),
        (b"A=\xff", "must be written in UTF-8"),
    ],
)
def test_a_file_of_variables_that_cannot_be_used_fails_by_its_path_alone(
    tmp_path: Path, content: bytes | None, reason: str
) -> None:
    file = tmp_path / ".env"
    if content is not None:
        file.write_bytes(content)
    with pytest.raises(ConfigurationError) as caught:
        planned(tmp_path, envFile=".env")
    assert str(caught.value) == f"{PATH}.envFile: {str(file)!r}: {reason}"
