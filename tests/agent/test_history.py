"""A history from outside is made one that every provider accepts (protocol.md, decided cases)."""

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st

from sidecar.agent.history import NO_RESULT, mended
from sidecar.protocol.values import Message, TextBlock, ToolCall


def asks(*ids: str) -> Message:
    calls = tuple(ToolCall(call_id=i, tool_name="t", input={}) for i in ids)
    return Message(role="assistant", content="", tool_calls=calls)


def answers(call_id: str | None, content: str = "ok") -> Message:
    return Message(role="tool", content=content, call_id=call_id, tool_name="t")


USER = Message(role="user", content="hi")


def test_valid_history_is_left_as_it_is() -> None:
    history = [USER, asks("a", "b"), answers("a"), answers("b"), Message(role="assistant", content="done")]
    assert mended(history) == (history, [])


def test_a_call_without_result_is_given_one_that_says_so() -> None:
    history, notes = mended([USER, asks("a", "b"), answers("b")])
    assert [(m.call_id, m.content, m.is_error) for m in history[2:]] == [("a", NO_RESULT, True), ("b", "ok", None)]
    assert notes == ["call 'a' had no result and was given one"]


def test_results_come_in_the_order_of_their_calls() -> None:
    history, _ = mended([asks("a", "b"), answers("b"), answers("a")])
    assert [m.call_id for m in history[1:]] == ["a", "b"]


def test_an_id_that_is_used_again_is_replaced_in_call_and_result() -> None:
    history, _ = mended([asks("a"), answers("a"), asks("a"), answers("a", "second")])
    (again,) = history[2].tool_calls or ()
    assert again.call_id not in ("a", "")
    assert (history[3].call_id, history[3].content) == (again.call_id, "second")


def test_lost_results_and_empty_answers_are_left_out() -> None:
    history, notes = mended([answers("x"), Message(role="assistant", content=""), USER])
    assert history == [USER]
    assert len(notes) == 2


IDS = st.sampled_from(["a", "b", "c"])
MESSAGES = st.lists(
    st.one_of(
        st.just(USER),
        st.just(Message(role="assistant", content="")),
        st.builds(lambda ids: asks(*ids), st.lists(IDS, min_size=1, max_size=3)),
        st.builds(answers, IDS),
    ),
    max_size=12,
)


@given(MESSAGES)
def test_whatever_comes_each_call_is_followed_by_its_result_and_ids_are_unique(messages: list[Message]) -> None:
    history, _ = mended(messages)
    seen: set[str] = set()
    expected: list[str] = []
    for message in history:
        if message.role == "tool":
            assert message.call_id == expected.pop(0)
            continue
        assert not expected
        assert message.role != "assistant" or message.content or message.tool_calls
        expected = [call.call_id for call in message.tool_calls or ()]
        assert not seen.intersection(expected)
        assert len(set(expected)) == len(expected)
        seen.update(expected)
    assert not expected
    assert mended(history)[0] == history


def test_calls_and_results_that_share_an_id_are_paired_in_order() -> None:
    history, notes = mended([asks("a", "a"), answers("a", "first"), answers("a", "second"), answers("a", "third")])
    first, second = history[0].tool_calls or ()
    assert first.call_id == "a" != second.call_id
    assert [(m.call_id, m.content) for m in history[1:]] == [("a", "first"), (second.call_id, "second")]
    assert notes == [
        "the call id 'a' is empty or in use; the call was given another",
        "a tool message without its call was left out: 'a'",
    ]


def test_a_call_without_an_id_is_given_one() -> None:
    history, notes = mended([asks(""), answers("")])
    (call,) = history[0].tool_calls or ()
    assert call.call_id
    assert history[1].call_id == call.call_id
    assert notes == ["the call id '' is empty or in use; the call was given another"]


def test_a_message_of_any_role_that_says_nothing_is_left_out() -> None:
    empty = [Message(role="user", content=""), Message(role="system", content=(TextBlock(text=""),))]
    history, notes = mended([*empty, USER])
    assert history == [USER]
    assert notes == ["an empty user message was left out", "an empty system message was left out"]


def test_calls_are_the_assistant_s_alone() -> None:
    history, notes = mended([evolve(asks("a"), role="user", content="hi"), answers("a")])
    assert history == [USER]
    assert notes == [
        "the calls of a user message were left out",
        "a tool message without its call was left out: 'a'",
    ]
