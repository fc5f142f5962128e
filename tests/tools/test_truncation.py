"""What a model is shown of a result that is too long.

Source: protocol.md, `cycle.maxToolResultBytes`; where it is cut is our own choice.
"""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sidecar.protocol.values import AudioBlock, ContentBlock, ImageBlock, ResourceBlock, TextBlock, UnknownBlock
from sidecar.tools.truncation import BINARY_ALLOWANCE, Cut, cut, cut_text

LINES = "".join(f"line {n:05}\n" for n in range(1000))


@pytest.mark.parametrize("content", ["", "short", "x" * 100, (TextBlock(text="x" * 100),)])
def test_what_is_short_enough_stays_as_it_is(content: Any) -> None:
    assert cut(content, 100) == Cut(content=content)


def test_head_and_tail_stay_in_whole_lines_around_the_original_size() -> None:
    made = cut(LINES, 1000)
    assert isinstance(made.content, str)
    head, marker, tail = made.content.partition(
        "\n[... cut here: 11000 bytes in all, shown are the first and the last of them ...]\n"
    )
    assert marker
    assert LINES.startswith(head)
    assert f"{head}\n" in LINES
    assert LINES.endswith(tail)
    assert tail.startswith("line ")
    assert len(head) > len(tail) > 200
    assert (made.truncated, made.original_bytes) == (True, 11000)


def test_a_line_that_is_longer_than_the_limit_is_cut_in_the_middle() -> None:
    text = cut_text("a" * 500 + "b" * 500, 300)
    assert text.startswith("aaaa")
    assert text.endswith("bbbb")
    assert 290 <= len(text) <= 300


@given(st.text(alphabet="aé€😀\n", max_size=400), st.integers(min_value=0, max_value=400))
def test_no_text_is_longer_than_its_limit_nor_cut_inside_a_character(text: str, limit: int) -> None:
    made = cut(text, limit)
    assert isinstance(made.content, str)
    assert len(made.content.encode()) <= limit
    assert "\ufffd" not in made.content
    assert made.truncated is (len(text.encode()) > limit)


def test_blocks_share_one_limit_and_the_rest_is_counted() -> None:
    blocks = tuple(TextBlock(text=letter * 400) for letter in "abcd")
    made = cut(blocks, 1000)
    assert isinstance(made.content, tuple)
    first, second, third, last = made.content
    assert (first, second) == blocks[:2]
    assert isinstance(third, TextBlock)
    assert third.text.startswith("c")
    assert len(third.text) <= 200
    assert last == TextBlock(text="[1 more block, 400 bytes, left out]")
    assert made.original_bytes == 1600


@pytest.mark.parametrize(
    ("block", "told"),
    [
        (
            ImageBlock(data="A" * 6401, mime_type="image/png"),
            "[image image/png of 6401 bytes left out: too large for a tool result]",
        ),
        (
            AudioBlock(data="A" * 6401, mime_type="audio/wav"),
            "[audio audio/wav of 6401 bytes left out: too large for a tool result]",
        ),
        (
            ResourceBlock(resource={"uri": "a:b", "blob": "A" * 6401}),
            "[resource of 6401 bytes left out: too large for a tool result]",
        ),
    ],
)
def test_an_oversized_block_is_replaced_by_a_text_that_says_so(block: ContentBlock, told: str) -> None:
    assert BINARY_ALLOWANCE * 100 == 6400
    assert cut((block,), 100) == Cut(content=(TextBlock(text=told),), original_bytes=6401)
    assert cut((block,), 101) == Cut(content=(block,))


def test_the_text_of_a_resource_is_cut_as_text() -> None:
    made = cut((ResourceBlock(resource={"uri": "a:b", "text": "x" * 1000}),), 300)
    (block,) = made.content
    assert isinstance(block, ResourceBlock)
    assert block.resource["uri"] == "a:b"
    assert len(block.resource["text"]) <= 300


def test_a_block_of_an_unknown_kind_counts_as_its_json() -> None:
    block = UnknownBlock(raw={"type": "new", "x": "y" * 100})
    assert cut((block,), 200) == Cut(content=(block,))
    assert cut((block,), 50).content == (TextBlock(text="[1 more block, 121 bytes, left out]"),)
