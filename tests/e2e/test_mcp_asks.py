"""What MCP servers ask of their client, through the whole sidecar: roots, a model, a person; and what they tell.

Source: protocol.md, "What servers ask and tell"; MCP 2025-11-25, client. Limits are our own choice.
"""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio
from lsprotocol import types

from sidecar.mcp.duties import MAX_SAMPLES
from sidecar.mcp.server_log import MAX_BURST, MAX_MESSAGE_CHARS
from tests.harness.host import Host, Json, RequestFailed, sidecar
from tests.harness.mcp_box import Box, box_in
from tests.harness.mcp_modern_server import modern_entry
from tests.harness.model_server import Reply, ScriptedModel, SeenRequest, calls, refuses, says

pytestmark = pytest.mark.asyncio(loop_scope="module")

OPTIONS: Json = {"permissions": {"allowed": ["read", "mcp:*"], "ask": []}}
PROMPT: Json = {
    "messages": [
        {"role": "user", "content": {"type": "text", "text": "How many legs has a spider?"}},
        {"role": "assistant", "content": [{"type": "text", "text": "Eight."}]},
        {"role": "user", "content": {"type": "text", "text": "And a fly?"}},
    ],
    "systemPrompt": "Be short.",
    "maxTokens": 20,
    "temperature": 0.5,
    "modelPreferences": {"hints": [{"name": "any"}]},
    "includeContext": "none",
}
FORM: Json = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "size": {"type": "integer", "default": 3},
        "colour": {"type": "string", "enum": ["red", "blue"], "default": "red"},
    },
    "required": ["name", "size"],
}
QUESTION: Json = {"message": "Which one?", "requestedSchema": FORM}
REPLIES = {"And a fly?": says("Six."), "How many legs has a snake?": says("None at all")}


def _answer(request: SeenRequest) -> Reply:
    said: str = request.messages[-1]["content"]
    if said.startswith("visit "):
        return calls((f"{said.removeprefix('visit ')}__needs_page", {}, "c1"))
    if said.startswith("ask "):
        arguments = {"method": "elicitation/create", "params": QUESTION}
        return calls((f"{said.removeprefix('ask ')}__ask", arguments, "c1"))
    return says("Then not.") if "sign in first" in said else REPLIES.get(said, refuses(400, "what is this?"))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[ScriptedModel]:
    async with ScriptedModel(answer=_answer) as model:
        yield model


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def host(model: ScriptedModel) -> AsyncIterator[Host]:
    """The sidecar that the tests of this module share."""
    providers = {"test": {"api": "openai-chat", "baseUrl": model.base_url}}
    async with sidecar({**OPTIONS, "model": "test/m", "providers": providers}) as host:
        yield host


@pytest_asyncio.fixture(loop_scope="module")
async def box(host: Host, model: ScriptedModel) -> AsyncIterator[Box]:
    """A server of the test's own."""
    model.requests.clear()
    async with box_in(host) as box:
        yield box


# Roots --------------------------------------------------------------------------------------------------


async def test_the_roots_are_the_workspace_folders_of_now(tmp_path: Path) -> None:
    first, second = tmp_path / "first", tmp_path / "sécond one"
    for folder in (first, second):
        folder.mkdir()
        (folder / "in.txt").write_text(f"in {folder.name}")
    async with sidecar(OPTIONS, folders=[first]) as host, box_in(host) as box:
        before = await box.ask("roots/list", {})
        change = types.WorkspaceFoldersChangeEvent(
            added=[
                types.WorkspaceFolder(uri=second.as_uri(), name="second"),
                types.WorkspaceFolder(uri="untitled:x", name="none"),
            ],
            removed=[types.WorkspaceFolder(uri=first.as_uri(), name="first")],
        )
        host.client.workspace_did_change_workspace_folders(types.DidChangeWorkspaceFoldersParams(event=change))
        changed = {"method": "notifications/roots/list_changed", "count": 1}
        assert await box.told("received", changed) == [None]
        after = await box.ask("roots/list", {})
        read = {"name": "read_file", "arguments": {"path": str(second / "in.txt")}}
        assert (await host.request("tools/call", read))["content"][0]["text"].endswith("in sécond one")
        with pytest.raises(RequestFailed, match="outside"):
            await host.request("tools/call", {"name": "read_file", "arguments": {"path": str(first / "in.txt")}})
    assert before == {"result": {"roots": [{"uri": first.as_uri(), "name": "first"}]}}
    assert after == {"result": {"roots": [{"uri": second.as_uri(), "name": "sécond one"}]}}


# Sampling -----------------------------------------------------------------------------------------------


