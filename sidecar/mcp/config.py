"""One entry of `mcpServers`: from the JSON that users have to a value, and from there to a launch.

Entries are those of Claude Desktop, VS Code, Cursor and Gemini files; fields of other programs are passed over. A
fault is a ConfigurationError with the path as the user wrote it: `mcpServers.git.args[0]`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import evolve, field, frozen

from sidecar.mcp.env_file import EnvFileError, read_env_file
from sidecar.mcp.environment import child_environment, find_program
from sidecar.mcp.placeholders import PlaceholderError, Surroundings, expand
from sidecar.protocol.codec import DecodeError, decode
from sidecar.protocol.errors import ConfigurationError
from sidecar.protocol.values import JsonObject

DEFAULT_TIMEOUT_SECS = 30.0
"""How long one request to a server may take."""

DEFAULT_START_TIMEOUT_SECS = 60.0
"""How long a server may take to start. Own choice: `npx` and `uvx` fetch a package first."""

_URL_FIELDS = ("httpUrl", "url", "serverUrl")
"""Where other hosts' files have the address of a server; Gemini's `httpUrl` outweighs its `url`."""

_KIND_FIELDS = ("type", "transport")
_KINDS: Mapping[str, Literal["stdio", "http", "sse"]] = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamable-http": "http",
    "streamablehttp": "http",
    "streamable_http": "http",
    "remote": "http",
    "sse": "sse",
}
"""What they call the ways to a server, in lower case."""

_FOREIGN_APPROVALS = ("autoApprove", "alwaysAllow", "trust")
"""What other hosts' files say about running tools unasked (Cline and Cursor, Roo, Gemini)."""

_SECRET_NAME = re.compile(r"key|token|secret|passw|credential|auth", re.IGNORECASE)
_SHORTEST_SECRET = 6
"""Shorter values are not hidden: they would blot out ordinary words."""


@frozen(kw_only=True)
class StdioServer:
    """How to start a server that speaks over stdin and stdout.

    A number in `env` stands for its text, None takes a variable away. `env_file` names a file of more variables,
    which `env` outweighs; `inherit_env` names variables of ours that the server sees too. `permissions` maps a
    glob over tool names to the permissions that such a tool needs.
    """

    command: str
    args: tuple[str, ...] = field(default=(), repr=False)
    env: dict[str, str | int | None] = field(factory=dict, repr=False)
    env_file: str | None = None
    cwd: str | None = None
    inherit_env: tuple[str, ...] = ()
    timeout_secs: float = DEFAULT_TIMEOUT_SECS
    start_timeout_secs: float = DEFAULT_START_TIMEOUT_SECS
    disabled: bool = False
    permissions: dict[str, tuple[str, ...]] = field(factory=dict)


@frozen(kw_only=True)
class HttpServer:
    """Where a server is that speaks over HTTP. Its URL and headers may hold secrets.

    `type` "sse" is the transport of 2024-11-05, "http" the one since. `oauth` is kept as it was written.
    """

    url: str = field(repr=False)
    type: Literal["http", "sse"] = "http"
    headers: dict[str, str] = field(factory=dict, repr=False)
    oauth: JsonObject | None = field(default=None, repr=False)
    timeout_secs: float = DEFAULT_TIMEOUT_SECS
    start_timeout_secs: float = DEFAULT_START_TIMEOUT_SECS
    disabled: bool = False
    permissions: dict[str, tuple[str, ...]] = field(factory=dict)


Server = StdioServer | HttpServer


@frozen(kw_only=True, eq=False)
class Launch:
    """A process to start, with nothing left to look up. `secrets` must not be shown in what it writes."""

    program: str
    args: tuple[str, ...] = field(repr=False)
    environ: dict[str, str] = field(repr=False)
    folder: Path
    secrets: tuple[str, ...] = field(default=(), repr=False)


def path_of(name: str) -> str:
    """Where a server's entry stands in the configuration."""
    return f"mcpServers.{name}"


