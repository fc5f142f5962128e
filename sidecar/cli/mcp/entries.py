"""An entry of `mcpServers` in words, and what people type for one. No value of `env` and no header is shown."""

import shlex
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

from sidecar.cli.host import UsageError
from sidecar.config_files.server_files import URL_FIELDS

JsonObject = dict[str, Any]


def gist(entry: Any) -> str:
    """What an entry starts or reaches, on one line."""
    if not isinstance(entry, dict):
        return "no object"
    if url := url_of(entry):
        return url
    arguments = entry.get("args")
    words = [entry.get("command", "no command"), *(arguments if isinstance(arguments, list) else ())]
    return shlex.join(map(str, words))


def url_of(entry: JsonObject) -> str | None:
    """Where a server that is reached over HTTP is."""
    return next((entry[name] for name in URL_FIELDS if isinstance(entry.get(name), str)), None)


def described(name: str, entry: Any) -> JsonObject:
    """The same for programs: what of an entry is no secret."""
    known = entry if isinstance(entry, dict) else {}
    shown = {
        key: known[key] for key in ("command", "args", "cwd", "envFile", "disabled", *URL_FIELDS) if key in known
    }
    names = {key: sorted(known[key]) for key in ("env", "headers") if isinstance(known.get(key), dict)}
    return {"name": name, **shown, **names}


def pairs(flag: str, given: Iterable[str]) -> dict[str, str]:
    """`NAME=VALUE` each; headers also as `Name: value`. Raises UsageError."""
    read: dict[str, str] = {}
    for text in given:
        separator = ":" if flag == "--header" and ":" in text.partition("=")[0] else "="
        name, found, value = text.partition(separator)
        if not found or not name.strip():
            raise UsageError(f"{flag}: must be NAME=VALUE")  # Not repeated: it may be a secret alone.
        read[name.strip()] = value.strip() if separator == ":" else value
    return read


def check_url(url: str) -> None:
    """Raises UsageError for what is no address of a server."""
    try:
        parts = urlsplit(url)
        is_http = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_http = False
    if not is_http:
        raise UsageError(f"--url: {url!r} must be a URL with http or https")


def without_nulls(value: Any) -> Any:
    """TOML has no null; in an entry it means what leaving the field out does, almost always."""
    match value:
        case Mapping():
            return {key: without_nulls(inner) for key, inner in value.items() if inner is not None}
        case list():
            return [without_nulls(inner) for inner in value if inner is not None]
        case _:
            return value


def shell_line(entry: JsonObject) -> str:
    """What to type to start it by hand; empty for a server that is reached over HTTP."""
    return "" if url_of(entry) else gist(entry)
