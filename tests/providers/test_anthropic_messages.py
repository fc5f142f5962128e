"""A conversation of ours becomes one that the Messages API takes.

Source: Anthropic's API reference, version 2023-06-01 (messages, tool use, vision, prompt caching) and the refusals
of its server that users report; protocol.md, "Message" and "Content". Each written conversation is checked as the
API does, or stricter.
"""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.values import (
    AudioBlock,
    ContentBlock,
    ImageBlock,
    Message,
    ProviderExtras,
    ResourceBlock,
    ResourceLinkBlock,
    TextBlock,
    ToolCall,
    UnknownBlock,
)
from sidecar.providers.anthropic import LIMITS
from sidecar.providers.anthropic_messages import OPENING, ConversationWriter, WireConversation
from sidecar.providers.lowering import wire_call_id, wire_name
from tests.harness.anthropic_dialect import redacted, text, thinking, tool_use
from tests.harness.anthropic_strictness import complaints
from tests.harness.asking import anthropic_at, asks, called, pieces_of, result, tool
from tests.harness.conversations import IMAGE, THE_SKY, contents, histories
from tests.harness.model_server import ScriptedModel, says

IMAGE_BLOCK = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aW1hZ2U="}}
MARK = {"cache_control": {"type": "ephemeral"}}


def conversation(*messages: Message | str, **fields: Any) -> WireConversation:
    return ConversationWriter("claude", LIMITS).write(asks(*messages, **fields), wire_name)


def written(*messages: Message | str, **fields: Any) -> list[dict[str, Any]]:
    """The messages as they go out without cache marks, once it is known that a strict API takes them."""
    wire = conversation(*messages, **fields)
    body = {"model": "m", "max_tokens": 1, "messages": [json.loads(message) for message in wire.messages]}
    body |= {"system": [json.loads(block) for block in wire.system]} if wire.system else {}
    assert complaints(body, {"anthropic-version": "2023-06-01"}) == []
    return [
        {**message, "content": [{k: v for k, v in block.items() if k not in MARK} for block in message["content"]]}
        for message in body["messages"]
    ]


def user_content(*blocks: ContentBlock) -> Any:
    (message,) = written(Message(role="user", content=blocks))
    return message["content"]


def thought(*blocks: Any, provider: str = "claude", **fields: Any) -> Message:
    extras = ProviderExtras(provider=provider, data={"blocks": list(blocks)})
    return Message(role="assistant", provider_extras=extras, **fields)


# Roles --------------------------------------------------------------------------------------------------


def test_a_whole_conversation_with_tools() -> None:
    assert written(*THE_SKY, system="Be brief.") == [
        {"role": "user", "content": [text("what is there?")]},
        {
            "role": "assistant",
            "content": [
                text("Let me see."),
                tool_use("c1", "look", {"at": "ciel é"}),
                tool_use("c2", wire_name("files.read"), {}),
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "blue"},
                {
                    "type": "tool_result",
                    "tool_use_id": "c2",
                    "content": "error: no such file",
                    "is_error": True,
                },
            ],
        },
        {"role": "assistant", "content": [text("The sky.")]},
        {"role": "user", "content": [text("thanks")]},
    ]


def test_all_system_text_stands_apart_in_one_block() -> None:
    late = Message(role="system", content=(TextBlock(text="two"), TextBlock(text="three")))
    (block,) = conversation("hello", late, "again", system="one").system
    assert json.loads(block) == {**text("one\n\ntwo\n\nthree"), **MARK}
    assert conversation("hello", system=" ").system == ()


def test_what_one_role_says_in_a_row_is_one_message() -> None:
    one, two = (Message(role="assistant", content=said) for said in ("one", "two"))
    assert written("a", "b", one, two, called("look"), result("blue"), "and?", "now?") == [
        {"role": "user", "content": [text("a"), text("b")]},
        {"role": "assistant", "content": [text("one"), text("two"), tool_use("c1", "look", {})]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "c1", "content": "blue"},
                text("and?"),
                text("now?"),
            ],
        },
    ]


def test_an_empty_answer_is_not_sent_and_what_is_around_it_is_joined() -> None:
    empty = Message(role="assistant", content=" \n")
    assert written("one", empty, "two") == [{"role": "user", "content": [text("one"), text("two")]}]


