"""Why HTTP did not work, in the words of whoever knows best."""

import os
import socket
import ssl


def root_of(error: Exception) -> str:
    """The operating system's own words below httpx's, which say only that all attempts failed."""
    cause: BaseException | None = error
    while cause is not None:
        match cause:
            case ssl.SSLError() | socket.gaierror():
                return str(cause.strerror)
            case OSError(errno=int(number), strerror=words):
                # asyncio puts the address where the words should be; Windows knows no words for its numbers.
                return os.strerror(number) if os.name == "posix" else str(words)
        cause = cause.__cause__ or cause.__context__
    return str(error).rstrip(".") or type(error).__name__
