"""Models that the host lends: asks by `model/complete`, and passes on what comes by `model/delta`."""

import logging
from typing import Any

from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import ModelError
from sidecar.protocol.messages import ModelCompleteParams, ModelCompleteResult, ModelDeltaParams
from sidecar.providers.host import OnText
from sidecar.server.host import Host
from sidecar.server.unanswered import HostError

log = logging.getLogger("sidecar.server")

LONGEST_ANSWER_SECS = 3600.0
"""The last resort; the provider's own limit on silence ends a request, and withdraws it, long before."""

PROVIDER = "host"


class Lending:
    """The requests for text that the host works on at the moment."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._listening: dict[str, OnText] = {}

    async def complete(self, params: ModelCompleteParams, on_text: OnText) -> ModelCompleteResult:
        """The host's answer. Raises ModelError where it has no models, refuses, or makes no sense."""
        if not self._host.capabilities.host_model:
            raise ModelError(
                "this host lends no models (it did not say `hostModel`); choose another provider",
                provider=PROVIDER,
            )
        self._listening[params.request_id] = on_text
        try:
            answer = await self._host.request("model/complete", params, LONGEST_ANSWER_SECS)
        except HostError as error:
            raise ModelError(str(error), provider=PROVIDER) from None
        finally:
            del self._listening[params.request_id]
        assert isinstance(answer, ModelCompleteResult)
        return answer

    async def delta(self, params: Any) -> None:
        """Takes a `model/delta`; one that fits no open request is passed over."""
        try:
            said = decode(params, ModelDeltaParams)
        except DecodeError as error:
            log.warning("ignored a model/delta: %s", error)
            return
        if on_text := self._listening.get(said.request_id):
            on_text(said.text)
