"""What the conformance suites run as the client: one scenario against one server, with our public client.

`python client.py URL`; the scenario's name and what it needs to know are in the environment. Whatever fails ends
it with status 1, as the suites expect of scenarios that a client must refuse.
"""

import asyncio
import json
import os
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

import httpx  # noqa: E402  the project is found once its folder is known

from sidecar import HttpServer, McpClient, ToolError  # noqa: E402
from sidecar.mcp.duties import Duties, Offers  # noqa: E402
from sidecar.mcp.elicitation import InputAnswer, InputQuestion  # noqa: E402
from sidecar.mcp.oauth.authorization import OAuthAuthorization  # noqa: E402
from sidecar.mcp.oauth.options import OAuthOptions  # noqa: E402
from sidecar.mcp.oauth.sign_in import PageAnswer  # noqa: E402
from sidecar.mcp.oauth.store import TokenStore  # noqa: E402
from sidecar.mcp.sampling import SamplingAnswer, SamplingRequest  # noqa: E402

METADATA_URL = "https://conformance-test.local/client-metadata.json"
"""The client's own metadata document, which the suites know and never fetch."""

Json = dict[str, Any]
Act = Callable[[McpClient, Json], Awaitable[None]]


# What the scenarios have a client do --------------------------------------------------------------------


async def list_tools(client: McpClient, context: Json) -> None:
    await client.list_tools()


async def add_numbers(client: McpClient, context: Json) -> None:
    await client.list_tools()
    await client.call_tool("add_numbers", {"a": 5, "b": 3})


def call_only(*names: str) -> Act:
    """Lists the tools and calls these."""

    async def act(client: McpClient, context: Json) -> None:
        await client.list_tools()
        for name in names:
            await client.call_tool(name, {})

    return act


async def make_the_calls(client: McpClient, context: Json) -> None:
    await client.list_tools()
    for call in context["toolCalls"]:
        await client.call_tool(call["name"], call["arguments"])


async def call_every_tool(client: McpClient, context: Json) -> None:
    for tool in await client.list_tools():
        await client.call_tool(tool.name, {})


async def echo_the_schema(client: McpClient, context: Json) -> None:
    tools = {tool.name: tool for tool in await client.list_tools()}
    await client.call_tool("json_schema_echo", {"schema": tools["json_schema_2020_12_tool"].input_schema})


async def call_the_first_tool(client: McpClient, context: Json) -> None:
    first, *_ = await client.list_tools()
    await client.call_tool(first.name, {})


ACTS: dict[str, Act] = {
    "initialize": list_tools,
    "tools_call": add_numbers,
    "request-metadata": list_tools,  # Its server offers none, and is not asked for any.
    "http-standard-headers": add_numbers,
    "elicitation-sep1034-client-defaults": call_only("test_client_elicitation_defaults"),
    "sse-retry": call_only("test_reconnection"),
    "sep-2322-client-request-state": call_only(
        "test_mrtr_echo_state", "test_mrtr_unrelated", "test_mrtr_no_state", "test_mrtr_no_result_type"
    ),
    "http-custom-headers": make_the_calls,
    "http-invalid-tool-headers": call_every_tool,
    "json-schema-ref-no-deref": list_tools,
    "json-schema-2020-12-preservation": echo_the_schema,
}
"""By scenario; those of `auth/` call the first tool."""


# What a host does for a server --------------------------------------------------------------------------


async def accept(server: str, question: InputQuestion) -> InputAnswer:
    """Confirms what there is to confirm, and leaves the rest to the defaults of the form."""
    properties = (question.schema or {}).get("properties", {})
    return InputAnswer("accept", {"confirmed": True} if "confirmed" in properties else {})


async def sample(server: str, request: SamplingRequest) -> SamplingAnswer:
    return SamplingAnswer(text="hello", model="none", stop_reason="stop")


OFFERS = Offers(roots=lambda: (ROOT,), elicit=accept, sample=sample)


async def visit(server: str, url: str) -> PageAnswer:
    """The browser of somebody who agrees to everything."""
    async with httpx.AsyncClient(follow_redirects=True, trust_env=False) as browser:
        await browser.get(url)
    return PageAnswer("shown")


def sign_in_options(scenario: str, context: Json) -> OAuthOptions:
    """What a user would have put into the `oauth` field of the server's entry."""
    known = {"client_id": context.get("client_id"), "client_secret": context.get("client_secret")}
    match scenario.removeprefix("auth/"):
        case "client-credentials-basic":
            return OAuthOptions(grant_type="client_credentials", **known)
        case "client-credentials-jwt":
            return OAuthOptions(
                grant_type="client_credentials",
                client_id=context["client_id"],
                private_key_pem=context["private_key_pem"],
                signing_algorithm=context["signing_algorithm"],
            )
        case "cross-app-access-complete-flow" | "enterprise-managed-authorization":
            return OAuthOptions(
                grant_type="token_exchange",
                idp_client_id=context["idp_client_id"],
                id_token=context["idp_id_token"],
                idp_token_endpoint=context["idp_token_endpoint"],
                **known,
            )
        case "wif-jwt-bearer":
            return OAuthOptions(
                grant_type="jwt_bearer", assertion=context["valid_jwt"], client_id=context["client_id"]
            )
        case "pre-registration":
            return OAuthOptions(**known)
        case _:
            return OAuthOptions(client_metadata_url=METADATA_URL)


async def run(url: str, scenario: str, context: Json, folder: Path) -> None:
    """Connects, acts, and closes."""
    authorization = OAuthAuthorization(
        "suite",
        url,
        sign_in_options(scenario, context),
        store=TokenStore(folder / "sign-ins.json", find_keyring=lambda: None),
        show_page=visit,
    )
    client = McpClient("suite", HttpServer(url=url), duties=Duties("suite", OFFERS), authorization=authorization)
    try:
        await client.connect()
        await ACTS.get(scenario, call_the_first_tool)(client, context)
    finally:
        await client.close()
        await authorization.aclose()


def main() -> int:
    """The exit status."""
    scenario = os.environ["MCP_CONFORMANCE_SCENARIO"]
    context = json.loads(os.environ.get("MCP_CONFORMANCE_CONTEXT", "{}"))
    with tempfile.TemporaryDirectory() as folder:
        try:
            asyncio.run(run(sys.argv[1], scenario, context, Path(folder)))
        except ToolError as error:
            sys.stderr.write(f"{error.kind}: {error.message}\n")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
