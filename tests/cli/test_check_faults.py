"""What ``gradscope check`` says and returns where its own code has failed."""

from textwrap import dedent

import pytest

from tests.gradscope_command import gradscope

BREAK = """\
from gradscope.check.watching.saved_values import SavedValues
note, calls = SavedValues.note, []
def broken(self, node):
    calls.append(None)
    if len(calls) > {count}:
        raise ZeroDivisionError("a bug")
    note(self, node)
SavedValues.note = broken
"""

TRAIN = """\
import {framework} as lib
x = lib.ones(3, requires_grad=True)
for step in range(3):
    (x.exp() * 2).sum().backward()
print("trained", x.grad.tolist())
"""

FOUND = """\
y = x.exp()
y.add_(1)
try:
    y.sum().backward()
except RuntimeError:
    print("went on")
"""

FAULT = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (script.py:6)"


def check(folder, source, *before):
    (folder / "script.py").write_text(dedent(source))
    return gradscope("check", *before, "script.py", cwd=folder)


FRAMEWORKS = [("gradscope", "gradscope"), pytest.param("torch", "PyTorch", marks=pytest.mark.torch)]


@pytest.mark.parametrize(("framework", "called"), FRAMEWORKS)
def test_a_run_that_was_not_looked_into_to_its_end_is_not_clean(tmp_path, framework, called):
    pytest.importorskip(framework)
    source = TRAIN.format(framework=framework)
    plain = check(tmp_path, source)
    done = check(tmp_path, BREAK.format(count=4) + source)
    assert (plain.returncode, plain.stderr) == (0, "")
    assert done.returncode == 2
    assert done.stdout.splitlines()[0] == plain.stdout.splitlines()[0]
    assert done.stdout.splitlines()[-1] == f"Not looked into: in-place writes in {called}, where {FAULT}."
    what = f"gradscope: no longer looked into: in-place writes in {called}: {FAULT}"
    assert done.stderr.splitlines() == [what, "The program goes on."]


def test_what_was_found_before_is_told(tmp_path):
    source = TRAIN.format(framework="gradscope").replace("print", FOUND + BREAK.format(count=0) + "x.exp()\nprint")
    done = check(tmp_path, source)
    assert done.returncode == 1
    assert "went on\ntrained" in done.stdout
    assert "GS101 error" in done.stdout
    assert "Not looked into: in-place writes in gradscope, where gradscope's own code failed" in done.stdout


def test_to_exit_with_zero_is_of_findings(tmp_path):
    done = check(tmp_path, BREAK.format(count=0) + TRAIN.format(framework="gradscope"), "--exit-zero")
    assert done.returncode == 2


def test_a_script_that_fails_does_so_with_its_own_error(tmp_path):
    source = BREAK.format(count=0) + TRAIN.format(framework="gradscope") + "raise SystemExit(7)"
    done = check(tmp_path, source)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1] == "gradscope check: script.py ended with exit status 7"


def test_a_report_that_cannot_be_written_is_no_finding(tmp_path):
    source = """\
    from gradscope.check.formats import text_report
    def broken(report):
        raise ZeroDivisionError("a bug")
    text_report.last_lines = broken
    """
    done = check(tmp_path, source)
    assert (done.returncode, done.stdout) == (2, "")
    own = "gradscope's own code failed; please report it: ZeroDivisionError: a bug (script.py:3)"
    assert done.stderr == f"gradscope check: there is no report: {own}\n"


def test_the_doctor_tells_what_check_has_lost(tmp_path):
    (tmp_path / "script.py").write_text(BREAK.format(count=0) + TRAIN.format(framework="gradscope"))
    done = gradscope("doctor", "script.py", cwd=tmp_path)
    assert f"Not looked into: in-place writes in gradscope, where {FAULT}." in done.stdout
