"""What docs/debugging.md shows is what the commands print."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from tests.quick_cases import quick

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "debugging.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"```console\n\$ gradscope (.+)\n((?:.*\n)*?)```", PAGE)
PROGRAMS = re.findall(r"```python\n((?:.*\n)*?)```\n\n```\n((?:.*\n)*?)```", PAGE)


def printed(arguments):
    both = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT}
    return subprocess.run([sys.executable, *arguments], cwd=ROOT, **both, text=True, timeout=120).stdout


@pytest.mark.parametrize(
    ("arguments", "shown"),
    quick(BLOCKS, BLOCKS[1:2]),
    ids=["a violation", "findings", "parameters", "asking", "looking back"],
)
def test_sessions(arguments, shown):
    assert printed(["-m", "gradscope", *shlex.split(arguments)]) == shown


def test_from_python():
    (source, shown), _ = PROGRAMS
    assert printed(["-c", source]) == shown


@pytest.mark.torch
def test_post_mortem():
    pytest.importorskip("torch")
    from gradscope.inspect.adapters.torch.saved_tensors_unpacked import SHOWN

    if not SHOWN:
        pytest.skip("PyTorch gives what is saved without its history")
    _, (source, shown) = PROGRAMS
    assert printed(["-c", source]) == shown
