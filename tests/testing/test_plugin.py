"""The pytest plugin, run as a user runs it: its fixtures, and that it does nothing unless it is asked to."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import AssertionRewriter

from tests.quick_cases import quick

ROOT = Path(__file__).parents[2]

SUITE = """
import sys
import gradscope as gs


def test_nobody_listens():
    from gradscope.runtime import state
    assert not state.special
    assert "gradscope.check" not in sys.modules


def test_modules_are_imported_as_they_are():
    import gradscope.inspect
    assert type(gradscope.inspect.__loader__).__name__ == "SourceFileLoader"


def test_a_gradient(gradcheck):
    x = gs.tensor([0.5, 2.0], dtype=gs.float64, requires_grad=True)
    gradcheck(lambda x: x.exp() * x, x, order=2)


class Wrong(gs.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad


def test_a_wrong_gradient(gradcheck):
    gradcheck(Wrong.apply, gs.ones(2, dtype=gs.float64, requires_grad=True))


def test_recorded(gradscope_record):
    (gs.ones(2, requires_grad=True) * 2).sum().backward()
    assert gradscope_record.started


def test_recorded_and_failed(gradscope_record):
    (gs.ones(2, requires_grad=True) * 2).sum().backward()
    assert 1 == 2


def test_spoilt_in_silence():
    y = gs.ones(3, requires_grad=True).exp()
    y.data.add_(1)
    y.sum().backward()
"""

INFINITE = """
import gradscope as gs
import numpy


def test_of_gradscope():
    assert (gs.ones(2) / 0).isinf().all()
    assert gs.masked.mean(gs.ones(2), mask=gs.zeros(2, dtype=gs.bool)).isnan()


def test_of_numpy():
    numpy.ones(2) / 0
"""


def run(folder: Path, *arguments: str) -> str:
    (folder / "test_suite.py").write_text(SUITE)
    command = [sys.executable, "-m", "pytest", "-p", "gradscope.testing.plugin", "-p", "no:cacheprovider", "-q"]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "160"}
    done = subprocess.run(
        [*command, f"--basetemp={folder / 'tmp'}", *arguments],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    return done.stdout + done.stderr


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> str:
    return run(tmp_path_factory.mktemp("suite"))


@pytest.mark.slow
def test_unless_it_is_asked_it_watches_nothing(output: str) -> None:
    assert output.splitlines()[-1].startswith("2 failed, 5 passed")
    assert "GS106" not in output


def test_pytest_rewrites_none_of_the_modules(output: str) -> None:
    """That takes seconds where nobody has done it before."""
    assert "test_modules_are_imported_as_they_are" not in output


@pytest.mark.parametrize("file", ["gradscope/__init__.py", "startup/gradscope_listen.py"])
def test_pytest_does_not_warn_of_a_module_that_is_imported_before_it(file: str) -> None:
    """Where warnings are errors, no test would run under ``gradscope check -m pytest``."""
    docstring = ast.get_docstring(ast.parse((ROOT / file).read_text(encoding="utf-8")))
    assert AssertionRewriter.is_rewrite_disabled(docstring or "")


def test_the_fixture_gradcheck_asserts(output: str) -> None:
    assert "wrong gradient in Wrong.backward" in output


def test_a_test_that_fails_is_told_where_it_was_recorded(output: str) -> None:
    failure = output.partition("_ test_recorded_and_failed _")[2]
    section = failure.partition("- gradscope recording -")[2].partition("\n====")[0]
    assert "test_suite.py::test_recorded_and_failed" in section
    path = Path(section.partition("To look into it: gradscope view ")[2].split()[0])
    assert path.read_bytes().startswith(b"SQLite format 3")
    assert output.count("- gradscope recording -") == 1


@pytest.mark.slow
@pytest.mark.parametrize("way", quick(["option", "setting"], {"setting"}))
@pytest.mark.parametrize("asked", ["check", "watch"])
def test_it_watches_where_it_is_asked(tmp_path: Path, way: str, asked: str) -> None:
    if way == "setting":
        (tmp_path / "pytest.ini").write_text(f"[pytest]\ngradscope_{asked} = true\n")
    output = run(tmp_path, *[f"--gradscope-{asked}"] * (way == "option"), "-k", "spoilt")
    assert "test_suite.py::test_spoilt_in_silence\nGS106 silent-wrong: `y`" in output


def test_infinities_are_no_errors_where_warnings_are(tmp_path: Path) -> None:
    (tmp_path / "pytest.ini").write_text("[pytest]\nfilterwarnings = error\n")
    (tmp_path / "test_infinite.py").write_text(INFINITE)
    command = [sys.executable, "-m", "pytest", "-p", "gradscope.testing.plugin", "-q", "test_infinite.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False, timeout=120)
    assert "1 failed, 1 passed" in done.stdout
    assert "RuntimeWarning: divide by zero" in done.stdout  # NumPy's own, in the test


def test_the_entry_point_is_the_module_by_its_own_name() -> None:
    facts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert facts["project"]["entry-points"]["pytest11"] == {"gradscope.testing.plugin": "gradscope.testing.plugin"}


def test_it_loads_neither_numpy_nor_the_runtime() -> None:
    """Every suite in the environment loads it."""
    program = (
        "import sys, gradscope.testing.plugin\n"
        "print([name for name in ('numpy', 'gradscope.runtime', 'gradscope.check') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout == "[]\n"
