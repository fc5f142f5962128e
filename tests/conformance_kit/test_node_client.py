"""The client library for Node keeps every rule that the kit has for hosts.

Source: protocol.md, chapter Conformance; the host is `drivers/node_client.mjs`.
"""

import shutil
from pathlib import Path

import pytest

from sidecar.conformance.judge_host import judge_host
from sidecar.conformance.report import as_text
from sidecar.conformance.rules import all_passed
from sidecar.conformance.transcripts import read_kit
from tests.harness.node_client import NodeClient, node_client

__all__ = ["node_client"]

DRIVER = Path(__file__).with_name("drivers") / "node_client.mjs"


@pytest.mark.conformance
@pytest.mark.timeout(120)
async def test_the_client_for_node_keeps_every_rule_of_hosts(node_client: NodeClient) -> None:
    program = shutil.copy(DRIVER, node_client.folder)  # Where the package is found by its own name.
    report = await judge_host(["node", program], read_kit("host"), side_by_side=8)
    assert all_passed(report.verdicts), as_text(report)
