"""How long a request takes to build: 500 tools of 1 KB and 1,000 messages, for each API.

A script: `python -m tests.bench.bench_request`. Cold is the first request of a provider, warm a later turn of the
same conversation with one message more, which is what a user waits for. Prints a table; the targets are our own
choice. `raw` is what `json.dumps` takes for the same request, as a measure of the machine.
"""

import json
import statistics
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from attrs import evolve

from sidecar.protocol.values import Message, ToolCall, ToolDefinition
from sidecar.providers import anthropic, anthropic_messages, openai_chat, openai_messages
from sidecar.providers.base import ModelRequest
from sidecar.providers.lowering import ToolLowering

TOOLS = 500
MESSAGES = 1_000
ROUNDS = 30
TARGET_MS = 10.0

Build = Callable[[ModelRequest], bytes]


def tool(number: int) -> ToolDefinition:
    """A tool whose definition is about 1 KB, as a server with OpenAPI behind it writes them."""
    described = {"type": "string", "description": "what it is for, in a few words"}
    properties = {f"argument_{n}": described for n in range(8)}
    return ToolDefinition(
        name=f"server__tool_{number}",
        description="What the tool does and when to use it. " * 5,
        parameters={"type": "object", "properties": properties, "required": ["argument_0"]},
    )


def conversation() -> list[Message]:
    """Runs of a prompt, a call, its result and an answer."""
    messages = []
    for number in range(MESSAGES // 4):
        call = ToolCall(call_id=f"call_{number}", tool_name="server__tool_1", input={"argument_0": "x" * 100})
        messages += [
            Message(role="user", content=f"{number}: " + "please look " * 20),
            Message(role="assistant", content="Let me see.", tool_calls=(call,)),
            Message(role="tool", content="what it holds\n" * 40, call_id=call.call_id, tool_name=call.tool_name),
            Message(role="assistant", content="It holds this and that. " * 20),
        ]
    return messages


def openai_builder() -> Build:
    """As `OpenAIChat` does it, but without the limit on the number of tools."""
    limits = evolve(openai_chat.LIMITS, max_tools=None)
    lowering = ToolLowering(limits, openai_chat.written_tool)
    writer = openai_messages.ConversationWriter("local", limits)

    def build(request: ModelRequest) -> bytes:
        lowered = lowering.lower(request.tools)
        written = writer.write(request, lowered.wire_name)
        return openai_chat.encoded({"model": request.model, "stream": True}, written, lowered)

    return build


def anthropic_builder() -> Build:
    """As `Anthropic` does it."""
    lowering = ToolLowering(anthropic.LIMITS, anthropic.written_tool)
    writer = anthropic_messages.ConversationWriter("claude", anthropic.LIMITS)

    def build(request: ModelRequest) -> bytes:
        lowered = lowering.lower(request.tools)
        written = writer.write(request, lowered.wire_name)
        return anthropic.encoded({"model": request.model, "max_tokens": 1000}, written, lowered)

    return build


BUILDERS: dict[str, Callable[[], Build]] = {"openai-chat": openai_builder, "anthropic": anthropic_builder}


def requests() -> list[ModelRequest]:
    """The turns of one conversation. Definitions are made anew for each, as a registry does."""
    tools = [tool(number) for number in range(TOOLS)]
    messages = conversation()
    turns = []
    for number in range(ROUNDS):
        messages.append(Message(role="user" if number % 2 else "assistant", content=f"and {number}?"))
        turns.append(ModelRequest(model="m", messages=tuple(messages), tools=tuple(map(evolve, tools))))
    return turns


def timed_ms(work: Callable[[], Any]) -> float:
    began = time.perf_counter()
    work()
    return (time.perf_counter() - began) * 1000


def row(name: str, build: Build) -> str:
    turns = requests()
    durations_ms = [timed_ms(partial(build, turn)) for turn in turns]
    body = build(turns[-1])
    raw_ms = statistics.median(timed_ms(partial(json.dumps, json.loads(body))) for _ in range(ROUNDS))
    warm_ms = durations_ms[1:]
    warm = f"{statistics.median(warm_ms):.1f} ({min(warm_ms):.1f})"
    times = f"{raw_ms:.1f} | {durations_ms[0]:.1f} | {warm} | {TARGET_MS:.0f}"
    return f"| {name} | {len(body) / 1e6:.1f} | {times} |"


def main() -> None:
    head = f"| {TOOLS} tools, {MESSAGES} messages | MB | raw ms | cold ms | warm ms, median (best) | target |"
    rows = [head, "|---|---|---|---|---|---|", *(row(name, builder()) for name, builder in BUILDERS.items())]
    sys.stdout.write("\n".join(rows) + "\n")


if __name__ == "__main__":
    main()
