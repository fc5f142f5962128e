"""A small host that keeps every rule of the kit's host half, and with one word breaks one of them.

    python -I -S twin_host.py [FAULT]

It follows the contract of protocol.md, chapter Conformance. `TWINS` in `host_twins.py` names the rule that each
FAULT breaks. Standard library alone, threads and no event loop: one thread reads, each question has its own.
"""

import json
import os
import subprocess
import sys
import threading
import time
from typing import Any

JsonObject = dict[str, Any]

COMMAND = json.loads(os.environ["AGENT_SIDECAR_COMMAND"])
SCENARIO = json.loads(os.environ["AGENT_SIDECAR_SCENARIO"])
FAULT = sys.argv[1] if len(sys.argv) > 1 else None

EXIT_SECS = 1.0
START_SECS = 30.0
KNOWN_FIELDS = {"prompts", "then", "approve", "input", "tool", "model", "cancel", "steer", "resume", "startSecs"}
KNOWN_FIELDS |= {"input.action", "input.content", "model.deltas", "model.waits", "tool.name", "tool.description"}
KNOWN_FIELDS |= {"tool.inputSchema", "tool.reports", "tool.fails", "tool.waits"}
FIELDS = [
    *SCENARIO,
    *(f"{name}.{field}" for name in ("input", "tool", "model") for field in SCENARIO.get(name, ())),
]
UNKNOWN_FIELDS = [field for field in FIELDS if field not in KNOWN_FIELDS]
TEXT = {"text"}
FIELDS_OF_EVENTS = {"runStarted": {"model", "prompt"}, "assistantTextDelta": TEXT, "assistantReasoningDelta": TEXT}
KNOWN_EVENTS = {*FIELDS_OF_EVENTS, "toolExecutionStarted", "toolExecutionProgress", "toolExecutionCompleted"}
KNOWN_EVENTS |= {"turnComplete", "approvalRequested", "approvalResolved", "retrying", "compacted", "warning"}
KNOWN_EVENTS |= {"runCompleted"}
KIND_OF_CODE = {-31020: "modelError"}


def wrong(fault: str) -> bool:
    """Whether this twin has that fault."""
    return fault == FAULT


class LostError(Exception):
    """The sidecar is gone, or is none; the message is for people."""


class Answer:
    """Where an answer to a request of ours will be."""

    def __init__(self) -> None:
        self.come = threading.Event()
        self.frame: JsonObject = {}

    def settle(self, frame: JsonObject) -> None:
        self.frame = frame
        self.come.set()


class Question:
    """A request of the sidecar that is being answered; `over` is set when it is withdrawn."""

    def __init__(self, request: JsonObject) -> None:
        self.id = request["id"]
        self.method = request["method"]
        self.params = request.get("params") or {}
        self.over = threading.Event()
        self.by_event = False


class Run:
    """A submit and what is known of it."""

    def __init__(self, number: int, run_id: str) -> None:
        self.number = number
        self.run_id = run_id
        self.session_id: str | None = None
        self.text = ""
        self.last_delta: str | None = None
        self.last_seq = -1
        self.is_known = True
        self.has_deferred: list[JsonObject] = []
        self.completed: JsonObject | None = None
        self.failure: JsonObject | None = None
        self.cancelled = False
        self.acted = False
        self.is_lost = False
        self.over = threading.Event()
        self.answer = Answer()


