"""Tools as a provider can take them: names, descriptions and schemas it accepts, everything else left out. Pure.

The registry's definitions are never changed; what goes out is a copy. Each mending is a WarningPiece, and a
tool that cannot be mended is left out alone, so that it does not take the others along.
"""

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence, Set
from operator import is_

from attrs import frozen

from sidecar.protocol.values import JsonObject, ToolDefinition
from sidecar.providers.base import WarningPiece
from sidecar.providers.json_text import as_json
from sidecar.providers.references import UnmendableSchemaError
from sidecar.providers.schemas import mended_schema

MAX_NAME_CHARACTERS = 64
"""OpenAI's limit, which most servers took over, together with the characters below."""

MAX_NOTES = 5
"""How many mendings of one schema, or tools that are left out, a warning lists."""

MAX_REMEMBERED = 4096
"""How many tools are kept in their lowered form (own choice)."""


@frozen(kw_only=True)
class ProviderLimits:
    """What one API takes of tools and calls. None: no limit is known.

    `property_names` is what the arguments of a tool may be called, `call_ids` how the id of a call may look.
    """

    call_ids: re.Pattern[str]
    max_tools: int | None = None
    max_description_characters: int | None = None
    property_names: re.Pattern[str] | None = None


@frozen(kw_only=True)
class LoweredTools:
    """What a provider is told of the tools. `registry_names` leads from its names back to ours.

    `texts` are the tools as JSON, the way the provider's API writes them.
    """

    tools: tuple[ToolDefinition, ...]
    texts: tuple[str, ...]
    registry_names: Mapping[str, str]
    warnings: tuple[WarningPiece, ...]

    def wire_name(self, name: str) -> str:
        """The provider's name for a tool, also for one that history mentions and that is gone by now."""
        wire = wire_name(name)
        if self.registry_names.get(wire) in (None, name):
            return wire
        return next((wire for wire, ours in self.registry_names.items() if ours == name), wire)


@frozen(kw_only=True)
class _Lowered:
    """One tool, lowered; `problem` says why it has to be left out."""

    original: ToolDefinition
    tool: ToolDefinition
    text: str = ""
    warnings: tuple[WarningPiece, ...] = ()
    problem: str | None = None


