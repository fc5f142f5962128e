"""What importing the client costs at start-up. Source: own choice."""

import subprocess
import sys
from pathlib import Path

HEAVY = {
    "httpx",
    "httpx_sse",
    "pygls",
    "lsprotocol",
    "jsonschema",
    "docstring_parser",
    "ctypes",
    "shutil",
    "tempfile",
}


def test_the_client_brings_no_heavy_module_along() -> None:
    code = (
        "import sys, asyncio, cattrs.gen; before = set(sys.modules); import sidecar.mcp.manager\n"
        "sys.stdout.write('\\n'.join(set(sys.modules) - before))"
    )
    loaded = subprocess.run(
        (sys.executable, "-c", code), cwd=Path(__file__).parents[2], capture_output=True, text=True, check=True
    ).stdout.split()
    assert "sidecar.mcp.client" in loaded
    assert HEAVY & set(loaded) == set()
