"""Python functions as tools: what the model is told, what the function gets, what comes back.

Source: own choice, described in the README's part on Python users; JSON Schema 2020-12.
"""

import asyncio
import datetime
import enum
import functools
import sqlite3
import threading
import uuid
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, NewType, NotRequired, TypedDict

import attrs
import pytest

from sidecar.permissions.checker import PermissionChecker
from sidecar.permissions.model import PermissionConfig
from sidecar.protocol.errors import ToolError
from sidecar.protocol.events import ToolExecutionProgress
from sidecar.protocol.values import ToolInvocation, ToolResult
from sidecar.tools.base import ToolContext
from sidecar.tools.decorator import FunctionTool, tool
from sidecar.tools.registry import InvocationScope, ToolRegistry
from tests.harness.tools import Witness

OPEN = PermissionChecker(PermissionConfig(allowed=(), denied=(), ask=()))


async def run(subject: FunctionTool, scope: InvocationScope | None = None, **args: Any) -> ToolInvocation:
    registry = ToolRegistry(permissions=OPEN)
    registry.register(subject)
    return await registry.invoke(subject.name, args, scope, call_id="c")


async def data(subject: FunctionTool, **args: Any) -> Any:
    result = (await run(subject, **args)).result
    assert result is not None
    assert result.ok, result.error
    return result.data


async def refusal(subject: FunctionTool, **args: Any) -> str:
    with pytest.raises(ToolError) as failed:
        await run(subject, **args)
    assert failed.value.kind == "invalidArguments"
    return failed.value.message


class Unit(enum.Enum):
    CELSIUS = "C"
    FAHRENHEIT = "F"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Colour(enum.StrEnum):
    RED = "red"


@attrs.frozen
class Point:
    """A place on the map.

    Attributes:
        x: To the east.
    """

    x: float
    y: float = 0.0


@attrs.define
class Tree:
    name: str
    children: "list[Tree]" = attrs.field(factory=list)


@dataclass
class Box:
    size: int
    labels: list[str] = field(default_factory=list)
    lid: bool = field(default=True, metadata={"description": "Whether it has one"})


class Options(TypedDict):
    """Some options."""

    deep: bool
    depth: NotRequired[int]


@attrs.frozen
class Circle:
    kind: Literal["circle"]
    radius: float


@attrs.frozen
class Square:
    kind: Literal["square"]
    side: float


City = NewType("City", str)


# What the model is told ---------------------------------------------------------------------------------


def test_name_description_and_schema_come_from_the_function() -> None:
    @tool
    async def get_weather(city: str, unit: Unit = Unit.CELSIUS, days: int | None = None) -> dict[str, Any]:
        """Tells the weather.

        Of today, or of some days.

        Args:
            city: Where.
            days: How many days, today included.
        """
        return {}

    assert isinstance(get_weather, FunctionTool)
    assert (get_weather.name, get_weather.kind) == ("get_weather", "function")
    assert get_weather.description == "Tells the weather.\n\nOf today, or of some days."
    assert get_weather.parameters == {
        "type": "object",
        "properties": {
            "city": {"type": "string", "description": "Where."},
            "unit": {"type": "string", "enum": ["C", "F"], "default": "C"},
            "days": {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "description": "How many days, today included.",
                "default": None,
            },
        },
        "required": ["city"],
        "additionalProperties": False,
    }


def google(a: int, b: str) -> None:
    """Does it.

    Args:
        a: The first.
        b: The second.
    """


def numpy(a: int, b: str) -> None:
    """Does it.

    Parameters
    ----------
    a : int
        The first.
    b : str
        The second.
    """


def sphinx(a: int, b: str) -> None:
    """Does it.

    :param a: The first.
    :param b: The second.
    """


def annotated(a: Annotated[int, "The first."], b: Annotated[str, "The second."]) -> None:
    """Does it."""


@pytest.mark.parametrize("function", [google, numpy, sphinx, annotated])
def test_parameters_are_described_in_any_usual_style(function: Any) -> None:
    made = tool(function)
    assert made.description == "Does it."
    assert made.parameters["properties"] == {
        "a": {"type": "integer", "description": "The first."},
        "b": {"type": "string", "description": "The second."},
    }