async def test_a_model_answers_a_server_once_a_person_has_seen_what_it_will_see(
    box: Box, model: ScriptedModel
) -> None:
    box.answers("agent/requestApproval", {"decision": "allowOnce"})
    assert await box.ask("sampling/createMessage", PROMPT) == {
        "result": {
            "role": "assistant",
            "content": {"type": "text", "text": "Six."},
            "model": "test/m",
            "stopReason": "endTurn",
        }
    }
    (question,) = box.asked("agent/requestApproval")
    assert (question["toolName"], question["permissions"]) == ("sampling/createMessage", [f"mcp:{box.name}"])
    assert box.name in question["title"]
    assert [option["decision"] for option in question["options"]] == ["allowOnce", "deny", "denyAndStop"]
    text = [{"type": "text", "text": "And a fly?"}]
    assert question["input"]["messages"][2] == {"role": "user", "content": text}
    assert (question["input"]["systemPrompt"], question["input"]["maxTokens"]) == ("Be short.", 20)
    (seen,) = model.requests
    assert (seen.body["max_tokens"], seen.body["temperature"]) == (20, 0.5)
    assert seen.messages[0]["content"] == "Be short."
    assert [m["role"] for m in seen.messages] == ["system", "user", "assistant", "user"]


async def test_a_person_may_change_what_a_model_is_asked(box: Box, model: ScriptedModel) -> None:
    message = {"role": "user", "content": "How many legs has a snake?"}
    edits: list[Json] = [{"messages": [message], "maxTokens": 5}, {"messages": []}]
    box.answers("agent/requestApproval", *({"decision": "allowOnce", "updatedInput": edit} for edit in edits))
    with_stop = {**PROMPT, "stopSequences": [" at"]}
    answered = await box.ask("sampling/createMessage", with_stop)
    refused = await box.ask("sampling/createMessage", with_stop)
    assert (answered["result"]["content"]["text"], answered["result"]["stopReason"]) == ("None", "stopSequence")
    (seen,) = model.requests
    assert (seen.messages[-1]["content"], seen.body["max_tokens"]) == ("How many legs has a snake?", 5)
    assert refused["error"]["code"] == -32603


async def test_sampling_is_refused_where_a_person_or_the_protocol_says_no(box: Box, model: ScriptedModel) -> None:
    bad: list[Json] = [
        {**PROMPT, "tools": []},
        {**PROMPT, "maxTokens": 0},
        {**PROMPT, "messages": []},
        {**PROMPT, "messages": [{"role": "system", "content": {"type": "text", "text": "x"}}]},
        {**PROMPT, "messages": [{"role": "user", "content": {"type": "tool_result", "toolUseId": "1"}}]},
    ]
    for params in bad:
        assert (await box.ask("sampling/createMessage", params))["error"]["code"] == -32602, params
    assert box.asked("agent/requestApproval") == []
    box.answers("agent/requestApproval", {"decision": "deny"}, {"decision": "denyAndStop"})
    rejected = {"error": {"code": -1, "message": "user rejected sampling request"}}
    for _ in range(3):
        assert await box.ask("sampling/createMessage", PROMPT) == rejected
    assert len(box.asked("agent/requestApproval")) == 2, "after `denyAndStop` nobody is asked again"
    assert model.requests == []


async def test_a_server_that_asks_for_a_model_again_and_again_is_refused_at_last(box: Box) -> None:
    box.answers("agent/requestApproval", *[{"decision": "deny"}] * MAX_SAMPLES)
    codes = [(await box.ask("sampling/createMessage", PROMPT))["error"]["code"] for _ in range(MAX_SAMPLES + 1)]
    assert codes == [-1] * MAX_SAMPLES + [-32603]


async def test_a_model_that_fails_is_an_error_that_tells_the_server_nothing_of_it(box: Box) -> None:
    box.answers("agent/requestApproval", {"decision": "allowOnce"})
    unknown = {**PROMPT, "messages": [{"role": "user", "content": {"type": "text", "text": "Psst"}}]}
    failure = await box.ask("sampling/createMessage", unknown)
    assert failure == {"error": {"code": -32603, "message": "the client's model could not be asked"}}


async def test_an_editor_without_our_requests_is_asked_by_buttons() -> None:
    lsp = types.ClientCapabilities(
        window=types.WindowClientCapabilities(show_message=types.ShowMessageRequestClientCapabilities())
    )
    shown: list[types.ShowMessageRequestParams] = []
    async with sidecar(OPTIONS, can={}, lsp=lsp) as host, box_in(host) as box:

        @host.client.feature("window/showMessageRequest")
        def choose(params: types.ShowMessageRequestParams) -> types.MessageActionItem:
            shown.append(params)
            return (params.actions or [])[1]

        assert (await box.ask("sampling/createMessage", PROMPT))["error"]["code"] == -1
    (message,) = shown
    assert [action.title for action in message.actions or []] == ["Allow once", "Deny", "Deny, and ask no more"]
    assert all(words in message.message for words in (box.name, "How many legs has a spider?", "Be short."))


