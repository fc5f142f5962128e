"""Notices a model that makes the same call over and over. Pure."""

import json

from sidecar.protocol.values import ToolCall


class RepeatCount:
    """How many times in a row the latest call was made, over all turns of a run."""

    def __init__(self) -> None:
        self._last: tuple[str, str] | None = None
        self._count = 0

    def count(self, call: ToolCall) -> int:
        """Takes `call` in; 1 means that it differs from the one before."""
        key = (call.tool_name, json.dumps(call.input, sort_keys=True))
        self._count = self._count + 1 if key == self._last else 1
        self._last = key
        return self._count


def note_for_model(count: int) -> str:
    """What the model is told with the result of a repeated call."""
    return (
        f"note: this is the same call with the same arguments {count} times in a row; "
        "its result will not change, so go on with what you know or try another way"
    )
