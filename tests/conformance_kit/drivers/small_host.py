"""A host for the kit, made of one of `clients/hosts`: `python small_host.py COMMAND...` runs it as its users do.

The contract is in protocol.md, chapter Conformance. What the host shows is told as lines of JSON: its standard
output is the text of the answer, `* WORD` on standard error is how a run ended, `KIND: MESSAGE` is an error. It
ends with the first run that fails, and is started again for the prompts that are left.
"""

import json
import os
import re
import shlex
import signal
import subprocess
import sys
from typing import Any

PATH = __file__.removesuffix("small_host.py") + "path"
MOST_QUESTIONS = 20
LAST_WORDS_LINES = 20


def unsupported(scenario: dict[str, Any]) -> str | None:
    """What the scenario asks for that these hosts leave out: they do one thing at a time, and have one tool."""
    if len(scenario["prompts"]) > 1:
        return "runs side by side"
    if scenario.get("approve", "deny") not in ("allowOnce", "deny"):
        return f"the decision {scenario['approve']}"
    others = scenario.keys() - {"prompts", "then", "approve"}
    return ", ".join(sorted(others)) or None


def start(command: list[str], answer: str) -> "subprocess.Popen[bytes]":
    """The host, which finds the sidecar of the kit under the name of ours, and a person with one answer to all."""
    environment = {
        **os.environ,
        "PATH": f"{PATH}{os.pathsep}{os.environ['PATH']}",
        "PLAYED_SIDECAR": shlex.join(json.loads(os.environ["AGENT_SIDECAR_COMMAND"])),
    }
    pipe = subprocess.PIPE
    host = subprocess.Popen(command, env=environment, stdin=pipe, stdout=pipe, stderr=pipe)
    assert host.stdin and host.stdout
    host.stdin.write(f"{answer}\n".encode() * MOST_QUESTIONS)
    host.stdin.close()
    os.set_blocking(host.stdout.fileno(), False)
    return host


def share_fate(host: "subprocess.Popen[bytes]") -> int:
    """Has the host killed when we are, because we stand for it. Takes a byte when it has ended by itself."""
    ours, theirs = os.pipe()
    if os.fork() == 0:
        os.close(theirs)
        if not os.read(ours, 1):
            os.kill(host.pid, signal.SIGKILL)
        os._exit(0)
    os.close(ours)
    return theirs


def follow(host: "subprocess.Popen[bytes]", run: int) -> tuple[int, int]:
    """Tells of its runs as they end; the number of the next one, and the status."""
    assert host.stdout and host.stderr
    fate = share_fate(host)
    said: list[str] = []
    for line in host.stderr:
        said.append(line.decode().rstrip("\n"))
        end = re.fullmatch(r"\* (\w+)", said[-1])
        if end and end[1] != "error":
            tell(run, end[1], host.stdout.read())  # The text was written before this line.
            run, said = run + 1, []
    status = host.wait()
    os.write(fate, b"\n")
    if status != 0:
        errors = [found for each in said if (found := re.fullmatch(r"(\w+): (.+)", each))]
        kind, message = errors[-1].groups() if errors else (None, "\n".join(said[-LAST_WORDS_LINES:]))
        tell(run, "error", host.stdout.read(), {"kind": kind, "message": message})
        run += 1
    return run, status


def tell(run: int, ended: str, shown: bytes | None, error: dict[str, str | None] | None = None) -> None:
    """A line for the kit on a run."""
    text = (shown or b"").decode().rstrip("\n")
    write({"run": run, "ended": ended, "text": text, "error": error})


def write(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


def main(command: list[str]) -> int:
    """A host that ends with status 1 has told why; that it ended otherwise is for the kit to judge."""
    scenario = json.loads(os.environ["AGENT_SIDECAR_SCENARIO"])
    if what := unsupported(scenario):
        write({"unsupported": what})
        return 0
    prompts = [*scenario["prompts"], *scenario.get("then", [])]
    answer = "y" if scenario.get("approve") == "allowOnce" else "n"
    run, status = 0, 1
    while status == 1 and run < len(prompts):
        run, status = follow(start([*command, *prompts[run:]], answer), run)
    return 0 if status == 1 else abs(status)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
