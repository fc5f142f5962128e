"""audit/list."""

from sidecar.protocol.messages import AuditListParams, AuditListResult
from sidecar.server.handlers.paging import cursor_of, key_of, limit_of, no_cursor
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def list_entries(request: Request, params: AuditListParams) -> AuditListResult:
    """The newest first."""
    services: Services = request.services
    limit = limit_of(params.limit)
    found = services.store.audit.page(params, _before(params.cursor), limit + 1)
    shown = found[:limit]
    return AuditListResult(
        entries=tuple(entry for _, entry in shown),
        next_cursor=cursor_of(str(shown[-1][0])) if len(found) > limit else None,
    )


def _before(cursor: str | None) -> int | None:
    if cursor is None:
        return None
    key = key_of(cursor)
    if not key.isdecimal():
        raise no_cursor()
    return int(key)
