"""What the environment says about HTTP: proxies to go through and certificates to trust.

httpx reads the same variables, but all of them at once, so that one that a URL does not need can be in its way.
"""

import os
import ssl
import threading
import urllib.request
from pathlib import Path
from urllib.parse import urlsplit
from weakref import WeakValueDictionary

import httpx
from attrs import field, frozen

from sidecar.protocol.errors import ConfigurationError


@frozen(kw_only=True)
class Proxy:
    """A proxy of the environment, and the variable that names it. The address may hold a password."""

    variable: str
    address: str = field(repr=False)


def proxy_for(url: str) -> Proxy | None:
    """The proxy that the environment (on Windows and macOS the system, too) puts between us and the URL."""
    parts = urlsplit(url)
    proxies = urllib.request.getproxies()
    if parts.hostname is None or urllib.request.proxy_bypass(parts.hostname):
        return None
    for scheme in (parts.scheme, "all"):
        if address := proxies.get(scheme):
            full = address if "://" in address else f"http://{address}"
            return Proxy(variable=f"{scheme.upper()}_PROXY", address=full)
    return None


def trusted_certificates(url: str, proxy: Proxy | None) -> ssl.SSLContext:
    """The certificates to trust: SSL_CERT_FILE, SSL_CERT_DIR, else those that come with httpx.

    Raises ConfigurationError when they cannot be read. Takes about 0.1 s to read them, where nobody has them
    already: a hundred servers must not take ten seconds.
    """
    if url.startswith("http://") and proxy is None:
        # No TLS will happen. A context that trusts nobody is safe, and need not read 300 KB of certificates.
        return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        with _reading:
            files = tuple(_state_of(variable) for variable in ("SSL_CERT_FILE", "SSL_CERT_DIR"))
            if (context := _in_use.get(files)) is None:
                _in_use[files] = context = httpx.create_ssl_context()
            return context
    except OSError as error:  # ssl.SSLError is one.
        raise ConfigurationError(
            f"the certificates that the environment variable SSL_CERT_FILE or SSL_CERT_DIR names cannot be "
            f"read ({error}): correct or unset it",
            path="SSL_CERT_FILE",
        ) from error


_reading = threading.Lock()
_in_use: WeakValueDictionary[tuple[object, ...], ssl.SSLContext] = WeakValueDictionary()
"""Certificates that somebody has, by what they were read from; forgotten with the last who has them."""


def _state_of(variable: str) -> tuple[str | None, int | None]:
    """What a variable names, and when that was last written; a new file has to be read anew."""
    name = os.environ.get(variable)
    try:
        return name, Path(name).stat().st_mtime_ns if name else None
    except OSError:
        return name, None
