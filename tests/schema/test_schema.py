"""The protocol as data: schema and types are made from the code, and say the same as it and as `protocol.md`.

Source: JSON Schema 2020-12; LSP 3.17, metaModel.json, for the form of the meta model; the rest is our own choice.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError

from sidecar.cli.print_schema import FORMATS
from sidecar.config import read_options
from sidecar.conformance.shapes import params_fault
from sidecar.protocol.events import EVENTS
from sidecar.protocol.methods import METHODS, PROTOCOL_VERSION
from sidecar.schema.json_schema import json_schema
from sidecar.schema.whole import whole_model
from tests.harness.protocol_document import Frame, Section, read_document
from tests.harness.tidy import ROOT

GENERATED = {
    "json-schema": ROOT / "clients/protocol.schema.json",
    "typescript": ROOT / "clients/node/src/protocol.ts",
    "lua": ROOT / "clients/neovim/lua/sidecar/types.lua",
}
RELEASED = Path(__file__).parent / "released.json"
MODEL = whole_model()
SCHEMA = json_schema(MODEL)
EXAMPLES = Section("all", read_document().text).frames


def validator(schema: Any) -> Draft202012Validator:
    return Draft202012Validator({**schema, "$defs": SCHEMA["$defs"]})


def test_the_schema_is_one() -> None:
    Draft202012Validator.check_schema(SCHEMA)
    for name in METHODS:
        Draft202012Validator.check_schema(SCHEMA["methods"][name]["params"])


def test_every_method_event_and_reference_is_there() -> None:
    assert set(SCHEMA["methods"]) == set(METHODS)
    assert set(SCHEMA["events"]) == set(EVENTS)
    references = set(re.findall(r'"#/\$defs/(\w+)"', json.dumps(SCHEMA)))
    assert references - set(SCHEMA["$defs"]) == set()


def printed(form: str) -> str:
    command = [sys.executable, "-m", "sidecar", "schema", "--format", form]
    return subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=30).stdout.decode()


@pytest.mark.parametrize("form", GENERATED)
def test_what_clients_have_is_fresh(form: str) -> None:
    file = GENERATED[form]
    assert file.read_text("utf-8") == FORMATS[form](MODEL), f"stale: agent-sidecar schema --format {form} > {file}"


def test_the_command_prints_every_format() -> None:
    assert set(FORMATS) == {*GENERATED, "meta-model"}
    assert printed("meta-model") == FORMATS["meta-model"](MODEL)
    assert json.loads(printed("json-schema")) == SCHEMA


# Examples -----------------------------------------------------------------------------------------------


def checked_parts(frame: Frame) -> Iterator[tuple[Any, Any]]:
    """The parts of an example frame, each with the schema that it has to fit."""
    if frame.name in METHODS and frame.part in ("params", "result"):
        yield frame.body.get(frame.part, {}), SCHEMA["methods"][frame.name][frame.part]
    elif frame.name == "event":
        yield frame.body, SCHEMA["events"][frame.part]


@pytest.mark.parametrize("frame", EXAMPLES, ids=lambda frame: f"{frame.name} {frame.part}")
def test_every_example_of_the_document_fits(frame: Frame) -> None:
    for value, schema in checked_parts(frame):
        validator(schema).validate(value)


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("agent/submit", {"prompt": 5}),
        ("agent/submit", {"wait": "false"}),
        ("agent/submit", {"prompt": [{"type": "text"}]}),
        ("agent/submit", {"prompt": [{"type": "image", "data": 5, "mimeType": "image/png"}]}),
        ("agent/steer", {"prompt": "x"}),
        ("session/list", {"limit": "5"}),
        ("tools/list", {"selector": {"names": "x"}}),
        ("session/export", {"sessionId": "s", "format": "pdf"}),
        ("agent/event", {"sessionId": "s", "runId": "r", "seq": 0, "event": {"type": "assistantTextDelta"}}),
    ],
)
def test_what_does_not_fit_is_refused(method: str, params: Any) -> None:
    with pytest.raises(ValidationError):
        validator(SCHEMA["methods"][method]["params"]).validate(params)
    assert params_fault(method, params) is not None, "the conformance kit reads the schema in another way"


def test_a_block_of_an_unknown_type_may_hold_anything() -> None:
    params = {"prompt": [{"type": "video", "text": 5}, {"type": "text", "text": "x"}]}
    validator(SCHEMA["methods"]["agent/submit"]["params"]).validate(params)
    assert params_fault("agent/submit", params) is None


# The handshake ------------------------------------------------------------------------------------------

OPTIONS = "params.initializationOptions"
ABILITIES = "params.capabilities.experimental.agentSidecar"
DESCRIPTION = "result.capabilities.experimental.agentSidecar"


def held_at(place: str, frame: Any) -> Any:
    """What stands there in a frame."""
    for name in place.split("."):
        frame = frame[name]
    return frame


def test_the_example_of_the_handshake_fits() -> None:
    bodies = read_document().other_examples
    (asked,) = (body for body in bodies if body.get("method") == "initialize")
    (answered,) = (body for body in bodies if "serverInfo" in body.get("result", ()))
    for place, schema in SCHEMA["handshake"].items():
        validator(schema).validate(held_at(place, asked if place.startswith("params") else answered))


def test_the_schema_has_all_options_of_the_document() -> None:
    named = [option.split(".") for option in read_document().options("Options")]
    options = SCHEMA["$defs"]["InitializationOptions"]["properties"]
    assert set(options) == {outer for outer, *_ in named}
    inner = {name: SCHEMA["$defs"][shape]["properties"] for name, shape in INNER_OPTIONS.items()}
    assert {(name, each) for name in inner for each in inner[name]} == {tuple(path) for path in named if path[1:]}


INNER_OPTIONS = {"cycle": "CycleOptions", "store": "StoreOptions"}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (OPTIONS, {"model": 5}),
        (OPTIONS, {"cycle": {"maxTurns": "5"}}),
        (OPTIONS, {"cycle": {"summary": "none"}}),
        (OPTIONS, {"cycle": {"errorPolicy": {"io": "shrug"}}}),
        (OPTIONS, {"providers": {"local": {"api": "openai"}}}),
        (OPTIONS, {"builtinTools": "read_file"}),
        (OPTIONS, {"inputs": [{"type": "promptString"}]}),
        (OPTIONS, {"permissions": {"rules": [{"decision": "allow"}]}}),
        (OPTIONS, {"mcpServers": []}),
        (OPTIONS, {"mcpServers": {"git": "mcp-server-git"}}),
        (ABILITIES, {"approvals": "yes"}),
        (ABILITIES, {"optOutEvents": "warning"}),
        (DESCRIPTION, {"protocolVersion": "1.0", "methods": [], "events": []}),
    ],
)
def test_what_does_not_fit_in_the_handshake_is_refused(place: str, value: Any) -> None:
    with pytest.raises(ValidationError):
        validator(SCHEMA["handshake"][place]).validate(value)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"mcpServers": {"docs": {"httpUrl": "https://example.com/mcp", "type": "streamable-http"}, "odd": {}}},
        {"providers": {"local": {"baseUrl": None}}, "system": None, "unknown": 5},
        {"builtinTools": ["read_file"], "inputs": [{"id": "token", "password": True}]},
    ],
)
def test_what_the_sidecar_reads_fits(options: Any) -> None:
    read_options(options, path="")
    validator(SCHEMA["handshake"][OPTIONS]).validate(options)


@pytest.mark.parametrize(("shape", "entry"), [("StdioServer", {"command": 5}), ("HttpServer", {"oauth": {}})])
def test_the_entry_of_a_server_can_be_checked_by_itself(shape: str, entry: Any) -> None:
    with pytest.raises(ValidationError):
        validator(SCHEMA["$defs"][shape]).validate(entry)


def test_the_conformance_kit_knows_no_options() -> None:
    program = "import sys, sidecar.conformance.shapes; sys.exit('sidecar.config' in sys.modules)"
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True, timeout=30)


# Versions -----------------------------------------------------------------------------------------------


def broken_promises(released: Any, model: Any) -> Iterator[str]:
    """What a host that was written for the released protocol could miss in the model of now."""
    for part, key in (("requests", "method"), ("notifications", "method"), ("events", "type"), ("errors", "kind")):
        now = {each[key]: each for each in model[part]}
        for each in released[part]:
            if now.get(each[key]) != each:
                yield f"{part}: {each[key]} is gone or is not what it was"
    structures = {each["name"]: each for each in model["structures"]}
    for each in released["structures"]:
        yield from _broken_structure(each, structures.get(each["name"], {"properties": []}))
    choices = {each["name"]: {value["value"] for value in each["values"]} for each in model["enumerations"]}
    for each in released["enumerations"]:
        for value in each["values"]:
            if value["value"] not in choices.get(each["name"], ()):
                yield f"{each['name']} has no {value['value']!r} any more"


def _broken_structure(released: Any, now: Any) -> Iterator[str]:
    fields = {each["name"]: each for each in now["properties"]}
    for each in released["properties"]:
        if fields.get(each["name"]) != each:
            yield f"{released['name']}.{each['name']} is gone or is not what it was"
    before = {each["name"] for each in released["properties"]}
    for name, each in fields.items():
        if name not in before and not each.get("optional"):
            yield f"{released['name']}.{name} is new and must be there"


def test_a_change_that_breaks_hosts_needs_another_version() -> None:
    released = json.loads(RELEASED.read_text("utf-8"))
    if released["metaData"]["version"] == PROTOCOL_VERSION:
        assert list(broken_promises(released, MODEL)) == []


def _without(part: str, place: int) -> Any:
    return {**MODEL, part: [each for index, each in enumerate(MODEL[part]) if index != place]}


def _with_field(**field: Any) -> Any:
    first, *others = MODEL["structures"]
    return {**MODEL, "structures": [{**first, "properties": [*first["properties"], field]}, *others]}


@pytest.mark.parametrize(
    ("model", "is_broken"),
    [
        (_without("requests", 0), True),
        (_without("events", 0), True),
        (_without("errors", 0), True),
        (_without("structures", 0), True),
        (_without("enumerations", 0), True),
        (_with_field(name="new", type={"kind": "base", "name": "string"}), True),
        (_with_field(name="new", type={"kind": "base", "name": "string"}, optional=True), False),
        (MODEL, False),
    ],
)
def test_what_breaks_hosts_is_noticed(model: Any, is_broken: bool) -> None:
    assert bool(list(broken_promises(MODEL, model))) is is_broken
