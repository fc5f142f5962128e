"""What a valid history is, and how one from outside is made valid. Pure.

Every provider accepts a history in which each call is followed by its result, call ids are unique, and no
assistant message is empty. The loop keeps it so; messages that a host brings are mended here.
"""

import uuid
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence

from attrs import evolve

from sidecar.protocol.values import Content, Message, TextBlock, ToolCall

NO_RESULT = "error: this call was interrupted and has no result"


def new_call_id() -> str:
    """An id that no other call has."""
    return f"call_{uuid.uuid4().hex[:24]}"


def user(prompt: Content) -> Message:
    """The message that a prompt becomes."""
    return Message(role="user", content=prompt)


def says_nothing(content: Content) -> bool:
    """Whether it is no text at all; providers refuse a message of that."""
    if isinstance(content, str):
        return not content
    return all(isinstance(block, TextBlock) and not block.text for block in content)


def interrupted(call: ToolCall, reason: str = NO_RESULT) -> Message:
    """The result of a call that has none."""
    return Message(role="tool", content=reason, call_id=call.call_id, tool_name=call.tool_name, is_error=True)


def call_ids(messages: Iterable[Message]) -> set[str]:
    """The ids of all calls in `messages`."""
    return {call.call_id for message in messages for call in message.tool_calls or ()}


def mended(messages: Sequence[Message], *, taken: Iterable[str] = ()) -> tuple[list[Message], list[str]]:
    """`messages` as valid history, and a sentence for everything that had to be changed.

    `taken` are call ids that are in use already.
    """
    history: list[Message] = []
    notes: list[str] = []
    used = set(taken)
    position = 0
    while position < len(messages):
        message = messages[position]
        position += 1
        if message.role == "tool":
            notes.append(f"a tool message without its call was left out: {message.call_id!r}")
        elif message.role == "assistant" and message.tool_calls:
            end = _end_of_results(messages, position)
            history += _call_block(message, messages[position:end], used, notes)
            position = end
        elif says_nothing(message.content):
            notes.append(f"an empty {message.role} message was left out")
        elif message.tool_calls:
            notes.append(f"the calls of a {message.role} message were left out")
            history.append(evolve(message, tool_calls=None))
        else:
            history.append(message)
    return history, notes


def _end_of_results(messages: Sequence[Message], start: int) -> int:
    end = start
    while end < len(messages) and messages[end].role == "tool":
        end += 1
    return end


def _call_block(message: Message, results: Sequence[Message], used: set[str], notes: list[str]) -> list[Message]:
    """An assistant message with calls and exactly one result for each, in the order of the calls."""
    waiting: defaultdict[str | None, deque[Message]] = defaultdict(deque)
    for result in results:
        waiting[result.call_id].append(result)
    calls: list[ToolCall] = []
    answers: list[Message] = []
    for call in message.tool_calls or ():
        fresh = _with_own_id(call, used, notes)
        if waiting[call.call_id]:
            answer = waiting[call.call_id].popleft()
        else:
            notes.append(f"call {call.call_id!r} had no result and was given one")
            answer = interrupted(fresh)
        calls.append(fresh)
        answers.append(evolve(answer, call_id=fresh.call_id, tool_name=fresh.tool_name))
    lost = [call_id for call_id, left in waiting.items() for _ in left]
    notes += [f"a tool message without its call was left out: {call_id!r}" for call_id in lost]
    return [evolve(message, tool_calls=tuple(calls)), *answers]


def _with_own_id(call: ToolCall, used: set[str], notes: list[str]) -> ToolCall:
    """The call under an id that no other one has."""
    if not call.call_id or call.call_id in used:
        notes.append(f"the call id {call.call_id!r} is empty or in use; the call was given another")
        call = evolve(call, call_id=new_call_id())
    used.add(call.call_id)
    return call
