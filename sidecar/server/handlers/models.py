"""models/list."""

from sidecar.protocol.messages import ModelsListResult, PageParams
from sidecar.server.handlers.paging import page
from sidecar.server.rpc import Request


async def list_models(request: Request, params: PageParams) -> ModelsListResult:
    """Asks every provider, within a limit."""
    models = await request.services.models.list()
    shown, cursor = page(models, lambda m: m.model, cursor=params.cursor, limit=params.limit)
    return ModelsListResult(models=shown, next_cursor=cursor)
