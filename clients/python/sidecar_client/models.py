"""Models that the host lends to the sidecar: what is asked of one, and how its answer streams."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sidecar_client.frames import JsonObject


@dataclass(frozen=True, kw_only=True)
class ModelCall:
    """One conversation that waits for the next message of a model of the host."""

    request: JsonObject
    """The params of `model/complete`: `messages`, `tools`, `model`, `system`, …"""
    report: Callable[[str], None]

    def delta(self, text: str) -> None:
        """Streams a piece of the answer, which holds all of it again in the end."""
        self.report(text)


def as_completion(answer: Any) -> Any:
    """What a callback returned as the result of `model/complete`: a text becomes the assistant's message."""
    return {"message": {"role": "assistant", "content": answer}} if isinstance(answer, str) else answer
