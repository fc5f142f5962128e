"""The user's configuration file: what is wrong is told with file and line (protocol.md, Options)."""

from pathlib import Path

import pytest

from sidecar.config import read_user_file
from sidecar.protocol.errors import ConfigurationError

RULES = b"""\
[permissions]
allowed = ["read"]

[[permissions.rules]]
tool = "a"

[[permissions.rules]]
tool = "b"
decision = "maybe"
"""


def fault(folder: Path, data: bytes) -> str:
    file = folder / "config.toml"
    file.write_bytes(data)
    with pytest.raises(ConfigurationError) as failed:
        read_user_file(file, required=False)
    return failed.value.message.removeprefix(f"{file}:")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        (b"model = 5", "1: model: must be a string"),
        (b"\n[cycle]\n\nmaxTurns = 0\n", "4: cycle.maxTurns: must be more than 0"),
        (b'[permissions]\nask = ["wirte"]', "2: permissions.ask[0]: unknown permission 'wirte'"),
        (RULES, "4: permissions.rules[0].decision: is required"),
        (RULES.replace(b'"a"', b'"a"\ndecision = "ask"'), "10: permissions.rules[1].decision: must be one of"),
        (b"a = 1\nmodel == 2\n", "2: Invalid value"),
        (b"a = 1\nmodel =", "2: Invalid value"),
        (b"a = 1\na = 2\n\n", "2: Cannot overwrite a value"),
        (b'a = 1\nmodel = "\xff"\n', "2: must be written in UTF-8"),
        (b"a = " + b"[" * 100_000, "1: "),
    ],
)
def test_a_fault_is_told_with_its_line(tmp_path: Path, data: bytes, said: str) -> None:
    assert fault(tmp_path, data).startswith(said)


def test_a_file_cannot_trust_every_workspace_there_is(tmp_path: Path) -> None:
    said = fault(tmp_path, b'model = "a/b"\ntrustWorkspace = true\n')
    assert said.startswith("2: trustWorkspace: is for a host to say") and "agent-sidecar trust FOLDER" in said
    (tmp_path / "config.toml").write_bytes(b"trustWorkspace = false")
    assert read_user_file(tmp_path / "config.toml", required=True)["trustWorkspace"] is False


def test_a_byte_order_mark_is_passed_over(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b'\xef\xbb\xbfmodel = "a/b"')
    assert read_user_file(file, required=True)["model"] == "a/b"
