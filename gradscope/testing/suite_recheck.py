"""A test suite that runs as it is; tests in which something suspicious happened run again, under the sanitizer.

Under PyTorch no operator is listened to: memory that is handed out, hooks, modules and custom Functions are
(:mod:`gradscope.inspect.adapters.torch.writes.suspicious_writes`), and errors that speak of writes in place. What was
suspected runs a second time when all tests have run, so that no outcome depends on it, and what is found then is told
as :mod:`.suite_watch` tells it. Programs of gradscope's own runtime are watched the first time.
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Generator, Iterator
from typing import Any

import pytest
from _pytest.runner import runtestprotocol

from ..check import Silences
from ..inspect.adapters.both_frameworks import load_torch_adapter, warn_too_old
from ..inspect.adapters.import_watch import when_imported
from .suite_watch import SuiteWatch, tell, told_in

__all__ = ["SuiteRecheck"]

_ABOUT_WRITES = re.compile(r"in-?place|a second time|single memory location|overlap")
_FOUND = "gradscope_check"


class SuiteRecheck(SuiteWatch):
    """The hooks of pytest by which suspicious tests of a suite run again.

    Parameters
    ----------
    config : pytest.Config
        Of the run.
    silences : Silences
        What is not told.
    """

    def __init__(self, config: pytest.Config, silences: Silences) -> None:
        super().__init__(silences, torch=False)
        self._config = config
        self._suspected = False
        self._suspects: list[pytest.Item] = []
        self._found: dict[str, list[tuple[str, str]]] = {}
        self._undo = contextlib.ExitStack()

    def begin(self) -> None:
        """Suspect from now on."""
        super().begin()
        self._undo.callback(when_imported("torch", self._suspect_torch))

    def end(self) -> None:
        """Suspect no more."""
        self._undo.close()
        super().end()

    def _suspect_torch(self) -> None:
        try:
            load_torch_adapter()
        except ImportError as error:
            warn_too_old(error)
            return
        # It imports PyTorch, which the suite has done.
        from ..inspect.adapters.torch.writes.suspicious_writes import suspect_writes

        self._undo.callback(suspect_writes(self._suspect))

    def _suspect(self) -> None:
        self._suspected = True

    def _note_failure(self, item: pytest.Item, error: Exception) -> None:
        if not self._sanitizer.explains(error) and any(map(_about_writes, _chain(error))):
            self._suspected = True
        super()._note_failure(item, error)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, Any, Any]:
        """Note whether something suspicious happened in a test, or in its fixtures."""
        self._suspected = False
        try:
            return (yield)
        finally:
            if self._suspected:
                self._suspects.append(item)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtestloop(self, session: pytest.Session) -> Generator[None, Any, Any]:
        """Run the suspects again when all has run, or the first has failed under ``-x``."""
        try:
            result = yield
        except session.Failed:
            self._run_again(session)
            raise
        self._run_again(session)
        return result

    def _run_again(self, session: pytest.Session) -> None:
        suspects, self._suspects = self._suspects, []
        if not suspects or self._config.getoption("usepdb", False):
            return
        self.end()
        stopped, session.shouldfail, session.shouldstop = (session.shouldfail, session.shouldstop), False, False
        # Under -x fixtures of the next test may be there still.
        session._setupstate.teardown_exact(None)
        watch = SuiteWatch(self._silences)
        self._config.pluginmanager.unregister(self, "gradscope-check")
        self._config.pluginmanager.register(watch, "gradscope-watch")
        watch.begin()
        try:
            for item, following in zip(suspects, [*suspects[1:], None], strict=True):
                reports = runtestprotocol(item, log=False, nextitem=following)
                told = [one for report in reports for one in told_in(report)]
                if told:
                    self._found[item.nodeid] = list(dict.fromkeys(told))
        finally:
            watch.end()
            self._config.pluginmanager.unregister(watch, "gradscope-watch")
            self._config.pluginmanager.register(self, "gradscope-check")
            session.shouldfail, session.shouldstop = stopped

    # --- what is said ---

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Take over what a worker of pytest-xdist has found."""
        self._found |= getattr(node, "workeroutput", {}).get(_FOUND, {})

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Put what was found into the reports, which are shown after this."""
        if hasattr(self._config, "workeroutput"):
            self._config.workeroutput[_FOUND] = self._found
        reporter: Any = self._config.pluginmanager.get_plugin("terminalreporter")
        for report in _reports(reporter):
            told = self._found.get(report.nodeid)
            if told is not None and (report.when == "call" or report.failed):
                tell(report, told)


def _reports(reporter: Any) -> Iterator[pytest.TestReport]:
    kinds: Any = {} if reporter is None else reporter.stats
    for reports in kinds.values():
        yield from (report for report in reports if isinstance(report, pytest.TestReport))


def _about_writes(error: BaseException) -> bool:
    return isinstance(error, RuntimeError) and _ABOUT_WRITES.search(str(error)) is not None


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error, and those that it was raised from or while handling."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        part = pending.pop()
        if part is not None and id(part) not in seen:
            seen.add(id(part))
            yield part
            pending += [part.__cause__, part.__context__]
