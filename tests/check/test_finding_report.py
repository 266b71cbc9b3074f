import json

import pytest

import gradscope as gs
from gradscope.check import Finding, Sanitizer, ScriptResult, Site, TensorDescription, as_json, as_text, finding_as_text
from gradscope.inspect import Location
from gradscope.inspect.source import call_sites
from gradscope.inspect.source.call_sites import started_here


def finding(**changes):
    facts = {
        "code": "GS101",
        "message": "`out` (float32 [3]) was modified in place, and ExpBackward0 still needs it",
        "sites": (
            Site("written", Location("train.py", 12, "f", "out += skip"), "written here by add_"),
            Site("saved", Location("train.py", 9, "f", "out = x.exp()"), "saved here"),
        ),
        "tensor": TensorDescription("out", (3,), "float32", "ExpBackward0", "result"),
        "node": "ExpBackward0",
        "saved_version": 0,
        "current_version": 1,
        "help": "write `out = out + skip`",
    }
    return Finding(**{**facts, **changes})


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


def test_a_long_line_is_cut():
    long = Site("written", Location("train.py", 1, "f", "x" * 100), "written here")
    assert f"  train.py:1  {'x' * 57}...  <- written here" in finding_as_text(finding(sites=(long,)))


@pytest.mark.parametrize(
    ("filename", "shown"), [("{cwd}/a/train.py", "a/train.py:1"), ("/elsewhere/train.py", "/elsewhere/train.py:1")]
)
def test_a_path_is_relative_below_the_working_directory(tmp_path, monkeypatch, filename, shown):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(call_sites, "_started_in", "")
    started_here()
    monkeypatch.chdir("/")  # the program goes elsewhere
    site = Site("written", Location(filename.format(cwd=tmp_path), 1, "f", "x"), "written here")
    assert f"  {shown}  x" in finding_as_text(finding(sites=(site,)))


def test_text_when_nothing_was_found():
    text = as_text(Sanitizer(), ScriptResult("train.py", (), None, 0))
    assert text == "Nothing was checked: the script uses neither gradscope nor PyTorch.\n"


def test_text_when_no_backward_ran():
    with Sanitizer() as sanitizer:
        gs.ones(3).mul_(2)
    text = as_text(sanitizer, ScriptResult("train.py", (), None, 0))
    assert text == "Nothing found: no backward pass ran.\n"


def test_text_of_what_was_watched():
    with Sanitizer() as sanitizer:
        (gs.ones(3, requires_grad=True) * 2).sum().backward()
    text = as_text(sanitizer, ScriptResult("train.py", (), None, 0))
    assert text == "Nothing found in 1 backward pass, 0 in-place writes.\n"


def test_json_fields():
    report = json.loads(as_json(Sanitizer(), ScriptResult("train.py", ("--fast",), ValueError("no data"), 1), 2))
    assert report == {
        "schema": 1,
        "script": "train.py",
        "arguments": ["--fast"],
        "exit_status": 2,
        "backward_passes": 0,
        "inplace_writes": 0,
        "suppressed": 0,
        "frameworks": [],
        "unseen": [],
        "ended_by": {"type": "ValueError", "message": "no data"},
        "findings": [],
    }


def test_findings_are_frozen_and_know_their_places():
    found = finding()
    assert (found.primary, found.written, found.saved, found.read) == (
        found.sites[0].location,
        found.sites[0].location,
        found.sites[1].location,
        None,
    )
    assert found.again().occurrences == 2
    assert found.again().key == found.key
    with pytest.raises(AttributeError):
        found.code = "GS102"


def test_findings_without_places_differ_by_their_message():
    assert finding(sites=()).key != finding(sites=(), message="another").key
