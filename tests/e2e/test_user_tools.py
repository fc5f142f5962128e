"""Python tools of the user's own, in a real sidecar: how they are named, what they may do, what they ask.

Source: protocol.md, Tools of your own, `agent/requestInput`, `toolExecutionProgress`, Approvals and questions.
"""

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pygls.exceptions import JsonRpcException

from tests.harness.host import Host, sidecar
from tests.harness.model_server import ScriptedModel, calls, says
from tests.harness.terminal import cli, environment

TOOLS = '''
import os, sys, threading
from sidecar import ApprovalRequired, Step, ToolChain, ToolContext, ToolResult, tool

print("loading")
sys.stdout.write("Content-Length: 3\\r\\n\\r\\n")
os.write(1, b"{}")

COLOUR = {
    "type": "object",
    "properties": {"colour": {"enum": ["red", "blue"]}},
    "required": ["colour"],
    "additionalProperties": False,
}

@tool
async def paint(thing: str, ctx: ToolContext) -> str:
    """Paints a thing in a colour that a person chooses."""
    answer = await ctx.ask(f"Which colour for the {thing}?", COLOUR)
    return f"left the {thing} as it was" if answer is None else f"painted the {thing} {answer['colour']}"

@tool
def name_it(ctx: ToolContext) -> str:
    """Asks for a name, from a thread."""
    print("asking")
    return f"named {ctx.from_thread(ctx.ask('Which name?'))}"

@tool
async def count(up_to: int):
    """Counts."""
    for number in range(1, up_to + 1):
        yield f"{number} "

@tool
def search(words: list[str]):
    """Finds something for each word, and says how much in the end."""
    for word in words:
        yield {"found": word}
    yield ToolResult.success({"hits": len(words)})

@tool
def hang() -> None:
    """Never comes back."""
    threading.Event().wait()

@tool(name="launch")
def _launch(site: str) -> str:
    """Launches."""
    return f"launched from {site}"

launch = ApprovalRequired(_launch)

@tool
def measure(site: str) -> int:
    """Measures a site."""
    return len(site)

@tool(permissions=["write"])
def book(metres: int) -> str:
    """Books so many metres."""
    return f"booked {metres} m"

book_site = ToolChain(
    "book_site",
    "Measures a site and books it.",
    [Step(tool="measure"), Step(tool="book", arguments=lambda args, state: {"metres": state["measure"]})],
    parameters={"type": "object", "properties": {"site": {"type": "string"}}, "required": ["site"]},
)
'''


@pytest.fixture
def tools(tmp_path: Path) -> str:
    file = tmp_path / "own tools.py"
    file.write_text(TOOLS)
    return str(file)


