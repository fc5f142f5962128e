"""Which tools there are: names, entries, selection, changes, statistics.

Source: protocol.md, "tools/list", "tools/register" and "Tool names"; what is told to listeners, "tools/changed".
"""

import pytest

from sidecar.protocol.errors import ToolError
from sidecar.protocol.messages import ToolsChangedParams
from sidecar.protocol.values import ToolDefinition, ToolInfo, ToolSelector, ToolSource, ToolStats
from sidecar.tools.registry import ToolRegistry, entry_of
from tests.harness.tools import Made, answering, echo

GIT = ToolSource(type="mcp", server="git")


def three_tools() -> ToolRegistry:
    registry = ToolRegistry()
    registry.register(Made("zip", echo, tags=("files", "slow"), category="archive"))
    registry.register(Made("git__log", echo), tags=["vcs"], category="history", source=GIT)
    registry.register(Made("now", echo), source=ToolSource(type="builtin"))
    return registry


def names(entries: list) -> list[str]:  # type: ignore[type-arg]
    return [entry.name for entry in entries]


def test_a_registered_tool_is_found_by_its_name() -> None:
    registry = ToolRegistry()
    tool = Made("now", echo)
    entry = registry.register(tool)
    assert registry.get("now") is entry is registry.find("now")
    assert entry.tool is tool
    assert registry.get("Now") is None


def test_tools_are_listed_and_defined_in_the_order_of_their_names() -> None:
    registry = three_tools()
    assert registry.list_tools() == ["git__log", "now", "zip"]
    assert [definition.name for definition in registry.definitions()] == ["git__log", "now", "zip"]
    assert registry.definitions()[1] == ToolDefinition(
        name="now", description="now for tests", parameters={"type": "object"}
    )


def test_a_host_is_told_all_about_a_tool() -> None:
    registry = ToolRegistry()
    tool = Made("zip", echo, required_permissions=("write",), requires_approval=True, kind="file", tags=("a",))
    registry.register(tool, category="archive", version="1.2", source=GIT)
    assert registry.find("zip").info() == ToolInfo(
        name="zip",
        description="zip for tests",
        input_schema={"type": "object"},
        kind="file",
        category="archive",
        tags=("a",),
        version="1.2",
        required_permissions=("write",),
        requires_approval=True,
        source=GIT,
        stats=ToolStats(),
    )


def test_a_second_tool_of_the_same_name_is_an_error_that_names_the_holder() -> None:
    registry = three_tools()
    first = registry.get("git__log")
    with pytest.raises(ToolError) as failed:
        registry.register(Made("git__log", echo))
    assert failed.value.message == (
        "the name 'git__log' is taken by the MCP server 'git'; give the tool another, or unregister that one first"
    )
    assert failed.value.data == {"tool": "git__log", "holder": "mcp"}
    assert registry.get("git__log") is first


def test_of_several_tools_all_join_or_none() -> None:
    registry = three_tools()
    with pytest.raises(ToolError, match="'now' is taken by a built-in tool"):
        registry.register_all([Made("one", echo), Made("now", echo)])
    with pytest.raises(ToolError, match="'two' is taken by a Python tool"):
        registry.register_all([Made("two", echo), Made("two", echo)])
    assert registry.list_tools() == ["git__log", "now", "zip"]
    registry.register_all([Made("one", echo), Made("two", echo)], tags=["new"])
    assert names(registry.find_by_tag("new")) == ["one", "two"]


@pytest.mark.parametrize("name", ["a", "a" * 128, "server__tool", "mcp/x.y:z", "天气", "-"])
def test_a_name_is_printable_without_spaces(name: str) -> None:
    registry = ToolRegistry()
    registry.register(Made(name, echo))
    assert registry.list_tools() == [name]


@pytest.mark.parametrize("name", ["", "a" * 129, "a b", "a\n", "\x1b[31m", "a\u202eb", "a\xa0b", None, 3])
def test_any_other_name_is_refused(name: object) -> None:
    with pytest.raises(ToolError, match="1 to 128 printable characters and no spaces"):
        ToolRegistry().register(Made(name, echo))  # type: ignore[arg-type]


