"""The settings of the loop, with the defaults that `protocol.md` states."""

from collections.abc import Mapping
from typing import Literal

from attrs import field, frozen

from sidecar.protocol.errors import DEFAULT_ERROR_POLICY, ErrorAction, ToolError
from sidecar.protocol.values import ToolSelector
from sidecar.providers.base import Provider
from sidecar.tools.registry import ToolRegistry

SummaryBy = Literal["model", "rule"]


@frozen(kw_only=True)
class CycleConfig:
    """Limits of a run.

    `repeat_warning` and `repeat_limit` count the same call with the same arguments in a row: at the first the
    model is told, at the second the run ends. A retry waits `retry_base_secs` doubled with each attempt, with
    jitter, and never longer than `max_retry_delay_secs`. `summary` says who sums up old turns when the history
    grows too long.
    """

    max_turns: int = 10
    tool_timeout_secs: float = 60.0
    max_tool_result_bytes: int = 64 * 1024
    error_policy: Mapping[str, ErrorAction] = field(factory=dict)
    repeat_warning: int = 3
    repeat_limit: int = 5
    max_retries: int = 4
    retry_base_secs: float = 0.5
    max_retry_delay_secs: float = 60.0
    summary: SummaryBy = "model"

    def action_for(self, error: ToolError) -> ErrorAction:
        """What the loop does with a failed call."""
        return error.action or self.error_policy.get(error.kind) or DEFAULT_ERROR_POLICY[error.kind]


@frozen(kw_only=True)
class RunSettings:
    """What one run is made of: which model, which tools, which limits. `label` is what `runStarted` shows."""

    provider: Provider
    model: str
    label: str
    system: str | None = None
    registry: ToolRegistry | None = None
    selector: ToolSelector | None = None
    temperature: float | None = None
    max_output_tokens: int | None = None
    config: CycleConfig = field(factory=CycleConfig)