def test_options_replace_what_the_function_says_and_add_what_it_cannot() -> None:
    @tool(
        name="clock",
        description="Now.",
        permissions=["read", "mcp:time"],
        requires_approval=True,
        kind="custom",
        tags=["a"],
        category="time",
        version="2",
        idempotent=True,
        timeout_secs=3.0,
    )
    def now() -> str:
        """Something else."""
        return "now"

    registry = ToolRegistry()
    info = registry.register(now).info()
    assert (info.name, info.description, info.kind, info.version) == ("clock", "Now.", "custom", "2")
    assert (info.required_permissions, info.requires_approval) == (("read", "mcp:time"), True)
    assert (info.tags, info.category, now.idempotent, now.timeout_secs) == (("a",), "time", True, 3.0)
    assert now() == "now"


def test_a_function_without_a_docstring_or_hints_is_a_tool_all_the_same() -> None:
    @tool
    def anything(a, b=1):  # type: ignore[no-untyped-def]
        return [a, b]

    assert anything.description == ""
    assert anything.parameters["properties"] == {"a": {}, "b": {"default": 1}}
    assert anything.parameters["required"] == ["a"]


POINT = {
    "type": "object",
    "properties": {
        "x": {"type": "number", "description": "To the east."},
        "y": {"type": "number", "default": 0.0},
    },
    "required": ["x"],
    "additionalProperties": False,
    "description": "A place on the map.",
}
TAG = {"type": "string"}


@pytest.mark.parametrize(
    ("hint", "schema"),
    [
        (str, {"type": "string"}),
        (bool, {"type": "boolean"}),
        (float, {"type": "number"}),
        (None, {"type": "null"}),
        (Any, {}),
        (list, {"type": "array"}),
        (dict, {"type": "object"}),
        (list[int], {"type": "array", "items": {"type": "integer"}}),
        (Sequence[str], {"type": "array", "items": {"type": "string"}}),
        (Iterable[str], {"type": "array", "items": {"type": "string"}}),
        (set[int], {"type": "array", "items": {"type": "integer"}, "uniqueItems": True}),
        (tuple[int, ...], {"type": "array", "items": {"type": "integer"}}),
        (
            tuple[int, str],
            {
                "type": "array",
                "prefixItems": [{"type": "integer"}, {"type": "string"}],
                "items": False,
                "minItems": 2,
            },
        ),
        (
            dict[str, list[int]],
            {"type": "object", "additionalProperties": {"type": "array", "items": {"type": "integer"}}},
        ),
        (Mapping[str, Any], {"type": "object", "additionalProperties": True}),
        (Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}),
        (Literal["a", 1, None], {"enum": ["a", 1, None]}),
        (Unit, {"type": "string", "enum": ["C", "F"]}),
        (Level, {"type": "integer", "enum": [1, 2]}),
        (int | str, {"anyOf": [{"type": "integer"}, {"type": "string"}]}),
        (City | str, {"type": "string"}),
        (datetime.datetime, {"type": "string", "format": "date-time"}),
        (uuid.UUID, {"type": "string", "format": "uuid"}),
        (Path, {"type": "string"}),
        (Point, POINT),
        (
            Box,
            {
                "type": "object",
                "properties": {
                    "size": {"type": "integer"},
                    "labels": {"type": "array", "items": {"type": "string"}},
                    "lid": {"type": "boolean", "description": "Whether it has one", "default": True},
                },
                "required": ["size"],
                "additionalProperties": False,
            },
        ),
        (
            Options,
            {
                "type": "object",
                "properties": {"deep": {"type": "boolean"}, "depth": {"type": "integer"}},
                "required": ["deep"],
                "additionalProperties": False,
                "description": "Some options.",
            },
        ),
    ],
)
def test_a_type_has_its_schema(hint: Any, schema: Any) -> None:
    def function(a):  # type: ignore[no-untyped-def]
        """Nothing."""

    function.__annotations__["a"] = hint
    assert tool(function).parameters["properties"]["a"] == schema


