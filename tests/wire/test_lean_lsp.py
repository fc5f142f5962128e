"""LSP's classes behave as attrs makes them, though they are made in another way. Source: attrs, `define`."""

import json
import subprocess
import sys

import pytest

from tests.harness.tidy import ROOT

USES = """
import json
from lsprotocol import types as t
a, b = t.TextEdit(t.Range(t.Position(1, 2), t.Position(3, 4)), "x"), t.MarkupContent(t.MarkupKind.Markdown, "y")
same = t.TextEdit(t.Range(t.Position(1, 2), t.Position(3, 4)), "x")
other = t.TextEdit(t.Range(t.Position(1, 2), t.Position(3, 5)), "x")
def hashed(value):
    try:
        return isinstance(hash(value), int)
    except TypeError:
        return "unhashable"
print(json.dumps([a == same, a != same, a == other, a == b, a == "x", repr(a), repr(b), hashed(a), hashed(b),
                  t.Position(1, 2) < t.Position(1, 3), a in [other, same]]))
"""


def answers(first: str) -> list[object]:
    """What the uses give in a process of their own that has imported this before."""
    command = [sys.executable, "-c", first + USES]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    "first", ["import sidecar.server", "import sidecar.server, attrs\nattrs.define(type('X', (), {}))"]
)
def test_classes_of_lsp_compare_and_show_themselves_as_ever(first: str) -> None:
    assert answers(first) == answers("import lsprotocol.types")
