"""Values as the JSON text that goes over the wire: compact, ASCII, and nothing that is no JSON."""

import json
from collections.abc import Callable
from json import encoder as library
from typing import Any


def _made() -> Callable[[Any], str]:
    """The library makes its fast encoder anew for every value, which takes longer than encoding an event does."""
    slow = json.JSONEncoder(allow_nan=False, check_circular=False, separators=(",", ":"))
    make: Any = getattr(library, "c_make_encoder", None)
    if make is None:  # Python without the C part of its library.
        return slow.encode
    escape = library.encode_basestring_ascii
    fast = make(None, slow.default, escape, None, slow.key_separator, slow.item_separator, False, False, False)
    return lambda value: "".join(fast(value, 0))


to_json = _made()
"""The text of a value. Raises TypeError, ValueError or RecursionError for what is no JSON."""
