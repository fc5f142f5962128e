"""Where log lines go: a file, or stderr. They never hold bodies, which is up to each line, nor known secrets.

On stderr a line cannot hold up the process once `take_standard_streams` was called.
"""

import logging
import sys
from pathlib import Path

from sidecar.protocol.secrets import Secrets

LEVELS = ("debug", "info", "warning", "error")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


class _Formatter(logging.Formatter):
    """Leaves out what must not show, tracebacks included."""

    def __init__(self, secrets: Secrets) -> None:
        super().__init__(_FORMAT)
        self._secrets = secrets

    def format(self, record: logging.LogRecord) -> str:
        return self._secrets.hide(super().format(record))


def configure_logging(log_file: Path | None, level: str = "warning", secrets: Secrets | None = None) -> None:
    """Logs the sidecar from `level` (one of LEVELS) on, and its libraries from warnings on.

    pygls would log whole messages below that. Raises OSError where the file cannot be written.
    """
    handler = logging.StreamHandler(sys.stderr) if log_file is None else logging.FileHandler(log_file)
    handler.setFormatter(_Formatter(secrets or Secrets()))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sidecar").setLevel(level.upper())
