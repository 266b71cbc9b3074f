"""A test suite under the in-place sanitizer: a failed test is told what spoilt its gradients.

It changes no test's outcome. One watch is open from the collection to the end, so that what a fixture or an imported
module writes is known by its line. A test that fails while a backward runs gets a section "gradscope" in its report:
which line wrote the tensor that a node had saved, or at which node the backward has failed. Gradients that are wrong
without an error, in tests that pass, stand in the summary at the end; an error that a passing test has caught was
meant.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import pytest

from ..check import Finding, Sanitizer, Silences, finding_as_text, read_settings
from ..inspect.adapters import AnyAdapter
from ..inspect.adapters.event_guards import fault_of, own_error
from ..inspect.debuggee.program import hide_instruments
from ..inspect.diagnosis.functions.failed_backward import failed_backward

__all__ = ["SECTION", "CheckedSuite", "SuiteWatch", "project_silences", "tell", "told_in"]

SECTION = "gradscope"
"""The title of what is said in the report of a test."""

_NAMED = 3  # tests that met one finding, in the summary
_TOLD = "gradscope_told"

_failed = pytest.StashKey[str]()
_found = pytest.StashKey[Sequence[Finding]]()


def project_silences(config: pytest.Config) -> Silences:
    """Return what is not told, by the settings of the project that is tested.

    Raises
    ------
    pytest.UsageError
        If they cannot be read.
    """
    try:
        return read_settings(str(config.rootpath)).silences()
    except (OSError, ValueError) as error:
        raise pytest.UsageError(str(error)) from None


class CheckedSuite:
    """The hooks of pytest in a suite that ``gradscope check -m pytest`` runs, whose report comes after pytest's own.

    Parameters
    ----------
    sanitizer : Sanitizer
        Which watches.
    """

    def __init__(self, sanitizer: Sanitizer) -> None:
        self._sanitizer = sanitizer

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self) -> Generator[None, None, None]:
        """Take the instruments' frames out of a fixture's failure."""
        try:
            yield
        except Exception as error:
            hide_instruments(error)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self) -> Generator[None, Any, Any]:
        """Forget the errors that a test has caught, and take the instruments' frames out of those that it has not."""
        try:
            with self._sanitizer.errors_meant():
                return (yield)
        except Exception as error:
            hide_instruments(error)
            raise


class SuiteWatch:
    """The hooks of pytest by which a suite is watched.

    Parameters
    ----------
    silences : Silences
        What is not told.
    torch : bool
        Whether PyTorch is watched beside gradscope's own runtime.
    """

    def __init__(self, silences: Silences, *, torch: bool = True) -> None:
        self._silences = silences
        self._sanitizer = Sanitizer(silences, torch=torch)
        self._open = False

    def pytest_sessionstart(self) -> None:
        """Begin, before test modules are imported."""
        self.begin()

    def pytest_unconfigure(self) -> None:
        """Watch no more."""
        self.end()

    def begin(self) -> None:
        """Watch from now on."""
        self._sanitizer.__enter__()
        self._open = True

    def end(self) -> None:
        """Watch no more; done twice it is harmless."""
        if self._open:
            self._open = False
            self._sanitizer.__exit__(None, None, None)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_setup(self, item: pytest.Item) -> Generator[None, None, None]:
        """Take the instruments' frames out of a fixture's failure."""
        self._sanitizer.take()  # what was found between tests is none of this one's
        try:
            yield
        except Exception as error:
            self._note_failure(item, error)
            raise

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_call(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Keep what there is to say of a test."""
        try:
            return (yield)
        except Exception as error:
            self._note_failure(item, error)
            raise
        finally:
            item.stash[_found] = self._sanitizer.take()

    def _note_failure(self, item: pytest.Item, error: Exception) -> None:
        item.stash[_failed] = "" if self._sanitizer.explains(error) else _where_failed(error)
        hide_instruments(error)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item, call: pytest.CallInfo[Any]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Put what there is to say into the report of a test."""
        report = yield
        if call.when == "call" or report.failed:
            found = [f for f in item.stash.get(_found, ()) if report.failed or f.severity != "error"]
            told = [(repr(finding.cause), finding_as_text(finding)) for finding in found]
            failed = item.stash.get(_failed, "")
            if failed:
                told.insert(0, (failed, failed))
            if told:
                tell(report, told)
        return report

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        """Say what was found in tests that have passed, each finding once."""
        met: dict[str, tuple[str, list[str]]] = {}
        for report in terminalreporter.stats.get("passed", ()):
            for cause, text in told_in(report):
                met.setdefault(cause, (text, []))[1].append(report.nodeid)
        for fault in self._sanitizer.faults:
            terminalreporter.write_line(f"gradscope: not looked into: {fault}")
        if not met:
            return
        terminalreporter.section("gradscope: found in tests that passed")
        above: list[str] = []
        for text, tests in met.values():
            if tests != above:
                above = tests
                _name(tests, terminalreporter)
            terminalreporter.write_line(text)


def _where_failed(error: Exception) -> str:
    """Return what there is to say of a backward by which a test has failed; an error of ours is not the test's."""
    try:
        failed = failed_backward(AnyAdapter(), error)
    except Exception as own:
        return own_error(fault_of(own))
    return "" if failed is None else str(failed)


def tell(report: pytest.TestReport, told: Sequence[tuple[str, str]]) -> None:
    """Put what there is to say into a report, instead of what it says already.

    Parameters
    ----------
    told : sequence of (str, str)
        What is equal for findings of one cause, in whichever test, and the text.
    """
    others = [section for section in report.sections if section[0] != SECTION]
    report.sections = [*others, (SECTION, "\n".join(text for _, text in told))]
    # pytest-xdist hands attributes over that are made of lists and texts.
    setattr(report, _TOLD, [list(one) for one in told])


def told_in(report: pytest.TestReport) -> list[tuple[str, str]]:
    """Return what was put into a report."""
    return [(cause, text) for cause, text in getattr(report, _TOLD, ())]


def _name(tests: Sequence[str], terminalreporter: Any) -> None:
    named = tests if terminalreporter.verbosity > 0 else tests[:_NAMED]
    for nodeid in named:
        terminalreporter.write_line(nodeid)
    others = len(tests) - len(named)
    if others:
        terminalreporter.write_line(f"and {others} more test{'s' * (others > 1)}, which -v names")
