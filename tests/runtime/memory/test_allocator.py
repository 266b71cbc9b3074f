"""Memory of arrays that are freed is there for the next ones."""

from __future__ import annotations

import os
import platform
import subprocess
import sys

import pytest

STEPS = """
import resource
import sys
import gradscope as gs

def step():
    x = gs.ones(int(sys.argv[1]), 1024, requires_grad=True)  # of 4 KiB each
    for _ in range(8):
        x = x * 1.5
    x.sum().backward()

step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(5):
    step()
print(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="another allocator has rules of its own")
@pytest.mark.parametrize("asked", [{}, {"MALLOC_TRIM_THRESHOLD_": "131072"}], ids=["as it comes", "as it is asked for"])
@pytest.mark.parametrize("pages", [512, 4096])
def test_no_page_is_filled_anew(pages: int, asked: dict[str, str]) -> None:
    command = [sys.executable, "-c", STEPS, str(pages)]
    run = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ, **asked})
    filled = int(run.stdout)  # in 5 steps of some 10 arrays
    assert filled > 5 * 512 if asked else filled < 512
