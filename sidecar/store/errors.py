"""Why something could not be kept or read.

SidecarError
└── StoreError          the file is locked, full, broken or not ours
"""

from sidecar.protocol.errors import SidecarError


class StoreError(SidecarError):
    """Kind `io`. What was committed before stays."""

    def __init__(self, message: str, *, path: str) -> None:
        super().__init__("io", message, path=path)
