"""The plugin on a real terminal: what a person sees, and that keys are answered while a model talks fast.

Source: own choice. How soon they are answered is measured by `tests/bench/bench_neovim.py`.
"""

import shutil
import sys
from pathlib import Path

import pytest

from tests.neovim.driving import play_on_a_screen

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or shutil.which("tmux") is None,
    reason="needs tmux, and the wheel that brings Neovim is for Linux",
)


async def test_the_screen_shows_questions_and_folds_and_answers_keys_at_1000_deltas_a_second(
    tmp_path: Path,
) -> None:
    seen = await play_on_a_screen(tmp_path, keys=20)
    assert "╭ May this run? ─" in seen["question"] and "│+one  " in seen["question"]
    assert "<C-g> or :Sidecar approve to answer" in seen["question"]
    assert "words of a file" in seen["question"] and "and more" in seen["question"]
    assert "│asking you, <C-g> answers · <C-c> stops" in seen["question"]
    assert "│ o  Allow once  " in seen["answering"] and "│+one  " in seen["answering"]
    assert "│▸ write_file · done in " in seen["done"]
    assert "path: note.txt" not in seen["done"] and "+one" not in seen["done"]
    assert "## Agent" in seen["done"] and "│<CR> sends · <C-c> stops" in seen["done"]
    assert len(seen["streaming_ms"]) == 20 and seen["was_streaming"]
    assert seen["later"] != seen["streaming"]
