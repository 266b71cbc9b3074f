"""``gradscope check`` as a user runs it: in a process of its own."""

import json
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.gradscope_command import gradscope

BUG = """\
import sys
import gradscope as gs

x = gs.ones(3, requires_grad=True)
y = x.exp()
y += 1
print("training", sys.argv[1:])
y.sum().backward()
"""

CAUGHT = BUG.replace("y.sum().backward()", "try:\n    y.sum().backward()\nexcept RuntimeError:\n    print('went on')")


def check(tmp_path, source, *arguments, before=()):
    (tmp_path / "script.py").write_text(dedent(source))
    return gradscope("check", *before, "script.py", *arguments, cwd=tmp_path)


def test_a_finding(tmp_path):
    done = check(tmp_path, BUG, "--lr", "1")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout.splitlines() == [
        "training ['--lr', '1']",
        "GS101 error: `y` (float32 [3], output of ExpBackward0) was modified in place, and ExpBackward0 still needs it",
        "  script.py:6  y += 1              <- written here by add_",
        "  script.py:5  y = x.exp()            saved here by ExpBackward0 as `result`",
        "  script.py:8  y.sum().backward()     needed here: ExpBackward0 fails",
        "  version 0 was saved, version 1 is there now",
        "  help: write `y = y + 1`",
        "",
        "Found 1 error in 1 backward pass, 1 in-place write.",
        "The script did not catch the error and ended there.",
        "`gradscope check --explain GS101` tells more.",
    ]


def test_a_write_that_nothing_counts(tmp_path):
    done = check(tmp_path, BUG.replace("y += 1", "y.data += 1  # gradscope: ignore[GS101]"))
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "training []",
        "GS106 silent-wrong: `y` (float32 [3], output of ExpBackward0) changed unnoticed, and ExpBackward0 computes "
        "with the new values",
        "  script.py:6  y.data += 1         <- written here by add_, which counts no version of it",
        "  script.py:5  y = x.exp()            saved here by ExpBackward0 as `result`",
        "  script.py:8  y.sum().backward()     needed here: ExpBackward0 does not fail, its gradient is wrong",
        "  version 0 was saved and is there still: nothing counted the write",
        "  help: write into a clone(), or after backward()",
        "",
        "Found 1 silently wrong gradient in 1 backward pass, 1 in-place write.",
        "`gradscope check --explain GS106` tells more.",
        "warning: script.py:6: ignore[GS101] has silenced nothing in this run",
    ]


@pytest.mark.parametrize("form", [["-m", "script"], ["-m", "package"], ["script.py"], ["./script.py"]])
def test_the_comments_of_what_runs_are_looked_at(tmp_path, form):
    commented = BUG.replace("y += 1", "y += 1  # gradscope: ignore[GS106]")
    (tmp_path / "script.py").write_text(commented)
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__main__.py").write_text(commented)
    done = gradscope("check", *form, cwd=tmp_path)
    file = "package/__main__.py" if "package" in form else "script.py"
    assert done.stdout.splitlines()[-1] == f"warning: {file}:6: ignore[GS106] has silenced nothing in this run"


def test_places_are_named_from_where_the_script_was_started(tmp_path):
    done = check(tmp_path, BUG.replace("y += 1", "import os; os.chdir('/'); y += 1"))
    assert "\n  script.py:6  " in done.stdout


def test_a_script_that_catches_the_error_is_reported_too(tmp_path):
    done = check(tmp_path, CAUGHT)
    assert done.returncode == 1
    assert done.stdout.startswith("training []\nwent on\nGS101 error")
    assert "ended there" not in done.stdout


def test_nothing_found(tmp_path):
    done = check(tmp_path, BUG.replace("y += 1", "y = y + 1"))
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "training []\nNothing found in 1 backward pass, 0 in-place writes.\n"


def test_json_has_stdout_to_itself(tmp_path):
    source = BUG + "import os\n"
    source = source.replace("y += 1", "y += 1\nimport subprocess\nsubprocess.run(['echo', 'from a child'], check=True)")
    done = check(tmp_path, source, before=["--format", "json"])
    report = json.loads(done.stdout)
    assert "training []" in done.stderr
    assert "from a child" in done.stderr
    assert (done.returncode, report["exit_status"], report["schema"]) == (1, 1, 1)
    assert report["ended_by"]["type"] == "SavedTensorModifiedError"
    (finding,) = report["findings"]
    assert [(s["role"], s["line"], s["source"]) for s in finding["sites"]] == [
        ("written", 6, "y += 1"),
        ("saved", 5, "y = x.exp()"),
        ("read", 10, "y.sum().backward()"),
    ]
    assert {s["filename"] for s in finding["sites"]} == {str(tmp_path / "script.py")}
    assert finding["tensor"] == {
        "name": "y",
        "shape": [3],
        "dtype": "float32",
        "producer": "ExpBackward0",
        "saved_as": "result",
        "is_parameter": False,
    }
    assert (finding["code"], finding["node"], finding["occurrences"]) == ("GS101", "ExpBackward0", 1)
    assert (finding["saved_version"], finding["current_version"]) == (0, 1)


