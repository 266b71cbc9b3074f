import json
from pathlib import Path

from gradscope.check import Silences
from gradscope.check.suppression.baseline import Baseline, fingerprint
from gradscope.check.suppression.code_selection import CodeSelection
from gradscope.check.suppression.line_comments import LineComments
from gradscope.check.suppression.silences import SilenceReason
from gradscope.check.suppression.suppressions_file import SuppressionsFile
from tests.check.reports import finding


def test_a_finding_is_told_where_nothing_silences_it():
    assert Silences().reason(finding()) is None


def test_each_of_the_four_silences():
    known = Baseline("known.json", [fingerprint(finding(), ".")])
    assert Silences(CodeSelection(ignore=["GS1"])).reason(finding()) is SilenceReason.NOT_SELECTED
    assert Silences(suppressions=SuppressionsFile("f", ["*:train.py"])).reason(finding()) is SilenceReason.SUPPRESSED
    assert Silences(baseline=known).reason(finding()) is SilenceReason.KNOWN


def test_what_a_comment_silences_is_no_news_for_the_baseline(tmp_path):
    baseline = Baseline(str(tmp_path / "known.json"))
    silences = Silences(suppressions=SuppressionsFile("f", ["*:train.py"]), baseline=baseline)
    silences.reason(finding())
    assert baseline.write() == 0


def test_the_comments_of_the_script_are_looked_at_with_those_of_its_modules(tmp_path):
    script = tmp_path / "train.py"
    script.write_text("x = 1  # gradscope: ignore[GS101]\n")
    assert (str(script), 1) in [(notice.filename, notice.line) for notice in Silences().notices(str(script))]


def test_nothing_is_said_of_what_silences_codes_that_are_not_looked_for(tmp_path):
    script, known = tmp_path / "program.py", tmp_path / "known.json"
    script.write_text("x = 1  # gradscope: ignore[GS112]\ny = 1  # gradscope: ignore[gs101]\n")
    finding = {"code": "GS112", "file": "program.py", "function": "f", "source": "x"}
    known.write_text(json.dumps({"schema": 1, "findings": [finding, {**finding, "code": "GS101"}]}))

    def told(*codes):
        suppressions = SuppressionsFile("third_party.txt", ["GS112:./program.py", "GS1:other"])
        selection = CodeSelection(codes)
        silences = Silences(selection, suppressions, Baseline.read(str(known)))
        notices = [*silences.notices(sources=()), *LineComments().notices(str(script), looked_for=selection)]
        return [(Path(notice.filename).name, notice.line, notice.text.split()[:2]) for notice in notices]

    assert told() == [
        ("third_party.txt", 2, ["GS1:other", "has"]),
        ("known.json", 0, ["knows", "1"]),
        ("program.py", 2, ["ignore[GS101]", "has"]),
    ]
    assert len(told("GS", "GS112")) == 5
