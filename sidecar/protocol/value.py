"""What all values share."""

from typing import Any

import attrs


class Value:
    """A frozen attrs class shows itself by this.

    attrs would compile a `__repr__` for each class, a third of what the class costs, and a hundred classes are
    made before the first answer. Hence `repr=False` beside it.
    """

    __slots__ = ()

    def __repr__(self) -> str:
        kind: Any = type(self)
        fields = (field for field in attrs.fields(kind) if field.repr)
        shown = ", ".join(f"{field.name}={getattr(self, field.name)!r}" for field in fields)
        return f"{type(self).__name__}({shown})"
