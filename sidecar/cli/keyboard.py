"""Single keys from a terminal while the event loop goes on, and a line typed with them."""

import asyncio
import codecs
import os
import re
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TextIO

CLOSED = ""
"""What `key` returns when the terminal is gone."""

POLL_SECS = 0.05
"""How often Windows' console is looked at; it offers nothing to wait for."""

_ESCAPE_SEQUENCE = re.compile("\x1b(\\[[0-9;?]*[ -/]*[@-~]|O.|.)?", re.DOTALL)

ENTER, BACKSPACE, KILL_LINE, END_OF_FILE, ESCAPE = "\r\n", "\x7f\b", "\x15", "\x04", "\x1b"


class Keyboard:
    """The keys pressed from now on, one at a time; `open_keyboard` makes one."""

    def __init__(self) -> None:
        self._keys: asyncio.Queue[str] = asyncio.Queue()
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")

    async def key(self) -> str:
        """The next key as a character; CLOSED when there will be none. It is for the caller to set a limit."""
        return await self._keys.get()

    async def line(self, echo: Callable[[str], None]) -> str | None:
        """A line, ended by Enter; None for Ctrl-D on an empty line or a terminal that is gone.

        `echo` is given what stands there so far, to show it.
        """
        typed = ""
        while (key := await self.key()) != CLOSED:
            if key in ENTER:
                return typed
            if key == END_OF_FILE and not typed:
                return None
            typed = _edited(typed, key)
            echo(typed)
        return None

    def feed(self, data: bytes) -> None:
        """Bytes from the terminal. Cursor keys and the like are dropped; Escape alone stays."""
        text = self._decoder.decode(data)
        for key in _ESCAPE_SEQUENCE.sub(lambda match: "" if match[1] else ESCAPE, text):
            self._keys.put_nowait(key)

    def close(self) -> None:
        """No more keys will come."""
        self._keys.put_nowait(CLOSED)


def _edited(typed: str, key: str) -> str:
    if key in BACKSPACE:
        return typed[:-1]
    if key == KILL_LINE:
        return ""
    return typed + key if key.isprintable() else typed


if sys.platform == "win32":
    import msvcrt

    @contextmanager
    def open_keyboard(terminal: TextIO) -> Iterator[Keyboard]:
        """Keys of the console for as long as the block lasts."""
        keyboard = Keyboard()

        async def poll() -> None:
            while True:
                while msvcrt.kbhit():
                    keyboard.feed(msvcrt.getwch().encode("utf-8", "replace"))
                await asyncio.sleep(POLL_SECS)

        while msvcrt.kbhit():  # Typed before anything was asked: no answer to it.
            msvcrt.getwch()
        polling = asyncio.get_running_loop().create_task(poll())
        try:
            yield keyboard
        finally:
            polling.cancel()

else:
    import termios
    import tty

    @contextmanager
    def open_keyboard(terminal: TextIO) -> Iterator[Keyboard]:
        """Keys of the terminal, unbuffered and without echo, for as long as the block lasts.

        What was typed before is thrown away: it cannot have been meant as an answer.
        """
        keyboard = Keyboard()
        descriptor = terminal.fileno()
        loop = asyncio.get_running_loop()

        def read() -> None:
            try:
                data = os.read(descriptor, 1024)
            except OSError:
                data = b""
            if data:
                keyboard.feed(data)
            else:
                loop.remove_reader(descriptor)
                keyboard.close()

        before = termios.tcgetattr(descriptor)
        tty.setcbreak(descriptor, termios.TCSANOW)
        termios.tcflush(descriptor, termios.TCIFLUSH)
        loop.add_reader(descriptor, read)
        try:
            yield keyboard
        finally:
            loop.remove_reader(descriptor)
            termios.tcsetattr(descriptor, termios.TCSANOW, before)
