"""How soon VS Code shows a key in the chat while a model talks fast, beside keys while nothing goes on.

Both are measured in turns in one window of a real VS Code in a real browser, which itself tells when each key was
on the screen (Event Timing, in steps of 8 ms). Editor, browser, sidecar and model share this machine, and on a
busy one all keys are late; so the ratio counts as much as the times. Prints a table.

    CODE_SERVER=… python -m tests.bench.bench_vscode [ROUNDS [KEYS]]
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.harness.model_server import ScriptedModel
from tests.harness.speech import talks_fast
from tests.harness.vscode_extension import packaged
from tests.vscode.driving import found_editor, play, serving, sidecar_settings

SCENARIO = Path(__file__).with_suffix(".mjs")
TARGET_P95_MS = 50
"""Own choice: what a person does not feel."""


async def measured(folder: Path, rounds: int, keys: int) -> list[dict[str, Any]]:
    """The rounds, each with what was seen while nothing went on and while the model talked."""
    workspace = folder / "workspace"
    workspace.mkdir()
    async with ScriptedModel(*[talks_fast()] * rounds) as fast:
        settings = {
            **sidecar_settings(),
            "security.workspace.trust.enabled": False,
            "agentSidecar.model": "fast/m",
            "agentSidecar.providers": {"fast": {"baseUrl": fast.base_url}},
        }
        editor = found_editor()
        async with serving(editor, packaged(), folder / "editor", settings) as url:
            given = {"url": url, "folder": str(workspace), "rounds": rounds, "keys": keys}
            seen = await play(editor, SCENARIO, given)
    found: list[dict[str, Any]] = seen["rounds"]
    return found


def p95(times: list[float]) -> float:
    return statistics.quantiles(times, n=20, method="inclusive")[-1]


def row(name: str, phases: list[dict[str, Any]]) -> str:
    """The medians over the rounds."""
    times = [phase["shownAfterMs"] for phase in phases]
    middle, high, worst = (statistics.median(map(of, times)) for of in (statistics.median, p95, max))
    rate = statistics.median(phase.get("deltasPerSecond", 0) for phase in phases)
    return f"| {name} | {middle:.0f} | {high:.0f} | {worst:.0f} | {rate:.0f} |\n"


def table(rounds: list[dict[str, Any]]) -> str:
    ratio = statistics.median(
        p95(each["streaming"]["shownAfterMs"]) / p95(each["idle"]["shownAfterMs"]) for each in rounds
    )
    return (
        "| a key is shown after, ms | p50 | p95 | worst | deltas/s |\n|---|---|---|---|---|\n"
        + row("nothing goes on", [each["idle"] for each in rounds])
        + row("a model talks fast", [each["streaming"] for each in rounds])
        + f"| ratio, round by round | | {ratio:.1f} | | |\n| target | | {TARGET_P95_MS} | | 1000 |\n"
    )


def main(rounds: int, keys: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        sys.stdout.write(table(asyncio.run(measured(Path(folder), rounds, keys))))


if __name__ == "__main__":
    given = [int(argument) for argument in sys.argv[1:]]
    main(*given, *(5, 60)[len(given) :])
