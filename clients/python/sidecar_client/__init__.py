"""A host for Agent Sidecar in a few lines of asyncio; standard library only.

async with Sidecar() as sidecar:
    run = sidecar.submit("Which files are here?")
    async for event in run:
        print(event)
    print(await run.text())
"""

from sidecar_client.errors import (
    BrokenStream,
    CannotStart,
    ClientError,
    NoAnswer,
    RequestFailed,
    RunCancelled,
    SidecarExited,
)
from sidecar_client.models import ModelCall
from sidecar_client.runs import Position, Run
from sidecar_client.sidecar import Limits, Sidecar, SubmitParams
from sidecar_client.tools import HostTool, ToolCall

__all__ = [
    "Sidecar",
    "Run",
    "Position",
    "HostTool",
    "ToolCall",
    "ModelCall",
    "Limits",
    "SubmitParams",
    "ClientError",
    "CannotStart",
    "SidecarExited",
    "BrokenStream",
    "NoAnswer",
    "RequestFailed",
    "RunCancelled",
]
