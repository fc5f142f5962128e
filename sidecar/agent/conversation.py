"""A conversation: its messages, and where the latest run in it begins."""

from attrs import define, field

from sidecar.protocol.values import Message


@define
class Conversation:
    """The history that a model is sent. Changed by runs and compaction alone, valid between any two awaits.

    `latest_start` is the index of the first message of the latest run, which compaction leaves whole.
    `warned` are the warnings that the host has heard already.
    """

    messages: list[Message] = field(factory=list)
    latest_start: int = 0
    warned: set[tuple[str, str]] = field(factory=set)
