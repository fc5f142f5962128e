"""A host for the kit: the program that protocol.md shows under "A host in 60 lines", as it stands there.

The contract is in protocol.md, chapter Conformance. The prompt, the sidecar's command and the person are the
kit's. What the program prints is the answer's text, unless it begins with a line end.
"""

import json
import os
import re
import sys
from pathlib import Path
from typing import Any

PAGE = Path(__file__).parents[3] / "protocol.md"
DECISIONS = {"allowOnce": "y", "deny": "n"}


def program(command: list[str], prompt: str) -> str:
    """The text of the page, with another sidecar and another prompt."""
    (text,) = re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    for shown, ours in (('["agent-sidecar"]', repr(command)), ('"Write a haiku into haiku.txt."', repr(prompt))):
        assert shown in text, shown
        text = text.replace(shown, ours)
    return str(text)


def unsupported(scenario: dict[str, Any]) -> str | None:
    """What the scenario asks for that a host of one run leaves out."""
    if len(scenario["prompts"]) > 1:
        return "more than one run"
    if scenario.get("approve", "deny") not in DECISIONS:
        return f"the decision {scenario['approve']}"
    return ", ".join(sorted(scenario.keys() - {"prompts", "approve"})) or None


def run(scenario: dict[str, Any], command: list[str]) -> dict[str, Any]:
    """The line about the run."""
    printed: list[str] = []
    names: dict[str, Any] = {
        "print": lambda text, **_: printed.append(text),
        "input": lambda question: DECISIONS[scenario.get("approve", "deny")],
    }
    try:
        exec(program(command, scenario["prompts"][0]), names)
        error = names["error"]
    except SystemExit as end:
        error = {"message": str(end)}
    text = "".join(each for each in printed if not each.startswith("\n"))
    if error is None:
        return {"run": 0, "ended": "stop", "text": text}
    kind = {"kind": error["data"]["kind"]} if "data" in error else {}
    return {"run": 0, "ended": "error", "text": text, "error": {**kind, "message": error["message"]}}


if __name__ == "__main__":
    wanted = json.loads(os.environ["AGENT_SIDECAR_SCENARIO"])
    if reason := unsupported(wanted):
        line: dict[str, Any] = {"unsupported": reason}
    else:
        line = run(wanted, json.loads(os.environ["AGENT_SIDECAR_COMMAND"]))
    sys.stdout.write(json.dumps(line) + "\n")
