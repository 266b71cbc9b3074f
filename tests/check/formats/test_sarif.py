"""SARIF, held against the schema of OASIS (``sarif-schema-2.1.0.json``, the file of the standard's erratum 01).

Where Microsoft's ``sarif-multitool`` is installed, which knows the rules that a schema cannot say, it reads a log too.
"""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from gradscope.check import CODES, Fix, ScriptResult, Site
from gradscope.check.formats.sarif import as_sarif
from gradscope.check.suppression.notices import Notice
from gradscope.inspect import Location
from tests.check.reports import finding, report

jsonschema = pytest.importorskip("jsonschema")

SCHEMA = json.loads((Path(__file__).parent / "sarif-schema-2.1.0.json").read_text(encoding="utf-8"))
VALIDATOR = jsonschema.validators.validator_for(SCHEMA)(SCHEMA)


def run_of(**changes):
    log = json.loads(as_sarif(report(**changes)))
    assert [error.message for error in VALIDATOR.iter_errors(log)] == []
    assert log["version"] == "2.1.0"
    (run,) = log["runs"]
    return run


def result_of(found, **changes):
    (result,) = run_of(findings=(found,), **changes)["results"]
    return result


def test_all_rules_are_described():
    rules = run_of()["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(CODES)


@pytest.mark.parametrize("code", CODES)
def test_every_code_is_a_result_of_its_rule(code):
    result = result_of(finding(code=code))
    assert (result["ruleId"], list(CODES)[result["ruleIndex"]], result["level"]) == (code, code, "error")


def test_the_primary_place_and_the_related_ones():
    result = result_of(finding(), result=ScriptResult("train.py", (), None, 0, "/home/me"))
    (primary,) = result["locations"]
    assert primary["physicalLocation"] == {
        "artifactLocation": {"uri": "train.py", "uriBaseId": "SRCROOT"},
        "region": {"startLine": 12, "snippet": {"text": "out += skip"}},
    }
    (related,) = result["relatedLocations"]
    assert (related["id"], related["message"]["text"]) == (1, "saved here")


def test_the_flow_is_in_the_order_of_the_program():
    ((flow,),) = ((run["threadFlows"] for run in result_of(finding())["codeFlows"]),)
    (thread,) = flow
    assert [step["location"]["message"]["text"] for step in thread["locations"]] == [
        "saved here",
        "written here by add_",
    ]


def test_calls_through_a_library_are_a_stack():
    library = Location("/venv/site-packages/trainer/loop.py", 90, "Loop.step", "optimizer.step()")
    site = Site("written", Location("train.py", 3, "main", "trainer.fit()"), "written here by SGD.step", (library,))
    ((step,),) = (flow["locations"] for flow in result_of(finding(sites=(site,)))["codeFlows"][0]["threadFlows"])
    lines = [f["location"]["physicalLocation"]["region"]["startLine"] for f in step["stack"]["frames"]]
    assert lines == [90, 3]


def test_a_finding_of_which_no_place_is_known_is_at_the_top_of_the_script():
    (place,) = result_of(finding(sites=()))["locations"]
    assert place["physicalLocation"] == {"artifactLocation": {"uri": "train.py"}, "region": {"startLine": 1}}


@pytest.mark.parametrize(("line", "first", "last"), [(1, 1, 3), (4, 2, 6), (6, 4, 6)])
def test_lines_around_the_primary_place_are_shown(tmp_path, line, first, last):
    (tmp_path / "train.py").write_text("".join(f"line {n}\n" for n in range(1, 7)), encoding="utf-8")
    site = Site("written", Location("train.py", line, "f", f"line {line}"), "written here")
    result = result_of(finding(sites=(site,)), result=ScriptResult("train.py", (), None, 0, str(tmp_path)))
    (place,) = result["locations"]
    text = "".join(f"line {n}\n" for n in range(first, last + 1))
    shown = {"startLine": first, "endLine": last, "snippet": {"text": text}}
    assert place["physicalLocation"]["contextRegion"] == shown


def test_a_file_that_has_become_shorter_shows_no_lines_around(tmp_path):
    (tmp_path / "train.py").write_text("a line\n", encoding="utf-8")
    site = Site("written", Location(str(tmp_path / "train.py"), 2, "f", "another line"), "written here")
    (place,) = result_of(finding(sites=(site,)))["locations"]
    assert "contextRegion" not in place["physicalLocation"]


def test_a_fix_replaces_the_statement():
    result = result_of(finding(fix=Fix("train.py", (12, 5), (12, 16), "out = out + skip")))
    ((change,),) = (fix["artifactChanges"] for fix in result["fixes"])
    assert change["replacements"] == [
        {
            "deletedRegion": {"startLine": 12, "startColumn": 5, "endLine": 12, "endColumn": 16},
            "insertedContent": {"text": "out = out + skip"},
        }
    ]


def test_a_finding_is_known_again_when_its_line_has_moved():
    moved = (Site("written", Location("train.py", 40, "f", "out += skip"), "written here"),)
    one, other = (result_of(found)["partialFingerprints"] for found in (finding(), finding(sites=moved)))
    assert one == other
    elsewhere = (Site("written", Location("train.py", 12, "g", "out += skip"), "written here"),)
    assert result_of(finding(sites=elsewhere))["partialFingerprints"] != one


def test_what_was_not_seen_and_what_is_wrong_with_suppressions_are_notifications():
    run = run_of(
        status=2,
        unseen=("a compiled region",),
        notices=(Notice("of no use", "train.py", 4), Notice("gone", "/known.json")),
        result=ScriptResult("train.py", ("--lr", "1"), ValueError("no data"), 1, "/home/me"),
    )
    (invocation,) = run["invocations"]
    assert (invocation["executionSuccessful"], invocation["exitCode"]) == (False, 2)
    assert invocation["arguments"] == ["train.py", "--lr", "1"]
    assert [n["message"]["text"] for n in invocation["toolExecutionNotifications"]] == [
        "Not looked into: a compiled region.",
        "The script ended by ValueError: no data",
    ]
    assert [n["message"]["text"] for n in invocation["toolConfigurationNotifications"]] == ["of no use", "gone"]


def test_files_outside_of_the_directory_have_whole_names():
    site = Site("written", Location("/elsewhere/a b.py", 1, "f", ""), "written")
    result = result_of(finding(sites=(site,)), result=ScriptResult("train.py", (), None, 0, "/home/me"))
    artifact = result["locations"][0]["physicalLocation"]["artifactLocation"]
    assert artifact == {"uri": "file:///elsewhere/a%20b.py"}


@pytest.mark.skipif(shutil.which("sarif-multitool") is None, reason="sarif-multitool, an npm package, is not installed")
@pytest.mark.parametrize(
    ("rules", "unanswered"),
    [
        # SARIF2005 recommends the address of the tool's page.
        ("Sarif", {"SARIF2005"}),
        # What GitHub's code scanning asks of a log that is uploaded.
        ("Ghas", set()),
        # GHAzDO1014 wants a category, which whoever uploads a log gives it.
        ("Ado", {"GHAzDO1014"}),
    ],
)
def test_a_validator_that_others_wrote_accepts_a_log_of_all_codes(tmp_path, rules, unanswered):
    (tmp_path / "log.sarif").write_text(log_of_all(tmp_path), encoding="utf-8")
    command = ["sarif-multitool", "validate", "log.sarif", "--rule-kind", rules, "--output", "told.sarif"]
    # .NET wants the system's tables of languages otherwise.
    environment = {**os.environ, "DOTNET_SYSTEM_GLOBALIZATION_INVARIANT": "1"}
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    (told,) = json.loads((tmp_path / "told.sarif").read_text(encoding="utf-8-sig"))["runs"]
    assert {result["ruleId"] for result in told["results"]} == unanswered


def log_of_all(directory):
    library = Location("/venv/site-packages/trainer/loop.py", 90, "Loop.step", "optimizer.step()")
    through_a_library = Site("written", Location("train.py", 3, "main", "trainer.fit()"), "written here", (library,))
    fix = Fix("train.py", (12, 5), (12, 16), "out = out + skip")
    found = [finding(code=code) for code in CODES]
    found += [finding(fix=fix), finding(sites=()), finding(sites=(through_a_library,))]
    raised = ScriptResult("train.py", ("--lr", "1"), ValueError("no data"), 1, str(directory))
    notices = (Notice("of no use", "train.py", 4),)
    return as_sarif(report(findings=tuple(found), result=raised, notices=notices, unseen=("a compiled region",)))
