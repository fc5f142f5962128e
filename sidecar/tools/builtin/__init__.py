"""The tools that a sidecar has by itself, by name. One file each, and one line here."""

from sidecar.tools.base import BaseTool
from sidecar.tools.builtin.delete import Delete
from sidecar.tools.builtin.edit_file import EditFile
from sidecar.tools.builtin.list_directory import ListDirectory
from sidecar.tools.builtin.read_file import ReadFile
from sidecar.tools.builtin.write_file import WriteFile

BUILTIN: dict[str, type[BaseTool]] = {
    "read_file": ReadFile,
    "list_directory": ListDirectory,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "delete": Delete,
}
"""The built-in tools by name; `BUILTIN["read_file"]()` makes one."""
