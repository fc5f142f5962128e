"""What is ours in `initialize` beside the options: what a host can do, and what the sidecar says of itself."""

from attrs import frozen

from sidecar.protocol.methods import PROTOCOL_VERSION
from sidecar.protocol.value import Value


@frozen(kw_only=True, repr=False, eq=False)
class HostAbilities(Value):
    """What the host can do: `capabilities.experimental.agentSidecar` of the params of `initialize`.

    `protocol_version` is the one that it was written for. It answers `agent/requestApproval` (`approvals`),
    `agent/requestInput` (`input`), `tools/execute` (`host_tools`) and `model/complete` (`host_model`).
    `opt_out_events` are the types of events that it does not want.
    """

    protocol_version: str = PROTOCOL_VERSION
    approvals: bool = False
    input: bool = False
    host_tools: bool = False
    host_model: bool = False
    opt_out_events: frozenset[str] = frozenset()


@frozen(kw_only=True, repr=False, eq=False)
class SidecarDescription(Value):
    """What makes it a sidecar's: `capabilities.experimental.agentSidecar` of the result of `initialize`.

    `methods` are those that a host may send, `events` the types that may come, `models` those that the options
    name, as `provider/model`.
    """

    protocol_version: str
    methods: tuple[str, ...]
    events: tuple[str, ...]
    models: tuple[str, ...]
