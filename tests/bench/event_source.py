"""A sidecar that knows one thing: it answers each `agent/submit` with a flood of events. Standard library only.

    python event_source.py EVENTS

The frames are made before the first is sent and written in large blocks, so that whoever reads them sets the pace.
"""

import json
import sys
from typing import Any

AGENT = {"protocolVersion": "1.0", "methods": [], "events": [], "models": []}
BLOCK_BYTES = 1 << 18


def frame(message: dict[str, Any]) -> bytes:
    """The message as it goes over the pipe."""
    body = json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def flood(run_id: str, events: int) -> bytes:
    """The frames of a run of so many events, each a few words of text but the last."""
    numbered = {"sessionId": "ses_5f2c9a1b7d3e4c8fa0b6d2e9c1a7f384", "runId": run_id}
    delta = {"type": "assistantTextDelta", "text": "some words of an answer, "}
    last = {"type": "runCompleted", "stopReason": "stop", "usage": {"inputTokens": 10, "outputTokens": 10}}
    all_events = [delta] * (events - 1) + [last]
    return b"".join(
        frame({"method": "agent/event", "params": {**numbered, "seq": seq, "event": event}})
        for seq, event in enumerate(all_events)
    )


def answer(message: dict[str, Any], events: int) -> bytes:
    """What is sent for this request."""
    if message["method"] == "initialize":
        return frame({"id": message["id"], "result": {"capabilities": {"experimental": {"agentSidecar": AGENT}}}})
    if message["method"] == "agent/submit":
        run_id = message["params"]["runId"]
        result = {"sessionId": "s", "runId": run_id, "stopReason": "stop", "turns": 1}
        return flood(run_id, events) + frame({"id": message["id"], "result": result})
    return frame({"id": message["id"], "result": None})


def main(events: int) -> None:
    while header := sys.stdin.buffer.readline():
        size = int(header.partition(b":")[2])
        sys.stdin.buffer.readline()
        message = json.loads(sys.stdin.buffer.read(size))
        if message["method"] == "exit":
            return
        if "id" in message:
            data = answer(message, events)
            for start in range(0, len(data), BLOCK_BYTES):
                sys.stdout.buffer.write(data[start : start + BLOCK_BYTES])
            sys.stdout.buffer.flush()


if __name__ == "__main__":
    main(int(sys.argv[1]))
