"""Conversations that every provider has to write in its own words, and any valid history at all."""

from itertools import count

from hypothesis import strategies as st

from sidecar.protocol.values import (
    AudioBlock,
    Content,
    ImageBlock,
    Message,
    ProviderExtras,
    ResourceBlock,
    TextBlock,
    ToolCall,
)
from tests.harness.asking import result

IMAGE = ImageBlock(data="aW1hZ2U=", mime_type="image/png")

THE_SKY: tuple[Message | str, ...] = (
    "what is there?",
    Message(
        role="assistant",
        content="Let me see.",
        tool_calls=(
            ToolCall(call_id="c1", tool_name="look", input={"at": "ciel é"}),
            ToolCall(call_id="c2", tool_name="files.read", input={}),
        ),
        reasoning="hm",
    ),
    result("blue", "c1"),
    result("error: no such file", "c2", "files.read", is_error=True),
    Message(role="assistant", content="The sky."),
    "thanks",
)
"""A question, two calls of which one fails, an answer, and a word more."""


def contents(*, min_size: int) -> st.SearchStrategy[Content]:
    """Texts and lists of blocks of every kind, of at least that size."""
    blocks = st.one_of(
        st.builds(TextBlock, text=st.text(min_size=min_size, max_size=5)),
        st.just(IMAGE),
        st.just(AudioBlock(data="eA==", mime_type="audio/ogg")),
        st.just(ResourceBlock(resource={"uri": "file:///a", "mimeType": "image/png", "blob": "aW1hZ2U="})),
    )
    return st.text(min_size=min_size, max_size=5) | st.lists(blocks, min_size=min_size, max_size=3).map(tuple)


@st.composite
def histories(
    draw: st.DrawFn,
    *,
    said: st.SearchStrategy[Content],
    content: st.SearchStrategy[Content],
    ids: list[str],
    extras: st.SearchStrategy[ProviderExtras | None],
) -> list[Message]:
    """Valid history, as the loop keeps it: any content, any number of calls, each with its result.

    `said` is what user and system say, `content` what model and tools do; ids of calls begin with one of `ids`.
    """
    messages, numbers = [Message(role="user", content=draw(said))], count(1)
    for _ in range(draw(st.integers(0, 4))):
        names = draw(st.lists(st.sampled_from(["look", "a.b"]), max_size=3))
        calls = tuple(
            ToolCall(call_id=f"{draw(st.sampled_from(ids))}{next(numbers)}", tool_name=name, input={})
            for name in names
        )
        answer = draw(content)
        messages.append(
            Message(role="assistant", content=answer, tool_calls=calls or None, provider_extras=draw(extras))
        )
        messages += [
            result(draw(content), call.call_id, call.tool_name, is_error=draw(st.sampled_from([None, True])))
            for call in calls
        ]
        if draw(st.booleans()) or not calls:
            messages.append(Message(role=draw(st.sampled_from(["user", "system"])), content=draw(said)))
            messages.append(Message(role="user", content="go on"))
    return messages
