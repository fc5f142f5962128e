"""A tool that the provider left out of the request was never on offer, so a call of it does not run.

Source: protocol.md, "Tool names and schemas" and decided case 5: a name that is not on offer is `notFound`.
"""

from pathlib import Path
from typing import Any

import pytest

from sidecar import CycleConfig, ProviderOptions, ToolRegistry, open_provider
from sidecar.agent.cycle import LlmCycle
from sidecar.protocol.errors import ToolError
from sidecar.providers.base import Provider
from tests.harness.embedding import Heard, talk
from tests.harness.model_server import calls, says
from tests.harness.tools import ANY_OBJECT, Made, echo

TELL = CycleConfig(error_policy={"notFound": "tellModel"})


class Tools:
    """A registry with one tool more than the provider takes, and the names of those that ran."""

    def __init__(self, *, last: str = "t128", parameters: Any = ANY_OBJECT, count: int = 128) -> None:
        self.ran: list[str] = []
        self.registry = ToolRegistry()
        names = [f"t{number:03}" for number in range(count)]
        self.registry.register_all([self._made(name, ANY_OBJECT) for name in names])
        self.registry.register(self._made(last, parameters))

    def _made(self, name: str, parameters: Any) -> Made:
        async def body(args: Any, ctx: Any) -> Any:
            self.ran.append(name)
            return await echo(args, ctx)

        return Made(name, body, parameters)


async def test_a_call_of_a_tool_beyond_the_providers_limit_does_not_run() -> None:
    tools, heard = Tools(), Heard()
    async with talk(calls(("t127", {}), ("t128", {})), says("I see."), config=TELL) as spoken:
        await spoken.cycle.submit_with_tools("go", tools.registry, scope=heard.scope())
        _, refused = spoken.results(2)
    assert tools.ran == ["t127"]
    assert refused.startswith("error: there is no tool 't128' for this model: the request left it out")
    assert [event.error_kind for event in heard.of("toolExecutionCompleted")] == ["notFound", None]


async def test_nor_does_one_whose_schema_the_provider_cannot_take() -> None:
    tools = Tools(last="odd", parameters={"type": "string"}, count=1)
    async with talk(calls(("odd", {}))) as spoken:
        with pytest.raises(ToolError, match="'odd' for this model") as failed:
            await spoken.cycle.submit_with_tools("go", tools.registry)
    assert (failed.value.kind, failed.value.tool, tools.ran) == ("notFound", "odd", [])


async def test_a_name_that_nobody_has_is_not_likened_to_one_that_was_left_out() -> None:
    tools = Tools(last="odd_one", parameters={"type": "string"}, count=1)
    async with talk(calls(("odd_ones", {}))) as spoken:
        with pytest.raises(ToolError, match=r"there is no tool 'odd_ones'$"):
            await spoken.cycle.submit_with_tools("go", tools.registry)


async def test_a_replayed_run_leaves_out_what_the_recorded_one_left_out(tmp_path: Path) -> None:
    file = tmp_path / "run.json"
    script = calls(("t128", {})), says("I see.")
    async with talk(*script, config=TELL, record=str(file)) as spoken:
        await spoken.cycle.submit_with_tools("go", Tools().registry)
    tools = Tools()
    replay: Provider = open_provider("again", ProviderOptions(api="replay", file=str(file)))
    again = LlmCycle(replay, model="scripted", config=TELL)
    await again.submit_with_tools("go", tools.registry)
    assert tools.ran == []
    assert again.messages() == spoken.cycle.messages()
