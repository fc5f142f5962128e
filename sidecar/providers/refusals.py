"""Parameters that a model refuses to know, left out of every later request to it."""

from collections.abc import Iterable

from sidecar.protocol.errors import ModelError
from sidecar.providers.base import WarningPiece
from sidecar.providers.failures import is_refused_parameter


class Refusals:
    """What each model refused. So finding out costs one request in the life of a provider."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._refused: dict[str, set[str]] = {}

    def of(self, model: str) -> frozenset[str]:
        """The parameters not to send to it."""
        return frozenset(self._refused.get(model, ()))

    def note(self, model: str, error: ModelError, sent: Iterable[str]) -> bool:
        """Whether the error refuses one of the parameters that were sent, which is remembered then.

        False for one that is known: leaving it out did not help, so nothing would be gained by asking again.
        """
        if error.status not in (400, 422):
            return False
        known = self._refused.setdefault(model, set())
        refused = next((n for n in sent if n not in known and is_refused_parameter(error.message, n)), None)
        if refused is not None:
            known.add(refused)
        return refused is not None

    def warning(self, model: str, parameter: str, effect: str = "") -> WarningPiece:
        """Says that a parameter was left out."""
        return WarningPiece(
            code="parameterLeftOut",
            message=f"{self._provider} does not take {parameter} for {model!r}; it was left out{effect}",
        )
