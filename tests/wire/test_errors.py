"""Errors say what the host can use, and nothing that is only ours.

Source: protocol.md, ground rule 2.5 and Errors.
"""

import json
from pathlib import Path

import pytest

from tests.harness.wire import Wire


def test_an_error_raised_on_purpose_keeps_its_code_message_and_data(server: Wire) -> None:
    assert server.error("tools/call", {"name": "refuse"}) == {
        "code": -31001,
        "message": "there is no tool 'x'",
        "data": {"tool": "x", "nearest": "y", "kind": "notFound"},
    }


@pytest.mark.parametrize("tool", ["crash", "leave", "give_a_set", "give_nan", "refuse_oddly"])
def test_a_failure_of_ours_is_an_internal_error_with_the_id_of_its_log_entry(server: Wire, tool: str) -> None:
    error = server.error("tools/call", {"name": tool})
    assert error["code"] == -32603
    assert set(error["data"]) == {"kind", "logId"}
    assert error["data"]["kind"] == "internalError"
    server.wait_until_printed(f"[{error['data']['logId']}]\nTraceback")


@pytest.mark.parametrize("tool", ["crash", "leave", "give_a_set", "give_nan", "refuse_oddly"])
def test_no_traceback_no_path_and_no_exception_text_goes_over_the_wire(server: Wire, tool: str) -> None:
    answer = json.dumps(server.error("tools/call", {"name": tool}))
    for word in ("Traceback", "sk-secret", "Error:", ".py", str(Path(__file__).parents[2])):
        assert word not in answer


def test_a_notification_of_ours_that_is_no_json_fails_where_it_is_sent(server: Wire) -> None:
    assert server.error("tools/call", {"name": "notify_nonsense"})["code"] == -32603
