"""A host for the kit, made of the Python client: `python python_client.py` does what AGENT_SIDECAR_SCENARIO says.

The contract is in protocol.md, chapter Conformance. What is here is what any program does that uses the client.
"""

import asyncio
import json
import os
import sys
from typing import Any

from sidecar_client import (
    ClientError,
    HostTool,
    Limits,
    ModelCall,
    RequestFailed,
    Run,
    RunCancelled,
    Sidecar,
    SidecarExited,
    ToolCall,
)

JsonObject = dict[str, Any]
SCENARIO: JsonObject = json.loads(os.environ["AGENT_SIDECAR_SCENARIO"])
LIMITS = Limits(exit_secs=1.0, start_secs=SCENARIO.get("startSecs", Limits.start_secs))
KNOWN = {"prompts", "then", "approve", "input", "tool", "model", "cancel", "steer", "resume", "startSecs"}
KNOWN_INSIDE = {
    "input": {"action", "content"},
    "tool": {"name", "description", "inputSchema", "reports", "fails", "waits"},
    "model": {"deltas", "waits"},
}


def sidecar() -> Sidecar:
    """A sidecar with everything that this host can do."""
    return Sidecar(
        command=json.loads(os.environ["AGENT_SIDECAR_COMMAND"]),
        on_approval=decide,
        on_input=enter,
        on_model=complete if "model" in SCENARIO else None,
        tools=[tool(SCENARIO["tool"])] if "tool" in SCENARIO else [],
        limits=LIMITS,
    )


async def decide(question: JsonObject) -> str:
    """The decision of the scenario, where it is offered."""
    wanted: str = SCENARIO.get("approve", "deny")
    if wanted == "wait":
        await asyncio.Event().wait()
    return wanted if wanted in [option["decision"] for option in question["options"]] else "deny"


async def enter(question: JsonObject) -> JsonObject:
    """The answer of the scenario."""
    answer: JsonObject = SCENARIO.get("input", {"action": "cancel"})
    if answer["action"] == "wait":
        await asyncio.Event().wait()
    return answer


async def complete(call: ModelCall) -> str:
    """The text of the scenario, piece by piece and then whole."""
    for text in SCENARIO["model"]["deltas"]:
        call.delta(text)
    if SCENARIO["model"].get("waits"):
        await asyncio.Event().wait()
    return "".join(SCENARIO["model"]["deltas"])


def tool(described: JsonObject) -> HostTool:
    """The tool of the scenario."""

    async def run(call: ToolCall, **arguments: Any) -> JsonObject:
        if "reports" in described:
            call.progress(message=described["reports"])
        if "waits" in described:
            await asyncio.Event().wait()
        if "fails" in described:
            raise RuntimeError(described["fails"])
        return arguments

    return HostTool.of(
        run, name=described["name"], description=described["description"], input_schema=described["inputSchema"]
    )


async def follow(run: Run, number: int) -> None:
    """Watches a run to its end and tells of it."""
    text, ended, failure = "", "error", None
    last_seq = -1
    try:
        async for notification in run.notifications():
            event, last_seq = notification["event"], notification["seq"]
            if event["type"] == "assistantTextDelta":
                await act(run, first=not text)
                text += event["text"]
        ended = (await run.result())["stopReason"]
    except RunCancelled:
        ended = "cancelled"
    except SidecarExited as error:
        failure = {"message": f"{error}"}
        if SCENARIO.get("resume"):
            missed, ended = await catch_up(run, last_seq)
            text += missed
    except RequestFailed as error:
        failure = {"kind": error.kind, "message": error.message}
    except ClientError as error:
        failure = {"message": str(error)}
    tell(number, ended, text, failure if ended == "error" else None)


async def act(run: Run, *, first: bool) -> None:
    """What the scenario wants done after the first words."""
    if first and SCENARIO.get("cancel"):
        await run.cancel()
    if first and "steer" in SCENARIO:
        await run.steer(SCENARIO["steer"])


async def catch_up(run: Run, last_seq: int) -> tuple[str, str]:
    """The text that was missed, and how the run ended."""
    async with sidecar() as again:
        missed = {"sessionId": run.session_id, "runId": run.run_id, "afterSeq": last_seq}
        events = [each["event"] for each in (await again.request("session/events", missed))["events"]]
    text = "".join(event["text"] for event in events if event["type"] == "assistantTextDelta")
    return text, next((event["stopReason"] for event in events if event["type"] == "runCompleted"), "error")


def tell(number: int, ended: str, text: str, error: JsonObject | None = None) -> None:
    """A line for the kit."""
    say({"run": number, "ended": ended, "text": text, "error": error})


def say(line: JsonObject) -> None:
    """Prints it."""
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def unknown() -> list[str]:
    """Fields of the scenario that this host has never heard of."""
    inside = [
        f"{outer}.{name}"
        for outer, known in KNOWN_INSIDE.items()
        for name in SCENARIO.get(outer, {})
        if name not in known
    ]
    return [*(SCENARIO.keys() - KNOWN), *inside]


async def main() -> None:
    """Submits the prompts, then those that follow in the first one's session."""
    if asked := unknown():
        say({"unsupported": ", ".join(asked)})
        return
    prompts, rest = SCENARIO["prompts"], SCENARIO.get("then", [])
    try:
        async with sidecar() as host:
            runs = [host.submit(prompt) for prompt in prompts]
            await asyncio.gather(*(follow(run, number) for number, run in enumerate(runs)))
            for number, prompt in enumerate(rest, len(runs)):
                await follow(host.submit(prompt, session_id=runs[0].session_id or ""), number)
    except ClientError as error:
        for number in range(len(prompts)):
            tell(number, "error", "", {"message": str(error)})


asyncio.run(main())