def test_a_class_that_contains_itself_is_defined_once() -> None:
    @tool
    def plant(tree: Tree, other: Tree | None = None) -> str:
        return tree.children[0].name

    assert plant.parameters["properties"]["tree"] == {"$ref": "#/$defs/Tree"}
    assert plant.parameters["$defs"] == {
        "Tree": {
            "type": "object",
            "properties": {
                "name": {"type": "string"},
                "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}},
            },
            "required": ["name"],
            "additionalProperties": False,
        }
    }


class Unfit:
    pass


@pytest.mark.parametrize(
    ("hint", "words"),
    [
        (bytes, "a: JSON Schema has no words for bytes"),
        (Unfit, "a: JSON Schema has no words for Unfit"),
        (list[bytes], "a: JSON Schema has no words for bytes"),
        (dict[int, str], "a: the keys of a JSON object are strings, not <class 'int'>"),
        ("Missing", "the type hints of function cannot be resolved: name 'Missing' is not defined"),
    ],
)
def test_a_type_that_json_cannot_carry_is_refused_when_the_tool_is_made(hint: Any, words: str) -> None:
    def function(a):  # type: ignore[no-untyped-def]
        """Nothing."""

    function.__annotations__["a"] = hint
    with pytest.raises(TypeError) as failed:
        tool(function)
    assert words in str(failed.value)


def test_a_function_that_takes_anything_is_refused() -> None:
    def takes(*args: int) -> None: ...
    def takes_named(**kwargs: int) -> None: ...

    for function in (takes, takes_named):
        with pytest.raises(TypeError, match="name each parameter"):
            tool(function)
    with pytest.raises(TypeError, match="takes a function or a method"):
        tool(functools.partial(takes, 1))
    with pytest.raises(ValueError, match="unknown permission"):
        tool(permissions=["reed"])(google)


# What the function gets ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("hint", "sent", "got"),
    [
        (int, 3.0, 3),
        (float, 3, 3.0),
        (bool, True, True),
        (Point, {"x": 1}, Point(1.0)),
        (list[Point], [{"x": 1, "y": 2.5}], [Point(1.0, 2.5)]),
        (dict[str, Point], {"a": {"x": 1}}, {"a": Point(1.0)}),
        (Box, {"size": 1, "labels": ["a"]}, Box(1, ["a"])),
        (Options, {"deep": True}, {"deep": True}),
        (Tree, {"name": "a", "children": [{"name": "b"}]}, Tree("a", [Tree("b")])),
        (Unit, "F", Unit.FAHRENHEIT),
        (Level, 2, Level.HIGH),
        (Colour, "red", Colour.RED),
        (Unit | None, None, None),
        (Literal["a", "b"], "b", "b"),
        (Circle | Square, {"kind": "square", "side": 2}, Square("square", 2.0)),
        (int | str, "3", "3"),
        (list[int | None], [1, None], [1, None]),
        (set[int], [1, 2], {1, 2}),
        (tuple[int, str], [1, "a"], (1, "a")),
        (tuple[int, ...], [1, 2], (1, 2)),
        (Iterable[int], [1, 2], [1, 2]),
        (
            datetime.datetime,
            "2026-01-02T03:04:05+00:00",
            datetime.datetime(2026, 1, 2, 3, 4, 5, tzinfo=datetime.UTC),
        ),
        (datetime.date, "2026-01-02", datetime.date(2026, 1, 2)),
        (uuid.UUID, "12345678-1234-5678-1234-567812345678", uuid.UUID("12345678-1234-5678-1234-567812345678")),
        (Path, "a/b", Path("a/b")),
        (Any, {"x": [1]}, {"x": [1]}),
        (Annotated[int, "a number"], 3, 3),
        (City, "Rome", "Rome"),
    ],
)
async def test_arguments_arrive_as_the_hints_say(hint: Any, sent: Any, got: Any) -> None:
    seen: list[Any] = []

    def function(a):  # type: ignore[no-untyped-def]
        seen.append(a)

    function.__annotations__["a"] = hint
    await run(tool(function), a=sent)
    assert seen == [got]
    assert type(seen[0]) is type(got)


