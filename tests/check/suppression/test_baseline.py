import json
import re

import pytest

from gradscope.check import Site
from gradscope.check.suppression.baseline import Baseline, fingerprint
from gradscope.inspect import Location
from tests.check.reports import finding


def at(path, line=12, source="out += skip"):
    return finding(sites=(Site("written", Location(str(path), line, "f", source), "written here"),))


def test_what_was_written_is_known_again_when_its_line_has_moved(tmp_path):
    first = Baseline(str(tmp_path / "known.json"))
    assert not first.knows(at(tmp_path / "train.py"))
    assert first.write() == 1
    (tmp_path / "train.py").touch()
    later = Baseline.read(str(tmp_path / "known.json"))
    assert later.knows(at(tmp_path / "train.py", line=40, source="out  += skip"))
    assert not later.knows(at(tmp_path / "train.py", source="out *= skip"))
    assert not later.knows(at(tmp_path / "other.py"))
    assert list(later.notices()) == []


@pytest.mark.parametrize("then", ["out += skip", "out += skip  # in place", "out += skip # type: ignore"])
@pytest.mark.parametrize("now", ["out += skip", "out += skip  # known since May", "out += skip  # noqa: PLW0642"])
def test_a_comment_beside_it_makes_no_finding_new(tmp_path, then, now):
    entry = {"code": "GS101", "file": "train.py", "function": "f", "source": then}
    (tmp_path / "known.json").write_text(json.dumps({"schema": 1, "findings": [entry]}))
    assert Baseline.read(str(tmp_path / "known.json")).knows(at(tmp_path / "train.py", source=now))


def test_the_file_is_the_same_wherever_the_project_lies(tmp_path):
    texts = []
    for name in ("here", "there"):
        folder = tmp_path / name
        folder.mkdir()
        baseline = Baseline(str(folder / "known.json"))
        baseline.knows(at(folder / "src" / "train.py"))
        baseline.write()
        texts.append((folder / "known.json").read_text())
    assert texts[0] == texts[1]
    assert json.loads(texts[0])["findings"][0]["file"] == "src/train.py"


def test_a_finding_without_a_place_is_known_by_its_message():
    assert fingerprint(finding(sites=()), ".")[3] == finding().message


def test_what_was_not_met_is_told_and_files_that_are_no_more(tmp_path):
    (tmp_path / "train.py").touch()
    entries = [("GS101", "train.py", "f", "a"), ("GS101", "gone.py", "f", "b"), ("GS102", "gone.py", "f", "c")]
    baseline = Baseline(str(tmp_path / "known.json"), entries)
    assert [notice.text for notice in baseline.notices()] == [
        "knows 2 findings in gone.py, which is no more",
        "knows 1 finding that this run has not met; --update-baseline leaves them out",
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("{", "no baseline: Expecting property name"),
        ("[" * 50_000, "no baseline: it is nested too deeply"),
        ("[]", "no baseline: an object with findings is wanted"),
        ('{"schema": 1, "tool": "ruff", "findings": []}', "no baseline: it is one of the tool 'ruff'"),
        ('{"schema": 9, "findings": []}', "a baseline with schema 9; this version reads 1"),
        ('{"schema": 1, "findings": [{}]}', "no baseline: finding 1 needs the texts code, file, function, source"),
        ('{"schema": 1, "findings": [3]}', "no baseline: finding 1 needs the texts code, file, function, source"),
    ],
)
def test_another_file_is_refused(tmp_path, text, message):
    path = tmp_path / "known.json"
    path.write_text(text)
    with pytest.raises(ValueError, match=re.escape(f"{path}: {message}")):
        Baseline.read(str(path))
