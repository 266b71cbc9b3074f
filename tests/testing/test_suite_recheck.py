"""A suite of which suspicious tests run again; what is said of them is tried in test_suite_watch.py."""

from __future__ import annotations

import os
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

pytestmark = pytest.mark.torch

SUITE = """
import pathlib
import pytest
import torch


@pytest.fixture(autouse=True)
def noted(request):
    with open("runs.txt", "a") as file:
        print(request.node.name, file=file)


def test_right():
    w = torch.ones(3, requires_grad=True)
    w.data.clamp_(0, 0.5)
    (w * w).sum().backward()


def test_wrong():
    w = torch.ones(3, requires_grad=True)
    loss = (w * w).sum()
    w.data.clamp_(0, 0.5)
    loss.backward()


def test_suspicious_and_right():
    h = torch.ones(3, requires_grad=True) * 1
    h.register_hook(lambda grad: grad.mul_(2))
    h.pow(2).sum().backward()


def test_that_runs_but_once():
    there = pathlib.Path("there")
    assert not there.exists()
    there.touch()
    test_wrong()


@pytest.mark.parametrize("power", [2, 3])
def test_refused(power):
    y = torch.ones(3, requires_grad=True).exp()
    y += power
    y.sum().backward()


def test_of_something_else():
    raise RuntimeError("nothing about gradients")
"""


class Run:
    """A suite that has run: what was printed, and how often each test has run."""

    def __init__(self, folder: Path, *options: str, suite: str = SUITE) -> None:
        (folder / "test_suite.py").write_text(suite)
        command = [sys.executable, "-m", "pytest", "-p", "gradscope.testing.plugin", "-p", "no:cacheprovider", "-q"]
        environment = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "160"}
        run = subprocess.run(
            [*command, *options], cwd=folder, env=environment, capture_output=True, text=True, check=False
        )
        self.output, self.errors, self.status = run.stdout, run.stderr, run.returncode
        runs = folder / "runs.txt"
        self.times = Counter(runs.read_text().splitlines()) if runs.exists() else Counter()

    def passed_with_findings(self) -> list[str]:
        """Return the names of the tests that are told of in the summary."""
        summary = self.output.partition("gradscope: found in tests that passed")[2]
        return [line.partition("::")[2] for line in summary.splitlines() if line.startswith("test_suite.py::")]


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("suite"), "--gradscope-check")


def test_no_outcome_changes(run: Run) -> None:
    assert run.output.splitlines()[-1].startswith("3 failed, 4 passed")
    assert run.status == 1


def test_only_what_is_suspicious_runs_again(run: Run) -> None:
    twice = {name for name, count in run.times.items() if count == 2}
    assert twice == {
        "test_wrong",
        "test_suspicious_and_right",
        "test_that_runs_but_once",
        "test_refused[2]",
        "test_refused[3]",
    }
    assert set(run.times.values()) == {1, 2}


def test_what_is_found_the_second_time_is_told(run: Run) -> None:
    assert run.passed_with_findings() == ["test_wrong"]
    assert run.output.count("GS101 error: `y`") == 2
    assert "the backward failed at" not in run.output  # as the first run had it, which knew of no write
    assert run.output.count("GS106 silent-wrong: parameter `w`") == 1


def test_the_first_failure_is_told_of_under_exitfirst(tmp_path: Path) -> None:
    run = Run(tmp_path, "--gradscope-check", "-x")
    assert run.output.count("GS101 error: `y`") == 1
    assert run.passed_with_findings() == ["test_wrong"]
    assert run.output.splitlines()[-1].startswith("1 failed, 4 passed")
    assert "test_of_something_else" not in run.times


@pytest.mark.slow
def test_workers_of_xdist_hand_over_what_they_find(tmp_path: Path) -> None:
    pytest.importorskip("xdist")
    run = Run(tmp_path, "--gradscope-check", "-n", "2")
    assert run.output.count("GS101 error: `y`") == 2
    assert run.passed_with_findings() == ["test_wrong"]


def test_a_setting_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ngradscope_check = true\n")
    assert Run(tmp_path, "-k", "test_wrong").passed_with_findings() == ["test_wrong"]


def test_both_ways_to_watch_are_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, "--gradscope-watch", "--gradscope-check")
    assert run.status == 4
    assert "leave one out" in run.errors
