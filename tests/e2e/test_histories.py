"""What a host says to a model by `prompt`, `messages` and `agent/steer` (protocol.md, decided case 11).

Every request is checked by the scripted model server as the strictest providers would.
"""

from typing import Any

import pytest

from tests.e2e.test_run import options
from tests.harness.host import Host, RequestFailed, sidecar
from tests.harness.model_server import ScriptedModel, says, stalls

NOTHING: list[Any] = ["", [], [{"type": "text", "text": ""}]]

CALL = {"callId": "c", "toolName": "read_file", "input": {"path": "a"}}


async def refused(host: Host, method: str, params: Any) -> RequestFailed:
    with pytest.raises(RequestFailed) as failed:
        await host.request(method, params)
    return failed.value


async def test_a_prompt_that_says_nothing_is_refused() -> None:
    async with ScriptedModel() as model, sidecar(options(model)) as host:
        for prompt in NOTHING:
            error = await refused(host, "agent/submit", {"prompt": prompt})
            assert (error.code, error.data["path"]) == (-32602, "params.prompt")


async def test_words_that_say_nothing_do_not_join_a_run() -> None:
    slow = stalls(says("abc", piece_characters=1), after=2)
    async with ScriptedModel(slow) as model, sidecar(options(model)) as host:
        run = host.send("agent/submit", {"prompt": "go", "runId": "r"})
        await host.wait_for_event("assistantTextDelta")
        for prompt in NOTHING:
            error = await refused(host, "agent/steer", {"runId": "r", "prompt": prompt})
            assert (error.code, error.data["path"]) == (-32602, "params.prompt")
        slow.stall.release()
        assert (await run)["turns"] == 1


@pytest.mark.parametrize(
    "messages",
    [
        [],
        [{"role": "user", "content": ""}],
        [{"role": "assistant", "content": ""}],
        [{"role": "tool", "content": "x", "callId": "c"}],
    ],
)
async def test_messages_of_which_nothing_is_left_are_refused(messages: Any) -> None:
    async with ScriptedModel() as model, sidecar(options(model)) as host:
        error = await refused(host, "agent/submit", {"messages": messages})
    assert (error.code, error.data["path"]) == (-32602, "params.messages")
    assert host.events == []


@pytest.mark.parametrize(
    ("messages", "warnings"),
    [
        ([{"role": "user", "content": ""}], ["an empty user message was left out"]),
        (
            [{"role": "system", "content": [{"type": "text", "text": ""}]}],
            ["an empty system message was left out"],
        ),
        (
            [
                {"role": "assistant", "content": "", "toolCalls": [CALL, CALL]},
                {"role": "tool", "content": "1", "callId": "c"},
            ],
            [
                "the call id 'c' is empty or in use; the call was given another",
                "call 'c' had no result and was given one",
            ],
        ),
        ([{"role": "user", "content": "hi", "toolCalls": [CALL]}], ["the calls of a user message were left out"]),
    ],
)
async def test_a_broken_history_is_mended_and_each_mending_told(messages: Any, warnings: list[str]) -> None:
    async with ScriptedModel(says("ok")) as model, sidecar(options(model)) as host:
        await host.request("agent/submit", {"messages": [*messages, {"role": "user", "content": "go"}]})
    assert [w["message"] for w in host.kinds("warning") if w["code"] == "historyMended"] == warnings
