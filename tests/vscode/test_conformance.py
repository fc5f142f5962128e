"""The extension in the real VS Code keeps every rule that the kit has for hosts.

Source: protocol.md, chapter Conformance; the host is `tests/conformance_kit/drivers/vscode.mjs`, a window for each
conversation.
"""

import json
import sys
from pathlib import Path

import pytest

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.report import as_text
from sidecar.conformance.rules import Outcome
from sidecar.conformance.transcripts import read_kit
from tests.conformance_kit.judging import troubles
from tests.harness.vscode_extension import Extension, extension
from tests.vscode.driving import Editor, browsing, editor, serving

__all__ = ["editor", "extension"]

pytestmark = [
    pytest.mark.conformance,
    pytest.mark.skipif(sys.platform != "linux", reason="processes are replaced the POSIX way"),
]

DRIVER = Path(__file__).parents[1] / "conformance_kit/drivers/vscode.mjs"
RELAY = Path(__file__).with_name("relay.py")
BOUND_SECS = 40.0
"""A window takes some seconds until it is there, and longer where several are opened at once."""

NOT_IN_VSCODE = {"H035", "H067", *(f"H{number:03}" for number in range(72, 81)), "H096", "H098"}
"""It offers the editor's own tools and lends the editor's own models; declining is the same as closing."""


@pytest.mark.timeout(1200)
async def test_the_extension_keeps_every_rule_that_is_about_it(
    editor: Editor, extension: Extension, tmp_path: Path
) -> None:
    folders = tmp_path / "folders"
    folders.mkdir()
    settings = {
        "agentSidecar.command": [sys.executable, str(RELAY)],
        "security.workspace.trust.enabled": False,
    }
    async with (
        serving(editor, extension, tmp_path / "editor", settings) as url,
        browsing(editor, tmp_path / "browser") as browser,
    ):
        given = {"url": url, "folders": str(folders), "modules": str(editor.modules), "browser": browser}
        report = await judge_host(
            ["node", str(DRIVER), json.dumps(given)], read_kit("host"), bound_secs=BOUND_SECS, side_by_side=2
        )
    assert troubles(report).keys() == NOT_IN_VSCODE, as_text(report)
    assert {each.rule.id for each in report.verdicts if each.outcome is Outcome.SKIPPED} == NOT_IN_VSCODE