class Sidecar:
    """One process of the sidecar, and the conversation with it."""

    def __init__(self, host: "Host") -> None:
        self.host = host
        self.process = subprocess.Popen(
            COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
        self.ids = iter(range(1, 10**9))
        self.waiting: dict[Any, Answer] = {}
        self.questions: dict[Any, Question] = {}
        self.writing = threading.Lock()
        self.stderr = b""
        self.lost = False
        self.said_goodbye = False
        self.buffer = b""
        self.wanted = 0
        self.drain = threading.Thread(target=self.read_stderr, daemon=True)
        if not wrong("stderr-unread"):
            self.drain.start()
        threading.Thread(target=self.read, daemon=True).start()

    # Out ---------------------------------------------------------------------------------------------------

    def write(self, message: JsonObject) -> None:
        if not (wrong("no-jsonrpc") and message.get("method") == "initialized"):
            message = {"jsonrpc": "2.0", **message}
        body = json.dumps(message).encode()
        try:
            with self.writing:
                assert self.process.stdin
                self.process.stdin.write(b"Content-Length: %d\r\n\r\n%b" % (len(body), body))
                self.process.stdin.flush()
        except (OSError, ValueError):
            pass  # It is gone; the reader says so.

    def ask(self, method: str, params: JsonObject, answer: Answer | None = None, request_id: Any = None) -> Answer:
        answer = answer or Answer()
        if request_id is None:
            request_id = next(self.ids)
            self.waiting[request_id] = answer
        answer.frame = {"id": request_id}
        if self.lost:
            answer.settle({"lost": True})
        self.write({"id": request_id, "method": method, "params": params})
        return answer

    def request(self, method: str, params: JsonObject) -> Any:
        answer = self.ask(method, params)
        limited = method == "initialize" and not wrong("waits-for-ever")
        if not answer.come.wait(SCENARIO.get("startSecs", START_SECS) if limited else None):
            raise LostError(f"no answer to {method}")
        if "lost" in answer.frame:
            if wrong("hangs-at-start") and method == "initialize":
                threading.Event().wait()
            raise LostError(self.how_it_ended())
        if "error" in answer.frame:
            raise LostError("it did not work" if wrong("no-reason") else answer.frame["error"]["message"])
        return answer.frame.get("result")

    # In ----------------------------------------------------------------------------------------------------

    def read(self) -> None:
        assert self.process.stdout
        fd = self.process.stdout.fileno()
        while data := os.read(fd, 65536):
            for count, body in enumerate(self.bodies(data)):
                if wrong("few-at-once") and count >= 20:
                    self.buffer = b""
                    break
                self.take(json.loads(body))
        if wrong("acts-on-half") and b"\r\n\r\n" in self.buffer:
            self.take(json.loads(self.buffer.partition(b"\r\n\r\n")[2]))
        self.lost = True
        for answer in list(self.waiting.values()):
            if not answer.come.is_set():
                answer.settle({"lost": True})
        self.host.on_loss()

    def bodies(self, data: bytes) -> Any:
        self.buffer += data
        while b"\r\n\r\n" in self.buffer:
            header, _, rest = self.buffer.partition(b"\r\n\r\n")
            size = content_length(header)
            if wrong("counts-characters"):
                text = rest.decode("utf-8", "replace")
                if len(text) < size:
                    return
                body, self.buffer = text[:size].encode(), text[size:].encode()
            elif len(rest) < size:
                self.wanted = len(header) + 4 + size
                return
            else:
                body, self.buffer = rest[:size], rest[size:]
            if not (wrong("small-frames") and size > 2_000_000):
                yield body
        if wrong("whole-headers-only"):
            self.buffer = b""

    def take(self, message: JsonObject) -> None:
        if "method" in message and "id" in message:
            self.take_question(message)
        elif "method" in message:
            self.take_notification(message["method"], message.get("params") or {})
        elif message.get("id") in self.waiting:
            answer = self.waiting.pop(message["id"])
            self.host.on_answer(answer, message)
            answer.settle(message)
        elif wrong("minds-null-id") and message.get("id") is None:
            self.host.fail_all("an answer without an id")
        elif wrong("minds-stray-answers") and message.get("id") is not None:
            self.host.fail_all("an answer that nobody asked for")

    def take_notification(self, method: str, params: JsonObject) -> None:
        if method == "agent/event":
            self.host.on_event(params)
        elif method == "$/cancelRequest":
            self.withdraw(params.get("id"))
        elif wrong("minds-notifications") and method.startswith("future/"):
            self.host.fail_all("what is this?")
        elif wrong("answers-notifications") and method.startswith("future/"):
            self.write({"id": None, "error": {"code": -32601, "message": "what is this?"}})

    def withdraw(self, request_id: Any) -> None:
        question = self.questions.get(request_id)
        if question is None:
            return
        deaf = {"agent/requestApproval": "deaf-to-withdrawal", "agent/requestInput": "deaf-input"}
        deaf |= {"tools/execute": "deaf-tool", "model/complete": "deaf-model"}
        if wrong(deaf.get(question.method, "-")):
            return
        if wrong("withdraws-all"):
            for other in self.questions.values():
                other.over.set()
        question.over.set()

    def take_question(self, message: JsonObject) -> None:
        if wrong("deaf-after-shutdown") and self.said_goodbye:
            return
        question = Question(message)
        self.questions[question.id] = question
        waits = "waits" in SCENARIO.get("tool", {})
        is_blocking = wrong("blocked-by-tools") if waits else wrong("writes-while-reading")
        if question.method == "tools/execute" and is_blocking:
            self.answer(question)
        else:
            threading.Thread(target=self.answer, args=(question,), daemon=True).start()

    def answer(self, question: Question) -> None:
        try:
            outcome = self.host.outcome_of(question, self)
        except Exception as error:  # noqa: BLE001  whatever it is, the sidecar must hear of it
            outcome = {"error": {"code": -32603, "message": str(error)}}
        self.questions.pop(question.id, None)
        if outcome is None:
            return
        request_id = str(question.id) if wrong("ids-as-text") else question.id
        self.write({"id": request_id, **outcome})
        if wrong("answers-twice") and question.method.startswith("future/"):
            self.write({"id": request_id, **outcome})

    # The end -----------------------------------------------------------------------------------------------

    def read_stderr(self) -> None:
        assert self.process.stderr
        while data := os.read(self.process.stderr.fileno(), 65536):
            self.stderr = (self.stderr + data)[-4096:]

    def how_it_ended(self) -> str:
        status = self.process.wait(5)
        if wrong("stderr-unread"):
            self.drain.start()
        self.drain.join(1)
        last = self.stderr.decode("utf-8", "replace").strip().rpartition("\n")[2]
        return f"the sidecar ended with status {status}" + ("" if wrong("no-stderr-tail") else f": {last}")

    def end(self) -> None:
        if self.lost:
            return
        self.said_goodbye = True
        if not wrong("no-shutdown"):
            answer = self.ask("shutdown", {})
            if not wrong("hasty-exit"):
                answer.come.wait(5)
        self.write({"method": "exit"})
        if wrong("stdin-left-open"):
            self.gone_within(11)
        self.close(by_force=not wrong("no-force"))

    def close(self, *, by_force: bool) -> None:
        """Closes its stdin, and ends it where that is not enough."""
        assert self.process.stdin
        self.process.stdin.close()
        if not self.gone_within(EXIT_SECS) and by_force:
            self.process.kill()

    def gone_within(self, secs: float) -> bool:
        try:
            self.process.wait(secs)
        except subprocess.TimeoutExpired:
            return False
        return True


def hold_open(sidecar: "subprocess.Popen[bytes]") -> None:
    """Another process has the pipe to the sidecar, too."""
    assert sidecar.stdin
    sleep = (sys.executable, "-I", "-S", "-c", "import time; time.sleep(20)")
    subprocess.Popen(
        sleep, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, pass_fds=(sidecar.stdin.fileno(),)
    )


def content_length(header: bytes) -> int:
    lines = header.split(b"\r\n")
    if wrong("one-header-alone"):
        assert len(lines) == 1 and lines[0].startswith(b"Content-Length: "), "no header that I know"
    for line in lines:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            return int(value)
    raise ValueError("no length")


class Host:
    """What the scenario asks for."""

    def __init__(self) -> None:
        self.runs: list[Run] = []
        self.asked = 0
        self.is_greeted = False
        self.printing = threading.Lock()
        self.sidecar: Sidecar | None = None

    def play(self) -> None:
        if UNKNOWN_FIELDS:
            self.print({"unsupported": ", ".join(UNKNOWN_FIELDS)})
            return
        prompts, rest = SCENARIO["prompts"], SCENARIO.get("then", [])
        try:
            self.sidecar = self.start()
        except LostError as error:
            for number in range(len(prompts)):
                self.print({"run": number, "ended": "error", "text": "", "error": {"message": str(error)}})
            return
        if not wrong("late-tools"):
            self.register()
        first = [self.submit(prompt, number, None) for number, prompt in enumerate(prompts)]
        if wrong("late-tools"):
            self.register()
        for run in first:
            self.follow(run)
        for number, prompt in enumerate(rest, len(first)):
            session = None if wrong("forgets-session") else first[0].session_id
            self.follow(self.submit(prompt, number, session))
        self.sidecar.end()

    def start(self) -> Sidecar:
        sidecar = Sidecar(self)
        if wrong("pipe-held"):
            hold_open(sidecar.process)
        try:
            self.shake_hands(sidecar)
        except LostError:
            sidecar.close(by_force=not wrong("leaves-refused"))
            raise
        return sidecar

    def shake_hands(self, sidecar: Sidecar) -> None:
        can: JsonObject = {"approvals": True, "input": True, "hostTools": True, "hostModel": True}
        if wrong("odd-capabilities"):
            can["approvals"] = "yes"
        params = {
            "processId": str(os.getpid()) if wrong("odd-process-id") else os.getpid(),
            "rootUri": None,
            "capabilities": {"experimental": {"agentSidecar": can}},
        }
        if wrong("list-first"):
            sidecar.ask("session/list", {})
        began = time.monotonic()
        if wrong("eager"):
            threading.Timer(0.3, self.be_eager, args=(sidecar,)).start()
        result = sidecar.request("initialize", params)
        self.is_greeted = True
        self.look_at(result)
        if not wrong("no-initialized"):
            sidecar.write({"method": "initialized", "params": {}})
        if wrong("impatient-start") and time.monotonic() - began > 1:
            raise LostError("it took too long")

    def be_eager(self, sidecar: Sidecar) -> None:
        if not self.is_greeted:
            sidecar.ask("tools/list", {})

    def look_at(self, result: JsonObject) -> None:
        agent = result["capabilities"].get("experimental", {}).get("agentSidecar")
        if agent is None and not wrong("any-server"):
            raise LostError("this is no sidecar")
        version = (agent or {}).get("protocolVersion", "1.0")
        if wrong("exact-version") and version.startswith("1.") and version != "1.0":
            raise LostError("not my version")
        if not version.startswith("1.") and not wrong("any-version"):
            raise LostError(f"the sidecar speaks {version}")
        if wrong("closed-hello") and "future" in agent:
            raise LostError("what is this?")

    def register(self) -> None:
        if self.sidecar and "tool" in SCENARIO:
            described = {name: SCENARIO["tool"][name] for name in ("name", "description", "inputSchema")}
            self.sidecar.ask("tools/register", {"tools": [described]})

    # Runs --------------------------------------------------------------------------------------------------

    def submit(self, prompt: str, number: int, session_id: str | None) -> Run:
        assert self.sidecar
        same = wrong("same-run-id") and session_id is not None
        run = Run(number, f"twin-{os.getpid()}-{0 if same else number}")
        params: JsonObject = {"prompt": prompt, "runId": run.run_id}
        if session_id:
            params["sessionId"] = session_id
        if wrong("two-prompts"):
            params["messages"] = [{"role": "user", "content": prompt}]
        if wrong("odd-params"):
            params["maxTurns"] = "3"
        if wrong("drops-early-events"):
            params["wait"] = run.is_known = False
        self.runs.append(run)
        self.sidecar.ask("agent/submit", params, run.answer)
        threading.Thread(target=self.await_answer, args=(run,), daemon=True).start()
        return run

    def await_answer(self, run: Run) -> None:
        run.answer.come.wait()
        if "lost" in run.answer.frame or not wrong("drops-early-events") or "error" in run.answer.frame:
            run.over.set()

    def on_answer(self, answer: Answer, frame: JsonObject) -> None:
        for run in self.runs:
            if run.answer is answer:
                run.is_known = True
        if wrong("minds-refusal") and (frame.get("result") or {}).get("accepted") is False:
            self.fail_all("it does not listen")

    def on_loss(self) -> None:
        for run in self.runs:
            run.is_lost = not run.over.is_set()
            run.over.set()

    def fail_all(self, message: str) -> None:
        for run in self.runs:
            if not run.over.is_set():
                run.failure = run.failure or {"message": message}

    def on_event(self, params: JsonObject) -> None:
        open_runs = [run for run in self.runs if not run.over.is_set()]
        run = next((run for run in self.runs[::-1] if run.run_id == params["runId"]), None)
        if wrong("mixes-runs") and run and len(open_runs) > 1:
            run = open_runs[-1]
        if wrong("takes-others") and run is None and open_runs:
            run = open_runs[0]
        if run and run.is_known:
            self.show(run, params)

    def show(self, run: Run, params: JsonObject) -> None:
        event = params["event"]
        kind = event.get("type")
        run.session_id = params["sessionId"]
        run.last_seq = params["seq"]
        if kind not in KNOWN_EVENTS:
            if wrong("minds-events"):
                run.failure = {"message": f"what is {kind}?"}
            return
        known = FIELDS_OF_EVENTS.get(kind)
        if wrong("closed-events") and known is not None and set(event) - known - {"type"}:
            run.failure = {"message": "a field that I do not know"}
        if kind == "assistantTextDelta":
            self.show_text(run, event["text"])
        elif kind == "assistantReasoningDelta" and wrong("thinks-aloud"):
            run.text += event["text"]
        elif kind == "warning" and wrong("warns-in-text"):
            run.text += event["message"]
        elif kind == "approvalResolved" and not wrong("deaf-to-resolved"):
            self.resolved(event["requestId"])
        elif kind == "runStarted" and wrong("impatient"):
            threading.Timer(1.5, self.lose_patience, args=(run,)).start()
        elif kind == "runCompleted":
            run.completed = event
            if wrong("drops-early-events"):
                run.over.set()

    def show_text(self, run: Run, text: str) -> None:
        if not (wrong("swallows-repeats") and text == run.last_delta):
            run.text += text
        run.last_delta = text
        if run.acted:
            return
        run.acted = True
        if SCENARIO.get("cancel"):
            threading.Thread(target=self.cancel, args=(run,), daemon=True).start()
        if "steer" in SCENARIO:
            threading.Thread(target=self.steer, args=(run,), daemon=True).start()

    def lose_patience(self, run: Run) -> None:
        if not run.text and not run.over.is_set():
            run.failure = {"message": "it took too long"}

    def cancel(self, run: Run) -> None:
        assert self.sidecar
        run.cancelled = True
        request_id = run.answer.frame["id"] if wrong("same-id") else None
        run_id = "another" if wrong("cancels-another") else run.run_id
        self.sidecar.ask("agent/cancel", {"runId": run_id}, request_id=request_id)

    def steer(self, run: Run) -> None:
        assert self.sidecar
        run_id = "another" if wrong("steers-another") else run.run_id
        self.sidecar.ask("agent/steer", {"runId": run_id, "prompt": SCENARIO["steer"]})

    def resolved(self, request_id: str) -> None:
        assert self.sidecar
        for question in list(self.sidecar.questions.values()):
            if question.params.get("requestId") == request_id:
                question.over.set()

    def follow(self, run: Run) -> None:
        """Waits for the end of a run, and tells of it."""
        run.over.wait()
        ended, error = self.outcome(run)
        for frame in run.has_deferred:
            assert self.sidecar
            self.sidecar.write(frame)
        line: JsonObject = {"run": run.number, "ended": ended, "text": run.text}
        self.print({**line, "error": error} if error else line)

    def outcome(self, run: Run) -> tuple[str, JsonObject | None]:
        frame = run.answer.frame
        if run.is_lost or "lost" in frame:
            return self.after_loss(run)
        if run.failure:
            return "error", run.failure
        if "error" in frame:
            return self.failed(frame["error"])
        if wrong("drops-early-events"):
            return self.completed(run)
        result = frame.get("result") or {}
        run.session_id = result.get("sessionId", run.session_id)
        if wrong("needs-message") and "message" not in result:
            return "error", {"message": "there is no message"}
        if wrong("null-is-there") and "error" in (run.completed or {}):
            return "error", {"message": "there is an error"}
        reason = result["stopReason"]
        if wrong("closed-values") and reason not in ("stop", "length", "contentFilter"):
            return "error", {"message": f"what is {reason}?"}
        if wrong("minds-late-cancel") and run.cancelled:
            return "error", {"message": "it was to be cancelled"}
        return "stop" if wrong("always-stop") else reason, None

    def failed(self, error: JsonObject) -> tuple[str, JsonObject | None]:
        kind = KIND_OF_CODE.get(error["code"]) if wrong("kind-by-code") else error.get("data", {}).get("kind")
        message = f"error {error['code']}" if wrong("own-words") else error["message"]
        if error["code"] == -32800 and not wrong("cancelled-is-error"):
            return "cancelled", None
        return "error", {"kind": kind, "message": message}

    def completed(self, run: Run) -> tuple[str, JsonObject | None]:
        event = run.completed or {}
        if event.get("error"):
            return self.failed(event["error"])
        return event.get("stopReason", "stop"), None

    def after_loss(self, run: Run) -> tuple[str, JsonObject | None]:
        assert self.sidecar
        if run.completed and not wrong("needs-answer"):
            return self.completed(run)
        how = self.sidecar.how_it_ended()
        if not SCENARIO.get("resume"):
            return ("stop", None) if wrong("loss-is-stop") else ("error", {"message": how})
        self.sidecar = self.start()
        if not wrong("forgets-tools"):
            self.register()
        if wrong("asks-nothing"):
            return "error", {"message": how}
        missed = {"sessionId": run.session_id, "runId": run.run_id, "afterSeq": run.last_seq}
        if wrong("shows-again"):
            del missed["afterSeq"]
        for params in self.sidecar.request("session/events", missed)["events"]:
            self.show(run, params)
        return self.completed(run) if run.completed else ("error", {"message": how})

    def print(self, line: JsonObject) -> None:
        with self.printing:
            sys.stdout.write(json.dumps(line) + "\n")
            sys.stdout.flush()

    # Questions ---------------------------------------------------------------------------------------------

    def outcome_of(self, question: Question, sidecar: Sidecar) -> JsonObject | None:
        match question.method:
            case "agent/requestApproval":
                return self.approval(question)
            case "agent/requestInput":
                return self.input(question)
            case "tools/execute":
                return self.execute(question, sidecar)
            case "model/complete":
                return self.complete(question, sidecar)
            case "window/showMessageRequest":
                return {"result": {"title": "OK"} if wrong("other-button") else None}
            case "workspace/configuration":
                items = question.params["items"]
                return {"result": None if wrong("no-configuration") else [None] * len(items)}
            case method if method.startswith(("window/", "client/", "workspace/")):
                return {"result": None}
        return self.unknown(question)

    def unknown(self, question: Question) -> JsonObject | None:
        if wrong("silent-on-unknown"):
            return None
        if wrong("null-for-unknown"):
            return {"result": None}
        outcome = {"error": {"code": -32601, "message": f"there is no {question.method}"}}
        busy = next((run for run in self.runs if run.text and not run.over.is_set()), None)
        if wrong("answers-later") and busy:
            busy.has_deferred.append({"id": question.id, **outcome})
            return None
        return outcome

    def approval(self, question: Question) -> JsonObject | None:
        options = question.params["options"]
        offered = [option["decision"] for option in options]
        if wrong("closed-options") and "allowForAnHour" in offered:
            raise ValueError("what is allowForAnHour?")
        if wrong("needs-run"):
            question.params["runId"]
        wanted = SCENARIO.get("approve", "deny")
        if wanted == "wait":
            question.over.wait()
            if wrong("allows-withdrawn"):
                return {"result": {"decision": "allowOnce"}}
            return {"error": {"code": -32800, "message": "withdrawn"}}
        if wrong("one-question-alone"):
            self.asked += 1
            if self.asked > 1 or question.over.wait(0.2):
                return None
            self.asked = 0
        decision = wanted if wanted in offered or wrong("not-offered") else "deny"
        if wrong("always-allows") and wanted == "deny":
            decision = "allowOnce"
        result: JsonObject = {"decision": decision}
        if wrong("rule-for-once") and decision == "allowOnce":
            result.update({"rule": option["rule"]} for option in options if "rule" in option)
        return {"result": result}

    def input(self, question: Question) -> JsonObject | None:
        entered = dict(SCENARIO.get("input", {"action": "cancel"}))
        params = question.params
        if entered["action"] == "wait":
            question.over.wait()
            return {"error": {"code": -32800, "message": "withdrawn"}}
        if wrong("texts-alone") and isinstance(entered.get("content"), dict):
            entered["content"] = {name: str(value) for name, value in entered["content"].items()}
        if wrong("declines-with-content") and entered["action"] == "decline":
            entered["content"] = ""
        if wrong("closes-as-decline") and entered["action"] == "cancel":
            entered["action"] = "decline"
        if wrong("wraps-text") and "content" in entered and "schema" not in params:
            entered["content"] = {"value": entered["content"]}
        if wrong("no-pages") and "url" in params:
            entered = {"action": "cancel"}
        return {"result": entered}

    def execute(self, question: Question, sidecar: Sidecar) -> JsonObject | None:
        tool, params = SCENARIO.get("tool", {}), question.params
        if params["name"] != tool.get("name"):
            return {"result": {"ok": wrong("runs-anything"), "error": f"there is no tool {params['name']}"}}
        if "reports" in tool:
            token = "kit" if wrong("odd-token") else params["callId"]
            value = {"kind": "report", "message": tool["reports"]}
            sidecar.write({"method": "$/progress", "params": {"token": token, "value": value}})
        if tool.get("waits"):
            question.over.wait(8 if wrong("blocked-by-tools") else None)
            return {"error": {"code": -32800, "message": "withdrawn"}}
        if "fails" in tool:
            if wrong("error-for-failure"):
                return {"error": {"code": -32603, "message": tool["fails"]}}
            return {"result": {"ok": False, "error": tool["fails"]}}
        data = params["arguments"]
        if wrong("rounds-numbers") and "number" in data:
            data = {**data, "number": int(data["number"])}
        return {"result": {"ok": True, "data": data}}

    def complete(self, question: Question, sidecar: Sidecar) -> JsonObject:
        deltas, waits = SCENARIO["model"]["deltas"], SCENARIO["model"].get("waits")
        request_id = "another" if wrong("deltas-elsewhere") else question.params["requestId"]
        for text in deltas:
            sidecar.write({"method": "model/delta", "params": {"requestId": request_id, "text": text}})
        if waits:
            question.over.wait()
            return {"error": {"code": -32800, "message": "withdrawn"}}
        content = deltas[-1] if wrong("last-delta-alone") else "".join(deltas)
        return {"result": {"message": {"role": "assistant", "content": content}}}


if __name__ == "__main__":
    Host().play()
    sys.stdout.flush()
    os._exit(3 if wrong("status-3") else 0)
