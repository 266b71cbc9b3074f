"""A suite of which suspicious tests run again; what is said of them is tried in test_suite_watch.py."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from collections.abc import Sequence
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

    def __init__(self, folder: Path, *options: str, suite: str = SUITE, under: Sequence[str] = ()) -> None:
        (folder / "test_suite.py").write_text(suite)
        command = [sys.executable, "-m", *under, "pytest"]
        command += ["-p", "gradscope.testing.plugin", "-p", "no:cacheprovider", "-q"]
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


OFTEN = """
import pytest, torch


def spoil(y):
    y.data.add_(1)


@pytest.mark.parametrize("size", range(1, 7))
def test_one(size):
    y = torch.ones(size, requires_grad=True).exp()
    spoil(y)
    y.sum().backward()


def test_another():
    y = torch.ones(3, requires_grad=True).exp()
    y.data.mul_(2)
    y.sum().backward()
"""


@pytest.mark.parametrize("options", [[], pytest.param(["-n", "2"], marks=pytest.mark.slow)], ids=["here", "xdist"])
def test_what_many_tests_have_met_is_told_once(tmp_path: Path, options: list[str]) -> None:
    run = Run(tmp_path, "--gradscope-check", *options, suite=OFTEN)
    assert len(run.passed_with_findings()) == 4
    assert "\nand 3 more tests, which -v names\nGS106 silent-wrong: `y`" in run.output
    assert run.output.count("GS106 silent-wrong: `y`") == 2


def test_each_of_them_is_named_where_that_is_asked_for(tmp_path: Path) -> None:
    run = Run(tmp_path, "--gradscope-check", "-vv", suite=OFTEN)
    assert run.passed_with_findings() == [*[f"test_one[{size}]" for size in range(1, 7)], "test_another"]


@pytest.mark.parametrize(
    ("setting", "told"),
    [
        ('select = ["GS106"]', 1),
        ('ignore = ["GS1"]', 0),
        ('suppressions = "third_party.txt"', 0),
        ('baseline = "known.json"', 0),
    ],
)
@pytest.mark.parametrize("option", ["--gradscope-check", "--gradscope-watch"])
def test_what_the_project_silences_is_not_told(tmp_path: Path, setting: str, told: int, option: str) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n[tool.gradscope.check]\n{setting}\n")
    (tmp_path / "third_party.txt").write_text("GS106:test_suite.py\n")
    known = {"code": "GS106", "file": "test_suite.py", "function": "test_wrong", "source": "w.data.clamp_(0, 0.5)"}
    (tmp_path / "known.json").write_text(json.dumps({"schema": 1, "findings": [known]}))
    (tmp_path / "tests").mkdir()
    run = Run(tmp_path, option, "-k", "test_wrong")
    assert len(run.passed_with_findings()) == told, run.output


EARLY = """
import torch


def test_one():
    h = torch.ones(3, requires_grad=True) * 2
    h.data.clamp_(0, 1)
    h.sum().backward()
"""


@pytest.mark.parametrize(("codes", "told"), [('"GS", "GS112"', ["test_one"]), ('"GS"', [])])
def test_a_code_that_no_suspicion_leads_to_has_all_tests_watched(tmp_path: Path, codes: str, told: list[str]) -> None:
    (tmp_path / "pyproject.toml").write_text(f"[tool.pytest.ini_options]\n[tool.gradscope.check]\nselect = [{codes}]\n")
    run = Run(tmp_path, "--gradscope-check", suite=EARLY)
    assert run.passed_with_findings() == told, run.output


def test_settings_that_cannot_be_read_are_refused(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text('[tool.pytest.ini_options]\n[tool.gradscope.check]\nignor = ["GS106"]\n')
    run = Run(tmp_path, "--gradscope-check")
    assert run.status == 4
    assert "no setting 'ignor': did you mean 'ignore'?" in run.errors
    assert Run(tmp_path).status == 1  # they are not read where nothing is asked


def test_where_all_tests_are_watched_already_none_runs_again(tmp_path: Path) -> None:
    run = Run(tmp_path, "--gradscope-check", "-k", "test_wrong", under=["gradscope", "check", "-m"])
    assert (run.passed_with_findings(), run.times["test_wrong"]) == ([], 1)
    assert run.output.count("GS106 silent-wrong: ") == 1


def test_a_setting_asks_for_it(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\ngradscope_check = true\n")
    assert Run(tmp_path, "-k", "test_wrong").passed_with_findings() == ["test_wrong"]


def test_both_ways_to_watch_are_refused(tmp_path: Path) -> None:
    run = Run(tmp_path, "--gradscope-watch", "--gradscope-check")
    assert run.status == 4
    assert "leave one out" in run.errors
