"""Worker processes and the program around them: its death, Ctrl-C, the commands that run it on a thread."""

from __future__ import annotations

import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from gradscope.cli import main
from tests.quick_cases import quick

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="forks, and sends signals")

PROGRAM = """
import os, sys, time
import gradscope as gs

class Rows(gs.utils.data.Dataset):
    def __len__(self):
        return 8

    def __getitem__(self, index):
        if index == 7 and {slow}:
            time.sleep({slow})
        return gs.full((2,), float(index)), os.getpid()

if __name__ == "__main__":
    gs.manual_seed(0)
    w = gs.zeros(2, requires_grad=True)
    loader = gs.utils.data.DataLoader(Rows(), 2, num_workers=2, multiprocessing_context="{method}")
    for rows, pids in loader:
        loss = ((rows * w).sum() - 1) ** 2
        loss.backward()
        print(*set(pids.tolist()), w.grad[0].item(), flush=True)
"""


def written(folder: Path, *, slow: float = 0, method: str = "fork") -> Path:
    path = folder / "program.py"
    path.write_text(PROGRAM.format(slow=slow, method=method), encoding="utf-8")
    return path


def started(path: Path) -> tuple[subprocess.Popen[str], set[int]]:
    """Start a program in a process group of its own, and wait until it has said who its workers are."""
    process = subprocess.Popen(
        [sys.executable, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout is not None
    return process, {int(process.stdout.readline().split()[0]) for _ in range(2)}


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    stat = Path(f"/proc/{pid}/stat")
    return not (stat.exists() and stat.read_text().rpartition(")")[2].split()[0] == "Z")


def all_end(pids: set[int], within: float) -> bool:
    deadline = time.monotonic() + within
    while any(map(alive, pids)):
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    process, workers = started(written(tmp_path, slow=1.0))
    assert len(workers) == 2
    process.kill()
    process.communicate()
    assert all_end(workers, 10)


def test_ctrl_c_is_the_parents(tmp_path: Path) -> None:
    process, workers = started(written(tmp_path, slow=60))
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)
    _, said = process.communicate(timeout=10)
    assert process.returncode == -signal.SIGINT
    assert said.count("Traceback") == 1
    assert said.splitlines()[-1] == "KeyboardInterrupt"
    assert all_end(workers, 5)


COMMANDS = {
    "check": ["check"],
    "record": ["record", "-o", "run.gscope"],
    "debug": ["debug", "--line", "-c", "continue; quit"],
}


@pytest.mark.parametrize(
    ("command", "method"),
    quick([("check", "fork"), ("record", "fork"), ("debug", "fork"), ("debug", "spawn")], {("debug", "fork")}),
)
def test_under_the_commands(
    command: str, method: str, tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main([*COMMANDS[command], str(written(tmp_path, method=method))]) == 0
    lines = [line.split() for line in capfd.readouterr().out.splitlines()]
    values = [words[-1] for words in lines if len(words) == 2 and words[0].isdigit()]
    assert values == ["-2.0", "-12.0", "-30.0", "-56.0"]


def test_a_debugged_program_is_left_with_its_workers(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    # The last batch takes a minute; the debugger is left before.
    assert main(["debug", "--line", "-c", "quit", str(written(tmp_path, slow=60))]) == 0
    assert "was ended before its end" in capfd.readouterr().out
    deadline = time.monotonic() + 5
    while multiprocessing.active_children() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not multiprocessing.active_children()
