"""A tenth of what ``python -m tests.hostile`` does."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

# In a process of its own, which has no thread when it forks.
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not sys.platform.startswith("linux"), reason="needs os.fork, limits and /proc"),
]


@pytest.mark.parametrize(
    ("what", "count"), [("recordings", 200), ("names", 20), ("checkpoints", 100), ("kills", 20), ("moves", 5)]
)
def test_a_tenth_of(what, count):
    command = [sys.executable, "-m", "tests.hostile", "0.1", what]
    done = subprocess.run(
        command, cwd=Path(__file__).parents[2], env=os.environ, capture_output=True, text=True, timeout=280
    )
    assert re.search(rf"^{what}: {count}, .*, 0 wrong", done.stdout, re.MULTILINE), done.stdout + done.stderr
    assert done.returncode == 0
