"""What `gradscope check` tells, and where: formats, selections, suppressions, baselines, settings."""

import json

import pytest

from tests.cli.test_check import BUG, CAUGHT
from tests.gradscope_command import gradscope

TWO = CAUGHT + "z = x.tanh()\nz.data.add_(1)\nz.sum().backward()\n"
MISSING = "there is no baseline 'known.json'; --update-baseline writes one"


def check(folder, *arguments, script="script.py"):
    return gradscope("check", *arguments, *([script] if script else []), cwd=folder)


def codes(done):
    return [finding["code"] for finding in json.loads(done.stdout)["findings"]]


@pytest.fixture
def project(tmp_path):
    (tmp_path / "script.py").write_text(TWO)
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], ["GS101", "GS106"]),
        (["--select", "GS106"], ["GS106"]),
        (["--ignore", "GS106"], ["GS101"]),
        (["--select", "GS1", "--ignore", "GS101,GS106"], []),
    ],
)
def test_codes_are_selected_and_ignored(project, arguments, found):
    done = check(project, "--format", "json", *arguments)
    assert codes(done) == found
    assert done.returncode == bool(found)


def test_a_report_in_a_file_leaves_the_output_to_the_script(project):
    done = check(project, "--format", "sarif", "--output-file", "report.sarif")
    assert (done.returncode, done.stdout) == (1, "training []\nwent on\n")
    found = "1 error and 1 silently wrong gradient in 2 backward passes, 2 in-place writes."
    assert done.stderr == f"gradscope check: Found {found} The report is in report.sarif.\n"
    (run,) = json.loads((project / "report.sarif").read_text())["runs"]
    assert [result["ruleId"] for result in run["results"]] == ["GS101", "GS106"]
    assert run["results"][0]["fixes"][0]["artifactChanges"][0]["replacements"][0]["insertedContent"] == {
        "text": "y = y + 1"
    }


def test_a_file_that_cannot_be_written_is_told_before_the_script_runs(project):
    done = check(project, "--output-file", "missing/report.txt")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"gradscope check: {project}/missing/report.txt: No such file or directory\n"


def test_findings_are_no_failure_where_that_is_asked_for(project):
    done = check(project, "--exit-zero")
    assert done.returncode == 0
    assert "Found 1 error and 1 silently wrong gradient" in done.stdout


def test_statistics(project):
    done = check(project, "--statistics")
    assert done.returncode == 1
    assert done.stdout.splitlines()[2:4] == [
        "    1  GS101  saved tensor modified in place",
        "    1  GS106  saved tensor changed unnoticed",
    ]


def test_statistics_are_text(project):
    done = check(project, "--statistics", "--format", "json")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gradscope check: --statistics is text; leave --format json out\n"


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_the_script_ends_at_the_first_finding(tmp_path, framework):
    pytest.importorskip(framework)
    wrong = f"import {framework} as gs\nx = gs.ones(3, requires_grad=True)\nz = x.tanh()\nz.data.add_(1)\n"
    wrong += "try:\n    z.sum().backward()\nexcept Exception:\n    pass\nprint('went on')\n"
    (tmp_path / "script.py").write_text(wrong)
    done = check(tmp_path, "--first")
    assert done.returncode == 1
    assert done.stdout.startswith("GS106 silent-wrong: ")
    assert done.stderr == ""


