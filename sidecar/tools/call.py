"""One call on its way: arguments, permission and approval, execution, truncation, record."""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import evolve

from sidecar.permissions.checker import PermissionChecker
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import AgentEvent, ToolExecutionProgress, Warned
from sidecar.protocol.values import JsonObject, ToolCall, ToolInvocation, ToolResult
from sidecar.tools.approval import ApprovalAnswer, ApprovalQuestion
from sidecar.tools.arguments import BrokenSchemaError, invalid_arguments, read_arguments
from sidecar.tools.base import CancellationToken, ToolContext
from sidecar.tools.entry import ToolEntry
from sidecar.tools.limits import OutOfTimeError, Stopwatch, Stragglers, within
from sidecar.tools.output import error_without_secrets, result_of, shown, shown_error, without_secrets
from sidecar.tools.permit import OpenQuestions, Permit
from sidecar.tools.scope import InvocationScope
from sidecar.tools.truncation import cut

MAX_DEPTH = 16
"""How deep tools may call tools (own choice): one that calls itself has to end."""

logger = logging.getLogger("sidecar.tools")

InvokeOther = Callable[[str, Any, InvocationScope, str], Awaitable[ToolInvocation]]
"""Runs another tool of the registry: name, arguments, scope, call id."""


class Call:
    """A call of one entry. `run` is called once, and says all that came of it."""

    def __init__(
        self,
        entry: ToolEntry,
        call_id: str,
        scope: InvocationScope,
        permissions: PermissionChecker,
        *,
        questions: OpenQuestions,
        stragglers: Stragglers,
        invoke_other: InvokeOther,
    ) -> None:
        self._entry = entry
        self._tool = entry.tool
        self._scope = scope
        self._stragglers = stragglers
        self._invoke_other = invoke_other
        self._permit = Permit(
            entry.tool, scope, permissions, check=self._checked, questions=questions, stragglers=stragglers
        )
        self._call = ToolCall(call_id=call_id, tool_name=entry.name, input={})
        self._seen_by_rules: JsonObject | None = None
        self._began_ms = time.time_ns() // 1_000_000
        self._executed_secs = 0.0
        self._is_over = False

    async def run(self, arguments: Any) -> ToolInvocation:
        """The record of the call, whatever came of it. Raises CancelledError alone."""
        result: ToolResult | None = None
        failure: ToolError | None = None
        try:
            result = without_secrets(await self._carried_out(arguments), self._scope.secrets)
        except ToolError as error:
            error.data.setdefault("tool", self._tool.name)
            failure = error_without_secrets(error, self._scope.secrets)
        except asyncio.CancelledError:
            self._scope.record(self._call, None)
            raise
        finally:
            self._is_over = True
            failed = result is None or not result.ok
            self._entry.count(self._executed_secs * 1000, failed=failed)
        invocation = self._record(result, failure)
        self._scope.record(self._call, invocation)
        return invocation

    async def _carried_out(self, arguments: Any) -> ToolResult:
        self._call = ToolCall(
            call_id=self._call.call_id, tool_name=self._call.tool_name, input=await self._checked(arguments)
        )
        self._call, self._seen_by_rules = await self._permit.obtain(self._call)
        try:
            return await self._execute()
        except ToolError as error:
            if error.kind != "mcpTimeout" or not self._tool.idempotent:
                raise
        logger.info("%s timed out and is idempotent; it is tried once more", self._tool.name)
        return await self._execute()

    async def _checked(self, arguments: Any) -> JsonObject:
        read, was_string = read_arguments(arguments)
        name = self._tool.name
        if was_string:
            message = f"the arguments of {name} came as a JSON string and were read as the object in it"
            await self._scope.emit(Warned(code="argumentsUnquoted", message=message))
        try:
            faults = await self._entry.check.faults(read)
        except BrokenSchemaError as error:
            message = f"the schema of {name} is broken, so its arguments go unchecked: {error}"
            await self._scope.emit(Warned(code="schemaBroken", message=message))
            return read
        if faults:
            raise invalid_arguments(name, faults)
        return read

    # Execution ------------------------------------------------------------------------------------------

    async def _execute(self) -> ToolResult:
        watch = Stopwatch(self._tool.timeout_secs or self._scope.timeout_secs, self._tool.person_secs)
        token = self._scope.cancellation.child()
        began = time.monotonic()
        try:
            return await within(
                watch,
                self._result(self._context(watch, token)),
                name=f"tool {self._tool.name}",
                token=token,
                stragglers=self._stragglers,
            )
        except OutOfTimeError:
            raise ToolError(
                "timeout",
                f"{self._tool.name} did not end within {watch.limit_secs:g} s and was cancelled",
                tool=self._tool.name,
                timeoutSecs=watch.limit_secs,
            ) from None
        finally:
            self._executed_secs += time.monotonic() - began

    async def _result(self, context: ToolContext) -> ToolResult:
        """What the tool answers; everything that it may raise becomes a ToolError here."""

        async def on_part(part: Any) -> None:
            await context.report(None, None, None, part)

        try:
            return await result_of(await self._tool.execute(self._call.input, context), on_part)
        except ToolError:
            raise
        except asyncio.CancelledError:
            if context.cancellation.cancelled:
                raise
            raise self._broken("it cancelled itself") from None
        except (Exception, SystemExit) as error:
            # A tool may raise anything, and must not take the sidecar along.
            logger.debug("tool %s raised", self._tool.name, exc_info=True)
            raise self._broken(f"{type(error).__name__}: {error}") from error

    def _broken(self, why: str) -> ToolError:
        return ToolError("executionFailed", f"{self._tool.name} failed: {why}", tool=self._tool.name)

    def _context(self, watch: Stopwatch, token: CancellationToken) -> ToolContext:
        scope = self._scope
        return ToolContext(
            call_id=self._call.call_id,
            session_id=scope.session_id,
            run_id=scope.run_id,
            trace_id=scope.trace_id,
            cancellation=token,
            shared_state=scope.shared_state,
            workspace=scope.workspace,
            documents=scope.documents,
            rule_arguments=self._seen_by_rules,
            report=self._reporting(watch, token),
            question=self._asking(watch),
            other=self._invoking(watch, token),
            warn=scope.emit,
        )

    def _reporting(self, watch: Stopwatch, token: CancellationToken) -> Callable[..., Awaitable[None]]:
        async def report(done: float | None, total: float | None, message: str | None, partial: Any) -> None:
            if self._is_over or token.cancelled:
                return  # Nobody is told of a call after its end.
            secrets = self._scope.secrets
            event = ToolExecutionProgress(
                call_id=self._call.call_id,
                done=done,
                total=total,
                message=message and secrets.hide(message),
                partial=secrets.hide_in(partial),
            )
            with watch.paused():  # That a host reads slowly is not the tool's fault.
                await self._scope.emit(event)

        return report

    def _asking(self, watch: Stopwatch) -> Callable[[str, JsonObject | None], Awaitable[Any]]:
        async def ask(prompt: str, schema: JsonObject | None) -> Any:
            with watch.paused():
                return await self._scope.ask(self._call, prompt, schema)

        return ask

    def _invoking(
        self, watch: Stopwatch, token: CancellationToken
    ) -> Callable[[str, JsonObject], Awaitable[ToolResult]]:
        depth = self._scope.depth + 1

        async def approve(question: ApprovalQuestion) -> ApprovalAnswer:
            with watch.paused():
                return await self._scope.approve(question)

        async def ask(call: ToolCall, prompt: str, schema: JsonObject | None) -> Any:
            with watch.paused():
                return await self._scope.ask(call, prompt, schema)

        async def emit(event: AgentEvent) -> None:
            with watch.paused():
                await self._scope.emit(event)

        async def invoke(name: str, args: JsonObject) -> ToolResult:
            if depth > MAX_DEPTH:
                raise self._broken(f"its calls are nested more than {MAX_DEPTH} deep")
            scope = evolve(self._scope, cancellation=token, approve=approve, ask=ask, emit=emit, depth=depth)
            # Under this call's id, because the host has never heard of another.
            invocation = await self._invoke_other(name, args, scope, self._call.call_id)
            if invocation.error is not None:
                raise invocation.error
            return invocation.result or ToolResult.success()

        return invoke

    # Record ---------------------------------------------------------------------------------------------

    def _record(self, result: ToolResult | None, failure: ToolError | None) -> ToolInvocation:
        whole = shown(result) if result is not None else shown_error(failure) if failure is not None else ""
        shorter = cut(whole, self._scope.max_result_bytes)
        return ToolInvocation(
            call_id=self._call.call_id,
            tool_name=self._tool.name,
            input=self._call.input,
            result=result,
            error=failure,
            content=shorter.content,
            started_ms=self._began_ms,
            duration_ms=round(self._executed_secs * 1000),
            truncated=shorter.truncated,
            original_bytes=shorter.original_bytes,
        )