@pytest.mark.parametrize(
    ("hint", "sent", "words"),
    [
        (int, "3", 'a must be an integer, not "3"'),
        (int, True, "a must be an integer, not true"),
        (str, 3, "a must be a string, not 3"),
        (bool, "false", 'a must be a boolean, not "false"'),
        (Point, {"x": "1"}, 'a.x must be a number, not "1"'),
        (Point, {}, "a.x is required"),
        (Point, {"x": 1, "z": 1}, "a.z is not known; known are x, y"),
        (list[Point], [{"x": 1}, {"x": None}], "a[1].x must be a number, not null"),
        (Unit, "K", 'a must be one of "C", "F", not "K"'),
        (Circle | Square, {"kind": "square", "side": "2"}, 'a.side must be a number, not "2"'),
        (tuple[int, str], [1], "a does not fit: [1] is too short"),
        (datetime.date, "tomorrow", "a does not fit: Invalid isoformat string: 'tomorrow'"),
        (uuid.UUID, "x", "a does not fit: badly formed hexadecimal UUID string"),
    ],
)
async def test_arguments_that_do_not_fit_come_back_with_their_paths(hint: Any, sent: Any, words: str) -> None:
    def function(a):  # type: ignore[no-untyped-def]
        raise AssertionError("never called")

    function.__annotations__["a"] = hint
    assert await refusal(tool(function), a=sent) == f"invalid arguments for function: {words}"


async def test_a_class_s_own_checks_are_told_with_their_path() -> None:
    @attrs.frozen
    class Even:
        number: int = attrs.field()

        @number.validator
        def _check(self, attribute: Any, value: int) -> None:
            if value % 2:
                raise ValueError(f"{value} is odd")

    @tool
    def halve(numbers: list[Even]) -> int:
        return numbers[0].number // 2

    assert await data(halve, numbers=[{"number": 4}]) == 2
    message = await refusal(halve, numbers=[{"number": 4}, {"number": 3}])
    assert message == "invalid arguments for halve: numbers[1] does not fit: 3 is odd"


async def test_defaults_are_the_function_s_own_and_every_kind_of_parameter_works() -> None:
    @tool
    def function(a: int, /, b: int = 2, *, c: int = 3) -> list[int]:
        return [a, b, c]

    assert await data(function, a=1) == [1, 2, 3]
    assert await data(function, a=1, c=9) == [1, 2, 9]
    assert "a is required" in await refusal(function, b=1)


async def test_the_context_is_given_where_it_is_annotated_and_never_told_to_the_model() -> None:
    @tool
    async def whoami(context: ToolContext, greeting: str = "hi") -> str:
        return f"{greeting} {context.session_id}"

    @tool
    async def optional(*, greeting: str = "hi", ctx: ToolContext | None = None) -> str:
        return f"{greeting} {ctx.call_id if ctx else None}"

    assert list(whoami.parameters["properties"]) == list(optional.parameters["properties"]) == ["greeting"]
    assert (await run(whoami, Witness().scope(permissions=OPEN))).content == "hi ses-1"
    assert await data(optional) == "hi c"


async def test_a_method_of_an_object_is_a_tool() -> None:
    class Counter:
        def __init__(self) -> None:
            self.count = 0

        def add(self, n: int) -> int:
            self.count += n
            return self.count

    counter = Counter()
    add = tool(counter.add)
    assert list(add.parameters["properties"]) == ["n"]
    assert [await data(add, n=2), await data(add, n=3)] == [2, 5]