def test_a_tool_that_makes_no_sense_is_refused() -> None:
    with pytest.raises(ToolError, match="parameters must be a JSON Schema object"):
        ToolRegistry().register(Made("t", echo, parameters=None))  # type: ignore[arg-type]
    with pytest.raises(ToolError, match="unknown permission 'reed'"):
        ToolRegistry().register(Made("t", echo, required_permissions=("reed",)))


def test_a_tool_that_was_taken_away_is_gone() -> None:
    registry = three_tools()
    entry = registry.unregister("now")
    assert entry is not None
    assert entry.name == "now"
    assert registry.unregister("now") is None
    assert registry.list_tools() == ["git__log", "zip"]


@pytest.mark.parametrize(
    ("asked", "nearest"), [("git_log", "git__log"), ("Now", "now"), ("zipp", "zip"), ("weather", None)]
)
def test_a_name_that_is_not_there_comes_back_with_the_nearest_that_is(asked: str, nearest: str | None) -> None:
    with pytest.raises(ToolError) as failed:
        three_tools().find(asked)
    hint = f"; did you mean {nearest!r}?" if nearest else ""
    assert failed.value.kind == "notFound"
    assert failed.value.message == f"there is no tool {asked!r}{hint}"
    assert failed.value.data == {"tool": asked, **({"nearest": nearest} if nearest else {})}


@pytest.mark.parametrize(
    ("selector", "taken"),
    [
        (ToolSelector(), ["git__log", "now", "zip"]),
        (ToolSelector(names=("git__*", "now")), ["git__log", "now"]),
        (ToolSelector(names=()), []),
        (ToolSelector(tags=("slow", "vcs")), ["git__log", "zip"]),
        (ToolSelector(categories=("archive",)), ["zip"]),
        (ToolSelector(sources=("builtin", "python")), ["now", "zip"]),
        (ToolSelector(exclude=("*o*",)), ["zip"]),
        (ToolSelector(names=("*",), sources=("mcp",), exclude=("git__log",)), []),
    ],
)
def test_a_selector_takes_the_tools_that_match_every_field(selector: ToolSelector, taken: list[str]) -> None:
    registry = three_tools()
    assert names(registry.entries(selector)) == taken
    assert [definition.name for definition in registry.definitions(selector)] == taken


def test_tools_are_found_by_tag_and_category_and_in_groups() -> None:
    registry = three_tools()
    assert names(registry.find_by_tag("files")) == ["zip"]
    assert names(registry.find_by_category("history")) == ["git__log"]
    groups = {category: names(entries) for category, entries in registry.groups().items()}
    assert groups == {"archive": ["zip"], "history": ["git__log"], None: ["now"]}


def test_listeners_hear_of_each_change_until_they_leave() -> None:
    registry = ToolRegistry()
    heard: list[ToolsChangedParams] = []
    leave = registry.subscribe(heard.append)
    registry.register_all([Made("b", echo), Made("a", echo)])
    registry.unregister("a")
    registry.unregister("never there")
    registry.replace(("b",), (entry_of(Made("b", echo)), entry_of(Made("c", echo))))
    leave()
    leave()
    registry.unregister("b")
    assert heard == [
        ToolsChangedParams(added=("a", "b"), removed=(), changed=()),
        ToolsChangedParams(added=(), removed=("a",), changed=()),
        ToolsChangedParams(added=("c",), removed=(), changed=("b",)),
    ]


def test_a_replacement_that_cannot_be_made_changes_nothing() -> None:
    registry = three_tools()
    with pytest.raises(ToolError, match="'zip' is taken"):
        registry.replace(("now",), (entry_of(Made("zip", echo)),))
    assert registry.list_tools() == ["git__log", "now", "zip"]


async def test_statistics_count_calls_and_failures_and_survive_a_replacement() -> None:
    registry = ToolRegistry()
    registry.register(Made("works", echo))
    registry.register(Made("fails", answering(RuntimeError("no"))))
    registry.register(Made("closed", echo, required_permissions=("delete",)))
    await registry.invoke_all([("works", {}), ("works", {}), ("fails", {}), ("closed", {}), ("none", {})])
    counted = {name: registry.find(name).stats for name in registry.list_tools()}
    assert {name: (stats.calls, stats.failures) for name, stats in counted.items()} == {
        "works": (2, 0),
        "fails": (1, 1),
        "closed": (1, 1),
    }
    registry.replace(("works",), (entry_of(Made("works", echo)),))
    assert registry.find("works").stats == counted["works"]
