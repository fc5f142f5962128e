"""A client library's Sidecar over a scripted one, and the scripts that its tests use most."""

from pathlib import Path
from typing import Any

from sidecar_client import Sidecar

from tests.harness.scripted_sidecar import received, scripted

ANSWER = {
    "sessionId": "$sessionId",
    "runId": "$runId",
    "stopReason": "stop",
    "message": {"role": "assistant", "content": "Hello"},
    "turns": 1,
    "usage": {"inputTokens": 1, "outputTokens": 1, "totalTokens": 2},
}
SAYS_HELLO = [
    {"event": {"type": "runStarted", "model": "scripted/one", "prompt": "hi"}},
    {"event": {"type": "assistantTextDelta", "text": "Hel"}},
    {"event": {"type": "assistantTextDelta", "text": "lo"}},
    {"event": {"type": "runCompleted", "stopReason": "stop", "usage": {}}},
    {"result": ANSWER},
]


def asks(method: str, params: dict[str, Any], *, how: str = "ask", is_odd: bool = False) -> list[dict[str, Any]]:
    return [{how: {"id": "q-1", "method": method, "params": params}, "isOdd": is_odd}, {"result": ANSWER}]


def answers_in(folder: Path) -> list[dict[str, Any]]:
    """What the host answered to the scripted question."""
    return [message for message in received(folder) if message.get("id") == "q-1"]


def sidecar(folder: Path, script: dict[str, Any], **arguments: Any) -> Sidecar:
    return Sidecar(command=scripted(folder, script), cwd=folder, **arguments)
