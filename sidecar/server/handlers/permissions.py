"""permissions/*."""

from sidecar.permissions.entries import fault_of_options
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import invalid_params
from sidecar.protocol.messages import (
    PermissionOptions,
    PermissionsCheckParams,
    PermissionsCheckResult,
    PermissionsGetParams,
    PermissionsResult,
    PermissionsSetParams,
)
from sidecar.server.handlers.scope import invocation_scope
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def get(request: Request, params: PermissionsGetParams) -> PermissionsResult:
    """What is in force."""
    services: Services = request.services
    _check_session(services, params.session_id)
    return _result(services.permissions.config(params.session_id))


async def set_permissions(request: Request, params: PermissionsSetParams) -> PermissionsResult:
    """Replaces the fields given; answers with what is in force now."""
    services: Services = request.services
    if params.scope == "session" and params.session_id is None:
        raise invalid_params("params.sessionId", 'is required where scope is "session"')
    _check_session(services, params.session_id)
    options = PermissionOptions(
        allowed=params.allowed,
        denied=params.denied,
        ask=params.ask,
        allow_unspecified=params.allow_unspecified,
        rules=params.rules,
    )
    if wrong := fault_of_options(options):
        path, reason = wrong
        raise invalid_params(f"params.{path}", reason)
    services.permissions.set(options, params.scope, params.session_id)
    services.registry.reconsider()
    return _result(services.permissions.config(params.session_id))


async def check(request: Request, params: PermissionsCheckParams) -> PermissionsCheckResult:
    """What would be decided, without deciding it. Raises `notFound` for a tool that is not there."""
    services: Services = request.services
    _check_session(services, params.session_id)
    scope = invocation_scope(services, session_id=params.session_id, run_id=None)
    decision = await services.registry.decide(params.name, params.arguments or {}, scope)
    return PermissionsCheckResult(decision=decision.decision, rule=decision.rule, permission=decision.permission)


def _check_session(services: Services, session_id: str | None) -> None:
    if session_id is not None:
        services.sessions.get(session_id)


def _result(config: PermissionConfig) -> PermissionsResult:
    return PermissionsResult(
        allowed=config.allowed,
        denied=config.denied,
        ask=config.ask,
        allow_unspecified=config.allow_unspecified,
        rules=config.rules,
    )
