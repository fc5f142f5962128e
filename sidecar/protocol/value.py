"""What all values share."""

from typing import Any

import attrs


class Value:
    """A frozen attrs class shows itself and compares by this.

    attrs would compile a `__repr__`, an `__eq__` and a `__hash__` for each class, more than half of what the class
    costs, and a hundred classes are made before the first answer. Hence `repr=False, eq=False` beside it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in _fields(self) if field.repr)
        return f"{type(self).__name__}({shown})"

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field.name) == getattr(other, field.name) for field in _fields(self))

    def __hash__(self) -> int:
        return hash((type(self), *(getattr(self, field.name) for field in _fields(self))))


def _fields(value: Value) -> "tuple[attrs.Attribute[Any], ...]":
    kind: Any = type(value)
    fields: tuple[attrs.Attribute[Any], ...] = attrs.fields(kind)
    return fields
