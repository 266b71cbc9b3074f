"""``gradscope doctor`` as a user runs it: in a process of its own, on a script and alone."""

import json
import os
import subprocess
import sys
from textwrap import dedent

import pytest

from gradscope.cli import main
from gradscope.runtime.kernels import loading
from tests.gradscope_command import gradscope

SCRIPT = """\
import sys
import gradscope as gs

class Model(gs.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = gs.nn.Linear(3, 4)
        self.head = gs.nn.Linear(4, 1)

    def forward(self, x):
        return self.head(self.body(x).detach())

def main():
    model, losses = Model(), []
    for _ in range(6):
        loss = (model(gs.ones(2, 3)) ** 2).mean()
        loss.backward()
        losses.append(loss)
    print("trained", sys.argv[1:])

main()
"""


def doctor(tmp_path, source, *arguments, before=()):
    (tmp_path / "train.py").write_text(dedent(source))
    return gradscope("doctor", *before, "train.py", *arguments, cwd=tmp_path)


def test_findings(tmp_path):
    done = doctor(tmp_path, SCRIPT, "--lr", "1")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "trained ['--lr', '1']",
        "D303 no gradient: 2 of 4 parameters without a gradient:",
        "  `body.weight`, `body.bias`: not reached: detached at train.py:11 (return self.head(self.body(x).detach()))",
        "    Remove the detach().",
        "",
        "D311 growth (likely): Graphs of earlier iterations stay alive: 3 nodes more with each backward, 18 by now. "
        "The last backward ran 3 nodes with 40 B saved.",
        "  `losses[...]` (function main) keeps the tensor made at train.py:16 "
        "(loss = (model(gs.ones(2, 3)) ** 2).mean()); it grows at train.py:18 (losses.append(loss))",
        "  Keep the number, loss.item(), or loss.detach(), which has no graph.",
        "",
        "2 findings in 6 backward passes. The largest graph held 40 B.",
    ]


def test_nothing_found(tmp_path):
    source = SCRIPT.replace(".detach()", "").replace("losses.append(loss)", "losses.append(loss.item())")
    done = doctor(tmp_path, source)
    assert done.returncode == 0
    assert done.stdout.splitlines()[1].startswith("Nothing found in 6 backward passes.")


def test_json(tmp_path):
    done = doctor(tmp_path, SCRIPT, before=["--format", "json"])
    report = json.loads(done.stdout)
    assert done.stderr == "trained []\n"
    assert (done.returncode, report["exit_status"], report["schema"], report["backwards"]) == (1, 1, 1, 6)
    assert [s["kind"] for s in report["symptoms"]] == ["no gradient", "growth"]
    assert report["symptoms"][0]["location"]["line"] == 11


def test_a_script_that_raises_is_reported_up_to_there(tmp_path):
    done = doctor(tmp_path, SCRIPT + "raise ValueError('no data')\n")
    assert done.returncode == 2
    assert done.stderr.endswith("ValueError: no data\n")
    assert "site-packages" not in done.stderr
    assert "2 findings in 6 backward passes." in done.stdout
    assert done.stdout.endswith("The script ended by ValueError; this is what was seen until then.\n")


IN_PLACE = """\
import gradscope as gs

w = gs.ones(3, requires_grad=True)
y = w.exp()
y += 1
y.sum().backward()
"""


def test_what_check_finds_is_found_too(tmp_path):
    done = doctor(tmp_path, IN_PLACE)
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout.splitlines() == [
        "GS101 error: `y` (float32 [3], output of ExpBackward0) was modified in place, and ExpBackward0 still needs it",
        "  train.py:5  y += 1              <- written here by add_",
        "  train.py:4  y = w.exp()            saved here by ExpBackward0 as `result`",
        "  train.py:6  y.sum().backward()     needed here: ExpBackward0 fails",
        "  version 0 was saved, version 1 is there now",
        "  help: write `y = y + 1`",
        "",
        "1 finding in 1 backward pass. The largest graph held 12 B.",
        "The script did not catch the SavedTensorModifiedError and ended there.",
    ]


def test_a_loss_without_a_graph_is_explained_in_place_of_its_traceback(tmp_path):
    done = doctor(tmp_path, SCRIPT.replace(".detach())", ").argmax(1).float()"))
    assert (done.returncode, done.stderr) == (1, "")
    assert "argmax gives integers or booleans, which have no gradient at train.py:11" in done.stdout
    assert done.stdout.endswith("The script did not catch the RuntimeError and ended there.\n")


