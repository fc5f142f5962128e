"""Plain functions beside the loop: results, errors, cancellation, the way back.

Source: own choice; that a plain function cannot block the loop is protocol.md's.
"""

import asyncio
import contextvars
import subprocess
import sys
import threading
import weakref
from collections.abc import Generator

import pytest

from sidecar.tools.threads import from_thread, in_thread, iterate_in_thread

HERE: contextvars.ContextVar[str] = contextvars.ContextVar("HERE", default="nowhere")


async def test_a_function_runs_in_another_thread_with_the_caller_s_context() -> None:
    HERE.set("test")

    def work(a: int, *, b: int) -> tuple[int, str, bool]:
        return a + b, HERE.get(), threading.current_thread() is threading.main_thread()

    assert await in_thread(work, 1, b=2) == (3, "test", False)


async def test_many_functions_run_at_once() -> None:
    meet = threading.Barrier(50, timeout=5)
    assert sorted(await asyncio.gather(*(in_thread(meet.wait) for _ in range(50)))) == list(range(50))


@pytest.mark.parametrize("raised", [ValueError("x"), SystemExit(2), KeyboardInterrupt()])
async def test_what_the_function_raises_is_raised_in_the_caller(raised: BaseException) -> None:
    def work() -> None:
        raise raised

    if isinstance(raised, ValueError):
        with pytest.raises(ValueError, match="x"):
            await in_thread(work)
    else:
        # These end an event loop when they rise in a task, so a caller has to catch them at once.
        with pytest.raises(type(raised)):
            await in_thread(work)


async def test_a_stop_iteration_cannot_travel_as_itself() -> None:
    with pytest.raises(RuntimeError, match="raised StopIteration"):
        await in_thread(next, iter(()))


async def test_a_function_reaches_the_loop_and_back() -> None:
    loop_thread = threading.get_ident()

    async def on_the_loop(n: int) -> tuple[int, bool]:
        return n * 2, threading.get_ident() == loop_thread

    def work() -> tuple[int, bool]:
        return from_thread(on_the_loop(21))

    assert await in_thread(work) == (42, True)


async def test_an_error_on_the_loop_is_raised_in_the_thread() -> None:
    async def broken() -> None:
        raise KeyError("k")

    def work() -> str:
        try:
            from_thread(broken())
        except KeyError as error:
            return repr(error)
        return "nothing"

    assert await in_thread(work) == "KeyError('k')"


async def test_the_loop_s_own_thread_cannot_wait_for_itself() -> None:
    async def nothing() -> None: ...

    with pytest.raises(RuntimeError, match="in a plain tool function only"):
        from_thread(nothing())

    async def on_the_loop() -> None:
        from_thread(nothing())

    with pytest.raises(RuntimeError, match="in a plain tool function only"):
        await in_thread(lambda: from_thread(on_the_loop()))


async def test_a_cancelled_caller_goes_on_and_the_thread_learns_of_it_when_it_asks() -> None:
    started, release, learnt = asyncio.Event(), threading.Event(), asyncio.Event()
    loop = asyncio.get_running_loop()

    async def tell() -> None:
        started.set()

    def work() -> None:
        from_thread(tell())
        release.wait(5)
        try:
            from_thread(tell())
        except asyncio.CancelledError:
            loop.call_soon_threadsafe(learnt.set)

    caller = asyncio.create_task(in_thread(work))
    await started.wait()
    caller.cancel()
    with pytest.raises(asyncio.CancelledError):
        await caller
    release.set()
    async with asyncio.timeout(5):
        await learnt.wait()


async def test_a_wait_on_the_loop_ends_when_the_caller_is_cancelled() -> None:
    waiting, ended = asyncio.Event(), asyncio.Event()

    async def wait_for_ever() -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    caller = asyncio.create_task(in_thread(lambda: from_thread(wait_for_ever())))
    await waiting.wait()
    caller.cancel()
    async with asyncio.timeout(5):
        await ended.wait()


async def test_a_generator_runs_in_one_thread_item_by_item() -> None:
    def items() -> Generator[tuple[int, int], None, None]:
        for n in range(5):
            yield n, threading.get_ident()

    got = [item async for item in iterate_in_thread(items())]
    assert [n for n, _ in got] == [0, 1, 2, 3, 4]
    assert len({thread for _, thread in got}) == 1
    assert got[0][1] != threading.get_ident()


async def test_a_generator_s_error_comes_after_its_items() -> None:
    def items() -> Generator[int, None, None]:
        yield 1
        raise ValueError("broken")

    got = []
    with pytest.raises(ValueError, match="broken"):
        async for item in iterate_in_thread(items()):
            got.append(item)
    assert got == [1]


async def test_a_generator_is_closed_when_nobody_wants_more() -> None:
    closed = asyncio.Event()
    loop = asyncio.get_running_loop()

    def items() -> Generator[int, None, None]:
        try:
            while True:
                yield 1
        finally:
            loop.call_soon_threadsafe(closed.set)

    stream = iterate_in_thread(items())
    assert await anext(stream) == 1
    await stream.aclose()  # type: ignore[attr-defined]
    async with asyncio.timeout(5):
        await closed.wait()


def test_a_function_that_hangs_does_not_keep_the_process() -> None:
    program = """
import asyncio, threading
from sidecar.tools.threads import in_thread
async def main():
    started = threading.Event()
    def hang():
        started.set()
        threading.Event().wait()
    task = asyncio.create_task(in_thread(hang))
    await asyncio.sleep(0)
    started.wait(5)
    task.cancel()
asyncio.run(main())
"""
    done = subprocess.run([sys.executable, "-c", program], timeout=30, capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


async def test_a_thread_with_nothing_to_do_is_used_again_and_keeps_nothing() -> None:
    class Large:
        """Something that can be asked for when it has gone."""

    given = Large()
    gone = weakref.ref(given)
    first = await in_thread(lambda what: threading.get_ident(), given)
    del given
    # Its thread is free once the next function runs in it, so the first has been let go of by then.
    idents = [await in_thread(threading.get_ident) for _ in range(20)]
    assert first in idents
    assert gone() is None