def decode_server(name: str, raw: Any, *, path: str | None = None) -> Server:
    """The entry `raw` of the server `name`; placeholders in it stay as they are. Raises ConfigurationError."""
    path = path or path_of(name)
    if not isinstance(raw, dict):
        raise ConfigurationError(f"{path}: must be an object with a command or a url", path=path)
    given = {key: value for key, value in raw.items() if value is not None}
    kind = _kind(given, path)
    try:
        if kind == "stdio":
            server: Server = decode(given, StdioServer, path=path)
        else:
            server = decode(_http_fields(given, kind, path), HttpServer, path=path)
    except DecodeError as error:
        raise ConfigurationError(str(error), path=error.path) from None
    _check(server, path)
    return server


def ignored_settings(raw: Mapping[str, Any]) -> tuple[str, ...]:
    """The fields of an entry that would let tools run unasked; only our own permissions allow."""
    return tuple(name for name in _FOREIGN_APPROVALS if raw.get(name))


def texts_of(server: Server) -> Iterator[str]:
    """Every text of the entry that may hold placeholders."""
    yield from (text for _, text in _texts(server))


def expand_server(server: Server, surroundings: Surroundings, *, path: str) -> Server:
    """The entry with its placeholders replaced. Raises ConfigurationError naming the one that is unset."""

    def known(text: str, place: str) -> str:
        try:
            return expand(text, surroundings)
        except PlaceholderError as error:
            raise ConfigurationError(f"{path}.{place}: {error}", path=f"{path}.{place}") from None

    if isinstance(server, HttpServer):
        return _with_http_texts(server, known)
    return _with_texts(server, known)


def plan_launch(
    server: StdioServer, *, path: str, environ: Mapping[str, str], folder: Path, inputs: Iterable[str] = ()
) -> Launch:
    """What to start: program, environment and folder. Relative paths start at `folder`.

    `inputs` are answers of a person that went into the entry: secrets, like what variables named for one hold.
    Raises ConfigurationError where the folder or the program is not there.
    """
    _check_launchable(server, path, folder)
    cwd = folder / server.cwd if server.cwd else folder
    if not cwd.is_dir():
        raise ConfigurationError(f"{path}.cwd: {str(cwd)!r} is not a folder", path=f"{path}.cwd")
    own: dict[str, str | None] = dict(_of_env_file(server, path, folder))
    own |= {name: None if value is None else str(value) for name, value in server.env.items()}
    child = child_environment(environ, inherit=server.inherit_env, own=own)
    program = find_program(server.command, environ=child, folder=folder)
    if program is None:
        raise _no_program(server.command, path)
    secrets = (*inputs, *(value for name, value in own.items() if value and _SECRET_NAME.search(name)))
    secrets = tuple(filter(is_secret, secrets))
    return Launch(program=program, args=server.args, environ=child, folder=cwd, secrets=secrets)


def is_secret(text: str) -> bool:
    """Whether a text is long enough to be hidden wherever it occurs."""
    return len(text) >= _SHORTEST_SECRET


def _check_launchable(server: StdioServer, path: str, folder: Path) -> None:
    """No system starts a program with these, and none says which of them was wrong. Shows no value."""
    for place, text in (*_texts(server), ("cwd", str(folder))):
        if "\0" in text:
            raise ConfigurationError(f"{path}.{place}: must not hold a NUL character", path=f"{path}.{place}")
    for name in (*server.env, *server.inherit_env):
        if not name or "=" in name or "\0" in name:
            place = f"{path}.env.{name}" if name in server.env else f"{path}.inheritEnv"
            raise ConfigurationError(f"{place}: {name!r} cannot be the name of a variable", path=place)


def _of_env_file(server: StdioServer, path: str, folder: Path) -> dict[str, str]:
    """The variables of `env_file`. Raises ConfigurationError, which shows nothing of what it holds."""
    if server.env_file is None:
        return {}
    file = folder / server.env_file
    try:
        return read_env_file(file.read_text("utf-8"))
    except OSError as error:
        reason = f"cannot be read: {error.strerror}"
    except UnicodeDecodeError:
        reason = "must be written in UTF-8"
    except EnvFileError as error:
        reason = str(error)
    raise ConfigurationError(f"{path}.envFile: {str(file)!r}: {reason}", path=f"{path}.envFile")