def test_the_user_speaks_first() -> None:
    said = Message(role="assistant", content="Hello, I am here.")
    assert written(said, "hi")[0] == {"role": "user", "content": [text(OPENING)]}


def test_text_that_is_only_space_is_not_sent() -> None:
    spaced = Message(role="assistant", content="\n\n", tool_calls=called("look").tool_calls)
    messages = written("look", spaced, result(" \n"), Message(role="user", content=(TextBlock(text=" "), IMAGE)))
    assert messages[1]["content"] == [tool_use("c1", "look", {})]
    assert messages[2]["content"] == [{"type": "tool_result", "tool_use_id": "c1"}, IMAGE_BLOCK]


def test_call_ids_that_the_api_refuses_are_replaced_in_call_and_result_alike() -> None:
    odd = "functions.look:0"
    _, call, answer = written("look", called("look", odd), result("blue", odd))
    assert call["content"][0]["id"] == answer["content"][0]["tool_use_id"] == wire_call_id(odd, LIMITS) != odd


# Content ------------------------------------------------------------------------------------------------


def test_images_and_documents_stand_in_their_place() -> None:
    paper = ResourceBlock(resource={"uri": "file:///p.pdf", "mimeType": "application/pdf", "blob": "JVBERg=="})
    assert user_content(TextBlock(text="before"), IMAGE, TextBlock(text="after"), paper) == [
        text("before"),
        IMAGE_BLOCK,
        text("after"),
        {"type": "document", "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBERg=="}},
    ]


def test_an_image_goes_by_the_name_that_the_api_has_for_its_type() -> None:
    (block,) = user_content(ImageBlock(data="aW1hZ2U=", mime_type="image/jpg"))
    assert block["source"]["media_type"] == "image/jpeg"


def test_resources_go_out_as_what_they_hold() -> None:
    said = ResourceBlock(resource={"uri": "file:///a", "mimeType": "text/plain", "text": "hello"})
    link = ResourceLinkBlock(uri="file:///c", name="c", title="See", description="a file")
    assert user_content(said, link) == [text("file:///a:\nhello"), text("[See](file:///c): a file")]


@pytest.mark.parametrize(
    ("block", "what"),
    [
        (AudioBlock(data="eA==", mime_type="audio/wav"), "sound of type audio/wav"),
        (ImageBlock(data="eA==", mime_type="image/tiff"), "an image of type image/tiff"),
        (UnknownBlock(raw={"type": "hologram"}), "content of type 'hologram'"),
        (ResourceBlock(resource={"uri": "file:///a", "blob": "eA=="}), "the resource file:///a (of unknown type)"),
    ],
    ids=["sound", "image", "unknown", "blob"],
)
def test_what_cannot_be_sent_leaves_a_note_and_a_warning(block: ContentBlock, what: str) -> None:
    assert user_content(block) == [text(f"[{what} cannot be shown here]")]
    (warning,) = conversation(Message(role="user", content=(block, block))).warnings
    assert warning.code == "contentLeftOut" and warning.message.startswith(what)


def test_images_that_tools_return_stand_in_their_result() -> None:
    messages = written("look", called("look"), result((TextBlock(text="a photo"), IMAGE)))
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": [text("a photo"), IMAGE_BLOCK]}
    ]


def test_images_of_failed_calls_follow_all_results() -> None:
    calls = tuple(ToolCall(call_id=f"c{n}", tool_name="look", input={}) for n in (1, 2))
    messages = written(
        "look twice",
        Message(role="assistant", content="", tool_calls=calls),
        result((TextBlock(text="it broke"), IMAGE), "c1", is_error=True),
        result((IMAGE,), "c2", is_error=True),
        "and?",
    )
    assert messages[2]["content"] == [
        {"type": "tool_result", "tool_use_id": "c1", "content": "it broke", "is_error": True},
        {"type": "tool_result", "tool_use_id": "c2", "content": "it failed", "is_error": True},
        text("What look returned besides text (call c1):"),
        IMAGE_BLOCK,
        text("What look returned besides text (call c2):"),
        IMAGE_BLOCK,
        text("and?"),
    ]


# Cache --------------------------------------------------------------------------------------------------


def marked(wire: WireConversation) -> Iterator[str]:
    for message in map(json.loads, wire.messages):
        yield from (block.get("text", block["type"]) for block in message["content"] if "cache_control" in block)


