from xml.etree import ElementTree

from gradscope.check.formats.junit import as_junit
from tests.check.reports import finding, report


def test_a_finding_is_a_test_that_has_failed():
    root = ElementTree.fromstring(as_junit(report(findings=(finding(message="a < b & \x1b"),))))
    assert (root.tag, root.attrib["tests"], root.attrib["failures"]) == ("testsuites", "1", "1")
    (case,) = root.iter("testcase")
    assert case.attrib == {
        "classname": "gradscope.check",
        "name": "GS101 train.py:12",
        "file": "train.py",
        "line": "12",
    }
    (failure,) = case
    assert failure.attrib == {"type": "error", "message": "a < b & \\x1b"}
    assert failure.text.splitlines()[1] == "  train.py:12  out += skip    <- written here by add_"


def test_a_clean_run_is_a_test_that_has_passed():
    root = ElementTree.fromstring(as_junit(report()))
    assert [(case.attrib["name"], len(case)) for case in root.iter("testcase")] == [("train.py", 0)]
    assert root.find("testsuite/system-out").text == "Nothing found in 1 backward pass, 2 in-place writes."
