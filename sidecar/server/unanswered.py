"""Our own requests to the host, until they are answered, too late, or withdrawn."""

import asyncio
import logging
from itertools import count
from typing import Any

from sidecar.protocol.values import JsonObject
from sidecar.server.envelope import OUR_IDS, HostAnswer
from sidecar.server.outbox import Outbox

log = logging.getLogger("sidecar.server")


class HostError(Exception):
    """The host gave no usable answer.

    HostDidNotAnswer   nothing came in time
    HostRefused        an error came, or an answer that makes no sense
    """


class HostDidNotAnswer(HostError):
    """Nothing came in time; the request was withdrawn."""


class HostRefused(HostError):
    """The host answered with an error, or with something that makes no sense. `code` is None for the latter."""

    def __init__(self, message: str, *, code: int | None = None, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data


class UnansweredRequests:
    """Requests of ours by id. An id is forgotten when its answer came, its time is over or nobody waits."""

    def __init__(self, outbox: Outbox) -> None:
        self._outbox = outbox
        self._waiting: dict[str, asyncio.Future[Any]] = {}
        self._numbers = count(1)

    def __len__(self) -> int:
        return len(self._waiting)

    async def ask(self, method: str, params: Any, *, deadline_secs: float) -> Any:
        """The result as JSON. Raises HostDidNotAnswer and HostRefused.

        When the deadline passes, or the caller is cancelled, the host is told by `$/cancelRequest`.
        """
        request_id = f"{OUR_IDS}{next(self._numbers)}"
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._outbox.send({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})
        self._waiting[request_id] = answer
        try:
            async with asyncio.timeout(deadline_secs):
                return await answer
        except TimeoutError:
            raise HostDidNotAnswer(f"the host did not answer {method} within {deadline_secs:g} s") from None
        finally:
            if self._waiting.pop(request_id, None) is not None:
                self._withdraw(request_id)

    def resolve(self, answer: HostAnswer) -> None:
        """Hands an answer to whoever waits for it; one that nobody waits for is too late and ignored."""
        waiting = self._waiting.pop(answer.id, None) if isinstance(answer.id, str) else None
        if waiting is None:
            log.debug("ignored an answer to %r, which nobody waits for", answer.id)
        elif waiting.done():
            return
        elif answer.fault is not None:
            waiting.set_exception(HostRefused(f"the host's answer makes no sense: {answer.fault}"))
        elif answer.error is not None:
            waiting.set_exception(_refusal(answer.error))
        else:
            waiting.set_result(answer.result)

    def _withdraw(self, request_id: str) -> None:
        self._outbox.send({"jsonrpc": "2.0", "method": "$/cancelRequest", "params": {"id": request_id}})


def _refusal(error: JsonObject) -> HostRefused:
    return HostRefused(error["message"], code=error["code"], data=error.get("data"))