def test_another_error_is_the_scripts(tmp_path):
    done = check(tmp_path, "def f():\n    raise ValueError('no data')\n\nf()\n")
    assert done.returncode == 2
    lines = done.stderr.splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert sum("File" in line for line in lines) == 2
    assert lines[-1] == "ValueError: no data"


def test_an_error_that_no_write_explains_leads_to_the_doctor(tmp_path):
    done = check(tmp_path, "import gradscope as gs\ngs.ones(3, requires_grad=True).argmax().backward()\n")
    assert done.returncode == 2
    assert done.stdout.splitlines()[-2:] == [
        "Nothing found: no backward pass ran.",
        "`gradscope doctor` also looks for gradients that are missing, wrong or NaN.",
    ]


def test_findings_before_another_error_count(tmp_path):
    done = check(tmp_path, CAUGHT + "raise ValueError('no data')\n")
    assert done.returncode == 1
    assert done.stderr.endswith("ValueError: no data\n")
    assert "GS101 error" in done.stdout


@pytest.mark.parametrize(("call", "status"), [("sys.exit()", 0), ("sys.exit(0)", 0), ("sys.exit(5)", 2)])
def test_exit_status_of_the_script(tmp_path, call, status):
    done = check(tmp_path, f"import sys\n{call}\n")
    assert done.returncode == status
    assert ("ended with exit status 5" in done.stderr) == (status == 2)


def test_suppressed(tmp_path):
    done = check(tmp_path, CAUGHT.replace("y += 1", "y += 1  # gradscope: ignore[GS101]"))
    assert done.returncode == 0
    assert done.stdout.endswith("Nothing found (1 suppressed) in 1 backward pass, 1 in-place write.\n")


def test_suppressed_but_fatal_shows_the_error(tmp_path):
    done = check(tmp_path, BUG.replace("y += 1", "y += 1  # gradscope: ignore[GS101]"))
    assert done.returncode == 2
    assert "modified by an inplace operation" in done.stderr


def test_keeping_going_tells_all_and_how_wrong_it_would_have_been(tmp_path):
    done = check(tmp_path, BUG.replace("y += 1", "y += 1; z = x.exp(); z.mul_(3)"), before=["--keep-going"])
    assert done.returncode == 1
    assert "Found 1 error in 1 backward pass" in done.stdout
    assert "would differ by (relative norm):\n" in done.stdout
    assert "The script did not catch" not in done.stdout


def test_options_that_contradict_each_other(tmp_path):
    done = check(tmp_path, BUG, before=["--keep-going", "--first"])
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("gradscope check: first and keep-going contradict each other")


EXACT = """\
import random
import numpy as np
import gradscope as gs

def write(batch):
    if random.random() > -1:
        batch[random.randrange(3)] *= 2
    return batch

batch = np.ones(3)
w = gs.ones(3, dtype=gs.float64, requires_grad=True)
loss = (w * gs.from_numpy(batch)).sum()
write(batch)
print("once")
loss.backward()
"""


@pytest.mark.slow
def test_a_second_run_finds_the_line_of_a_write_that_nothing_counts(tmp_path):
    done = check(tmp_path, EXACT, before=["--exact", "--format", "concise"])
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines()[:2] == [
        "once",
        "script.py:7: GS106 silent-wrong: a tensor (float64 [3]) changed unnoticed, and MulBackward0 computes with the "
        "new values",
    ]
    silenced = EXACT.replace("*= 2", "*= 2  # gradscope: ignore[GS106]")
    assert "1 suppressed" in check(tmp_path, silenced, before=["--exact"]).stdout


STATIC = ["--static", "--format", "concise"]


