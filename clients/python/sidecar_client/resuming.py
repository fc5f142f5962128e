"""Runs whose events were missed: what `session/events` has of them, and what still comes."""

from sidecar_client.errors import REQUEST_CANCELLED, ClientError, failure_of
from sidecar_client.frames import JsonObject
from sidecar_client.runs import Ask, Run


async def catch_up(run: Run, ask: Ask) -> None:
    """Gives the run what it missed, before what came meanwhile. Raises ClientError where it does not go on."""
    if run.session_id is None:
        raise ClientError(f"nothing was heard of run {run.run_id!r}; submit it again")
    run.hold()
    params: JsonObject = {"sessionId": run.session_id, "runId": run.run_id}
    if run.last_seq > 0:
        # The last event that was seen comes again: it says whether the run was over then.
        params["afterSeq"] = run.last_seq - 1
    run.release((await ask("session/events", params))["events"])
    if run.completed is None and not await _is_running(run, ask) and run.completed is None:
        raise ClientError(f"run {run.run_id!r} does not go on in session {run.session_id!r}")


async def _is_running(run: Run, ask: Ask) -> bool:
    runs = (await ask("session/get", {"sessionId": run.session_id}))["runs"]
    return any(each["runId"] == run.run_id and each["status"] == "running" for each in runs)


def told_end(run: Run) -> JsonObject | ClientError:
    """How a run ended whose last event came, and no answer after it."""
    answer = answer_of(run, run.completed or {})
    return failure_of(answer["error"]) if "error" in answer else answer["result"]


def answer_of(run: Run, completed: JsonObject) -> JsonObject:
    """The answer to its submit that this last event stands for."""
    if completed.get("error"):
        return {"error": completed["error"]}
    if completed.get("stopReason") == "cancelled":
        return {"error": {"code": REQUEST_CANCELLED, "message": "the run was cancelled"}}
    ended = {name: completed.get(name) for name in ("stopReason", "usage")}
    return {"result": {"sessionId": run.session_id, "runId": run.run_id, **ended}}
