import pytest

from gradscope.check import Site
from gradscope.check.formats.github import as_annotations
from gradscope.check.suppression.notices import Notice
from gradscope.inspect import Location
from tests.check.reports import finding, report


@pytest.fixture(autouse=True)
def no_workflow(monkeypatch):
    monkeypatch.delenv("GITHUB_WORKSPACE", raising=False)


def test_a_finding_is_one_line_with_its_places_in_it():
    first = as_annotations(report(findings=(finding(),))).splitlines()[0]
    assert first.startswith(
        "::error file=train.py,line=12,title=GS101 saved tensor modified in place::GS101 error: `out`"
    )
    assert "%0A  train.py:12  out += skip    <- written here by add_%0A" in first


def test_what_would_end_a_property_or_the_command_is_escaped():
    place = Site("written", Location("a,b:c%.py", 1, "f", "x"), "50% written")
    first = as_annotations(report(findings=(finding(sites=(place,)),))).splitlines()[0]
    assert "file=a%2Cb%3Ac%25.py,line=1," in first
    assert "50%25 written" in first


def test_files_are_named_from_the_top_of_the_repository(monkeypatch):
    monkeypatch.setenv("GITHUB_WORKSPACE", "/repo")
    place = Site("written", Location("/repo/src/train.py", 1, "f", "x"), "written")
    assert "::error file=src/train.py," in as_annotations(report(findings=(finding(sites=(place,)),)))


def test_a_notice_is_a_warning_and_is_told_once():
    text = as_annotations(report(notices=(Notice("of no use", "train.py", 3), Notice("gone", "known.json"))))
    assert text.splitlines()[:2] == [
        "::warning file=train.py,line=3,title=gradscope check::of no use",
        "::warning file=known.json,title=gradscope check::gone",
    ]
    assert text.count("of no use") == 1