def test_sources_are_read_and_not_run(tmp_path):
    done = check(tmp_path, "raise SystemExit(5)\nloss.backward\n", before=STATIC)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "script.py:2: GS202 silent-wrong: `loss.backward` is not called",
        "Found 1 silently wrong gradient in 1 file, read and not run.",
        "`gradscope check --explain GS202` tells more.",
    ]
    assert check(tmp_path, "loss.backward()\n", before=STATIC).returncode == 0
    assert check(tmp_path, "loss.backward(\n", before=STATIC).returncode == 2


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["missing"], "there is no file or directory 'missing'"),
        (["."], "gradscope check: there is no Python file in '.'"),
        (["-m"], "--static takes files and directories, and options before them: no -m, and no arguments"),
        (["src", "--format=json"], "--static takes files and directories, and options before them"),
    ],
)
def test_what_sources_are_not(tmp_path, arguments, message):
    script = ["script"] * (arguments == ["-m"])
    done = gradscope("check", "--static", *arguments, *script, cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert message in done.stderr


def test_a_baseline_of_sources(tmp_path):
    known = [*STATIC, "--baseline", "known.json"]
    assert check(tmp_path, "loss.backward\n", before=[*known, "--update-baseline"]).returncode == 0
    done = check(tmp_path, "\nloss.backward\nloss.zero_grad\n", before=known)
    assert done.returncode == 1
    assert "Found 1 silently wrong gradient (1 in the baseline) in 1 file, read and not run." in done.stdout


def test_a_missing_script(tmp_path):
    command = [sys.executable, "-m", "gradscope", "check", "missing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gradscope check: there is no script 'missing.py'\n"


@pytest.mark.parametrize("arguments", [["--format", "yaml", "script.py"], []])
def test_usage_errors(tmp_path, arguments):
    done = gradscope("check", *arguments, cwd=tmp_path)
    assert done.returncode == 2
    assert "usage: gradscope check" in done.stderr


def test_explain(tmp_path):
    done = gradscope("check", "--explain", "gs102", cwd=tmp_path)
    assert done.returncode == 0
    assert done.stdout.startswith("GS102: parameter modified between forward and backward (error)\n")


def test_explain_an_unknown_code(tmp_path):
    done = gradscope("check", "--explain", "GS999", cwd=tmp_path)
    assert done.returncode == 2
    assert "no code 'GS999'; there are GS101, GS102" in done.stderr


def test_results_are_the_same_as_without(tmp_path):
    source = """\
        import gradscope as gs

        w = gs.linspace(-1, 1, 12).reshape(3, 4).requires_grad_()
        x = gs.linspace(0, 1, 20).reshape(5, 4)
        for _ in range(10):
            hidden = (x @ w.t()).tanh_()
            (hidden * hidden).mean().backward()
            with gs.no_grad():
                w -= 0.3 * w.grad
            w.grad = None
        print(w.detach().numpy().tobytes().hex())
        """
    checked = check(tmp_path, source)
    plain = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert plain.returncode == checked.returncode == 0
    assert checked.stdout.splitlines()[0] == plain.stdout.strip()


def test_a_script_of_neither_framework(tmp_path):
    done = check(tmp_path, "print('hello')\n")
    assert done.returncode == 0
    assert done.stdout == "hello\nNothing was checked: the script uses neither gradscope nor PyTorch.\n"


def test_a_script_without_a_backward(tmp_path):
    done = check(tmp_path, "import gradscope as gs\ngs.ones(3).mul_(2)\n")
    assert (done.returncode, done.stdout) == (0, "Nothing found: no backward pass ran.\n")


@pytest.mark.torch
def test_a_pytorch_script(tmp_path):
    """The same report as for gradscope, and the version check is PyTorch's own."""
    pytest.importorskip("torch")
    source = BUG.replace("import gradscope as gs", "import torch as gs")
    done = check(tmp_path, source, "--lr", "1")
    assert done.returncode == 1
    assert done.stderr == ""
    assert done.stdout == check(tmp_path, BUG, "--lr", "1").stdout


@pytest.mark.torch
def test_a_pytorch_script_as_json(tmp_path):
    pytest.importorskip("torch")
    done = check(tmp_path, CAUGHT.replace("import gradscope as gs", "import torch as gs"), before=["--format", "json"])
    report = json.loads(done.stdout)
    assert (done.returncode, report["exit_status"], report["frameworks"], report["unseen"]) == (1, 1, ["PyTorch"], [])
    assert report["ended_by"] is None
    (finding,) = report["findings"]
    assert [(s["role"], s["line"]) for s in finding["sites"]] == [("written", 6), ("saved", 5), ("read", 9)]


@pytest.mark.torch
def test_an_error_of_a_pytorch_script(tmp_path):
    pytest.importorskip("torch")
    done = check(tmp_path, "import torch\n\ntorch.ones(3) + torch.ones(4)\n")
    assert done.returncode == 2
    assert 'script.py", line 3, in <module>' in done.stderr
    assert "gradscope" not in done.stderr
    assert done.stderr.splitlines()[-1].startswith("RuntimeError: The size of tensor a (3) must match")
