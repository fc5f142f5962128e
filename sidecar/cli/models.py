"""Which model a command talks to when nobody has named one."""

from sidecar_client import Sidecar

from sidecar.cli.host import complain
from sidecar.cli.terminal import safe_line


async def model_to_use(sidecar: Sidecar) -> str | None:
    """None where the sidecar has a model of its own, or where there is none to be had.

    Otherwise the first of those that answer, such as a local Ollama's; which one is said on stderr.
    """
    if sidecar.server.get("models"):
        return None
    models = (await sidecar.request("models/list"))["models"]
    if not models:
        return None
    name = str(models[0]["model"])
    complain(f"no model is configured; {safe_line(name)} answers and is used, choose with --model", is_error=False)
    return name
