"""What a host does for MCP servers: a person decides and answers, a model answers, a log is written.

Only what this host can do is offered: without a way to ask, no server hears of sampling or questions.
"""

import logging
import uuid
from collections.abc import Awaitable, Callable

from sidecar.mcp.callers import Asker
from sidecar.mcp.changes import Changed
from sidecar.mcp.connection import ReplyRefusal
from sidecar.mcp.duties import Offers
from sidecar.mcp.elicitation import InputAnswer, InputQuestion
from sidecar.mcp.sampling import SamplingAnswer, SamplingRequest, read_sampling, shown_sampling
from sidecar.protocol.errors import ErrorAction, ToolError
from sidecar.protocol.messages import (
    ApprovalOption,
    InputDoneParams,
    McpOffersChangedParams,
)
from sidecar.protocol.printable import printable
from sidecar.protocol.values import LogLevel
from sidecar.server.folders import Folders
from sidecar.server.host import Host
from sidecar.server.questions import Questions, new_input_id
from sidecar.tools.approval import ApprovalQuestion

SAMPLING = "sampling/createMessage"
"""What the host is shown in place of a tool's name."""

MAX_OPEN_PAGES = 1000
"""Pages that people were sent to and whose end no server has told; the oldest are forgotten. Own choice."""

Sample = Callable[[SamplingRequest], Awaitable[SamplingAnswer]]
"""Asks a model."""

_LOG, _INFO, _WARNING = 4, 3, 2
_MESSAGE_TYPES: dict[LogLevel, int] = {"debug": _LOG, "info": _INFO, "notice": _INFO}
"""Types of LSP's messages. What is worse than these is a warning: it is no error of ours."""

log = logging.getLogger("sidecar.server")


def offers_of(host: Host, questions: Questions, sample: Sample, folders: Folders) -> Offers:
    """What this host offers to every server."""
    desk = _Desk(host, questions, sample)
    can = host.capabilities
    return Offers(
        roots=lambda: folders.paths,
        sample=desk.sample if can.approvals or can.show_message else None,
        elicit=desk.elicit if can.input else None,
        log=desk.log,
        changed=desk.changed,
        page_done=desk.page_done,
        learn_secrets=host.secrets.add,
    )


class _Desk:
    """Where the requests of all servers arrive."""

    def __init__(self, host: Host, questions: Questions, sample: Sample) -> None:
        self._host = host
        self._questions = questions
        self._sample = sample
        self._pages: dict[tuple[str, str], str] = {}

    async def sample(self, asker: Asker, request: SamplingRequest) -> SamplingAnswer:
        """A model's answer, once a person has seen the request. Raises SidecarError; see Offers."""
        server = asker.server
        answer = await self._questions.approve(_sampling_question(asker, request))
        if answer.decision in ("deny", "denyAndStop"):
            log.info("sampling for server %r was denied by %s", server, answer.by)
            action: ErrorAction = "stop" if answer.decision == "denyAndStop" else "tellModel"
            raise ToolError("permissionDenied", f"sampling for server {server!r} was denied", action=action)
        if answer.updated_input is not None:
            request = _edited(server, request, answer.updated_input)
        return await self._sample(request)

    async def elicit(self, asker: Asker, question: InputQuestion) -> InputAnswer:
        """What a person answers; they are told who asks."""
        server, request_id = asker.server, new_input_id()
        if question.elicitation_id is not None:
            while len(self._pages) >= MAX_OPEN_PAGES:
                del self._pages[next(iter(self._pages))]
            self._pages[server, question.elicitation_id] = request_id
        return await self._questions.put(
            source=f"MCP server {server}",
            message=f"MCP server {server} asks: {question.message}",
            schema=question.schema,
            url=question.url,
            request_id=request_id,
            session_id=asker.session_id,
            run_id=asker.run_id,
        )

    def log(self, level: LogLevel, line: str) -> None:
        """Into the host's log."""
        self._host.notify("window/logMessage", {"type": _MESSAGE_TYPES.get(level, _WARNING), "message": line})

    def changed(self, server: str, what: Changed, uri: str | None) -> None:
        """A list, or one resource, is not what it was."""
        self._host.notify("mcp/offersChanged", McpOffersChangedParams(server=server, what=what, uri=uri))

    def page_done(self, server: str, elicitation_id: str) -> None:
        """What a person was sent to a page for is done."""
        request_id = self._pages.pop((server, elicitation_id), None)
        if request_id is not None:
            self._host.notify("agent/inputDone", InputDoneParams(request_id=request_id))


def _sampling_question(asker: Asker, request: SamplingRequest) -> ApprovalQuestion:
    server, number = asker.server, uuid.uuid4().hex[:16]
    return ApprovalQuestion(
        request_id=f"apr_{number}",
        session_id=asker.session_id,
        run_id=asker.run_id,
        call_id=f"sampling_{number}",
        tool_name=SAMPLING,
        input=shown_sampling(request),
        permissions=(f"mcp:{server}",),
        reason=f"MCP server {server!r} asks for an answer of your model",
        title=f"Let MCP server {printable(server)} ask your model?",
        options=(
            ApprovalOption(decision="allowOnce", label="Allow once"),
            ApprovalOption(decision="deny", label="Deny"),
            ApprovalOption(decision="denyAndStop", label="Deny, and ask no more"),
        ),
    )


def _edited(server: str, request: SamplingRequest, updated: dict[str, object]) -> SamplingRequest:
    """The request as the person wants it; of what they were not shown, as it was."""
    try:
        edited = read_sampling({**shown_sampling(request), **updated})
    except ReplyRefusal as refusal:
        message = (
            f"what the host made of a sampling request of server {server!r} cannot be used: {refusal.message}"
        )
        raise ToolError("invalidArguments", message) from None
    return edited._replace(temperature=request.temperature, stop_sequences=request.stop_sequences)
