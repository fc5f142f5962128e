"""Checks of what the sidecar asks of a host and reports beside its answers, in any conversation."""

from sidecar.conformance.matching import shown
from sidecar.conformance.watches import Complaints, Watch
from sidecar.protocol.values import JsonObject


class RequestIds(Watch):
    """Ids of the sidecar's requests are strings, and none is used while it is open."""

    name = "requestIds"

    def __init__(self) -> None:
        super().__init__()
        self._open: set[str] = set()

    def sent(self, frame: JsonObject) -> Complaints:
        if "method" not in frame:
            self._open.discard(shown(frame.get("id")))
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        if "method" not in frame or "id" not in frame:
            return
        self.proofs += 1
        key = shown(frame["id"])
        if not isinstance(frame["id"], str):
            yield f"the id of {frame['method']} is no string: {key}"
        elif key in self._open:
            yield f"the id of {frame['method']} is in use: {key}"
        self._open.add(key)


class Withdrawals(Watch):
    """The sidecar cancels only requests of its own."""

    name = "withdrawals"

    def __init__(self) -> None:
        super().__init__()
        self._made: set[str] = set()

    def received(self, frame: JsonObject) -> Complaints:
        if frame.get("method") == "$/cancelRequest":
            self.proofs += 1
            params = frame.get("params")
            if not isinstance(params, dict) or shown(params.get("id")) not in self._made:
                yield f"it cancels a request that it never made: {shown(params)}"
        elif "method" in frame and "id" in frame:
            self._made.add(shown(frame["id"]))


_NEEDED = {
    "agent/requestApproval": ("agentSidecar", "approvals"),
    "agent/requestInput": ("agentSidecar", "input"),
    "model/complete": ("agentSidecar", "hostModel"),
    "window/showMessageRequest": ("window", "showMessage"),
    "window/showDocument": ("window", "showDocument"),
    "workspace/applyEdit": ("workspace", "applyEdit"),
    "workspace/configuration": ("workspace", "configuration"),
    "window/workDoneProgress/create": ("window", "workDoneProgress"),
}


class Announced(Watch):
    """A host is asked for nothing that it has not said it can do."""

    name = "announced"

    def __init__(self) -> None:
        super().__init__()
        self._capabilities: JsonObject = {}

    def sent(self, frame: JsonObject) -> Complaints:
        if frame.get("method") == "initialize" and isinstance(frame.get("params"), dict):
            capabilities = frame["params"].get("capabilities")
            self._capabilities = capabilities if isinstance(capabilities, dict) else {}
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        method = frame.get("method")
        if not isinstance(method, str) or "id" not in frame:
            return
        self.proofs += 1
        if method in _NEEDED and not self._has(*_NEEDED[method]):
            yield f"{method} goes to a host that did not announce {_NEEDED[method][1]}"

    def _has(self, group: str, name: str) -> bool:
        experimental = self._capabilities.get("experimental") or {}
        groups = experimental if group == "agentSidecar" else self._capabilities
        inside = groups.get(group) if isinstance(groups, dict) else None
        return bool(isinstance(inside, dict) and inside.get(name))


class Tokens(Watch):
    """Progress is reported under tokens that the host gave, begins once, and ends once before the answer."""

    name = "progress"

    def __init__(self) -> None:
        super().__init__()
        self._requests: dict[str, str] = {}
        self._states: dict[str, str] = {}

    def sent(self, frame: JsonObject) -> Complaints:
        params = frame.get("params")
        if "id" in frame and isinstance(params, dict) and params.get("workDoneToken") is not None:
            token = shown(params["workDoneToken"])
            self._requests[shown(frame["id"])] = token
            self._states[token] = "given"
        yield from ()

    def received(self, frame: JsonObject) -> Complaints:
        if frame.get("method") == "$/progress" and isinstance(frame.get("params"), dict):
            yield from self._reported(frame["params"])
        elif "method" not in frame:
            token = self._requests.pop(shown(frame.get("id")), None)
            if token is not None and self._states.get(token) in ("begin", "report"):
                yield f"progress {token} did not end before the answer"

    def _reported(self, params: JsonObject) -> Complaints:
        self.proofs += 1
        token, value = shown(params.get("token")), params.get("value")
        kind = value.get("kind") if isinstance(value, dict) else None
        before = self._states.get(token)
        allowed = {"given": ("begin",), "begin": ("report", "end"), "report": ("report", "end")}
        if before is None:
            yield f"progress under {token}, which the host never gave"
        elif kind not in allowed.get(before, ()):
            yield f"progress {token}: {shown(kind)} after {before}"
        self._states[token] = str(kind)


QUESTION_WATCHES: tuple[type[Watch], ...] = (RequestIds, Withdrawals, Announced, Tokens)
