"""Messages in the JSON of an API, written once: a conversation goes out whole with every turn."""

import weakref
from collections.abc import Callable

from attrs import frozen

from sidecar.protocol.values import Message
from sidecar.providers.base import WarningPiece

WireName = Callable[[str], str]
"""The name under which a provider knows a tool of ours."""


@frozen(kw_only=True)
class Written:
    """One message as JSON text.

    `texts` is the message itself, or its content block by block, as the API has it. `later` is content that
    has to wait until all results of a turn have been given. `names` are the tools that it mentions, ours and
    the provider's. `warnings` say what could not be written.
    """

    texts: tuple[str, ...]
    later: tuple[str, ...] = ()
    names: tuple[tuple[str, str], ...] = ()
    warnings: tuple[WarningPiece, ...] = ()


Write = Callable[[Message, WireName], Written]


class WrittenMessages:
    """Remembers what messages were written as, each for as long as it lives."""

    def __init__(self, write: Write) -> None:
        self._write = write
        self._known: dict[int, tuple[weakref.ref[Message], Written]] = {}

    @property
    def remembered(self) -> int:
        """How many messages are remembered now."""
        return len(self._known)

    def of(self, message: Message, wire_name: WireName) -> Written:
        """The message as it goes out, written now or before."""
        key = id(message)
        if known := self._known.get(key):
            reference, written = known
            is_named_so = not written.names or all(wire_name(ours) == wire for ours, wire in written.names)
            if reference() is message and is_named_so:
                return written
        written = self._write(message, wire_name)
        # Once the message is gone, its number may become that of another one.
        reference = weakref.ref(message, lambda _: self._known.pop(key, None))
        self._known[key] = (reference, written)
        return written