# What comes back ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "as_json"),
    [
        (Point(1.0), {"x": 1.0, "y": 0.0}),
        ([Box(1)], [{"size": 1, "labels": [], "lid": True}]),
        ({"unit": Unit.CELSIUS}, {"unit": "C"}),
        ((1, {2}), [1, [2]]),
        (datetime.date(2026, 1, 2), "2026-01-02"),
        (Path("a"), "a"),
        (None, None),
        (ToolResult.success(Point(1.0)), {"x": 1.0, "y": 0.0}),
    ],
)
async def test_what_a_function_gives_back_becomes_json(value: Any, as_json: Any) -> None:
    @tool
    def function() -> Any:
        return value

    assert await data(function) == as_json


async def test_what_cannot_become_json_is_a_failure() -> None:
    @tool
    def function() -> Any:
        return Unfit()

    with pytest.raises(ToolError, match="cannot be written as JSON") as failed:
        await run(function)
    assert failed.value.kind == "executionFailed"


async def test_a_tool_level_error_stays_one() -> None:
    @tool
    def function() -> ToolResult:
        return ToolResult.error("no such city")

    assert (await run(function)).result == ToolResult.error("no such city")


# How it runs --------------------------------------------------------------------------------------------


async def test_a_plain_function_does_not_block_the_loop() -> None:
    released = threading.Event()

    @tool
    def wait() -> bool:
        return released.wait(5)

    @tool
    async def release() -> None:
        released.set()

    registry = ToolRegistry()
    registry.register_all([wait, release])
    made = await registry.invoke_all([("wait", {}), ("release", {})])
    assert made[0].content == "true"


async def test_an_async_function_runs_on_the_loop() -> None:
    @tool
    async def where() -> int:
        return threading.get_ident()

    assert await data(where) == threading.get_ident()


async def test_a_plain_function_reaches_the_person_and_the_progress_through_its_context() -> None:
    @tool
    def survey(ctx: ToolContext) -> str:
        ctx.from_thread(ctx.progress(1, 2, "asking"))
        return f"they said {ctx.from_thread(ctx.ask('well?'))}"

    async def ask(call: Any, prompt: str, schema: Any) -> str:
        return "yes"

    witness = Witness()
    made = await run(survey, witness.scope(permissions=OPEN, ask=ask))
    assert made.content == "they said yes"
    assert witness.events == [ToolExecutionProgress(call_id="c", done=1, total=2, message="asking")]


async def test_an_async_generator_streams() -> None:
    @tool
    async def count(n: int) -> AsyncIterator[str]:
        for i in range(n):
            yield f"{i} "

    witness = Witness()
    made = await run(count, witness.scope(permissions=OPEN), n=3)
    assert made.content == "0 1 2 "
    assert [event.partial for event in witness.events if isinstance(event, ToolExecutionProgress)] == [
        "0 ",
        "1 ",
        "2 ",
    ]


async def test_a_plain_generator_streams_from_one_thread() -> None:
    @tool
    def rows() -> Iterator[dict[str, int]]:
        database = sqlite3.connect(":memory:")  # Usable in the thread that made it alone.
        database.execute("create table t (n)")
        database.executemany("insert into t values (?)", [(1,), (2,), (3,)])
        for (n,) in database.execute("select n from t"):
            yield {"n": n}
        database.close()

    assert await data(rows) == [{"n": 1}, {"n": 2}, {"n": 3}]


async def test_a_generator_is_closed_when_its_call_is_over() -> None:
    closed: list[str] = []

    @tool(timeout_secs=0.05)
    async def endless() -> AsyncIterator[int]:
        try:
            yield 1
            await asyncio.Event().wait()
        finally:
            closed.append("closed")

    with pytest.raises(ToolError, match="did not end within"):
        await run(endless)
    assert closed == ["closed"]


async def test_a_wrapper_around_a_coroutine_function_is_awaited() -> None:
    async def inner(a: int) -> int:
        return a * 2

    @functools.wraps(inner)
    def outer(*args: Any, **kwargs: Any) -> Any:
        return inner(*args, **kwargs)

    assert await data(tool(outer), a=4) == 8


async def test_what_a_function_raises_is_told() -> None:
    @tool
    def broken() -> None:
        raise LookupError("no row")

    with pytest.raises(ToolError, match="broken failed: LookupError: no row"):
        await run(broken)
