"""A pytest plugin: fixtures for gradients, and a suite that runs under the in-place sanitizer.

pytest finds it where gradscope is installed. NaN and infinities that gradscope computes are no warnings in a suite, as
they are none in PyTorch; else it does nothing unless it is asked to. By ``pytest --gradscope-check``, or in the
configuration file by ``gradscope_check = true``, tests run as they are, and those in which something suspicious
happened run again under the sanitizer (:mod:`gradscope.testing.suite_recheck`); by ``pytest --gradscope-watch``, or
``gradscope_watch = true``, all tests and their fixtures run under it the first time
(:mod:`gradscope.testing.suite_watch`).
By their arguments tests ask for these fixtures:

- ``gradcheck``: :func:`gradscope.testing.assert_gradients`
- ``gradscope_record``: every backward of the test is recorded, and a test that fails is told where
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Generator, Iterator, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import pytest

from ..program_files import COMPUTING

if TYPE_CHECKING:
    from ..inspect import Recorder

__all__ = [
    "gradcheck",
    "gradscope_record",
    "pytest_addoption",
    "pytest_configure",
    "pytest_load_initial_conftests",
    "pytest_runtest_makereport",
]

# What is needed beyond pytest loads when it is asked for: every suite in the environment loads this file.

_PACKAGES = ("gradscope.", "gradscope_tui.")
_recorded: pytest.StashKey[Recorder] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options and the settings."""
    check = "tell what spoilt a gradient: tests in which something suspicious happened run again at the end, watched"
    watch = "the same, but all tests and fixtures are watched, operator by operator, and none runs twice"
    for name, about in (("check", check), ("watch", watch)):
        parser.getgroup("gradscope").addoption(f"--gradscope-{name}", action="store_true", help=about)
        parser.addini(f"gradscope_{name}", about, type="bool", default=False)


@pytest.hookimpl(tryfirst=True)
def pytest_load_initial_conftests(early_config: pytest.Config) -> None:
    """Have gradscope's modules imported as they are, before a conftest imports them."""
    finder = _AsTheyAre()
    sys.meta_path.insert(0, finder)

    def undo() -> None:
        with contextlib.suppress(ValueError):  # a test has set another list
            sys.meta_path.remove(finder)

    early_config.add_cleanup(undo)


class _AsTheyAre(MetaPathFinder):
    """Finds gradscope's modules before pytest does.

    pytest rewrites the asserts of all modules of a distribution that has a plugin, which no test needs here. It does
    not use the bytecode that pip has compiled for that, and takes a second or two in a fresh environment.
    """

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return where Python itself finds the module; None for those of others."""
        return PathFinder.find_spec(fullname, path, target) if fullname.startswith(_PACKAGES) else None


def pytest_configure(config: pytest.Config) -> None:
    """Watch the suite, where that is asked for; an option goes before a setting."""
    # pytest forgets the filters of a module that a test imports, and NumPy's warnings may be errors in this suite.
    config.addinivalue_line("filterwarnings", f"ignore::RuntimeWarning:{COMPUTING}")
    if _is_checked(config):
        return
    check, watch = (config.getoption(f"--gradscope-{name}") for name in ("check", "watch"))
    if check and watch:
        raise pytest.UsageError("--gradscope-watch watches all tests, --gradscope-check some: leave one out")
    if not (check or watch):
        check, watch = (config.getini(f"gradscope_{name}") for name in ("check", "watch"))
    if not (check or watch):
        return
    # They take the instruments, which nobody else needs.
    from .suite_recheck import SuiteRecheck
    from .suite_watch import SuiteWatch, project_silences

    silences = project_silences(config)
    watch = watch or silences.looks_for("GS112")  # only who hears of each operator meets it
    hooks = SuiteWatch(silences) if watch else SuiteRecheck(config, silences)
    config.pluginmanager.register(hooks, "gradscope-watch" if watch else "gradscope-check")


def _is_checked(config: pytest.Config) -> bool:
    """Whether ``gradscope check -m pytest`` watches all tests already, which then tells what they do.

    The workers of pytest-xdist are other processes, in which nobody watches yet.
    """
    watches = sys.modules.get("gradscope.check.sanitizer")
    sanitizer = None if watches is None else watches.Sanitizer.opened()
    if sanitizer is None or config.getoption("dist", "no") != "no":
        return False
    # It has loaded all that this takes.
    from .suite_watch import CheckedSuite

    config.pluginmanager.register(CheckedSuite(sanitizer), "gradscope-checked")
    return True


@pytest.fixture
def gradcheck() -> Callable[..., None]:
    """Return a function that asserts that the gradients of another are those of finite differences."""
    # NumPy and the runtime load with the first test that asks for them.
    from .gradients import assert_gradients

    return assert_gradients


@pytest.fixture
def gradscope_record(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Recorder]:
    """Record every backward of the test to a file, which its report names where it fails.

    Yields
    ------
    Recorder
        Which is running.
    """
    # The instruments load with the first test that asks for them.
    from ..inspect import record

    with record(tmp_path / "backwards.gscope", title=request.node.nodeid) as recorder:
        request.node.stash[_recorded] = recorder
        yield recorder


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what was recorded into the report of a test that has failed."""
    report = yield
    recorder = item.stash.get(_recorded, None)
    if recorder is not None and call.when == "call" and report.failed:
        recorder.stop()
        report.sections.append(("gradscope recording", _overview(recorder.path)))
    return report


def _overview(path: str) -> str:
    # As for the fixture.
    from ..inspect import open_recording
    from ..inspect.recording.reports.text_view import overview_text

    with open_recording(path) as recording:
        return f"{overview_text(recording)}\nTo look into it: gradscope view {path}"
