"""A message is put into JSON once, and again when what it says would be another.

Source: own choice; a conversation goes out whole with every turn, and long ones should not cost more each time.
"""

import gc
import json
from typing import Any

from attrs import evolve

from sidecar.protocol.values import AudioBlock, Message
from sidecar.providers.base import ModelRequest
from sidecar.providers.json_text import request_body
from sidecar.providers.openai_chat import LIMITS
from sidecar.providers.openai_messages import ConversationWriter
from sidecar.providers.written import Written, WrittenMessages
from tests.harness.asking import asks, called, result


def counting() -> tuple[WrittenMessages, list[Message]]:
    """Messages that are written by a function which keeps what it was given."""
    given: list[Message] = []

    def write(message: Message, wire_name: Any) -> Written:
        given.append(message)
        calls = message.tool_calls or ()
        return Written(texts=(str(len(given)),), names=tuple((c.tool_name, wire_name(c.tool_name)) for c in calls))

    return WrittenMessages(write), given


def same(name: str) -> str:
    return name


def test_a_message_is_written_once() -> None:
    written, given = counting()
    message = called("look")
    assert written.of(message, same) is written.of(message, same)
    assert given == [message]


def test_an_equal_message_is_another_one() -> None:
    written, given = counting()
    message = called("look")
    written.of(message, same)
    written.of(evolve(message), same)
    assert len(given) == 2


def test_a_message_is_written_anew_when_its_tool_has_another_name() -> None:
    written, given = counting()
    message = called("look")
    written.of(message, same)
    assert written.of(message, str.upper).names == (("look", "LOOK"),)
    assert len(given) == 2


def test_what_was_written_is_forgotten_with_its_message() -> None:
    written = WrittenMessages(lambda message, wire_name: Written(texts=(message.role,)))
    kept = called("look")
    for message in (kept, called("look"), called("look")):
        written.of(message, same)
    del message
    gc.collect()
    assert written.remembered == 1


def test_warnings_about_a_message_come_with_every_request() -> None:
    writer = ConversationWriter("local", LIMITS)
    sound = Message(role="user", content=(AudioBlock(data="eA==", mime_type="audio/ogg"),))
    request = ModelRequest(model="m", messages=(sound, sound))
    first, second = writer.write(request, same), writer.write(request, same)
    assert first == second
    assert len(first.warnings) == 1


def test_a_conversation_is_the_same_whether_parts_of_it_were_written_before() -> None:
    writer, history = ConversationWriter("local", LIMITS), ["hello", called("look"), result("blue"), "and?"]
    whole = asks(*history)
    for end in (1, 3, 4):
        request = evolve(whole, messages=whole.messages[:end])
        assert writer.write(request, same) == ConversationWriter("local", LIMITS).write(request, same)


def test_a_body_is_put_together_from_parts_that_are_text() -> None:
    body = request_body({"model": "é"}, {"messages": ['{"a":1}', "2", "3"], "tools": ["{}"], "none": []})
    assert json.loads(body) == {"model": "é", "messages": [{"a": 1}, 2, 3], "tools": [{}], "none": []}
    assert request_body({"a": "\ud83d"}, {}) == b'{"a":"?"}'
