import gradscope as gs
from gradscope.check import Sanitizer, ScriptResult, Silences, make_report
from gradscope.check.suppression.code_selection import CodeSelection


def spoil():
    """Return the error of a backward whose saved tensor was written."""
    y = gs.ones(3, requires_grad=True).exp()
    y.add_(1)
    try:
        y.sum().backward()
    except RuntimeError as error:
        return error


def test_an_error_that_is_a_finding_is_explained():
    with Sanitizer() as sanitizer:
        error = spoil()
    report = make_report(sanitizer, ScriptResult("train.py", (), error, 1), 1)
    assert (report.explained, report.silenced, report.status) == (True, None, 1)
    assert [found.code for found in report.findings] == ["GS101"]


def test_an_error_that_is_not_told_is_known_for_what_it_is():
    with Sanitizer(Silences(CodeSelection(ignore=["GS101"]))) as sanitizer:
        error = spoil()
    report = make_report(sanitizer, ScriptResult("train.py", (), error, 1), 2)
    assert (report.findings, report.explained) == ((), False)
    assert report.silenced.code == "GS101"
