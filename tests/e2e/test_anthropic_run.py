"""A run on the Messages API, through the whole sidecar: calls, thinking that goes back, retries, stop reasons.

Source: protocol.md, "Options" and "Decided cases" 10 and 11; Anthropic's API reference, version 2023-06-01.
"""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.anthropic_dialect import redacted, text, thinking, tool_use
from tests.harness.host import RequestFailed, sidecar
from tests.harness.model_server import ScriptedModel, anthropic_error, calls, messages_stream, says

KEY = "sk-ant-very-secret-1234"


def options(model: ScriptedModel, **provider: Any) -> dict[str, Any]:
    """Options that reach the scripted model under the name `claude/scripted`."""
    entry = {"api": "anthropic", "baseUrl": model.base_url.removesuffix("/v1"), **provider}
    return {"model": "claude/scripted", "providers": {"claude": entry}, "system": "Be brief."}


async def test_thoughts_are_shown_kept_and_sent_back_as_they_came(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    (tmp_path / "b.txt").write_text("nothing")
    first = [
        thinking("Two files — “a” and 'b'.\n"),
        redacted(),
        text("Let me see."),
        tool_use("toolu_1", "read_file", {"path": "a.txt"}),
        thinking("And the other."),
        tool_use("toolu_2", "read_file", {"path": "b.txt"}),
    ]
    last = [thinking("Now I know."), text("a.txt says forty-two.")]
    script = (messages_stream(*first, stop_reason="tool_use"), messages_stream(*last), says("You are welcome."))
    parameters = {"thinking": {"type": "adaptive"}}
    scripted = ScriptedModel(*script, dialect="anthropic", api_key=KEY)
    async with (
        scripted as model,
        sidecar(options(model, apiKey=KEY, parameters=parameters), folders=[tmp_path]) as host,
    ):
        result = await host.submit("What do a.txt and b.txt say?")
        await host.submit("thanks", sessionId=result["sessionId"])
        session = await host.request("session/get", {"sessionId": result["sessionId"]})
    assert (result["message"]["content"], result["turns"]) == ("a.txt says forty-two.", 2)
    shown = "".join(event["text"] for event in host.kinds("assistantReasoningDelta"))
    assert shown == "Two files — “a” and 'b'.\nAnd the other.Now I know."
    assert [event["isError"] for event in host.kinds("toolExecutionCompleted")] == [False, False]
    assert session["messages"][1]["providerExtras"]["provider"] == "claude"
    sent = model.requests[2].messages
    assert [message["role"] for message in sent] == ["user", "assistant", "user", "assistant", "user"]
    assert sent[1]["content"] == first
    assert sent[3]["content"] == last
    assert [block["tool_use_id"] for block in sent[2]["content"]] == ["toolu_1", "toolu_2"]
    assert KEY not in str(host.events) + str(session)


async def test_an_overloaded_model_is_asked_again() -> None:
    busy = anthropic_error(529, "overloaded_error", "Overloaded", headers={"Retry-After": "0"})
    scripted = ScriptedModel(busy, says("here"), dialect="anthropic")
    async with scripted as model, sidecar(options(model)) as host:
        assert (await host.submit("hi"))["message"]["content"] == "here"
    (retry,) = host.kinds("retrying")
    assert "Overloaded" in retry["reason"]


@pytest.mark.parametrize(("finish", "reason"), [("length", "length"), ("content_filter", "contentFilter")])
async def test_a_run_ends_for_the_reason_that_the_model_gives(finish: str, reason: str) -> None:
    scripted = ScriptedModel(says("well", finish=finish), dialect="anthropic")
    async with scripted as model, sidecar(options(model)) as host:
        assert (await host.submit("hi"))["stopReason"] == reason


async def test_a_call_cut_off_by_the_limit_is_not_run_and_leaves_the_history(tmp_path: Path) -> None:
    script = (calls(("read_file", '{"path": "a.'), text="Let me", finish="length"), says("again"))
    async with ScriptedModel(*script, dialect="anthropic") as model, sidecar(options(model)) as host:
        result = await host.submit("go")
        assert (result["stopReason"], host.kinds("toolExecutionStarted")) == ("length", [])
        await host.submit("go on", sessionId=result["sessionId"])
    assert model.requests[1].messages[1] == {"role": "assistant", "content": [text("Let me")]}


async def test_a_refused_key_says_where_it_is_written() -> None:
    scripted = ScriptedModel(dialect="anthropic", api_key="other")
    async with scripted as model, sidecar(options(model, apiKeyEnv="CLAUDE_KEY"), env={"CLAUDE_KEY": KEY}) as host:
        with pytest.raises(RequestFailed, match="CLAUDE_KEY") as failed:
            await host.submit("hi")
    assert (failed.value.data["kind"], failed.value.data["status"]) == ("modelError", 401)
    assert KEY not in str(failed.value)


async def test_a_conversation_can_change_its_provider_in_the_middle(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("forty-two")
    read = messages_stream(
        thinking("hm"), tool_use("toolu_1", "read_file", {"path": "a.txt"}), stop_reason="tool_use"
    )
    async with (
        ScriptedModel(read, says("Done."), says("And again."), dialect="anthropic") as claude,
        ScriptedModel(calls(("read_file", {"path": "a.txt"}, "functions.read_file:0")), says("Yes.")) as other,
    ):
        settings = options(claude)
        settings["providers"]["other"] = {"baseUrl": other.base_url}
        async with sidecar(settings, folders=[tmp_path]) as host:
            result = await host.submit("read it")
            ids = {"sessionId": result["sessionId"]}
            await host.submit("and you?", model="other/scripted", **ids)
            await host.submit("once more", **ids)
    assert "thinking" not in str(other.requests[0].messages)
    assert claude.requests[2].messages[1]["content"][0] == thinking("hm")
