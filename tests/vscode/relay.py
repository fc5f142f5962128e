"""The sidecar of a window: runs the command that its folder names, and notes down which process that is,
and which is its host.

All windows of a served editor have one setting for the command; each has a folder of its own.
"""

import json
import os
from pathlib import Path

command = json.loads(Path("command.json").read_text())
Path("pid").write_text(str(os.getpid()))
Path("host").write_text(str(os.getppid()))
os.execvp(command[0], command)
