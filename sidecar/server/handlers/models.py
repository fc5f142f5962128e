"""models/list, and what the host says of models that it lends."""

from typing import Any

from sidecar.protocol.messages import ModelsListResult, PageParams
from sidecar.server.handlers.paging import page
from sidecar.server.rpc import Request
from sidecar.server.services import Services


async def list_models(request: Request, params: PageParams) -> ModelsListResult:
    """Asks every provider, within a limit; why one did not answer is said in the host's log."""
    services: Services = request.services
    models, failures = await services.models.list()
    for failure in failures:
        services.host.log_message(failure, warning=True)
    shown, cursor = page(models, lambda m: m.model, cursor=params.cursor, limit=params.limit)
    return ModelsListResult(models=shown, next_cursor=cursor)


async def delta(services: Services, params: Any) -> None:
    """More text of an answer that the host works on."""
    await services.lending.delta(params)