def greeter(folder: Path, name: str) -> str:
    """A file with one tool of this name; its path."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / f"{name}.py"
    file.write_text(f"from sidecar import tool\n\n@tool\ndef {name}() -> str:\n    return 'hello from {name}'\n")
    return str(file)


def options(model: ScriptedModel, **more: Any) -> dict[str, Any]:
    provider = {"api": "openai-chat", "baseUrl": model.base_url}
    return {"model": "test/m", "providers": {"test": provider}, **more}


async def python_tools(host: Host) -> list[str]:
    selected = await host.request("tools/list", {"selector": {"sources": ["python"]}})
    return [tool["name"] for tool in selected["tools"]]


async def outcome(tools: str, call: tuple[str, Any], *, host_does: Any = None, **more: Any) -> tuple[str, Host]:
    """What the model is told of one call in a run, and the host that saw it."""
    async with (
        ScriptedModel(calls(call), says("done")) as model,
        sidecar(options(model, **more), args=["--tools", tools]) as host,
    ):
        if host_does is not None:
            host.answers["agent/requestInput"] = host.answers["agent/requestApproval"] = host_does
        await host.submit("go")
        return str(model.requests[1].messages[-1]["content"]), host


# Which tools there are ----------------------------------------------------------------------------------


async def test_tools_of_a_file_join_as_python_and_their_prints_stay_off_the_wire(tools: str) -> None:
    async with sidecar({}, args=["--tools", tools]) as host:
        listed = await host.request("tools/list", {"selector": {"sources": ["python"]}})
    assert {tool["name"] for tool in listed["tools"]} == {
        "book", "book_site", "count", "hang", "launch", "measure", "name_it", "paint", "search",
    }  # fmt: skip
    (paint,) = (tool for tool in listed["tools"] if tool["name"] == "paint")
    assert paint["description"] == "Paints a thing in a colour that a person chooses."
    assert paint["inputSchema"]["properties"] == {"thing": {"type": "string"}}
    assert paint["source"] == {"type": "python"}


async def test_flags_options_and_the_user_s_file_add_to_each_other(tmp_path: Path) -> None:
    config = tmp_path / "settings" / "config.toml"
    greeter(config.parent / "more", "of_file")
    config.write_text('tools = ["more/of_file.py"]')
    greeter(tmp_path / "here", "of_flag")
    of_options = greeter(tmp_path, "of_options")
    flags = ["--config", str(config), "--tools", "of_flag.py", "--tools", of_options]
    async with sidecar({"tools": [of_options]}, args=flags, cwd=tmp_path / "here", env=sources()) as host:
        assert await python_tools(host) == ["of_file", "of_flag", "of_options"]


async def test_an_entry_point_is_loaded_when_it_is_named_and_not_because_it_is_installed(tmp_path: Path) -> None:
    greeter(tmp_path / "pack_of_tools", "greet")
    info = tmp_path / "pack_of_tools-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: pack-of-tools\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agent_sidecar.tools]\ngreeting = pack_of_tools.greet\n")
    async with sidecar({}, env=sources(tmp_path)) as host:
        assert await python_tools(host) == []
    async with sidecar({"tools": ["entry-point:greeting"]}, env=sources(tmp_path)) as host:
        assert await python_tools(host) == ["greet"]
    async with sidecar({"tools": ["pack_of_tools.greet:greet"]}, env=sources(tmp_path)) as host:
        assert await python_tools(host) == ["greet"]


async def test_nothing_in_a_workspace_names_tools(tmp_path: Path) -> None:
    greeter(tmp_path, "tools")
    for name in ("config.toml", "agent-sidecar/config.toml", ".agent-sidecar/config.toml"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f'tools = ["{tmp_path}/tools.py"]')
    async with sidecar({}, folders=[tmp_path], cwd=tmp_path, env=sources()) as host:
        assert await python_tools(host) == []


async def test_nothing_is_imported_from_the_folder_that_the_sidecar_starts_in(tmp_path: Path) -> None:
    """`python -m` would look there first."""
    for name in ("attrs", "httpx", "jsonschema", "pygls", "mine"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit('a file of the workspace was imported')")
    script = calls(("list_directory", {"path": "."})), says("done")
    here: Any = {"cwd": tmp_path, "folders": [tmp_path], "env": sources()}
    async with ScriptedModel(*script) as model, sidecar(options(model), **here) as host:
        assert (await host.submit("go"))["message"]["content"] == "done"
    with pytest.raises(JsonRpcException, match="No module named 'mine'"):
        async with sidecar({"tools": ["mine:tools"]}, **here):
            raise AssertionError("the module is not installed")


async def test_a_file_that_fails_fails_initialize_with_its_line(tmp_path: Path) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("print('so far so good')\n\n1 / 0\n")
    with pytest.raises(JsonRpcException) as failed:
        async with sidecar({"tools": [str(broken)]}):
            raise AssertionError("the file cannot be loaded")
    assert failed.value.code == -31040
    assert failed.value.message == (
        f"tools: {broken}:3: ZeroDivisionError: division by zero; mend it, or take it out of the option `tools`"
    )
    kind = {"kind": "invalidConfiguration"}
    assert failed.value.data == {**kind, "path": "tools", "file": str(broken), "line": 3}


async def test_an_entry_that_is_none_is_refused_where_it_is_written(tmp_path: Path) -> None:
    with pytest.raises(JsonRpcException) as failed:
        async with sidecar({"tools": ["a.py", "a.txt"]}):
            raise AssertionError("the option is wrong")
    assert (failed.value.code, failed.value.data["path"]) == (-32602, "params.initializationOptions.tools[1]")
    config = tmp_path / "config.toml"
    config.write_text('model = "a/b"\ntools = ["a"]\n')
    with pytest.raises(JsonRpcException, match=f"{config}:2: tools\\[0\\]: 'a' is neither a .py file nor"):
        async with sidecar({}, args=["--config", str(config)]):
            raise AssertionError("the file is wrong")


def test_a_flag_that_names_no_tools_is_wrong_usage() -> None:
    command = [sys.executable, "-m", "sidecar", "serve", "--tools", "a"]
    flag = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, timeout=30, check=False)
    assert (flag.returncode, flag.stdout) == (2, b"")
    assert b"argument --tools: 'a' is neither a .py file nor written as" in flag.stderr


async def test_ask_takes_tools_from_the_folder_one_is_in(tmp_path: Path) -> None:
    greeter(tmp_path / "here", "greet")
    (tmp_path / "there").mkdir()
    async with ScriptedModel(calls(("greet", {})), says("It greets.")) as model:
        process = await asyncio.create_subprocess_exec(
            *cli("ask", "--tools", "greet.py", "--cwd", str(tmp_path / "there"), "go"),
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            env=environment(
                HOME=str(tmp_path), OPENAI_API_KEY="k", OPENAI_BASE_URL=model.base_url, OPENAI_MODEL="m"
            ),
            cwd=tmp_path / "here",
        )
        async with asyncio.timeout(30):
            shown, _ = await process.communicate()
        assert (process.returncode, shown) == (0, b"It greets.\n")
        assert model.requests[1].messages[-1]["content"] == "hello from greet"


def sources(*folders: Path) -> dict[str, str]:
    """The environment in which our source tree and these folders can be imported, from any folder."""
    return {"PYTHONPATH": environment()["PYTHONPATH"] + "".join(f"{os.pathsep}{folder}" for folder in folders)}


# Asking a person ----------------------------------------------------------------------------------------

PAINT = ("paint", {"thing": "door"})


async def test_a_tool_asks_and_goes_on_with_the_answer(tools: str) -> None:
    answer = {"action": "accept", "content": {"colour": "blue"}}
    told, host = await outcome(tools, PAINT, host_does=lambda params: answer)
    assert told == "painted the door blue"
    ((method, asked),) = host.asked
    assert method == "agent/requestInput"
    assert (asked["message"], asked["source"]) == ("Which colour for the door?", "tool paint")
    assert asked["schema"]["properties"] == {"colour": {"enum": ["red", "blue"]}}
    assert (asked["sessionId"], asked["runId"]) == (host.events[0]["sessionId"], host.events[0]["runId"])
    assert asked["deadlineMs"] == 300_000


NO_ANSWERS: dict[str, Any] = {
    "declined": {"action": "decline"},
    "closed": {"action": "cancel", "content": {"colour": "red"}},
    "out of the choice": {"action": "accept", "content": {"colour": "green"}},
    "with too much": {"action": "accept", "content": {"colour": "red", "size": 3}},
    "no object": {"action": "accept", "content": "red"},
    "nothing": {"action": "accept"},
    "no answer": "red",
}


async def test_whatever_is_no_fitting_answer_is_none_to_the_tool(tools: str) -> None:
    """Each thing is painted in a call of its own, and asked about once."""
    async with (
        ScriptedModel(calls(*(("paint", {"thing": thing}) for thing in NO_ANSWERS)), says("done")) as model,
        sidecar(options(model), args=["--tools", tools]) as host,
    ):
        by_message = {f"Which colour for the {thing}?": answer for thing, answer in NO_ANSWERS.items()}
        host.answers["agent/requestInput"] = lambda params: by_message[params["message"]]
        with host.being_odd():
            await host.submit("go")
        told = [message["content"] for message in model.requests[1].messages[2:]]
    assert told == [f"left the {thing} as it was" for thing in NO_ANSWERS]
    assert len(host.asked) == len(NO_ANSWERS)


async def test_the_limit_of_a_call_stands_still_until_the_deadline_of_its_question(tools: str) -> None:
    limits = {"approvalTimeoutSecs": 0.8, "toolTimeoutSecs": 0.3}
    told, host = await outcome(tools, PAINT, host_does=lambda params: asyncio.Event().wait(), cycle=limits)
    assert told == "left the door as it was"
    assert host.withdrawn == [host.asked[0][1]["requestId"]]


async def test_a_plain_function_asks_from_its_thread_for_any_text(tools: str) -> None:
    accept = {"action": "accept", "content": "Ada"}
    told, host = await outcome(tools, ("name_it", {}), host_does=lambda params: accept)
    assert told == "named Ada"
    assert "schema" not in host.asked[0][1]


async def test_a_host_that_cannot_ask_is_an_answer_at_once(tools: str) -> None:
    async with (
        ScriptedModel(calls(PAINT), says("done")) as model,
        sidecar(options(model), args=["--tools", tools], can={}) as host,
    ):
        await host.submit("go")
        assert model.requests[1].messages[-1]["content"] == "left the door as it was"


async def test_cancelling_the_run_withdraws_the_question(tools: str) -> None:
    async with (
        ScriptedModel(calls(PAINT)) as model,
        sidecar(options(model), args=["--tools", tools]) as host,
    ):
        host.answers["agent/requestInput"] = lambda params: asyncio.Event().wait()
        run = host.send("agent/submit", {"prompt": "go", "runId": "r"})
        await host.wait_for(lambda: host.asked)
        assert await host.request("agent/cancel", {"runId": "r"}) == {"cancelled": True}
        await asyncio.wait([run])
        assert str(run.exception()).startswith("-32800")
        await host.wait_for(lambda: host.withdrawn)


# Streamed results, approval, chains, limits -------------------------------------------------------------


async def test_the_parts_of_a_streamed_result_are_progress_and_the_model_gets_the_whole(tools: str) -> None:
    """An async generator whose parts are joined, and a plain one that ends with its result."""
    streams = calls(("count", {"up_to": 3}, "c1"), ("search", {"words": ["a", "b"]}, "c2"))
    async with (
        ScriptedModel(streams, says("done")) as model,
        sidecar(options(model), args=["--tools", tools]) as host,
    ):
        await host.submit("go")
        told = [message["content"] for message in model.requests[1].messages[2:]]
    assert told == ["1 2 3 ", '{"hits":2}']
    progress = host.kinds("toolExecutionProgress")
    assert [event["partial"] for event in progress if event["callId"] == "c1"] == ["1 ", "2 ", "3 "]
    assert [event["partial"] for event in progress if event["callId"] == "c2"] == [
        {"found": "a"},
        {"found": "b"},
        {"hits": 2},
    ]
    kinds = [(event["type"], event.get("callId")) for event in host.kinds()]
    for call_id, parts in (("c1", 3), ("c2", 3)):
        own = [kind for kind, of in kinds if of == call_id]
        assert own == ["toolExecutionStarted", *["toolExecutionProgress"] * parts, "toolExecutionCompleted"]


async def test_a_wrapped_tool_runs_when_somebody_allows_it_and_asks_each_time(tools: str) -> None:
    sites = calls(("launch", {"site": "here"}), ("launch", {"site": "there"}))
    async with (
        ScriptedModel(sites, says("done")) as model,
        sidecar(options(model), args=["--tools", tools]) as host,
    ):
        decisions = {"here": {"decision": "allowOnce"}, "there": {"decision": "deny", "reason": "too far"}}
        host.answers["agent/requestApproval"] = lambda params: decisions[params["input"]["site"]]
        await host.submit("go")
        told = [message["content"] for message in model.requests[1].messages[2:]]
    assert told == ["launched from here", "error: launch was denied by the user: too far"]
    assert {asked["reason"] for _, asked in host.asked} == {"the tool requires approval"}
    assert [event["decision"] for event in host.kinds("approvalResolved")] in (
        ["allowOnce", "deny"],
        ["deny", "allowOnce"],
    )


async def test_each_step_of_a_chain_runs_under_its_own_permission(tools: str) -> None:
    call = ("book_site", {"site": "meadow"})
    told, host = await outcome(tools, call, host_does=lambda params: {"decision": "allowOnce"})
    assert told == "booked 6 m"
    assert [(asked["toolName"], asked["input"]) for _, asked in host.asked] == [("book", {"metres": 6})]
    progress = host.kinds("toolExecutionProgress")
    assert [(event["done"], event["total"], event["message"]) for event in progress] == [
        (0, 2, "measure"),
        (1, 2, "book"),
    ]
    assert len(host.kinds("toolExecutionCompleted")) == 1


async def test_a_chain_whose_step_is_denied_ends_there_and_says_where(tools: str) -> None:
    call = ("book_site", {"site": "meadow"})
    told, _ = await outcome(tools, call, host_does=lambda params: {"decision": "deny", "reason": "too wet"})
    assert told == "error: step 2 (book) of book_site: book was denied by the user: too wet"


async def test_a_thread_that_never_ends_holds_up_neither_its_run_nor_the_end(tools: str) -> None:
    told, host = await outcome(tools, ("hang", {}), cycle={"toolTimeoutSecs": 0.2})
    assert told == "error: hang did not end within 0.2 s and was cancelled"
    (done,) = host.kinds("toolExecutionCompleted")
    assert done["errorKind"] == "timeout"
