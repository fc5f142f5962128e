"""A model that the host lends, through the client library.

Source: protocol.md, `model/complete` and `model/delta`.
"""

from pathlib import Path
from typing import Any

import pytest
from sidecar_client import ModelCall

from tests.harness.scripted_host import answers_in, asks, sidecar
from tests.harness.scripted_sidecar import received

QUESTION = {
    "requestId": "m-1",
    "messages": [{"role": "user", "content": "hi"}],
    "tools": [],
    "idleTimeoutMs": 1000,
}


def plainly(call: ModelCall) -> str:
    call.delta("Hel")
    call.delta("lo")
    return f"Hello to {call.request['messages'][0]['content']}"


async def whole(call: ModelCall) -> dict[str, Any]:
    calls = [{"callId": "c", "toolName": "t", "input": {}}]
    return {"message": {"role": "assistant", "content": "", "toolCalls": calls}, "finishReason": "toolCalls"}


@pytest.mark.parametrize(
    ("model", "deltas", "message"),
    [
        (plainly, ["Hel", "lo"], {"role": "assistant", "content": "Hello to hi"}),
        (
            whole,
            [],
            {"role": "assistant", "content": "", "toolCalls": [{"callId": "c", "toolName": "t", "input": {}}]},
        ),
    ],
)
async def test_a_lent_model_streams_and_answers(
    tmp_path: Path, model: Any, deltas: list[str], message: dict[str, Any]
) -> None:
    async with sidecar(tmp_path, {"agent/submit": asks("model/complete", QUESTION)}, on_model=model) as host:
        await host.submit("hi").result()
    hello, *rest = received(tmp_path)
    assert hello["params"]["capabilities"]["experimental"]["agentSidecar"]["hostModel"] is True
    told = [each["params"] for each in rest if each.get("method") == "model/delta"]
    assert told == [{"requestId": "m-1", "text": text} for text in deltas]
    (answer,) = answers_in(tmp_path)
    assert answer["result"]["message"] == message
    assert [each.get("id") for each in rest].index("q-1") > len(deltas)