def _kind(given: Mapping[str, Any], path: str) -> Literal["stdio", "http", "sse"]:
    """How an entry says that its server is reached, in whatever words; where it says nothing, by what it has."""
    for name in _KIND_FIELDS:
        if name in given:
            written = given[name]
            kind = _KINDS.get(written.lower()) if isinstance(written, str) else None
            if kind is None:
                raise ConfigurationError(
                    f"{path}.{name}: must be one of stdio, http, sse, not {written!r}", path=f"{path}.{name}"
                )
            return kind
    urls = [name for name in _URL_FIELDS if name in given]
    if urls and "command" in given:
        raise ConfigurationError(
            f"{path}.{urls[0]}: give either a command or a url, not both", path=f"{path}.{urls[0]}"
        )
    return "http" if urls else "stdio"


def _http_fields(given: Mapping[str, Any], kind: Literal["http", "sse"], path: str) -> dict[str, Any]:
    """The entry in our own words: `type` and `url`."""
    fields = {key: value for key, value in given.items() if key not in _URL_FIELDS}
    name = next((name for name in _URL_FIELDS if name in given), "url")
    url = given.get(name)
    if not isinstance(url, str) or not url.strip():
        raise ConfigurationError(f"{path}.{name}: must be the URL of the server", path=f"{path}.{name}")
    return {**fields, "type": kind, "url": url.strip()}


def _check(server: Server, path: str) -> None:
    if isinstance(server, StdioServer) and not server.command.strip():
        raise ConfigurationError(f"{path}.command: must not be empty", path=f"{path}.command")
    for name, secs in (("timeoutSecs", server.timeout_secs), ("startTimeoutSecs", server.start_timeout_secs)):
        if secs <= 0:
            raise ConfigurationError(f"{path}.{name}: must be more than 0 seconds", path=f"{path}.{name}")


def _texts(server: Server) -> Iterator[tuple[str, str]]:
    if isinstance(server, HttpServer):
        yield "url", server.url
        yield from ((f"headers.{name}", value) for name, value in server.headers.items())
        yield from _oauth_texts(server.oauth or {}, "oauth")
        return
    yield "command", server.command
    yield from ((f"args[{index}]", text) for index, text in enumerate(server.args))
    yield from ((f"env.{name}", value) for name, value in server.env.items() if isinstance(value, str))
    if server.env_file is not None:
        yield "envFile", server.env_file
    if server.cwd is not None:
        yield "cwd", server.cwd


def _with_texts(server: StdioServer, change: Callable[[str, str], str]) -> StdioServer:
    changed = {place: change(text, place) for place, text in _texts(server)}
    return evolve(
        server,
        command=changed["command"],
        args=tuple(changed[f"args[{index}]"] for index in range(len(server.args))),
        env={name: changed.get(f"env.{name}", value) for name, value in server.env.items()},
        env_file=changed.get("envFile"),
        cwd=changed.get("cwd"),
    )


def _with_http_texts(server: HttpServer, change: Callable[[str, str], str]) -> HttpServer:
    oauth = server.oauth
    if oauth is not None:
        changed = {place: change(text, place) for place, text in _oauth_texts(oauth, "oauth")}
        oauth = {name: changed.get(f"oauth.{name}", value) for name, value in oauth.items()}
    return evolve(
        server,
        url=change(server.url, "url"),
        headers={name: change(value, f"headers.{name}") for name, value in server.headers.items()},
        oauth=oauth,
    )


def _oauth_texts(oauth: JsonObject, place: str) -> Iterator[tuple[str, str]]:
    yield from ((f"{place}.{name}", value) for name, value in oauth.items() if isinstance(value, str))


def _no_program(command: str, path: str) -> ConfigurationError:
    advice = "put its arguments into args" if " " in command else "install it, or give its full path"
    return ConfigurationError(
        f"{path}.command: the program {command!r} was not found; {advice}", path=f"{path}.command"
    )
