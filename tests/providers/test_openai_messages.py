"""A conversation of ours becomes one that every Chat Completions server takes.

Source: OpenAI's API reference (`messages`); protocol.md, "Message" and "Content"; MCP 2025-11-25 (content blocks).
Each written conversation is checked as the strictest providers do.
"""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.values import (
    AudioBlock,
    ContentBlock,
    Message,
    ProviderExtras,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    ToolCall,
    UnknownBlock,
)
from sidecar.providers.base import WarningPiece
from sidecar.providers.lowering import wire_call_id, wire_name
from sidecar.providers.openai_chat import LIMITS
from sidecar.providers.openai_messages import ConversationWriter
from tests.harness.asking import asks, called, pieces_of, provider_at, result, tool
from tests.harness.conversations import IMAGE, THE_SKY, contents, histories
from tests.harness.model_server import ScriptedModel, says
from tests.harness.model_strictness import complaints

IMAGE_PART = {"type": "image_url", "image_url": {"url": "data:image/png;base64,aW1hZ2U="}}


def written(*messages: Message | str, **fields: Any) -> list[dict[str, Any]]:
    """The conversation as it goes out, once it is known that a strict provider takes it."""
    wire = ConversationWriter("local", LIMITS).write(asks(*messages, **fields), wire_name)
    written = [json.loads(text) for text in wire.texts]
    assert complaints({"model": "m", "messages": written}) == []
    return written


def warned(*blocks: ContentBlock) -> tuple[WarningPiece, ...]:
    message = Message(role="user", content=blocks)
    return ConversationWriter("local", LIMITS).write(asks(message), wire_name).warnings


def user_content(*blocks: ContentBlock) -> Any:
    (message,) = written(Message(role="user", content=blocks))
    return message["content"]


# Roles --------------------------------------------------------------------------------------------------


def test_a_whole_conversation_with_tools() -> None:
    assert written(*THE_SKY, system="Be brief.") == [
        {"role": "system", "content": "Be brief."},
        {"role": "user", "content": "what is there?"},
        {
            "role": "assistant",
            "content": "Let me see.",
            "tool_calls": [
                {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"at":"ciel é"}'}},
                {"id": "c2", "type": "function", "function": {"name": wire_name("files.read"), "arguments": "{}"}},
            ],
        },
        {"role": "tool", "tool_call_id": "c1", "content": "blue"},
        {"role": "tool", "tool_call_id": "c2", "content": "error: no such file"},
        {"role": "assistant", "content": "The sky."},
        {"role": "user", "content": "thanks"},
    ]


def test_all_system_text_comes_first_in_one_message() -> None:
    late = Message(role="system", content=(TextBlock(text="two"), TextBlock(text="three")))
    assert written("hello", late, "again", system="one") == [
        {"role": "system", "content": "one\n\ntwo\n\nthree"},
        {"role": "user", "content": "hello"},
        {"role": "user", "content": "again"},
    ]
    assert written("hello", system="")[0]["role"] == "user"


def test_a_call_without_text_has_no_content() -> None:
    assert written("look", called("look"), result("blue"))[1]["content"] is None


def test_an_empty_answer_is_not_sent() -> None:
    empty = Message(role="assistant", content="")
    assert [message["role"] for message in written("one", empty, "two")] == ["user", "user"]


def test_call_ids_that_providers_refuse_are_replaced_in_call_and_result_alike() -> None:
    odd = "toolu_" + "x" * 60
    _, call, answer = written("look", called("look", odd), result("blue", odd))
    assert call["tool_calls"][0]["id"] == answer["tool_call_id"] == wire_call_id(odd, LIMITS) != odd
    assert wire_call_id("call_1", LIMITS) == "call_1"
    assert len({wire_call_id(text, LIMITS) for text in (odd, odd + "y", "a b", "a\nb", "")}) == 5


# Content ------------------------------------------------------------------------------------------------


def test_text_in_blocks_goes_out_as_text() -> None:
    assert user_content(TextBlock(text="one"), TextBlock(text="two")) == "one\n\ntwo"


def test_images_go_out_as_data_urls_in_their_place() -> None:
    assert user_content(TextBlock(text="before"), IMAGE, TextBlock(text="after")) == [
        {"type": "text", "text": "before"},
        IMAGE_PART,
        {"type": "text", "text": "after"},
    ]


@pytest.mark.parametrize(("mime_type", "audio_format"), [("audio/wav", "wav"), ("audio/mpeg", "mp3")])
def test_sound_goes_out_where_it_can(mime_type: str, audio_format: str) -> None:
    assert user_content(AudioBlock(data="eA==", mime_type=mime_type)) == [
        {"type": "input_audio", "input_audio": {"data": "eA==", "format": audio_format}}
    ]


