"""``gradscope agree``."""

from __future__ import annotations

import json
import linecache
import os
import re
import signal
import subprocess
import sys

import pytest

from gradscope.cli import main
from tests.inspect.ranks.jobs import record_ranks


def agree(capsys, *arguments):
    status = main(["agree", *map(str, arguments)])
    done = capsys.readouterr()
    return status, done.out, done.err


def test_ranks_that_agree(tmp_path, capsys):
    record_ranks(tmp_path, 2)
    told = "2 ranks agree: 4 parameters and buffers and their gradients in 2 steps\n"
    assert agree(capsys, tmp_path) == (0, told, "")
    assert agree(capsys, tmp_path / "rank-0.gscope", tmp_path / "rank-1.gscope") == (0, told, "")


def test_ranks_that_do_not(tmp_path, capsys):
    record_ranks(tmp_path, 3, [0])
    record_ranks(tmp_path, 3, [1], lr=0.2)
    status, out, _ = agree(capsys, tmp_path)
    assert (status, out.splitlines()[0]) == (1, "2 ranks disagree: iteration 2, before step 2, parameter 0.weight")
    assert out.endswith("note: no recording of rank 2: it was not started, or it could not write one\n")
    status, out, _ = agree(capsys, tmp_path, "--format", "json")
    data = json.loads(out)
    assert (status, data["agree"], data["first"]["name"], data["steps"]) == (1, False, "0.weight", 1)
    assert data["first"]["held"].keys() == {"0", "1"}
    (site,) = data["first"]["sites"]
    assert (site["what"], site["ranks"], os.path.basename(site["file"])) == ("step()", [0, 1], "programs.py")
    assert "optimizer.step()" in linecache.getline(site["file"], site["line"])


KILLED = """\
import os, signal
import gradscope as gs
w = gs.ones(3, requires_grad=True)
optimizer = gs.optim.SGD([w], lr=0.1)
for number in range(2000):
    optimizer.zero_grad()
    (w * w).sum().backward()
    optimizer.step()
    if number == 1500 and os.environ["RANK"] == "1":
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="processes have signals")
def test_a_rank_that_was_killed_is_compared_as_far_as_it_came(tmp_path, capsys):
    (tmp_path / "train.py").write_text(KILLED)
    command = [sys.executable, "-m", "gradscope", "record", "-o", "run/", "train.py"]
    for rank in range(2):
        place = {**os.environ, "RANK": str(rank), "WORLD_SIZE": "2"}
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=200, env=place)
        assert done.returncode == (-signal.SIGKILL if rank else 0), done.stderr
    status, out, _ = agree(capsys, tmp_path / "run")
    assert status == 0
    assert re.search(r"note: rank 1 took \d+ of 2000 steps: it was killed; compared as far as it came\n", out)


def test_what_is_no_run(tmp_path, capsys):
    status, _, err = agree(capsys, f"{tmp_path}/none/")
    assert (status, err.splitlines()[0]) == (2, f"gradscope agree: there is no directory {tmp_path}/none/")
    record_ranks(tmp_path, 2, [0])
    assert agree(capsys, tmp_path)[0] == 2
