"""JSON-RPC over a sidecar's process: which answer belongs to which question, in both directions.

Every request of ours ends: with its answer, at its limit, or when the process is lost. Every request of the
sidecar gets exactly one answer, also when its method is unknown, its handler breaks, or it is withdrawn.
"""

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from sidecar_client.errors import REQUEST_CANCELLED, ClientError, NoAnswer, failure_of
from sidecar_client.frames import JsonObject
from sidecar_client.process import SidecarProcess

METHOD_NOT_FOUND = -32601
INTERNAL_ERROR = -32603
"""Codes of JSON-RPC 2.0, section 5.1."""

CALLBACK_GRACE_SECS = 5.0
"""How long a callback may take to react to its cancellation at the end. Own choice."""

Answerer = Callable[[JsonObject], Awaitable[Any]]
"""Answers one method of the sidecar: params in, result out."""

log = logging.getLogger("sidecar_client")


@dataclass(frozen=True)
class Question:
    """A request of ours and, in time, its answer or the loss of the sidecar."""

    id: int
    method: str
    answer: asyncio.Future[JsonObject | ClientError]

    def settle(self, answer: JsonObject | ClientError) -> None:
        """Only the first answer counts."""
        if not self.answer.done():
            self.answer.set_result(answer)

    async def is_answered_within(self, limit_secs: float) -> bool:
        """Waits for the answer, at most so long."""
        await asyncio.wait([self.answer], timeout=limit_secs)
        return self.answer.done()

    def result(self) -> Any:
        """What was answered; raises it where it is an error."""
        answer = self.answer.result()
        if isinstance(answer, ClientError):
            raise answer.with_traceback(None)
        if "error" in answer:
            raise failure_of(answer["error"])
        return answer.get("result")


class Connection:
    """One conversation; it starts when `attach` names the process and ends with `lose`."""

    def __init__(
        self, answerers: Mapping[str, Answerer], on_notification: Callable[[str, JsonObject], None]
    ) -> None:
        self._answerers = answerers
        self._on_notification = on_notification
        self._process: SidecarProcess | None = None
        self._ids = itertools.count(1)
        self._waiting: dict[int, Question] = {}
        self._answering: dict[int | str, asyncio.Task[JsonObject]] = {}
        self._lost: ClientError | None = None

    def attach(self, process: SidecarProcess) -> None:
        """From here on messages go to `process`."""
        self._process = process

    def ask(self, method: str, params: JsonObject) -> Question:
        """Sends a request at once; whoever asks must `forget` the question in the end.

        Raises SidecarExited or BrokenStream when nobody is there, ValueError or TypeError for what is not JSON.
        """
        question = self.expect(method)
        try:
            self._send({"jsonrpc": "2.0", "id": question.id, "method": method, "params": params})
        except BaseException:
            del self._waiting[question.id]
            raise
        return question

    def expect(self, method: str) -> Question:
        """Stands for a question of an earlier life: it ends as any does, but nothing is sent for it.

        Raises SidecarExited or BrokenStream when nobody is there.
        """
        if self._lost:
            raise self._lost.with_traceback(None)
        question = Question(next(self._ids), method, asyncio.get_running_loop().create_future())
        self._waiting[question.id] = question
        return question

    def forget(self, question: Question) -> None:
        """Nobody waits any more: a question without an answer is withdrawn."""
        del self._waiting[question.id]
        if not question.answer.done():
            self.notify("$/cancelRequest", {"id": question.id})

    async def request(self, method: str, params: JsonObject, *, limit_secs: float) -> Any:
        """Asks, and returns the result. Raises RequestFailed, NoAnswer, SidecarExited or BrokenStream.

        Cancelling this withdraws the question.
        """
        question = self.ask(method, params)
        try:
            if not await question.is_answered_within(limit_secs):
                raise NoAnswer(method, limit_secs)
            return question.result()
        finally:
            self.forget(question)

    def notify(self, method: str, params: JsonObject) -> None:
        """Tells, without an answer; lost when the process is."""
        self._send({"jsonrpc": "2.0", "method": method, "params": params})

    def receive(self, message: JsonObject) -> None:
        """Takes a message of the sidecar to where it belongs."""
        method, request_id = message.get("method"), message.get("id")
        params = message.get("params")
        given = params if isinstance(params, dict) else {}
        if not isinstance(method, str):
            self._take_answer(request_id, message)
        elif isinstance(request_id, int | str):
            self._take_request(request_id, method, given)
        elif method == "$/cancelRequest":
            self._take_withdrawal(given.get("id"))
        else:
            self._on_notification(method, given)

    def lose(self, reason: ClientError) -> None:
        """Nothing will come any more: ends all that waits."""
        self._lost = reason
        for question in self._waiting.values():
            question.settle(reason)
        for task in self._answering.values():
            task.cancel()

    async def finish(self) -> None:
        """Ends the answers still being worked on, and waits for them."""
        tasks = [*self._answering.values()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CALLBACK_GRACE_SECS)

    def _send(self, message: JsonObject) -> None:
        if self._process:
            self._process.send(message)

    def _take_answer(self, request_id: Any, message: JsonObject) -> None:
        question = self._waiting.get(request_id) if isinstance(request_id, int) else None
        if question is None or question.answer.done():
            log.debug("passed over an answer that nobody waits for: id %r", request_id)
        else:
            question.settle(message)

    # Requests of the sidecar -----------------------------------------------------------------------------

    def _take_request(self, request_id: int | str, method: str, params: JsonObject) -> None:
        task = asyncio.get_running_loop().create_task(self._answer_to(method, params))
        self._answering[request_id] = task
        # Answered from the callback, not in the task: a task that is cancelled before its first step never
        # runs a line of its own.
        task.add_done_callback(lambda _: self._send_answer(request_id, method, task))

    def _take_withdrawal(self, request_id: Any) -> None:
        task = self._answering.get(request_id) if isinstance(request_id, int | str) else None
        if task:
            task.cancel()

    def _send_answer(self, request_id: int | str, method: str, task: asyncio.Task[JsonObject]) -> None:
        if self._answering.get(request_id) is task:
            del self._answering[request_id]
        withdrawn = _error(REQUEST_CANCELLED, f"{method} was withdrawn")
        answer = withdrawn if task.cancelled() else task.result()
        try:
            self._send({"jsonrpc": "2.0", "id": request_id, **answer})
        except (TypeError, ValueError) as error:
            log.error("the answer to %s cannot be sent: %s", method, error)
            broken = _error(INTERNAL_ERROR, f"the host's answer is no JSON: {error}")
            self._send({"jsonrpc": "2.0", "id": request_id, **broken})

    async def _answer_to(self, method: str, params: JsonObject) -> JsonObject:
        answerer = self._answerers.get(method)
        if answerer is None:
            return _error(METHOD_NOT_FOUND, f"this host does not answer {method!r}")
        try:
            return {"result": await answerer(params)}
        except Exception as error:  # a callback of the host's broke; the sidecar must still hear
            log.exception("the host's callback for %s failed", method)
            return _error(INTERNAL_ERROR, f"the host's callback failed: {type(error).__name__}: {error}")


def _error(code: int, message: str) -> JsonObject:
    return {"error": {"code": code, "message": message}}
