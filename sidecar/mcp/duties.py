"""What a server may ask of us and tell us, and what we declare of it.

Requests of a server (up to 2025-11-25) and the entries of an `input_required` result (from 2026-07-28 on) are
answered by the same functions. What needs the rest of the sidecar is handed in as Offers; what is not offered is
not declared, and refused.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from sidecar.mcp.callers import Asker, Callers, CallsOverError
from sidecar.mcp.changes import Changed, Changes
from sidecar.mcp.connection import Reply, ReplyRefusal
from sidecar.mcp.elicitation import InputAnswer, InputQuestion, Mode, answer_result, read_question
from sidecar.mcp.envelope import INTERNAL_ERROR, METHOD_NOT_FOUND
from sidecar.mcp.person_time import PersonTime
from sidecar.mcp.sampling import SamplingAnswer, SamplingRequest, read_sampling, sampling_result
from sidecar.mcp.server_log import ServerLog
from sidecar.protocol.errors import SidecarError, ToolError
from sidecar.protocol.values import JsonObject, LogLevel

USER_REJECTED = -1
"""The code of MCP 2025-11-25, client/sampling#error-handling."""

FORM_SINCE = "2025-06-18"
URL_SINCE = "2025-11-25"
STATELESS_SINCE = "2026-07-28"

MAX_SAMPLES = 20
SAMPLES_WINDOW_SECS = 300.0
"""So many requests of one server for a model are put to a person in so much time. Own choice."""

MAX_WAITING_QUESTIONS = 10
"""Of one server; a person is asked one after the other. Own choice."""

MAX_OPEN_PAGES = 100
"""Pages of one server that a person went to, and whose end it has not told. Own choice."""

PAGE_WAIT_SECS = 120.0
"""How long a call waits for word of the pages that it needs, before it is tried again. Own choice."""

Question = TypeVar("Question")
Answer = TypeVar("Answer")

logger = logging.getLogger("sidecar.mcp")


class Offers(NamedTuple):
    """What the rest of the sidecar does for servers; it is told first for which. What is None is not offered.

    `roots` are the folders a server may know of. `sample` asks a person, then a model; it raises ToolError
    `permissionDenied` where the person says no, with the action `stop` to be asked no more. `elicit` asks a
    person, in one of the `modes`. `log`, `changed`, `page_done` (with the id of the question) and `learn_secrets`
    (what a server is given that must not show) may not wait.
    """

    roots: Callable[[], tuple[Path, ...]] | None = None
    sample: Callable[[Asker, SamplingRequest], Awaitable[SamplingAnswer]] | None = None
    elicit: Callable[[Asker, InputQuestion], Awaitable[InputAnswer]] | None = None
    modes: tuple[Mode, ...] = ("form", "url")
    log: Callable[[LogLevel, str], None] | None = None
    changed: Callable[[str, Changed, str | None], None] | None = None
    page_done: Callable[[str, str], None] | None = None
    learn_secrets: Callable[[Iterable[str]], None] | None = None


