import json
import math

from gradscope.check import Fix, ScriptResult
from gradscope.check.formats.json_report import as_json
from gradscope.check.suppression.notices import Notice
from gradscope.check.watching.wrong_gradients import WrongGradient
from gradscope.inspect import Location
from tests.check.reports import finding, report


def test_the_fields_of_a_report():
    told = report(
        result=ScriptResult("train.py", ("--fast",), ValueError("no data"), 1),
        status=2,
        unseen=("a region",),
        notices=(Notice("of no use", "rules.txt"),),
    )
    assert json.loads(as_json(told)) == {
        "schema": 1,
        "script": "train.py",
        "arguments": ["--fast"],
        "exit_status": 2,
        "backward_passes": 1,
        "inplace_writes": 2,
        "suppressed": 0,
        "known": 0,
        "frameworks": ["gradscope"],
        "unseen": ["a region"],
        "warnings": [{"filename": "rules.txt", "line": None, "text": "of no use"}],
        "ended_by": {"type": "ValueError", "message": "no data"},
        "files": None,
        "findings": [],
        "gradients": [],
    }


def test_how_wrong_gradients_would_have_been():
    read = Location("train.py", 9, "train", "loss.backward()")
    wrongs = (WrongGradient("w", (2,), "float32", 0.5, read), WrongGradient("", (), "float64", math.inf, None))
    assert json.loads(as_json(report(gradients=wrongs)))["gradients"] == [
        {"name": "w", "shape": [2], "dtype": "float32", "difference": 0.5, "filename": "train.py", "line": 9},
        {"name": None, "shape": [], "dtype": "float64", "difference": None, "filename": None, "line": None},
    ]


def test_a_fix_says_what_it_replaces():
    fix = Fix("train.py", (12, 5), (12, 16), "out = out + skip")
    (told,) = json.loads(as_json(report(findings=(finding(fix=fix),))))["findings"]
    assert told["fix"] == {"filename": "train.py", "start": [12, 5], "end": [12, 16], "text": "out = out + skip"}
