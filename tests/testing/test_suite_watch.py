"""A test suite under the sanitizer, run as a user runs it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SUITE = """
import pytest
import {framework} as fw


def exponential():
    return fw.ones(3, requires_grad=True).exp()


def test_spoiled():
    y = exponential()
    y += 1  # HERE
    y.sum().backward()


def test_wrong_without_an_error():
    y = exponential()
    y.data.add_(1)
    y.sum().backward()


def test_an_error_that_is_meant():
    y = exponential()
    y += 1
    with pytest.raises(RuntimeError):
        y.sum().backward()


class Returns(fw.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, grad):
        return grad, grad


def test_too_many_gradients():
    Returns.apply(exponential()).sum().backward()


def test_of_something_else():
    assert 1 == 2


def test_right():
    exponential().sum().backward()


@pytest.fixture(scope="module")
def shared():
    y = exponential()
    y.data.add_(1)  # IN A FIXTURE
    return y


def test_wrong_by_a_fixture(shared):
    shared.sum().backward()


def test_wrong_by_the_same_line_again():
    y = exponential()
    y.data.add_(1)
    y.sum().backward()


def test_of_shapes():
    fw.ones(2) + fw.ones(3)
"""


FRAMEWORKS = ["gradscope", pytest.param("torch", marks=pytest.mark.torch)]


def run_suite(folder: Path, framework: str, *options: str) -> str:
    """Run the suite as a user does, and return what is printed."""
    pytest.importorskip(framework)
    (folder / "test_suite.py").write_text(SUITE.format(framework=framework))
    plugins = ["-p", "gradscope.testing.plugin", "-p", "no:cacheprovider"]
    command = [sys.executable, "-m", "pytest", *plugins, "-q", *options]
    environment = {**os.environ, "PYTEST_ADDOPTS": "", "COLUMNS": "160"}
    run = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert run.returncode == 1, run.stdout + run.stderr
    return run.stdout


@pytest.fixture(scope="module", params=["--gradscope-check", "--gradscope-watch"])
def option(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(scope="module", params=FRAMEWORKS)
def output(option: str, request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> str:
    return run_suite(tmp_path_factory.mktemp("suite"), request.param, option)


def test_no_outcome_changes(output: str) -> None:
    assert output.splitlines()[-1].startswith("4 failed, 5 passed")


def section(output: str, test: str) -> str:
    """Return what the plugin says of a test that has failed; empty where it says nothing."""
    of_the_test = output.partition(f"_ {test} _")[2].partition("\n____")[0].partition("\n====")[0]
    return of_the_test.partition("- gradscope -")[2]


def test_a_failure_is_told_with_the_line_of_the_write(output: str) -> None:
    line = 1 + SUITE.splitlines().index("    y += 1  # HERE")
    assert "GS101 error: `y` (float32 [3], output of ExpBackward0) was modified in place" in section(
        output, "test_spoiled"
    )
    assert f"test_suite.py:{line}" in section(output, "test_spoiled")


def test_a_backward_that_fails_otherwise_is_told_with_its_return(output: str) -> None:
    line = 1 + SUITE.splitlines().index("        return grad, grad")
    assert "Returns.backward returned an incorrect number of gradients" in section(output, "test_too_many_gradients")
    assert f"test_suite.py:{line}" in section(output, "test_too_many_gradients")


def test_other_failures_are_left_alone(output: str) -> None:
    assert "_ test_of_something_else _" in output
    assert section(output, "test_of_something_else") == ""


def test_what_is_wrong_in_tests_that_pass_stands_in_the_summary(output: str) -> None:
    summary = output.partition("gradscope: found in tests that passed")[2]
    assert "test_suite.py::test_wrong_without_an_error\nGS106 silent-wrong: `y`" in summary
    assert "test_an_error_that_is_meant" not in summary
    assert "test_right" not in summary


def test_a_write_in_a_fixture_is_known_by_its_line(output: str) -> None:
    line = 1 + SUITE.splitlines().index("    y.data.add_(1)  # IN A FIXTURE")
    summary = output.partition("test_suite.py::test_wrong_by_a_fixture\n")[2].partition("\ntest_suite.py::")[0]
    assert f"test_suite.py:{line}  y.data.add_(1)" in summary
    assert "<- written here by add_" in summary


def test_what_an_earlier_test_had_too_is_told_of_each(output: str) -> None:
    summary = output.partition("gradscope: found in tests that passed")[2]
    assert summary.count("GS106 silent-wrong: `y`") == 3


def test_a_failure_has_no_frames_of_the_instruments(output: str) -> None:
    failure = output.partition("_ test_of_shapes _")[2].partition("\n____")[0].partition("- gradscope -")[0]
    assert "RuntimeError: The size of tensor a (2) must match the size of tensor b (3)" in failure
    assert "inspect/adapters" not in failure
    assert "torch/_ops.py" not in failure


def test_a_refused_backward_has_the_frames_of_a_suite_that_nobody_watches(output: str) -> None:
    failure = output.partition("_ test_spoiled _")[2].partition("\n____")[0].partition("- gradscope -")[0]
    assert "modified by an inplace operation" in failure
    assert "overrides.py:" not in failure
    assert failure.count("_tensor.py:") <= 1


BROKEN = """
from gradscope.check.watching.saved_values import SavedValues
from gradscope.testing import suite_watch

def broken(*arguments):
    raise ZeroDivisionError("a bug")

SavedValues.note = broken
suite_watch.failed_backward = broken
"""


def test_an_error_of_gradscopes_own_changes_no_outcome_and_is_told(tmp_path: Path) -> None:
    (tmp_path / "conftest.py").write_text(BROKEN)
    output = run_suite(tmp_path, "gradscope", "--gradscope-watch")
    own = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (conftest.py:"
    assert output.splitlines()[-1].startswith("4 failed, 5 passed")
    assert f"gradscope: not looked into: in-place writes in gradscope, where {own}" in output
    assert own in section(output, "test_too_many_gradients")
