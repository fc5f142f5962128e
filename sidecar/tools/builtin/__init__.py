"""The tools that a sidecar has by itself, by name. One file each, and one line here."""

from sidecar.tools.base import BaseTool
from sidecar.tools.builtin.ask_user import AskUser
from sidecar.tools.builtin.delete import Delete
from sidecar.tools.builtin.edit_file import EditFile
from sidecar.tools.builtin.fetch_url import FetchUrl
from sidecar.tools.builtin.find_files import FindFiles
from sidecar.tools.builtin.list_directory import ListDirectory
from sidecar.tools.builtin.move import Move
from sidecar.tools.builtin.read_file import ReadFile
from sidecar.tools.builtin.run_command import RunCommand
from sidecar.tools.builtin.search_text import SearchText
from sidecar.tools.builtin.write_file import WriteFile

BUILTIN: dict[str, type[BaseTool]] = {
    "read_file": ReadFile,
    "list_directory": ListDirectory,
    "find_files": FindFiles,
    "search_text": SearchText,
    "write_file": WriteFile,
    "edit_file": EditFile,
    "move": Move,
    "delete": Delete,
    "run_command": RunCommand,
    "fetch_url": FetchUrl,
    "ask_user": AskUser,
}
"""The built-in tools by name; `BUILTIN["read_file"]()` makes one."""
