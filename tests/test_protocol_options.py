"""The options that `protocol.md` lists are those that the code reads, with their types and defaults.

Source: `protocol.md`, Handshake, Options, Permissions and MCP servers.
"""

import json
import re

import pytest

from sidecar import config
from sidecar.agent.config import CycleConfig
from sidecar.config import CycleOptions, Options, StoreOptions
from sidecar.config_files.server_files import InputDefinition
from sidecar.mcp.config import HttpServer, StdioServer
from sidecar.mcp.oauth.options import OAuthOptions
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.codec import encode
from sidecar.protocol.handshake import HostAbilities, SidecarDescription
from sidecar.providers.options import ProviderOptions
from sidecar.providers.presets import PRESETS
from sidecar.server.framing import DEFAULT_MAX_FRAME_BYTES
from tests.harness.protocol_document import read_document, snake, spelled_fields

DOCUMENT = read_document()


def test_the_options_are_those_of_the_code() -> None:
    expected = spelled_fields(Options, except_for=("cycle", "store"))
    expected |= spelled_fields(CycleOptions, prefix="cycle.") | spelled_fields(StoreOptions, prefix="store.")
    assert {name: option.type for name, option in DOCUMENT.options("Options").items()} == expected


@pytest.mark.parametrize(
    "shape",
    [ProviderOptions, StdioServer, HttpServer, InputDefinition, OAuthOptions, HostAbilities, SidecarDescription],
    ids=lambda shape: shape.__name__,
)
def test_the_tables_beside_that_of_the_options_are_those_of_the_code(shape: type) -> None:
    assert {name: option.type for name, option in DOCUMENT.options(shape.__name__).items()} == spelled_fields(
        shape
    )


def test_the_options_of_the_handshake_are_ones_that_can_be_read() -> None:
    (params,) = (b["params"] for b in DOCUMENT.other_examples if b.get("method") == "initialize")
    options = config.read_options(params["initializationOptions"], path="params.initializationOptions")
    assert encode(options) == params["initializationOptions"]


def test_the_defaults_are_those_of_the_code() -> None:
    options, cycle = DOCUMENT.options("Options"), CycleConfig()
    for name in (
        "maxTurns",
        "toolTimeoutSecs",
        "maxToolResultBytes",
        "repeatWarning",
        "repeatLimit",
        "maxRetries",
    ):
        assert float(options[f"cycle.{name}"].default) == getattr(cycle, snake(name))
    assert float(options["cycle.maxRetryDelaySecs"].default) == cycle.max_retry_delay_secs
    assert float(options["cycle.serverWaitSecs"].default) == config.DEFAULT_SERVER_WAIT_SECS
    assert float(options["cycle.approvalTimeoutSecs"].default) == config.DEFAULT_APPROVAL_TIMEOUT_SECS
    assert int(options["maxFrameBytes"].default) == DEFAULT_MAX_FRAME_BYTES
    server, provider = DOCUMENT.options("StdioServer"), DOCUMENT.options("ProviderOptions")
    assert float(server["timeoutSecs"].default) == StdioServer(command="x").timeout_secs
    assert float(server["startTimeoutSecs"].default) == StdioServer(command="x").start_timeout_secs
    server = DOCUMENT.options("HttpServer")
    assert float(server["timeoutSecs"].default) == HttpServer(url="x").timeout_secs
    assert float(server["startTimeoutSecs"].default) == HttpServer(url="x").start_timeout_secs
    assert json.loads(server["type"].default.strip("`")) == HttpServer(url="x").type
    assert float(provider["connectTimeoutSecs"].default) == ProviderOptions().connect_limit_secs
    assert float(provider["idleTimeoutSecs"].default) == ProviderOptions().idle_limit_secs


def test_the_default_permissions_are_those_of_the_code() -> None:
    of_the_document = dict(re.findall(r"^\| `permissions\.(\w+)` \| `(.+?)` \|", DOCUMENT.text, re.MULTILINE))
    in_force = encode(PermissionConfig())
    assert {name: json.loads(default) for name, default in of_the_document.items()} == in_force


def test_the_providers_known_by_name_are_those_of_the_code() -> None:
    rows = re.findall(
        r"^\| `(\w+)` \| (?:`(http\S+)`(?:, or `\w+`)?|none: .*) \| (?:`(\w+)` )?\|$", DOCUMENT.text, re.MULTILINE
    )
    expected = [(name, preset.base_url or "", preset.api_key_env or "") for name, preset in PRESETS.items()]
    assert rows == expected