async def test_what_a_host_cannot_do_is_neither_declared_nor_done(box: Box) -> None:
    (opening,) = await box.told("received", {"method": "initialize"})
    assert opening["capabilities"] == {
        "roots": {"listChanged": True},
        "sampling": {},
        "elicitation": {"form": {}, "url": {}},
    }
    async with sidecar(OPTIONS, can={}) as host, box_in(host) as other:
        (opening,) = await other.told("received", {"method": "initialize"})
        for method in ("sampling/createMessage", "elicitation/create"):
            assert (await other.ask(method, PROMPT))["error"]["code"] == -32601
    assert opening["capabilities"] == {"roots": {"listChanged": True}}


# Elicitation --------------------------------------------------------------------------------------------


async def test_a_person_answers_a_form_and_what_they_leave_out_has_its_default(box: Box) -> None:
    given: list[tuple[Json, Json]] = [
        (
            {"action": "accept", "content": {"name": "Ada", "colour": "blue"}},
            {"action": "accept", "content": {"name": "Ada", "size": 3, "colour": "blue"}},
        ),
        ({"action": "decline"}, {"action": "decline"}),
        ({"action": "cancel"}, {"action": "cancel"}),
        ({"action": "accept", "content": {"size": 4}}, {"action": "cancel"}),
        ({"action": "accept", "content": {"name": "Ada", "colour": "green"}}, {"action": "cancel"}),
    ]
    box.answers("agent/requestInput", *(answer for answer, _ in given), {"action": "perhaps"})
    for _, expected in given:
        assert await box.ask("elicitation/create", QUESTION) == {"result": expected}
    with box.host.being_odd():
        assert await box.ask("elicitation/create", QUESTION) == {"result": {"action": "cancel"}}
    question = box.asked("agent/requestInput")[0]
    assert question["message"] == f"MCP server {box.name} asks: Which one?"
    assert (question["source"], question["schema"]) == (f"MCP server {box.name}", FORM)


async def test_a_server_that_asks_in_its_results_gets_the_same_answers(host: Host) -> None:
    """Source: MCP 2026-07-28, basic/patterns/mrtr and server/utilities/logging."""
    await host.request("mcp/connect", {"name": "modern", "config": modern_entry()})
    modern = Box(host, "modern")
    modern.answers("agent/requestInput", {"action": "accept", "content": {"colour": "red"}})
    assert await modern.told("with_state", {}) == {
        "same": True,
        "a": {"action": "accept", "content": {"colour": "red"}},
        "b": {"roots": []},
    }
    (question,) = modern.asked("agent/requestInput")
    assert question["message"] == "MCP server modern asks: which colour?"
    await modern.request("mcp/setLogLevel", level="error")
    assert (await modern.told("show", {}))["_meta"]["io.modelcontextprotocol/logLevel"] == "error"


async def test_questions_that_cannot_be_put_are_refused_before_anybody_sees_them(box: Box) -> None:
    page = {"mode": "url", "message": "Go there", "elicitationId": "e"}
    bad: list[Json] = [
        {"mode": "voice", "message": "Say"},
        {"message": "Which?"},
        {"message": "Which?", "requestedSchema": {"type": "string"}},
        {"requestedSchema": FORM},
        page,
        *({**page, "url": url} for url in ("javascript:alert(1)", "file:///etc/passwd", "/in", "https://", 7)),
        {**page, "url": "https://example.com/\u202egro.live"},
    ]
    for params in bad:
        assert (await box.ask("elicitation/create", params))["error"]["code"] == -32602, params
    assert box.asked("agent/requestInput") == []


async def test_a_person_visits_the_page_that_a_call_needs_and_the_call_goes_on(box: Box) -> None:
    box.answers("agent/requestInput", {"action": "accept"})
    assert (await box.call("needs_page", {}))["result"]["data"] == "you have been there"
    (question,) = box.asked("agent/requestInput")
    assert question["url"] == "https://example.com/in"
    assert "schema" not in question
    await box.host.wait_for(lambda: box.notified("agent/inputDone"))
    assert box.notified("agent/inputDone") == [{"requestId": question["requestId"]}]


@pytest.mark.parametrize(
    ("arguments", "given"),
    [({}, {"action": "decline"}), ({"is_never_done": True}, {"action": "accept"})],
    ids=["declined", "still needed"],
)
async def test_a_call_fails_when_its_page_is_not_dealt_with(box: Box, arguments: Json, given: Json) -> None:
    box.answers("agent/requestInput", given)
    with pytest.raises(RequestFailed, match="sign in first") as refused:
        await box.call("needs_page", arguments)
    assert refused.value.data["kind"] == "mcpError"
    assert len(box.asked("agent/requestInput")) == 1


