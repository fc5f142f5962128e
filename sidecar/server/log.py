"""Where log lines go: a file, or stderr. Never holds bodies or secrets; that is up to each line.

On stderr a line cannot hold up the process once `take_standard_streams` was called.
"""

import logging
import sys
from pathlib import Path

LEVELS = ("debug", "info", "warning", "error")

_FORMAT = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def configure_logging(log_file: Path | None, level: str = "warning") -> None:
    """Logs the sidecar from `level` (one of LEVELS) on, and its libraries from warnings on.

    pygls would log whole messages below that. Raises OSError where the file cannot be written.
    """
    handler = logging.StreamHandler(sys.stderr) if log_file is None else logging.FileHandler(log_file)
    handler.setFormatter(logging.Formatter(_FORMAT))
    logging.basicConfig(level=logging.WARNING, handlers=[handler], force=True)
    logging.getLogger("sidecar").setLevel(level.upper())
