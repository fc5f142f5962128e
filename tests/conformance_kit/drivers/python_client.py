"""A host for the kit, made of the Python client: `python python_client.py` does what AGENT_SIDECAR_SCENARIO says.

The contract is in protocol.md, chapter Conformance. What is here is what any program does that uses the client.
"""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack
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


class Sidecars:
    """The sidecar that runs: after the death of one, another."""

    def __init__(self, stack: AsyncExitStack) -> None:
        self._stack = stack

    async def start(self) -> Sidecar:
        """The next one; the stack ends it."""
        self.current = await self._stack.enter_async_context(sidecar())
        return self.current


async def follow(run: Run, number: int, sidecars: Sidecars) -> None:
    """Watches a run to its end and tells of it."""
    line: JsonObject = {"run": number, "ended": "error", "text": ""}
    try:
        try:
            await show(run, line)
        except SidecarExited:
            if not SCENARIO.get("resume"):
                raise
            await show((await sidecars.start()).resume(run), line)
    except RunCancelled:
        line["ended"] = "cancelled"
    except RequestFailed as error:
        line["error"] = {"kind": error.kind, "message": error.message}
    except ClientError as error:
        line["error"] = {"message": str(error)}
    say(line)


async def show(run: Run, line: JsonObject) -> None:
    """Takes what comes of a run, and how it ends, into its line."""
    async for event in run:
        if event["type"] == "assistantTextDelta":
            await act(run, first=not line["text"])
            line["text"] += event["text"]
    line["ended"] = (await run.result())["stopReason"]


async def act(run: Run, *, first: bool) -> None:
    """What the scenario wants done after the first words."""
    if first and SCENARIO.get("cancel"):
        await run.cancel()
    if first and "steer" in SCENARIO:
        await run.steer(SCENARIO["steer"])


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
        async with AsyncExitStack() as stack:
            sidecars = Sidecars(stack)
            host = await sidecars.start()
            runs = [host.submit(prompt) for prompt in prompts]
            await asyncio.gather(*(follow(run, number, sidecars) for number, run in enumerate(runs)))
            for number, prompt in enumerate(rest, len(runs)):
                run = sidecars.current.submit(prompt, session_id=runs[0].session_id or "")
                await follow(run, number, sidecars)
    except ClientError as error:
        for number in range(len(prompts)):
            say({"run": number, "ended": "error", "text": "", "error": {"message": str(error)}})


asyncio.run(main())
