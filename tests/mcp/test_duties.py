"""What is declared to servers, how their requests are answered, what they tell. No process is needed for that.

Source: MCP 2025-11-25 and 2026-07-28, client; limits are our own choice.
"""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sidecar.mcp import changes
from sidecar.mcp.callers import Asker, Callers, CallsOverError
from sidecar.mcp.changes import Changes
from sidecar.mcp.connection import ReplyRefusal
from sidecar.mcp.duties import MAX_WAITING_QUESTIONS, Duties, Offers
from sidecar.mcp.elicitation import InputAnswer, InputQuestion
from sidecar.mcp.person_time import PersonTime
from sidecar.mcp.sampling import SamplingAnswer, SamplingRequest
from sidecar.protocol.errors import ConfigurationError

FORM: dict[str, Any] = {"message": "Which?", "requestedSchema": {"type": "object", "properties": {}}}
PROMPT: dict[str, Any] = {"messages": [{"role": "user", "content": {"type": "text", "text": "x"}}], "maxTokens": 5}


async def accept(asker: Asker, question: InputQuestion) -> InputAnswer:
    return InputAnswer("accept", {})


async def answer(asker: Asker, request: SamplingRequest) -> SamplingAnswer:
    return SamplingAnswer("y", "m", "endTurn")


def everything(**offers: Any) -> Duties:
    return Duties("s", Offers(**{"roots": lambda: (Path("/a b"),), "sample": answer, "elicit": accept, **offers}))


async def refusal(duties: Duties, method: str, params: Any) -> ReplyRefusal:
    with pytest.raises(ReplyRefusal) as refused:
        await duties.fulfil({"method": method, "params": params})
    return refused.value


@pytest.mark.parametrize(
    ("revision", "declared"),
    [
        ("2024-11-05", {"roots": {"listChanged": True}, "sampling": {}}),
        ("2025-03-26", {"roots": {"listChanged": True}, "sampling": {}}),
        ("2025-06-18", {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {}}),
        (
            "2025-11-25",
            {"roots": {"listChanged": True}, "sampling": {}, "elicitation": {"form": {}, "url": {}}},
        ),
        ("2026-07-28", {"roots": {}, "sampling": {}, "elicitation": {"form": {}, "url": {}}}),
    ],
)
async def test_each_revision_is_told_what_it_knows_of(revision: str, declared: Any) -> None:
    assert everything().capabilities(revision) == declared
    assert Duties.none().capabilities(revision) == {}


async def test_a_server_s_requests_and_its_rounds_of_input_have_the_same_answers() -> None:
    duties = everything()
    for method, params, result in (
        ("roots/list", None, {"roots": [{"uri": "file:///a%20b", "name": "a b"}]}),
        ("elicitation/create", FORM, {"action": "accept", "content": {}}),
        (
            "sampling/createMessage",
            PROMPT,
            {"role": "assistant", "content": {"type": "text", "text": "y"}, "model": "m", "stopReason": "endTurn"},
        ),
    ):
        assert await duties.fulfil({"method": method, "params": params}) == result
        assert await duties.replies()[method](params or {}) == result


async def test_what_is_not_offered_is_refused_as_an_unknown_method() -> None:
    assert Duties.none().replies() == {}
    for method in ("roots/list", "sampling/createMessage", "elicitation/create", "no/such", 7):
        assert (await refusal(Duties.none(), method, {})).code == -32601  # type: ignore[arg-type]


async def test_a_mode_that_was_not_declared_is_refused() -> None:
    page = {"mode": "url", "message": "Go", "url": "https://example.com", "elicitationId": "1"}
    assert (await refusal(everything(modes=("form",)), "elicitation/create", page)).code == -32602
    assert (await refusal(everything(modes=("url",)), "elicitation/create", FORM)).code == -32602
    assert await everything(modes=("url",)).fulfil({"method": "elicitation/create", "params": page}) == {
        "action": "accept"
    }


