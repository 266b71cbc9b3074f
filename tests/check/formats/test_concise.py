from gradscope.check.formats.concise import as_lines
from tests.check.reports import finding, report


def test_a_finding_is_one_line_with_its_place_in_front():
    lines = as_lines(report(findings=(finding(), finding(sites=())))).splitlines()
    message = "GS101 error: `out` (float32 [3]) was modified in place, and ExpBackward0 still needs it"
    assert lines[:2] == [f"train.py:12: {message}", f"-: {message}"]
    assert lines[2] == "Found 2 errors in 1 backward pass, 2 in-place writes."
