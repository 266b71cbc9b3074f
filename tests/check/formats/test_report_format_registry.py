import re
import subprocess
import sys

import pytest

from gradscope.check.formats.report_format_registry import format_named, formats, report_format
from tests.check.reports import finding, report


def test_no_format_takes_the_name_of_another():
    with pytest.raises(ValueError, match=r"there is a format 'sarif' already, gradscope\.check\.formats\.sarif"):
        report_format("sarif")(len)


def test_an_unknown_format_is_told_with_those_that_there_are():
    with pytest.raises(ValueError, match="no format 'yaml'; there are text, concise, json, sarif, github, junit"):
        format_named("yaml")


@pytest.mark.parametrize("name", formats())
def test_every_format_tells_the_code_and_the_line_and_ends_with_a_line_feed(name):
    text = formats()[name].write(report(findings=(finding(),)))
    assert "GS101" in text
    assert re.search(r"train\.py\D{1,80}12\b", text)
    assert text.endswith("\n")


def test_the_help_names_every_format():
    command = [sys.executable, "-m", "gradscope", "check", "--help"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout
    assert [name for name in formats() if not re.search(rf"\b{name}\b", said)] == []
