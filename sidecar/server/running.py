"""The host's requests that are being worked on: who may start, who is cancelled, and who was answered."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, frozen

from sidecar.protocol.errors import SidecarError
from sidecar.server.answers import log_failure
from sidecar.server.envelope import HostRequest, RequestId


@frozen
class Outcome:
    """How the work on a request ended: by a JSON-ready result, or by `error`."""

    result: Any = None
    error: BaseException | None = None


@define
class _Running:
    request: HostRequest
    task: asyncio.Task[Any]
    cancellable: bool
    cancelled: bool = False


class RunningRequests:
    """Requests by id. Each that is started gets exactly one call of `answer`, when its work has ended.

    A request that was cancelled ends as cancelled whatever its work made of that.
    """

    def __init__(self, answer: Callable[[HostRequest, Outcome], None]) -> None:
        self._answer = answer
        self._running: dict[RequestId, _Running] = {}

    def __contains__(self, request_id: RequestId) -> bool:
        return request_id in self._running

    def __len__(self) -> int:
        return len(self._running)

    def start(self, request: HostRequest, work: Coroutine[Any, Any, Any], *, cancellable: bool = True) -> None:
        """Runs the work as a task of its own; works begin in the order of these calls."""
        task = asyncio.create_task(work, name=f"{request.method} {request.id!r}")
        running = _Running(request, task, cancellable)
        self._running[request.id] = running
        running.task.add_done_callback(lambda _: self._end(running))

    def cancel(self, request_id: RequestId) -> None:
        """Cancels once: a second time must not break into the cleanup of the first. Unknown ids are no error."""
        running = self._running.get(request_id)
        if running is not None and running.cancellable and not running.cancelled:
            running.cancelled = True
            running.task.cancel()

    async def cancel_all(self, *, limit_secs: float, but: RequestId | None = None) -> None:
        """Cancels every request, waits for their cleanup, and answers those that do not end within the limit."""
        others = [running for running in self._running.values() if running.request.id != but]
        for running in others:
            self.cancel(running.request.id)
        if others:
            await asyncio.wait([running.task for running in others], timeout=limit_secs)
        for running in others:
            self._end(running)

    def _end(self, running: _Running) -> None:
        """Answers, unless that happened already."""
        if self._running.get(running.request.id) is running:
            del self._running[running.request.id]
            self._answer(running.request, _outcome(running))


def _outcome(running: _Running) -> Outcome:
    task = running.task
    if not task.done() or task.cancelled():
        return Outcome(error=asyncio.CancelledError())
    error = task.exception()
    if running.cancelled:
        if isinstance(error, SidecarError) and error.kind == "requestCancelled":
            return Outcome(error=error)  # It says what was cancelled.
        if error is not None and not isinstance(error, SidecarError):
            log_failure(error, f"the cleanup of a cancelled {running.request.method}")
        return Outcome(error=asyncio.CancelledError())
    return Outcome(error=error) if error is not None else Outcome(result=task.result())
