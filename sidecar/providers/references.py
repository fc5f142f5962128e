"""What `$ref` points at within one JSON Schema (2020-12, core 8.2). Pure: nothing is ever fetched."""

from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urljoin

from sidecar.protocol.values import JsonObject

REFERENCE_KEYWORDS = ("$ref", "$dynamicRef", "$recursiveRef")
"""`$recursiveRef` is older. All are followed the same way, which differs only for schemas that extend others."""

_IDENTIFIERS = ("$anchor", "$dynamicAnchor")


class UnmendableSchemaError(ValueError):
    """A schema that no provider would take; the message says why."""


class References:
    """The places of one schema by pointer, anchor and identifier."""

    def __init__(self, root: Any) -> None:
        self._root = root
        self._places: dict[str, Any] | None = None

    def resolve(self, reference: str) -> Any:
        """The schema that a reference means. Raises UnmendableSchemaError."""
        document, _, fragment = reference.partition("#")
        start = self._root if not document else self._named(self._absolute(document))
        if start is None:
            raise UnmendableSchemaError(
                f"its reference {reference!r} leads out of the schema, and none is fetched"
            )
        if not fragment:
            return start
        found = self._pointed(start, fragment) if fragment.startswith("/") else self._named(f"#{fragment}")
        if found is None:
            raise UnmendableSchemaError(f"its reference {reference!r} leads nowhere")
        return found

    def _pointed(self, start: Any, pointer: str) -> Any:
        """What a JSON Pointer (RFC 6901) leads to."""
        place = start
        for part in unquote(pointer).split("/")[1:]:
            key = part.replace("~1", "/").replace("~0", "~")
            if isinstance(place, dict) and key in place:
                place = place[key]
            elif isinstance(place, list) and key.isdecimal() and int(key) < len(place):
                place = place[int(key)]
            else:
                return None
        return place

    def _named(self, name: str) -> Any:
        if self._places is None:
            self._places = dict(self._names())
        return self._places.get(name)

    def _names(self) -> Iterator[tuple[str, Any]]:
        for schema in _objects_in(self._root):
            yield from ((f"#{schema[word]}", schema) for word in _IDENTIFIERS if isinstance(schema.get(word), str))
            if isinstance(schema.get("$id"), str):
                yield self._absolute(schema["$id"].rstrip("#")), schema

    def _absolute(self, document: str) -> str:
        base = self._root.get("$id") if isinstance(self._root, dict) else None
        return urljoin(base, document) if isinstance(base, str) else document


def _objects_in(root: Any) -> Iterator[JsonObject]:
    """Every object at any depth, each once, however they hold each other."""
    waiting, seen = [root], set()
    while waiting:
        value = waiting.pop()
        if not isinstance(value, dict | list) or id(value) in seen:
            continue
        seen.add(id(value))
        if isinstance(value, dict):
            yield value
        waiting += value.values() if isinstance(value, dict) else value