def test_a_baseline_is_written_and_what_is_in_it_is_not_told_again(project):
    done = check(project, "--baseline", "known.json", "--update-baseline")
    assert (done.returncode, done.stderr) == (0, "gradscope check: 2 findings in known.json\n")
    (project / "script.py").write_text(TWO.replace("z = x.tanh()", "\n\nz = x.tanh()"))
    done = check(project, "--baseline", "known.json")
    assert done.returncode == 0
    assert "Nothing found (2 in the baseline) in 2 backward passes" in done.stdout
    (project / "script.py").write_text(TWO.replace("z.data.add_(1)", "z.data.mul_(2)"))
    done = check(project, "--baseline", "known.json", "--format", "json")
    assert (done.returncode, codes(done)) == (1, ["GS106"])
    (notice,) = json.loads(done.stdout)["warnings"]
    assert notice["text"] == "knows 1 finding that this run has not met; --update-baseline leaves them out"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--baseline", "known.json"], MISSING),
        (["--update-baseline"], "--update-baseline: name the file, --baseline FILE"),
        (["--baseline", "no/known.json", "--update-baseline"], "no/known.json: No such file or directory"),
        (["--suppressions", "none.txt"], "none.txt: No such file or directory"),
        (["--baseline", "script.py"], "script.py: no baseline: Expecting value"),
    ],
)
def test_options_that_cannot_be_followed_are_one_line(project, arguments, message):
    done = check(project, *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr
    assert done.stderr.count("\n") == 1


def test_an_unknown_code_is_one_line(project):
    done = check(project, "--select", "GS1O3")
    assert (done.returncode, done.stderr) == (2, "gradscope check: no code 'GS1O3': did you mean 'GS103'?\n")


def test_suppressions_by_file_and_function(project):
    (project / "third_party.txt").write_text("GS101:script.py\nGS106:nobody.*\n")
    done = check(project, "--suppressions", "third_party.txt", "--format", "json")
    report = json.loads(done.stdout)
    assert (codes(done), report["suppressed"]) == (["GS106"], 1)
    assert [(w["line"], w["text"]) for w in report["warnings"]] == [
        (2, "GS106:nobody.* has silenced nothing in this run")
    ]


def test_settings_of_the_project_and_options_before_them(project):
    (project / "pyproject.toml").write_text("[tool.gradscope.check]\nselect = ['GS106']\nformat = 'concise'\n")
    done = check(project)
    assert done.stdout.splitlines()[2].startswith("script.py:13: GS106 silent-wrong: ")
    assert codes(check(project, "--format", "json", "--select", "GS101")) == ["GS101"]


def test_an_unknown_setting_is_one_line(project):
    (project / "pyproject.toml").write_text("[tool.gradscope.check]\nselct = ['GS106']\n")
    done = check(project)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith("pyproject.toml: [tool.gradscope.check]: no setting 'selct': did you mean 'select'?\n")


def test_a_comment_on_the_last_line_of_a_call_counts(project):
    (project / "script.py").write_text(CAUGHT.replace("y += 1", "y.add_(\n    1,\n)  # gradscope: ignore[GS101]"))
    done = check(project)
    assert done.returncode == 0
    assert "Nothing found (1 suppressed)" in done.stdout
    assert "warning" not in done.stdout


def test_an_error_that_a_comment_silences_is_named_when_it_ends_the_script(project):
    (project / "script.py").write_text(BUG.replace("y += 1", "y += 1  # gradscope: ignore[GS101]"))
    done = check(project)
    assert done.returncode == 2
    assert done.stdout.endswith("The script ended by the error that is GS101 (script.py:6), which is not reported.\n")


SUITE = """
import gradscope as gs
import pytest


def test_spoiled():
    x = gs.ones(3, requires_grad=True)
    z = x.tanh()
    z.data.add_(1)
    z.sum().backward()


def refused():
    y = gs.ones(3, requires_grad=True).tanh()
    y += 1
    y.sum().backward()


def test_an_error_that_is_meant():
    with pytest.raises(RuntimeError):
        refused()


def test_an_error_that_is_not():
    refused()
"""


@pytest.mark.slow
def test_a_test_suite_is_run_as_a_module(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    done = check(tmp_path, "-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py", script="")
    assert done.returncode == 1
    assert "2 passed" in done.stdout
    assert "GS106 silent-wrong: `z` (float32 [3]" in done.stdout
    assert "  test_suite.py:9   z.data.add_(1)" in done.stdout
    assert "still needs it\n  test_suite.py:15  y += 1" in done.stdout  # once: the other test has caught it
    assert "gradscope/inspect" not in done.stdout


@pytest.mark.slow
def test_an_error_that_a_test_has_caught_fails_no_suite(tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE)
    meant = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "test_suite.py::test_an_error_that_is_meant")
    done = check(tmp_path, *meant, script="")
    assert (done.returncode, "1 passed" in done.stdout) == (0, True)


LIBRARY = """
def fit(model, optimizer, loss):
    return _step(optimizer, loss)


def _step(optimizer, loss):
    optimizer.step()
    return loss


def spoil(y):
    y.add_(1)
"""

TRAINING = """
import {framework} as gs
import trainer

model = gs.nn.Linear(2, 1)
optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
model(gs.ones(3, 2)).sum().backward()
x = gs.ones(3, 2, requires_grad=True)
loss = model(x).sum()
trainer.fit(model, optimizer, loss)
try:
    loss.backward()
except RuntimeError:
    pass
y = x.exp()
trainer.spoil(y)
try:
    y.sum().backward()
except RuntimeError:
    pass
"""


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--ranks", "--static"], "--ranks compares ranks: leave out --static"),
        (["--ranks", "--exact", "--format", "json"], "--ranks compares ranks: leave out --exact, --format"),
        (["--ranks", "--ignore", "GS101", "--exit-zero"], "--ranks compares ranks: leave out --ignore, --exit-zero"),
        (["--static", "--first"], "--static runs nothing: leave out --first"),
        (["--static", "--exact", "--keep-going"], "--static runs nothing: leave out --exact, --keep-going"),
    ],
)
def test_options_that_would_be_passed_over_are_refused(project, arguments, told):
    done = check(project, *arguments)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"gradscope check: {told}\n")