def test_the_exit_status_of_the_script(tmp_path):
    done = doctor(tmp_path, "import sys\nsys.exit(5)\n")
    assert done.returncode == 2
    assert done.stderr == "gradscope doctor: train.py ended with exit status 5\n"
    assert done.stdout == "No backward pass was seen.\n"


def test_a_missing_script(tmp_path):
    command = [sys.executable, "-m", "gradscope", "doctor", "missing.py"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "gradscope doctor: there is no script 'missing.py'\n"


@pytest.mark.torch
def test_a_script_of_pytorch(tmp_path):
    pytest.importorskip("torch", reason="the script imports it")
    done = doctor(tmp_path, SCRIPT.replace("import gradscope as gs", "import torch as gs"))
    assert done.returncode == 1
    assert "detached at train.py:11" in done.stdout
    assert "it grows at train.py:18 (losses.append(loss))" in done.stdout


def test_the_installation():
    three = {**os.environ, "OMP_NUM_THREADS": "3"}
    command = [sys.executable, "-m", "gradscope", "doctor"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, env=three)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("gradscope ")
    assert "numpy       the runtime" in done.stdout
    assert f"  kernels: {loading.compiler()}; threads: 3\n" in done.stdout
    assert done.stdout.endswith("Everything that gradscope needs is here.\n")


@pytest.mark.slow
def test_the_installation_as_json_imports_nothing_heavy():
    code = (
        "import sys; from gradscope.cli import main; status = main(['doctor', '--format', 'json'])\n"
        "sys.exit(status or bool({'textual', 'torch', 'matplotlib', 'cupy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    facts = json.loads(done.stdout)
    assert (done.returncode, facts["problems"]) == (0, [])
    assert set(facts["parts"]) >= {"numpy", "networkx", "textual", "torch", "cupy", "matplotlib"}


@pytest.mark.slow
def test_what_is_missing_is_said(monkeypatch, capsys):
    from gradscope.cli import doctor as command

    found = command._version_of
    monkeypatch.setattr(
        command, "_version_of", lambda name: {"textual": None, "torch": "1.13.1"}.get(name, found(name))
    )
    assert command._installation("text") == 1
    out = capsys.readouterr().out
    assert "textual is missing, which the terminal UI needs: pip install textual" in out
    assert "this is PyTorch 1.13.1. Install a newer one: pip install" in out


def test_a_number_of_steps_that_is_none_is_refused_with_its_reason(tmp_path):
    done = doctor(tmp_path, "", before=("--steps", "0"))
    assert done.returncode == 2
    assert done.stderr.endswith("argument --steps: a positive number is wanted, got '0'\n")


STEPS = """\
import gradscope as gs

model = gs.nn.Linear(4, 4)
optimizer = gs.optim.SGD(model.parameters(), lr=0.001)
for _ in range(8):
    optimizer.zero_grad()
    (model(gs.randn(8, 4)) - 1).square().mean().backward()
    optimizer.step()
"""


def test_a_limit_that_is_set_is_the_one_that_counts(tmp_path):
    assert doctor(tmp_path, STEPS).returncode == 0
    done = doctor(tmp_path, STEPS, before=("--limit", "watched_steps=4", "--limit", "small_update=0.1"))
    assert done.returncode == 1
    assert "moved the weights by more than" in done.stdout


@pytest.mark.parametrize(
    ("setting", "refused"),
    [
        ("small_updates=1", "there is no limit 'small_updates'\nDid you mean one of small_update"),
        ("dead", "dead wants a number above 0, got ''\n"),
        ("dead=nan", "dead wants a number above 0, got 'nan'\n"),
        ("watched_steps=2.5", "watched_steps wants a whole number above 0, got '2.5'\n"),
    ],
)
def test_a_limit_that_cannot_be_set_is_refused_before_the_script_runs(tmp_path, setting, refused):
    done = doctor(tmp_path, "print('ran')", before=("--limit", setting))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith(f"gradscope doctor: {refused}")


@pytest.mark.parametrize(("option", "values"), [("--functions", []), ("--steps", ["6"]), ("-m", [])])
def test_options_of_a_run_need_a_script(option, values, capsys):
    assert main(["doctor", option, *values]) == 2
    assert capsys.readouterr().err == f"gradscope doctor: {option}: there is no SCRIPT to run; name one\n"