def test_the_ends_of_this_and_of_the_previous_request_are_marked_for_the_cache() -> None:
    history = ["one", called("look"), result("blue"), Message(role="assistant", content="It is blue."), "two"]
    assert list(marked(conversation("one"))) == ["one"]
    assert list(marked(conversation(*history[:3]))) == ["one", "tool_result"]
    assert list(marked(conversation(*history))) == ["tool_result", "two"]


async def test_tools_are_marked_where_no_system_text_covers_them() -> None:
    tools = (tool("look"), tool("rest"))
    async with ScriptedModel(says("a"), says("b"), dialect="anthropic") as model, anthropic_at(model) as provider:
        await pieces_of(provider, asks(tools=tools))
        await pieces_of(provider, asks(tools=tools, system="Be brief."))
    bare, covered = (seen.body for seen in model.requests)
    assert ["cache_control" in t for t in bare["tools"]] == [False, True]
    assert ["cache_control" in t for t in covered["tools"]] == [False, False]
    assert covered["system"] == [{**text("Be brief."), **MARK}]


# What goes back -----------------------------------------------------------------------------------------

LOOKS = called("look").tool_calls
EXTRAS: dict[str, tuple[Message, list[Any]]] = {
    "a thought first": (
        thought(thinking("hm"), {"textCharacters": 2}, {"call": 0}, content="Ok", tool_calls=LOOKS),
        [thinking("hm"), text("Ok"), tool_use("c1", "look", {})],
    ),
    "a call that was not kept": (
        thought(thinking("hm"), {"call": 0}, {"textCharacters": 2}, {"call": 1}, content="Ok", tool_calls=LOOKS),
        [thinking("hm"), tool_use("c1", "look", {}), text("Ok")],
    ),
    "text that was changed": (
        thought(thinking("hm"), {"textCharacters": 2}, content="Ok, longer.", tool_calls=LOOKS),
        [thinking("hm"), text("Ok"), text(", longer."), tool_use("c1", "look", {})],
    ),
    "text that is gone": (
        thought(thinking("hm"), {"textCharacters": 9}, {"call": 0}, content="", tool_calls=LOOKS),
        [thinking("hm"), tool_use("c1", "look", {})],
    ),
    "a thought at the end": (
        thought({"textCharacters": 2}, {"call": 0}, thinking("hm"), redacted(), content="Ok", tool_calls=LOOKS),
        [text("Ok"), tool_use("c1", "look", {})],
    ),
    "another provider's": (
        thought(thinking("hm"), {"call": 0}, content="Ok", tool_calls=LOOKS, provider="another"),
        [text("Ok"), tool_use("c1", "look", {})],
    ),
    "no blocks": (
        thought(3, {}, {"textCharacters": "many"}, {"call": 9}, content="Ok", tool_calls=LOOKS),
        [text("Ok"), tool_use("c1", "look", {})],
    ),
}


@pytest.mark.parametrize(("message", "blocks"), EXTRAS.values(), ids=list(EXTRAS))
def test_what_the_api_wants_back_stands_where_it_stood(message: Message, blocks: list[Any]) -> None:
    assert written("look", message, result("blue"))[1]["content"] == blocks


@pytest.mark.parametrize("data", [None, [], "text", {"blocks": None}, {"reasoningField": "reasoning"}], ids=repr)
def test_extras_that_are_not_understood_are_left_alone(data: Any) -> None:
    extras = ProviderExtras(provider="claude", data=data)
    message = Message(role="assistant", content="hi", reasoning="hm", provider_extras=extras)
    assert written("hello", message, "again")[1]["content"] == [text("hi")]


def test_thoughts_without_an_answer_are_not_sent() -> None:
    assert len(written("hello", thought(thinking("hm"), redacted(), content=""), "again")) == 1


# Anything -----------------------------------------------------------------------------------------------

SAID = st.text(min_size=1, max_size=5).map(lambda said: f"{said}.")
OWN = st.lists(
    st.sampled_from([thinking("hm"), redacted(), {"textCharacters": 2}, {"call": 0}, {"call": 1}]), max_size=5
)


HISTORIES = histories(
    said=SAID,
    content=contents(min_size=0),
    ids=["c", "c.:", "x" * 70],
    extras=OWN.map(lambda blocks: ProviderExtras(provider="claude", data={"blocks": blocks})),
)


@given(HISTORIES)
def test_valid_history_is_taken_by_the_api(messages: list[Message]) -> None:
    written(*messages)
