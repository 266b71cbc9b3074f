import math

import pytest

import gradscope as gs
from gradscope.check import Sanitizer, ScriptResult, Site, finding_as_text, make_report
from gradscope.check.formats.text_report import as_text, statistics
from gradscope.check.suppression.notices import Notice
from gradscope.check.watching.wrong_gradients import WrongGradient
from gradscope.inspect import Location
from gradscope.inspect.source import source_paths
from gradscope.inspect.source.source_paths import started_here
from tests.check.reports import finding, report


def test_text_of_a_finding():
    assert finding_as_text(finding(occurrences=2)).splitlines() == [
        "GS101 error: `out` (float32 [3]) was modified in place, and ExpBackward0 still needs it (2 times)",
        "  train.py:12  out += skip    <- written here by add_",
        "  train.py:9   out = x.exp()     saved here",
        "  version 0 was saved, version 1 is there now",
        "  help: write `out = out + skip`",
    ]


def test_text_of_a_finding_of_which_no_place_is_known():
    text = finding_as_text(finding(sites=(), help="", saved_version=None))
    assert text == "GS101 error: `out` (float32 [3]) was modified in place, and ExpBackward0 still needs it"


def test_what_else_a_write_has_spoilt_is_named_and_then_counted():
    others = tuple(finding(node=f"Mul{number}Backward0") for number in range(5))
    lines = finding_as_text(finding(also=others)).splitlines()
    also = "`out` (float32 [3], output of ExpBackward0), which Mul{}Backward0 needs, train.py:9"
    assert lines[-5:-1] == [*(f"  also: {also.format(number)}" for number in range(3)), "  also: 2 more"]


def test_of_many_calls_through_libraries_the_innermost_are_shown():
    frames = tuple(Location(f"/v/site-packages/lib/m{n}.py", n, "f", f"g{n}()") for n in range(1, 6))
    site = Site("written", Location("train.py", 3, "main", "fit()"), "written here", frames)
    assert finding_as_text(finding(sites=(site,), saved_version=None, help="")).splitlines()[1:] == [
        "  train.py:3  fit()  <- written here",
        "    ... 2 calls",
        "    lib/m3.py:3  g3()",
        "    lib/m4.py:4  g4()",
        "    lib/m5.py:5  g5()",
    ]


def test_a_long_line_is_cut():
    long = Site("written", Location("train.py", 1, "f", "x" * 100), "written here")
    assert f"  train.py:1  {'x' * 57}...  <- written here" in finding_as_text(finding(sites=(long,)))


@pytest.mark.parametrize(
    ("filename", "shown"), [("{cwd}/a/train.py", "a/train.py:1"), ("/elsewhere/train.py", "/elsewhere/train.py:1")]
)
def test_a_path_is_relative_below_the_working_directory(tmp_path, monkeypatch, filename, shown):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(source_paths, "_started_in", "")
    started_here()
    monkeypatch.chdir("/")  # the program goes elsewhere
    site = Site("written", Location(filename.format(cwd=tmp_path), 1, "f", "x"), "written here")
    assert f"  {shown}  x" in finding_as_text(finding(sites=(site,)))


def test_text_when_nothing_was_found():
    text = as_text(make_report(Sanitizer(), ScriptResult("train.py", (), None, 0)))
    assert text == "Nothing was checked: the script uses neither gradscope nor PyTorch.\n"


def test_text_when_no_backward_ran():
    with Sanitizer() as sanitizer:
        gs.ones(3).mul_(2)
    text = as_text(make_report(sanitizer, ScriptResult("train.py", (), None, 0)))
    assert text == "Nothing found: no backward pass ran.\n"


def test_text_of_what_was_watched():
    with Sanitizer() as sanitizer:
        (gs.ones(3, requires_grad=True) * 2).sum().backward()
    text = as_text(make_report(sanitizer, ScriptResult("train.py", (), None, 0)))
    assert text == "Nothing found in 1 backward pass, 0 in-place writes.\n"


def test_a_notice_stands_below_with_its_place():
    notice = Notice("ignore[GS101] has silenced nothing in this run", "train.py", 4)
    lines = as_text(report(notices=(notice,))).splitlines()
    assert lines[-1] == "warning: train.py:4: ignore[GS101] has silenced nothing in this run"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"files": 1}, "Nothing found in 1 file, read and not run."),
        ({"files": 3, "suppressed": 2}, "Nothing found (2 suppressed) in 3 files, read and not run."),
        ({"files": 3, "findings": (finding(),)}, "Found 1 error in 3 files, read and not run."),
    ],
)
def test_text_of_what_was_read(changes, text):
    assert text in as_text(report(frameworks=(), backwards=0, **changes)).splitlines()


def test_what_is_suppressed_and_known_is_counted():
    text = as_text(report(findings=(finding(),), suppressed=2, known=3))
    assert "Found 1 error (2 suppressed, 3 in the baseline) in 1 backward pass, 2 in-place writes." in text


def test_an_error_that_is_silenced_is_named_where_it_ends_the_script():
    text = as_text(report(silenced=finding(), suppressed=1, result=ScriptResult("train.py", (), RuntimeError("x"), 1)))
    assert "The script ended by the error that is GS101 (train.py:12), which is not reported.\n" in text
    assert "doctor" not in text


def test_how_wrong_gradients_would_have_been():
    read = Location("train.py", 9, "train", "loss.backward()")
    wrongs = [WrongGradient("", (2,), "float32", math.inf, read), WrongGradient("model.weight", (), "", 1234.5, read)]
    wrongs += [WrongGradient(f"w{number}", (), "float32", 0.125, read) for number in range(9)]
    lines = as_text(report(gradients=tuple(wrongs))).splitlines()
    assert lines[:4] == [
        "With what was written over, gradients of train.py:9 would differ by (relative norm):",
        "      inf  a leaf (float32 [2])",
        "  1.2e+03  `model.weight`",
        "     0.12  `w0`",
    ]
    assert lines[10:12] == ["     0.12  `w7`", "      ...  1 more, by less"]


def test_statistics_count_by_code_the_most_frequent_first():
    found = (finding(), finding(code="GS106"), finding(code="GS106", message="another"))
    assert statistics(report(findings=found)).splitlines()[:3] == [
        "    2  GS106  saved tensor changed unnoticed",
        "    1  GS101  saved tensor modified in place",
        "",
    ]
