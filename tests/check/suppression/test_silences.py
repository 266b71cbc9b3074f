from gradscope.check import Silences
from gradscope.check.suppression.baseline import Baseline, fingerprint
from gradscope.check.suppression.code_selection import CodeSelection
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
