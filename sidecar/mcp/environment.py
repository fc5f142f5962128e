"""What a server process is given of our environment, and where its program is found.

A server sees the names listed here, what its entry's `inheritEnv` adds, and its entry's `env`. Everything else
stays with us: an editor's environment is full of other programs' secrets.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

_ON_WINDOWS = os.name == "nt"

_POSIX = ("HOME", "LOGNAME", "PATH", "SHELL", "TERM", "USER")
_LOCALE_AND_TEMPORARY = ("LANG", "LANGUAGE", "TZ", "TMPDIR", "TEMP", "TMP")
_PROXIES = (
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "no_proxy",
)
_CERTIFICATES = (
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NIX_SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "NODE_EXTRA_CA_CERTS",
    "NODE_USE_SYSTEM_CA",
    "AWS_CA_BUNDLE",
    "GIT_SSL_CAINFO",
    "PIP_CERT",
    "DENO_CERT",
    "UV_SYSTEM_CERTS",
    "UV_NATIVE_TLS",
    "npm_config_cafile",
)
_DESKTOP = ("DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS")
"""For servers that drive a browser or the keyring."""

_TOOLCHAINS = (
    "LD_LIBRARY_PATH",
    "DYLD_LIBRARY_PATH",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "PYENV_ROOT",
    "NVM_DIR",
    "FNM_DIR",
    "VOLTA_HOME",
    "PNPM_HOME",
    "BUN_INSTALL",
    "ASDF_DIR",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "DOTNET_ROOT",
    "UV_CACHE_DIR",
    "UV_PYTHON_INSTALL_DIR",
    "npm_config_cache",
    "npm_config_prefix",
)
"""Where launchers (npx, uvx, version managers' shims) keep what they launch. None of these holds a secret."""

_CONTAINERS = (
    "DOCKER_HOST",
    "DOCKER_CONTEXT",
    "DOCKER_CONFIG",
    "DOCKER_CERT_PATH",
    "DOCKER_TLS_VERIFY",
    "CONTAINER_HOST",
)
_PREFIXES = ("LC_", "XDG_")
_WINDOWS = (
    "ALLUSERSPROFILE",
    "APPDATA",
    "COMMONPROGRAMFILES",
    "COMMONPROGRAMFILES(X86)",
    "COMMONPROGRAMW6432",
    "COMPUTERNAME",
    "COMSPEC",
    "HOMEDRIVE",
    "HOMEPATH",
    "LOCALAPPDATA",
    "NUMBER_OF_PROCESSORS",
    "OS",
    "PATHEXT",
    "PROCESSOR_ARCHITECTURE",
    "PROGRAMDATA",
    "PROGRAMFILES",
    "PROGRAMFILES(X86)",
    "PROGRAMW6432",
    "PSMODULEPATH",
    "PUBLIC",
    "SYSTEMDRIVE",
    "SYSTEMROOT",
    "USERDOMAIN",
    "USERNAME",
    "USERPROFILE",
    "WINDIR",
)

INHERITED = frozenset(
    _POSIX
    + _LOCALE_AND_TEMPORARY
    + _PROXIES
    + _CERTIFICATES
    + _DESKTOP
    + _TOOLCHAINS
    + _CONTAINERS
    + (_WINDOWS if _ON_WINDOWS else ())
)
"""Variables every server is given. Own choice: what programs need to start and to reach the network."""


def child_environment(
    environ: Mapping[str, str], *, inherit: Iterable[str], own: Mapping[str, str | None]
) -> dict[str, str]:
    """The environment of a server: the listed names and `inherit` from `environ`, then `own`.

    None in `own` takes a variable away.
    """
    wanted = INHERITED | {_key(name) for name in inherit}
    child = {_key(name): value for name, value in environ.items() if _is_wanted(_key(name), wanted)}
    for name, value in own.items():
        child.pop(_key(name), None)
        if value is not None:
            child[_key(name)] = value
    return child


def find_program(command: str, *, environ: Mapping[str, str], folder: Path) -> str | None:
    """The full path of `command`, or None where there is no such program.

    A bare name is looked up in the PATH of `environ`, anything with a separator starts at `folder`. On Windows
    the suffixes of PATHEXT are tried, so `npx` finds `npx.cmd`.
    """
    suffixes = _suffixes(command, environ)
    for place in _places(command, environ, folder):
        for suffix in suffixes:
            candidate = place / (command + suffix)
            if candidate.is_file() and os.access(candidate, os.X_OK):
                return str(candidate)
    return None


def _key(name: str) -> str:
    """Names of variables compare without case on Windows, and only there."""
    return name.upper() if _ON_WINDOWS else name


def _is_wanted(name: str, wanted: frozenset[str]) -> bool:
    return name in wanted or name.startswith(_PREFIXES)


def _places(command: str, environ: Mapping[str, str], folder: Path) -> Iterator[Path]:
    if os.sep in command or (os.altsep and os.altsep in command):
        yield folder
        return
    for entry in environ.get("PATH", os.defpath).split(os.pathsep):
        if entry:  # An empty entry would mean the current folder: nobody wants programs from there.
            yield folder / entry


def _suffixes(command: str, environ: Mapping[str, str]) -> list[str]:
    if not _ON_WINDOWS:
        return [""]
    known = [suffix for suffix in environ.get("PATHEXT", ".COM;.EXE;.BAT;.CMD").split(";") if suffix]
    written_out = command.upper().endswith(tuple(suffix.upper() for suffix in known))
    return ["", *known] if written_out else known
