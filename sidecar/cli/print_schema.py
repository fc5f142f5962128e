"""`agent-sidecar schema`: the protocol as data."""

import argparse
import json
import sys
from collections.abc import Callable

from sidecar.protocol.values import JsonObject
from sidecar.schema.json_schema import json_schema
from sidecar.schema.luacats import luacats
from sidecar.schema.typescript import typescript
from sidecar.schema.whole import whole_model


def _as_json(value: JsonObject) -> str:
    return json.dumps(value, indent=2) + "\n"


FORMATS: dict[str, Callable[[JsonObject], str]] = {
    "json-schema": lambda model: _as_json(json_schema(model)),
    "meta-model": _as_json,
    "typescript": typescript,
    "lua": luacats,
}
"""What each format makes of the model."""


def print_schema(flags: argparse.Namespace, spawn: object) -> int:
    """Prints the protocol in the format that is asked for; starts no sidecar."""
    sys.stdout.write(FORMATS[flags.format](whole_model()))
    return 0
