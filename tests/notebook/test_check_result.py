"""What the sanitizer has found in a cell."""

from __future__ import annotations

from xml.etree import ElementTree

from gradscope.check import Sanitizer, ScriptResult, make_report
from gradscope.notebook.check_result import CheckResult


def checked(fw, program):
    with Sanitizer(keep_going=True) as sanitizer:
        program(fw)
    return CheckResult(make_report(sanitizer, ScriptResult("", (), None, 0)))


def spoiled(fw):
    h = fw.ones(3, requires_grad=True).exp()
    h.add_(1)
    h.sum().backward()


def healthy(fw):
    fw.ones(3, requires_grad=True).exp().sum().backward()


def test_a_finding_is_a_row_and_a_text(fw):
    result = checked(fw, spoiled)
    assert result
    assert [finding.code for finding in result.findings] == ["GS101"]
    page = ElementTree.fromstring(result._repr_html_())
    code, line, message = (cell.text for cell in page.iter("td"))
    assert (code, message) == ("GS101", result.findings[0].message)
    assert "test_check_result.py:" in line
    report, last = (text.text for text in page.iter("pre"))
    assert repr(result) == f"{report}\n\n{last}"
    assert "<- written here by add_" in report


def test_nothing_is_a_line(fw):
    result = checked(fw, healthy)
    assert not result
    assert repr(result).startswith("Nothing found in 1 backward pass")
    page = ElementTree.fromstring(result._repr_html_())
    assert page.find("table") is None
    assert page.find("pre").text == repr(result)
