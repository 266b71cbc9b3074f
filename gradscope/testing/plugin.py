"""A pytest plugin: tests run under the in-place sanitizer, and a failed one is told what spoiled its gradients.

Ask for it on the command line, ``pytest -p gradscope.testing.plugin``, or in the top ``conftest.py``::

    pytest_plugins = ["gradscope.testing.plugin"]

It changes no test's outcome. A test that fails while a backward runs gets a section "gradscope" in its report: which
line wrote the tensor that a node had saved, or at which node the backward has failed. Gradients that are wrong without
an error, in tests that pass, stand in the summary at the end; an error that a passing test has caught was meant.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Sequence
from typing import Any

import pytest

from ..check import Finding, Sanitizer, finding_as_text
from ..inspect.adapters import AnyAdapter
from ..inspect.diagnosis.functions.failed_backward import failed_backward

__all__ = ["pytest_runtest_call", "pytest_runtest_makereport", "pytest_terminal_summary"]

_SECTION = "gradscope"
_failed = pytest.StashKey[str]()
_found = pytest.StashKey[Sequence[Finding]]()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, Any, Any]:
    """Watch a test, and keep what there is to say of it."""
    with Sanitizer() as sanitizer:
        try:
            return (yield)
        except Exception as error:
            if not sanitizer.explains(error):
                item.stash[_failed] = _failure(error)
            raise
        finally:
            item.stash[_found] = sanitizer.findings


def _failure(error: Exception) -> str:
    """Return what is to be said of a backward that has failed; nothing for other errors."""
    failed = failed_backward(AnyAdapter(), error)
    return "" if failed is None else str(failed)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item, call: pytest.CallInfo[Any]
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Put what there is to say into the report of a test."""
    report = yield
    if call.when == "call":
        found = [f for f in item.stash.get(_found, ()) if report.failed or f.severity != "error"]
        told = [item.stash.get(_failed, ""), *map(finding_as_text, found)]
        if any(told):
            report.sections.append((_SECTION, "\n".join(filter(None, told))))
    return report


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """Say what was found in tests that have passed."""
    passed = [(r.nodeid, text) for r in terminalreporter.stats.get("passed", ()) for text in _sections(r)]
    if not passed:
        return
    terminalreporter.section("gradscope: found in tests that passed")
    for nodeid, text in passed:
        terminalreporter.write_line(f"{nodeid}\n{text}")


def _sections(report: pytest.TestReport) -> Iterable[str]:
    return (text for name, text in report.sections if name == _SECTION)