def test_settings_of_a_run_do_not_keep_sources_from_being_read(project):
    (project / "pyproject.toml").write_text("[tool.gradscope.check]\nfirst = true\n")
    done = check(project, "--static")
    assert (done.returncode, done.stderr) == (0, "")


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def with_library(request, tmp_path, monkeypatch):
    pytest.importorskip(request.param)
    installed = tmp_path / "venv" / "site-packages" / "trainer"
    installed.mkdir(parents=True)
    (installed / "__init__.py").write_text(LIBRARY)
    (tmp_path / "script.py").write_text(TRAINING.format(framework=request.param))
    monkeypatch.setenv("PYTHONPATH", str(installed.parent))
    return tmp_path


def test_a_place_in_a_library_is_told_by_the_line_that_called_with_the_calls_below(with_library):
    lines = check(with_library).stdout.splitlines()
    saved = "mat2" if "torch" in (with_library / "script.py").read_text() else "weight"
    assert lines[:5] == [
        "GS102 error: parameter `model.weight` (float32 [1, 2]) was modified by an optimizer step between forward and "
        "backward",
        "  script.py:10  trainer.fit(model, optimizer, loss)  <- written here by SGD.step",
        "    trainer/__init__.py:3  return _step(optimizer, loss)",
        "    trainer/__init__.py:7  optimizer.step()",
        f"  script.py:9   loss = model(x).sum()                   saved here by AddmmBackward0 as `{saved}`",
    ]
    assert "  script.py:16  trainer.spoil(y)    <- written here by add_" in lines


def test_a_line_of_a_library_that_several_lines_reach_is_told_by_those_that_spoilt(with_library):
    script = with_library / "script.py"
    more = "trainer.fit(model, optimizer, None)\nloss = model(x).sum()"
    again = "trainer.fit(model, optimizer, loss)\ntrainer.fit(model, optimizer, loss)\ntry:"
    text = script.read_text().replace("loss = model(x).sum()", more)
    script.write_text(text.replace("trainer.fit(model, optimizer, loss)\ntry:", again))
    lines = check(with_library, "--select", "GS102").stdout.splitlines()
    assert "  script.py:11  trainer.fit(model, optimizer, loss)  <- written here by SGD.step" in lines
    assert "  script.py:12  trainer.fit(model, optimizer, loss)     written again by SGD.step" in lines
    assert not any(line.startswith("  script.py:9 ") for line in lines)


def test_a_library_is_suppressed_by_its_name(with_library):
    (with_library / "third_party.txt").write_text("GS102:trainer._step\nGS101:trainer\n")
    done = check(with_library, "--suppressions", "third_party.txt")
    assert done.returncode == 0
    assert "Nothing found (2 suppressed)" in done.stdout


def test_a_comment_at_the_line_that_called_a_library_counts(with_library):
    script = with_library / "script.py"
    script.write_text(
        script.read_text().replace(
            "fit(model, optimizer, loss)", "fit(model, optimizer, loss)  # gradscope: ignore[GS102]"
        )
    )
    assert codes(check(with_library, "--format", "json")) == ["GS101"]