def test_resources_go_out_as_what_they_hold() -> None:
    text = ResourceBlock(resource={"uri": "file:///a", "mimeType": "text/plain", "text": "hello"})
    image = ResourceBlock(resource={"uri": "file:///b", "mimeType": "image/png", "blob": "aW1hZ2U="})
    link = ResourceLinkBlock(uri="file:///c", name="c", title="See", description="a file")
    assert user_content(text, link) == "file:///a:\nhello\n\n[See](file:///c): a file"
    assert user_content(image) == [IMAGE_PART]


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (AudioBlock(data="eA==", mime_type="audio/ogg"), "sound of type audio/ogg"),
        (UnknownBlock(raw={"type": "hologram"}), "content of type 'hologram'"),
        (ResourceBlock(resource={"uri": "file:///a", "blob": "eA=="}), "the resource file:///a (of unknown type)"),
    ],
    ids=["sound", "unknown", "blob"],
)
def test_what_cannot_be_sent_leaves_a_note_and_a_warning(block: ContentBlock, what: str) -> None:
    assert user_content(block) == f"[{what} cannot be shown here]"
    (warning,) = warned(block, block)
    assert warning.code == "contentLeftOut" and warning.message.startswith(what)


def test_images_that_tools_return_follow_all_results() -> None:
    calls = tuple(ToolCall(call_id=f"c{n}", tool_name="look", input={}) for n in (1, 2))
    conversation = (
        "look twice",
        Message(role="assistant", content="", tool_calls=calls),
        result((TextBlock(text="a photo"), IMAGE), "c1"),
        result((IMAGE,), "c2"),
    )
    following = [
        {"type": "text", "text": "What look returned besides text (call c1):"},
        IMAGE_PART,
        {"type": "text", "text": "What look returned besides text (call c2):"},
        IMAGE_PART,
    ]
    wire = written(*conversation)
    assert wire[2:] == [
        {"role": "tool", "tool_call_id": "c1", "content": "a photo"},
        {"role": "tool", "tool_call_id": "c2", "content": "(what it returned follows in the next message)"},
        {"role": "user", "content": following},
    ]
    # The next turn repeats what this one said, so that a server's cache of the beginning holds.
    assert written(*conversation, Message(role="assistant", content="Two."), "thanks")[: len(wire)] == wire
    # Words of the user join the images, because templates want user and assistant to take turns.
    steered = [*following, {"type": "text", "text": "and?"}]
    assert written(*conversation, "and?")[-1] == {"role": "user", "content": steered}


# Extras -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("data", [None, [], "text", {"unknown": 1}, {"callExtras": []}], ids=repr)
def test_extras_that_are_not_understood_are_left_alone(data: Any) -> None:
    extras = ProviderExtras(provider="local", data=data)
    message = Message(role="assistant", content="hi", reasoning="hm", provider_extras=extras)
    assert written("hello", message, "again")[1] == {"role": "assistant", "content": "hi"}


# On the wire --------------------------------------------------------------------------------------------


async def test_text_that_is_no_unicode_does_not_spoil_the_request() -> None:
    async with ScriptedModel(says("hi")) as model, provider_at(model) as provider:
        await pieces_of(provider, asks("half a \ud83d pair, a whole 🌍 one"))
    assert model.requests[0].messages[0]["content"] == "half a ? pair, a whole 🌍 one"


async def test_tools_go_out_as_functions_and_not_at_all_when_there_are_none() -> None:
    look = tool("look", at={"type": "string"})
    async with ScriptedModel(says("hi"), says("hi")) as model, provider_at(model) as provider:
        await pieces_of(provider, asks(tools=(look,)))
        await pieces_of(provider)
    assert model.requests[0].body["tools"] == [
        {
            "type": "function",
            "function": {"name": "look", "description": "does look", "parameters": look.parameters},
        }
    ]
    assert "tools" not in model.requests[1].body


async def test_warnings_about_tools_come_before_the_answer() -> None:
    async with ScriptedModel(says("hi")) as model, provider_at(model) as provider:
        pieces = await pieces_of(provider, asks(tools=(tool("a.b", x=True),)))
    assert [piece.code for piece in pieces if isinstance(piece, WarningPiece)] == ["toolRenamed", "schemaRepaired"]
    assert isinstance(pieces[0], WarningPiece) and isinstance(pieces[1], WarningPiece)


CONTENT = contents(min_size=1)


@given(histories(said=CONTENT, content=CONTENT, ids=["c", "x" * 50], extras=st.none()))
def test_valid_history_is_taken_by_the_strictest_provider(messages: list[Message]) -> None:
    written(*messages)