async def test_a_person_is_asked_one_thing_at_a_time_and_not_too_many() -> None:
    asked: asyncio.Queue[asyncio.Event] = asyncio.Queue()

    async def wait(asker: Asker, question: InputQuestion) -> InputAnswer:
        answered = asyncio.Event()
        asked.put_nowait(answered)
        await answered.wait()
        return InputAnswer("decline")

    duties = everything(elicit=wait)
    form = {"method": "elicitation/create", "params": FORM}
    waiting = [asyncio.create_task(duties.fulfil(form)) for _ in range(MAX_WAITING_QUESTIONS)]
    await asyncio.sleep(0)
    assert (await refusal(duties, "elicitation/create", FORM)).code == -32603
    for _ in range(MAX_WAITING_QUESTIONS):
        answered = await asked.get()
        assert asked.empty()
        answered.set()
    assert [await each for each in waiting] == [{"action": "decline"}] * MAX_WAITING_QUESTIONS


async def test_a_failure_of_ours_is_not_explained_to_a_server() -> None:
    async def fail(asker: Asker, request: SamplingRequest) -> SamplingAnswer:
        raise ConfigurationError("the key sk-1 is wrong", path="providers.x.apiKey")

    refused = await refusal(everything(sample=fail), "sampling/createMessage", PROMPT)
    assert (refused.code, "sk-1" in refused.message) == (-32603, False)


@pytest.mark.parametrize("pages", [None, [], "page", [{}], ["page"], [{"url": "ftp://x", "message": "m"}]])
async def test_a_call_is_not_tried_again_for_pages_that_cannot_be_visited(pages: Any) -> None:
    assert await everything().visit_pages(pages) is False


class Told:
    """Hears of changes, and of the end of them."""

    def __init__(self) -> None:
        self.changes: list[tuple[str, str | None]] = []
        self._is_over = asyncio.Event()

    def __call__(self, what: changes.Changed, uri: str | None) -> None:
        if what == "prompts":
            self._is_over.set()
        else:
            self.changes.append((what, uri))

    async def over(self) -> list[tuple[str, str | None]]:
        await asyncio.wait_for(self._is_over.wait(), timeout=5)
        return self.changes


async def test_what_changes_within_a_pause_is_told_once() -> None:
    told = Told()
    heard = Changes(told)
    for _ in range(50):
        heard.add("resources")
        heard.add("resource", "a")
        await asyncio.sleep(0)
    heard.add("prompts")
    assert await told.over() == [("resources", None), ("resource", "a")]


async def test_too_many_changed_resources_stand_for_the_list() -> None:
    told = Told()
    heard = Changes(told)
    for number in range(changes.MAX_URIS + 10):
        heard.add("resource", f"doc://{number}")
    heard.add("prompts")
    listed = await told.over()
    assert (len(listed), listed[-1]) == (changes.MAX_URIS + 1, ("resources", None))


async def test_nothing_is_told_after_the_end() -> None:
    told = Told()
    closed, heard = Changes(told), Changes(told)
    closed.add("resources")
    closed.close()
    heard.add("prompts")
    assert await told.over() == []


async def test_a_question_is_of_the_run_whose_calls_are_the_only_ones_under_way() -> None:
    callers = Callers("s")
    assert callers.asker == Asker("s")
    with callers.calling("ses", "run"):
        with callers.calling("ses", "run"):
            assert callers.asker == Asker("s", "ses", "run")
            with callers.calling("ses", "other"):
                assert callers.asker == Asker("s")
        assert callers.asker == Asker("s", "ses", "run")


async def test_a_question_ends_with_the_last_call_that_it_can_be_for() -> None:
    callers, answer = Callers("s"), asyncio.get_running_loop().create_future()

    async def ask() -> str:
        return await answer  # type: ignore[no-any-return]

    on_its_own = asyncio.create_task(callers.while_called(ask()))
    await asyncio.sleep(0)
    with callers.calling("ses", "a"):
        with callers.calling("ses", "b"):
            bound = asyncio.create_task(callers.while_called(asyncio.Event().wait()))
            await asyncio.sleep(0)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(asyncio.shield(bound), timeout=0.01)
    with pytest.raises(CallsOverError):
        await bound
    answer.set_result("yes")
    assert await on_its_own == "yes"


def test_the_time_of_a_person_counts_once_where_waits_overlap() -> None:
    time = PersonTime()
    assert time.secs == 0
    with time.running():
        with time.running():
            assert time.secs >= 0
        inside = time.secs
        assert time.secs >= inside
    whole = time.secs
    assert whole >= inside
    assert time.secs == whole, "it stands still when nobody is waited for"
