"""Whether the entries of `allowed`, `denied` and `ask` can be meant. Pure."""

from sidecar.permissions.globs import is_glob
from sidecar.permissions.model import Permission
from sidecar.protocol.messages import PermissionOptions


def fault_of_options(options: PermissionOptions) -> tuple[str, str] | None:
    """The first entry that is neither a permission nor a glob: its path, as in `denied[1]`, and what is wrong.

    A misspelt entry must not pass in silence: one in `denied` would deny nothing.
    """
    for field, entries in (("allowed", options.allowed), ("denied", options.denied), ("ask", options.ask)):
        for place, entry in enumerate(entries or ()):
            if is_glob(entry):
                continue
            try:
                Permission(entry)
            except ValueError as error:
                return f"{field}[{place}]", str(error)
    return None