class ToolLowering:
    """Lowers tools for one API; `write` puts a tool into the shape that it has there.

    Each tool is lowered once and remembered, because many tools are most of a request, and so is the last answer:
    as a rule one request has the same tools as the one before.
    """

    def __init__(self, limits: ProviderLimits, write: Callable[[ToolDefinition], JsonObject]) -> None:
        self._limits = limits
        self._write = write
        self._remembered: dict[str, _Lowered] = {}
        self._last: tuple[Sequence[ToolDefinition], LoweredTools] | None = None

    def lower(self, definitions: Sequence[ToolDefinition]) -> LoweredTools:
        """The definitions as the provider takes them, in the same order."""
        if self._last is not None:
            before, lowered = self._last
            if len(before) == len(definitions) and all(map(is_, before, definitions)):
                return lowered
        lowered = self._all_lowered(definitions)
        self._last = (tuple(definitions), lowered)
        return lowered

    def _all_lowered(self, definitions: Sequence[ToolDefinition]) -> LoweredTools:
        chosen: dict[str, _Lowered] = {}
        warnings: list[WarningPiece] = []
        surplus: list[str] = []
        taken = {definition.name for definition in definitions}
        for definition in definitions:
            if len(chosen) == self._limits.max_tools:
                surplus.append(definition.name)
                continue
            lowered = self._lowered(definition)
            if lowered.tool.name in taken and lowered.tool.name != definition.name:
                lowered = self._renamed(lowered, wire_name(definition.name, taken=taken))
            warnings += lowered.warnings
            if lowered.problem is None:
                taken.add(lowered.tool.name)
                chosen[lowered.tool.name] = lowered
        if surplus:
            warnings.append(_too_many(len(definitions), len(chosen), surplus))
        return LoweredTools(
            tools=tuple(lowered.tool for lowered in chosen.values()),
            texts=tuple(lowered.text for lowered in chosen.values()),
            registry_names={wire: lowered.original.name for wire, lowered in chosen.items()},
            warnings=tuple(warnings),
        )

    def _lowered(self, definition: ToolDefinition) -> _Lowered:
        """The tool, lowered now or before. Registries have a definition each, of the same schema."""
        known = self._remembered.get(definition.name)
        if (
            known is not None
            and known.original.parameters is definition.parameters
            and known.original.description == definition.description
        ):
            return known
        if len(self._remembered) >= MAX_REMEMBERED:
            self._remembered.clear()
        fresh = self._remembered[definition.name] = self._made(definition)
        return fresh

    def _made(self, definition: ToolDefinition) -> _Lowered:
        try:
            parameters, notes = mended_schema(definition.parameters)
            self._check_properties(parameters)
        except UnmendableSchemaError as error:
            problem = f"tool {definition.name!r} is left out: {error}"
            warning = _warning("toolLeftOut", problem, left_out=(definition.name,))
            return _Lowered(original=definition, tool=definition, warnings=(warning,), problem=problem)
        warnings: list[WarningPiece] = []
        if notes:
            warnings.append(
                _warning("schemaRepaired", f"the schema of tool {definition.name!r}: {_listed(notes)}")
            )
        description = self._described(definition, warnings)
        tool = ToolDefinition(name=definition.name, description=description, parameters=parameters)
        made = _Lowered(original=definition, tool=tool, text=self._text(tool), warnings=tuple(warnings))
        wire = wire_name(definition.name)
        return made if wire == definition.name else self._renamed(made, wire)

    def _renamed(self, lowered: _Lowered, wire: str) -> _Lowered:
        name = lowered.original.name
        tool = ToolDefinition(name=wire, description=lowered.tool.description, parameters=lowered.tool.parameters)
        others = tuple(warning for warning in lowered.warnings if warning.code != "toolRenamed")
        renamed = _warning("toolRenamed", f"tool {name!r} is called {wire!r} towards the model")
        return _Lowered(original=lowered.original, tool=tool, text=self._text(tool), warnings=(renamed, *others))

    def _described(self, definition: ToolDefinition, warnings: list[WarningPiece]) -> str:
        limit, description = self._limits.max_description_characters, definition.description
        if limit is None or len(description) <= limit:
            return description
        warnings.append(
            _warning(
                "descriptionShortened",
                f"the description of tool {definition.name!r} has {len(description)} characters; "
                f"it was cut to the {limit} that the provider takes",
            )
        )
        return f"{description[: limit - 2].rstrip()} …"

    def _check_properties(self, parameters: JsonObject) -> None:
        allowed = self._limits.property_names
        refused = [name for name in parameters["properties"] if allowed and not allowed.fullmatch(name)]
        if refused:
            raise UnmendableSchemaError(f"the provider refuses arguments that are called {refused[0]!r}")

    def _text(self, tool: ToolDefinition) -> str:
        return as_json(self._write(tool))


def wire_name(name: str, *, taken: Set[str] = frozenset()) -> str:
    """The name itself where providers take it, else a readable beginning and a digest of the whole.

    Depends on the name alone, so that it is the same in every turn and whatever other tools there are; only
    where another tool bears the very name that comes out (`taken`) is the digest made anew.
    """
    if _TAKEABLE.fullmatch(name):
        return name
    for attempt in range(len(taken) + 1):
        salted = name if attempt == 0 else f"{name}\0{attempt}"
        digest = hashlib.sha256(salted.encode("utf-8", "surrogatepass")).hexdigest()[:8]
        readable = re.sub(r"[^A-Za-z0-9_-]+", "_", name)[: MAX_NAME_CHARACTERS - 1 - len(digest)]
        if (wire := f"{readable}_{digest}") not in taken:
            return wire
    raise AssertionError("more names are taken than there are")


def wire_call_id(call_id: str, limits: ProviderLimits) -> str:
    """The id that stands for a call in a request: its own, or a digest where the provider refuses that."""
    if limits.call_ids.fullmatch(call_id):
        return call_id
    return "call_" + hashlib.sha256(call_id.encode("utf-8", "surrogatepass")).hexdigest()[:32]


_TAKEABLE = re.compile(rf"[A-Za-z0-9_-]{{1,{MAX_NAME_CHARACTERS}}}")


def _too_many(offered: int, taken: int, surplus: list[str]) -> WarningPiece:
    return _warning(
        "tooManyTools",
        f"{offered} tools are on offer and the provider takes {taken}: {len(surplus)} were left out "
        f"({_listed(surplus)}); offer fewer by the selector `tools` of the submit, or disable servers",
        left_out=tuple(surplus),
    )


def _warning(code: str, message: str, *, left_out: tuple[str, ...] = ()) -> WarningPiece:
    return WarningPiece(code=code, message=message, left_out=left_out)


def _listed(notes: list[str]) -> str:
    more = f"; and {len(notes) - MAX_NOTES} more" if len(notes) > MAX_NOTES else ""
    return "; ".join(notes[:MAX_NOTES]) + more
