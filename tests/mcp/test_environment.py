"""What a server is given of our environment, and how its program is found. Own choice."""

import os
from pathlib import Path

from sidecar.mcp.environment import child_environment, find_program

OURS = {
    "PATH": "/usr/bin",
    "HOME": "/home/ada",
    "LC_ALL": "C.UTF-8",
    "XDG_CONFIG_HOME": "/home/ada/.config",
    "https_proxy": "http://proxy:3128",
    "NODE_EXTRA_CA_CERTS": "/etc/ca.pem",
    "AWS_SECRET_ACCESS_KEY": "secret",
    "OPENAI_API_KEY": "secret",
    "npm_config__auth": "secret",
    "WANTED": "yes",
}


def test_a_server_sees_what_programs_need_and_nothing_else() -> None:
    assert child_environment(OURS, inherit=(), own={}) == {
        name: OURS[name]
        for name in ("PATH", "HOME", "LC_ALL", "XDG_CONFIG_HOME", "https_proxy", "NODE_EXTRA_CA_CERTS")
    }


def test_named_variables_are_passed_on_and_missing_ones_are_not_made_up() -> None:
    child = child_environment(OURS, inherit=("WANTED", "ABSENT"), own={})
    assert child["WANTED"] == "yes"
    assert "ABSENT" not in child


def test_the_entry_has_the_last_word() -> None:
    child = child_environment(OURS, inherit=("WANTED",), own={"PATH": "/opt", "WANTED": None, "NEW": ""})
    assert (child["PATH"], child["NEW"]) == ("/opt", "")
    assert "WANTED" not in child


def test_the_first_folder_of_the_path_wins_and_only_programs_count(tmp_path: Path) -> None:
    for name, mode in (("a", 0o644), ("b", 0o755), ("c", 0o755)):
        (tmp_path / name).mkdir()
        (tmp_path / name / "tool").write_text("#!/bin/sh\n")
        (tmp_path / name / "tool").chmod(mode)
    (tmp_path / "tool").write_text("#!/bin/sh\n")
    (tmp_path / "tool").chmod(0o755)
    path = os.pathsep.join(("", str(tmp_path / "a"), "b", str(tmp_path / "c")))
    assert find_program("tool", environ={"PATH": path}, folder=tmp_path) == str(tmp_path / "b" / "tool")


def test_a_folder_is_no_program(tmp_path: Path) -> None:
    (tmp_path / "tool").mkdir()
    assert find_program("tool", environ={"PATH": str(tmp_path)}, folder=tmp_path) is None
