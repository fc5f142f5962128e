"""Plain functions beside the event loop, each in a thread of its own, and the way back from there.

Not `asyncio.to_thread`: its pool is small, so a few tools that hang would stop all others, and the interpreter
waits for its threads when it exits. Nobody waits for one of these that is given up. One that has nothing to do
stays for a while, since making another costs more than most functions take.
"""

import _thread
import asyncio
import concurrent.futures
import contextvars
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Generator
from contextlib import closing
from typing import Any, ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")

IDLE_SECS = 10.0
"""How long a thread stays that has nothing to do. Own choice: a few turns of a run."""

_Work = Callable[[], None]


async def in_thread(function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a plain function that ran in a thread, with the caller's context variables.

    When the caller is cancelled it goes on at once; the thread ends when the function does, and whatever it
    still asks for through `from_thread` raises there.
    """
    bridge = _Bridge(asyncio.get_running_loop())
    context = contextvars.copy_context()
    context.run(_bridge.set, bridge)

    def work() -> None:
        try:
            result = context.run(function, *args, **kwargs)
        except BaseException as error:  # noqa: BLE001  it is raised in the caller instead
            bridge.finish(error=error)
        else:
            bridge.finish(result=result)

    _threads.run(work)
    try:
        return await bridge.finished  # type: ignore[no-any-return]  # It is what `function` returned.
    finally:
        bridge.close()


class _Threads:
    """As many threads as there are functions at once. `run` waits for nothing."""

    def __init__(self) -> None:
        self._idle: list[queue.SimpleQueue[_Work]] = []

    def run(self, work: _Work) -> None:
        """Runs it in a thread that has nothing to do, else in a new one."""
        try:
            self._idle.pop().put(work)
        except IndexError:
            # `Thread.start` would hold up the loop until the thread has run: 100 calls took twice their time.
            _thread.start_new_thread(self._serve, (work,))

    def _serve(self, work: _Work) -> None:
        inbox: queue.SimpleQueue[_Work] = queue.SimpleQueue()
        while True:
            work()
            del work  # What the function was given must not live as long as the thread.
            self._idle.append(inbox)
            try:
                work = inbox.get(timeout=IDLE_SECS)
            except queue.Empty:
                try:
                    self._idle.remove(inbox)
                except ValueError:
                    work = inbox.get()  # It was taken out a moment ago, so there is something to do.
                else:
                    return


_threads = _Threads()


def from_thread(work: Coroutine[Any, Any, T]) -> T:
    """Runs a coroutine on the event loop and waits for it; for a plain function inside `in_thread`.

    Raises RuntimeError anywhere else, and CancelledError once nobody waits for the function any more.
    """
    bridge = _bridge.get()
    if bridge is None or bridge.is_here():
        work.close()
        raise RuntimeError("from_thread works in a plain tool function only; await the coroutine instead")
    return bridge.run(work)


async def iterate_in_thread(items: Generator[T, None, None]) -> AsyncGenerator[T, None]:
    """The items of a plain generator that runs in one thread from its first item to its end."""
    queue: asyncio.Queue[T] = asyncio.Queue(maxsize=1)

    def work() -> None:
        with closing(items):
            for item in items:
                from_thread(queue.put(item))

    task = asyncio.create_task(in_thread(work))
    try:
        async for item in _until_done(queue, task):
            yield item
        await task
    finally:
        task.cancel()
        await asyncio.wait({task})


async def _until_done(queue: "asyncio.Queue[T]", task: "asyncio.Task[None]") -> AsyncIterator[T]:
    while not (task.done() and queue.empty()):
        taking = asyncio.ensure_future(queue.get())
        try:
            await asyncio.wait({taking, task}, return_when=asyncio.FIRST_COMPLETED)
            if taking.done():
                yield taking.result()
        finally:
            taking.cancel()


class _Bridge:
    """Between one thread and the loop that waits for it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._running: set[concurrent.futures.Future[Any]] = set()
        self._lock = threading.Lock()
        self._closed = False
        self.finished: asyncio.Future[Any] = loop.create_future()

    def is_here(self) -> bool:
        """Whether this is the loop's own thread, which must not wait for itself."""
        return threading.get_ident() == self._loop_thread

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """In the thread: the result of `work`, run on the loop."""
        with self._lock:
            if self._closed:
                work.close()
                raise asyncio.CancelledError("nobody waits for this call any more")
            future = asyncio.run_coroutine_threadsafe(work, self._loop)
            self._running.add(future)
        try:
            return future.result()
        except concurrent.futures.CancelledError as error:
            raise asyncio.CancelledError("nobody waits for this call any more") from error
        finally:
            self._running.discard(future)

    def finish(self, result: Any = None, error: BaseException | None = None) -> None:
        """In the thread: it is over."""
        if isinstance(error, StopIteration | asyncio.CancelledError):
            # Neither can travel through a future as what it is.
            error = RuntimeError(f"the function raised {type(error).__name__}: {error}")
        try:
            self._loop.call_soon_threadsafe(self._settle, result, error)
        except RuntimeError:
            return  # The loop is closed, so nobody is left to be told.

    def close(self) -> None:
        """On the loop: nobody waits any more."""
        with self._lock:
            self._closed = True
            running = tuple(self._running)
        for future in running:
            future.cancel()

    def _settle(self, result: Any, error: BaseException | None) -> None:
        if self.finished.done():
            return
        if error is None:
            self.finished.set_result(result)
        else:
            self.finished.set_exception(error)


_bridge: contextvars.ContextVar[_Bridge | None] = contextvars.ContextVar("sidecar_thread_bridge", default=None)