class Duties:
    """The duties towards the server `server`, over all of its lives.

    `person_time` counts how long it has waited for a person, `callers` knows of the calls under way. `log_level`
    and `wanted_resources` are what the host wants to hear of.
    """

    def __init__(self, server: str = "", offers: Offers = Offers()) -> None:  # noqa: B008  it is frozen
        self.person_time = PersonTime()
        self.callers = Callers(server)
        self.log_level: LogLevel | None = None
        self.wanted_resources: frozenset[str] = frozenset()
        self._server = server
        self._offers = offers
        self._asking = asyncio.Lock()
        self._waiting_questions = 0
        self._samples: deque[float] = deque()
        self._is_sampling_over = False
        self._pages: dict[str, asyncio.Event] = {}
        self._log = ServerLog(server, offers.log) if offers.log else None
        self._changes = Changes(self._tell(offers.changed)) if offers.changed else None

    @classmethod
    def none(cls) -> "Duties":
        """Declares nothing and refuses everything."""
        return cls()

    def capabilities(self, revision: str) -> JsonObject:
        """What a client declares in that revision (MCP 2025-11-25, basic/lifecycle#capability-negotiation)."""
        declared: JsonObject = {}
        if self._offers.roots is not None:
            declared["roots"] = {} if revision >= STATELESS_SINCE else {"listChanged": True}
        if self._offers.sample is not None:
            declared["sampling"] = {}
        modes = self._modes(revision)
        if modes:
            declared["elicitation"] = {mode: {} for mode in modes} if revision >= URL_SINCE else {}
        return declared

    def replies(self) -> Mapping[str, Reply]:
        """How each request of a server is answered."""
        replies: dict[str, Reply] = {}
        if self._offers.roots is not None:
            replies["roots/list"] = self._list_roots
        if self._offers.sample is not None:
            replies["sampling/createMessage"] = self._sample
        if self._offers.elicit is not None:
            replies["elicitation/create"] = self._elicit
        return replies

    async def fulfil(self, request: JsonObject) -> JsonObject:
        """The result for one of the requests that an `input_required` result holds. Raises ReplyRefusal."""
        method, params = request.get("method"), request.get("params")
        reply = self.replies().get(method) if isinstance(method, str) else None
        if reply is None:
            raise ReplyRefusal(METHOD_NOT_FOUND, f"{method} is not offered by this client")
        return await reply(params if isinstance(params, dict) else {})

    async def visit_pages(self, pages: Any) -> bool:
        """Leads a person to the pages that a request was refused for (error -32042 of 2025-11-25).

        Whether it is worth trying the request again: they went to all of them.
        """
        questions = pages if isinstance(pages, list) else []
        if not questions or self._offers.elicit is None:
            return False
        for page in questions[:MAX_WAITING_QUESTIONS]:
            params = {**page, "mode": "url"} if isinstance(page, dict) else {}
            try:
                answer = await self._elicit(params)
            except ReplyRefusal as refusal:
                logger.warning("server %r sends a person to a page that cannot be: %s", self._server, refusal)
                return False
            if answer["action"] != "accept":
                return False
        await self._pages_done([page["elicitationId"] for page in questions if "elicitationId" in page])
        return True

    def notified(self, method: str, params: JsonObject) -> None:
        """Hears every notification of the server but those of progress and of its tools; may not wait or raise."""
        match method:
            case "notifications/message" if self._log is not None:
                self._log.take(params)
            case "notifications/resources/list_changed" if self._changes is not None:
                self._changes.add("resources")
            case "notifications/prompts/list_changed" if self._changes is not None:
                self._changes.add("prompts")
            case "notifications/resources/updated" if self._changes is not None:
                uri = params.get("uri")
                if isinstance(uri, str):
                    self._changes.add("resource", uri)
            case "notifications/elicitation/complete":
                self._page_done(params.get("elicitationId"))

    def hide(self, secrets: Iterable[str]) -> None:
        """What must not show where we pass on what the server writes."""
        if self._offers.learn_secrets is not None:
            self._offers.learn_secrets(secrets)

    def close(self) -> None:
        """Nothing is told any more."""
        if self._changes is not None:
            self._changes.close()

    # Requests -------------------------------------------------------------------------------------------

    async def _list_roots(self, params: JsonObject) -> JsonObject:
        assert self._offers.roots is not None
        return {
            "roots": [{"uri": folder.absolute().as_uri(), "name": folder.name} for folder in self._offers.roots()]
        }

    async def _sample(self, params: JsonObject) -> JsonObject:
        assert self._offers.sample is not None
        request = read_sampling(params)
        if self._is_sampling_over:
            raise _rejected()
        self._count_sample()
        try:
            answer = await self._one_by_one(self._offers.sample, request)
        except ToolError as error:
            if error.kind != "permissionDenied":
                raise self._failed(error) from None
            self._is_sampling_over = error.action == "stop"
            raise _rejected() from None
        except SidecarError as error:
            raise self._failed(error) from None
        return sampling_result(answer)

    async def _elicit(self, params: JsonObject) -> JsonObject:
        assert self._offers.elicit is not None
        question = read_question(params, self._offers.modes)
        if question.elicitation_id is not None:  # Before it is asked, for its end may come before the answer.
            while len(self._pages) >= MAX_OPEN_PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[question.elicitation_id] = asyncio.Event()
        answer = await self._one_by_one(self._offers.elicit, question)
        if answer.action != "accept" and question.elicitation_id is not None:
            self._pages.pop(question.elicitation_id, None)
        return answer_result(question, answer)

    async def _one_by_one(self, ask: Callable[[Asker, Question], Awaitable[Answer]], question: Question) -> Answer:
        """A person is asked one thing at a time by a server, and time stands still for who waits for it."""
        if self._waiting_questions >= MAX_WAITING_QUESTIONS:
            raise ReplyRefusal(INTERNAL_ERROR, "too many questions of this server wait for an answer")
        self._waiting_questions += 1
        try:
            with self.person_time.running():
                return await self.callers.while_called(self._alone(ask, self.callers.asker, question))
        except CallsOverError:
            raise ReplyRefusal(INTERNAL_ERROR, "the call that this was asked for is over") from None
        finally:
            self._waiting_questions -= 1

    async def _alone(
        self, ask: Callable[[Asker, Question], Awaitable[Answer]], asker: Asker, question: Question
    ) -> Answer:
        async with self._asking:
            return await ask(asker, question)

    def _count_sample(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._samples and self._samples[0] < now - SAMPLES_WINDOW_SECS:
            self._samples.popleft()
        if len(self._samples) >= MAX_SAMPLES:
            logger.warning("server %r asks for a model too often; that is refused for a while", self._server)
            raise ReplyRefusal(
                INTERNAL_ERROR,
                f"no more than {MAX_SAMPLES} requests in {SAMPLES_WINDOW_SECS:g} s are put to a model",
            )
        self._samples.append(now)

    def _failed(self, error: SidecarError) -> ReplyRefusal:
        """The log says what went wrong; a server is not told of our models."""
        logger.warning("no model answered server %r: %s", self._server, error)
        return ReplyRefusal(INTERNAL_ERROR, "the client's model could not be asked")

    async def _pages_done(self, elicitation_ids: list[str]) -> None:
        """Returns when the server has said that these pages are dealt with, or has had the time to."""
        open_pages = [page for name in elicitation_ids if (page := self._pages.get(name)) is not None]
        with self.person_time.running(), suppress(TimeoutError):
            async with asyncio.timeout(PAGE_WAIT_SECS):
                for page in open_pages:
                    await page.wait()

    # Notifications --------------------------------------------------------------------------------------

    def _page_done(self, elicitation_id: Any) -> None:
        done = self._pages.pop(elicitation_id, None) if isinstance(elicitation_id, str) else None
        if done is None:  # Unknown ones are to be ignored.
            return
        done.set()
        if self._offers.page_done is not None:
            self._offers.page_done(self._server, elicitation_id)

    def _modes(self, revision: str) -> tuple[Mode, ...]:
        if self._offers.elicit is None or revision < FORM_SINCE:
            return ()
        return tuple(mode for mode in self._offers.modes if mode == "form" or revision >= URL_SINCE)

    def _tell(self, told: Callable[..., None]) -> Callable[..., None]:
        return lambda *about: told(self._server, *about)


def _rejected() -> ReplyRefusal:
    return ReplyRefusal(USER_REJECTED, "user rejected sampling request")