async def test_a_person_who_goes_to_no_page_ends_the_call_and_not_the_run(box: Box) -> None:
    box.answers("agent/requestInput", {"action": "decline"})
    result = await box.host.submit(f"visit {box.name}")
    assert result["message"]["content"] == "Then not."


async def test_no_limit_of_a_call_counts_the_time_of_a_person() -> None:
    """While the person thinks, calls that wait for nobody run out of the same two limits, one after the other."""
    options: Json = {**OPTIONS, "cycle": {"toolTimeoutSecs": 1.0}}
    async with (
        sidecar(options) as host,
        box_in(host, timeoutSecs=0.8) as box,
        box_in(host, timeoutSecs=0.8) as clock,
    ):

        async def think(asked: Json) -> Json:
            for _ in range(2):
                with pytest.raises(RequestFailed) as late:
                    await clock.call("received", {"method": "never", "count": 1})
                assert late.value.data["kind"] == "mcpTimeout"
            return {"action": "accept", "content": {"name": "Ada"}}

        host.answers["agent/requestInput"] = think
        answered = await box.ask("elicitation/create", QUESTION)
    assert answered["result"]["action"] == "accept"


async def test_a_question_belongs_to_its_run_and_is_withdrawn_with_it(box: Box) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def think(question: Json) -> Json:
        asked.set()
        await never.wait()
        return {"action": "cancel"}

    box.host.answers["agent/requestInput"] = think
    running = box.host.send("agent/submit", {"prompt": f"ask {box.name}", "runId": f"run-{box.name}"})
    await asked.wait()
    (question,) = box.asked("agent/requestInput")
    assert question["runId"] == f"run-{box.name}"
    await box.host.request("agent/cancel", {"sessionId": question["sessionId"]})
    await box.host.wait_for(lambda: box.withdrawn)
    assert box.withdrawn == [question["requestId"]]
    with pytest.raises(RequestFailed):
        await running


async def test_a_question_is_withdrawn_when_its_server_goes(box: Box) -> None:
    asked, never = asyncio.Event(), asyncio.Event()

    async def think(question: Json) -> Json:
        asked.set()
        await never.wait()
        return {"action": "cancel"}

    box.host.answers["agent/requestInput"] = think
    waiting = asyncio.create_task(box.ask("elicitation/create", QUESTION))
    await asked.wait()
    await box.host.request("mcp/disconnect", {"name": box.name})
    await box.host.wait_for(lambda: box.withdrawn)
    with pytest.raises(RequestFailed, match="was stopped"):
        await waiting


# Logging ------------------------------------------------------------------------------------------------


async def test_what_a_server_writes_is_told_to_the_host_and_never_as_an_error(box: Box) -> None:
    entries: list[Json] = [
        {"level": "debug", "data": "small talk"},
        {"level": "info", "logger": "db", "data": {"rows": 3}},
        {"level": "emergency", "data": "red\u001b[31m\nforged line\u202e"},
        {"level": "shout", "data": "x" * (MAX_MESSAGE_CHARS + 1)},
        {},
    ]
    await box.tell("notifications/message", *entries)
    await box.host.wait_for(lambda: len(lines(box)) == len(entries))
    kinds = types.MessageType
    assert lines(box) == [
        (kinds.Log, "debug: small talk"),
        (kinds.Info, '(db): info: {"rows": 3}'),
        (kinds.Warning, "emergency: red\\x1b[31m\\nforged line\\u202e"),
        (kinds.Info, f"info: {'x' * MAX_MESSAGE_CHARS}…"),
        (kinds.Info, "info: null"),
    ]


async def test_no_secret_of_a_server_shows_in_what_it_writes(host: Host) -> None:
    async with box_in(host, env={"API_TOKEN": "s3cr3t-value"}) as box:
        await box.tell(
            "notifications/message", {"level": "info", "logger": "s3cr3t-value", "data": "s3cr3t-value!"}
        )
        await host.wait_for(lambda: lines(box))
        assert lines(box) == [(types.MessageType.Info, "(***): info: ***!")]


async def test_a_server_that_writes_too_fast_is_counted_only(box: Box) -> None:
    await box.tell("notifications/message", *({"level": "info", "data": str(n)} for n in range(5 * MAX_BURST)))
    await box.host.wait_for(lambda: len(lines(box)) >= MAX_BURST)
    async with asyncio.timeout(10):
        while not any("came too fast" in line for _, line in lines(box)):
            await box.tell("notifications/message", {"level": "info", "data": "later"})
    assert len(lines(box)) < 2 * MAX_BURST


def lines(box: Box) -> list[tuple[types.MessageType, str]]:
    """What the host's log has of the server, without its name."""
    name = f"MCP server '{box.name}'"
    logged = [(m.type, m.message) for m in box.host.client.log_messages if m.message.startswith(name)]
    return [(kind, line.removeprefix(name).lstrip(": ")) for kind, line in logged]
