"""The lines of a cell under an instrument, in a kernel."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

import gradscope.inspect as gi

from .notebooks import html_of, kinds, run_notebook, texts

CELLS = {
    "load": """%load_ext gradscope
import gradscope as gs
from gradscope import nn
model = nn.Sequential(nn.Linear(2, 8), nn.ReLU(), nn.Linear(8, 1))
opt = gs.optim.SGD(model.parameters(), lr=0.1)""",
    "help": "%%gradscope --help\n1",
    "no such": "%%gradscope cure\n1",
    "quote": '%%gradscope record --keep "\n1',
    "code": "%%gradscope check --select GS999\n1",
    "limit": "%%gradscope doctor --limit nothing=1\n1",
    "budget": "%%gradscope record --budget lots\n1",
    "unchecked": "%%gradscope check\n1 + 1",
    "fails": "%%gradscope check\n1 / 0",
    "syntax": "%%gradscope check\nif:",
    "check": """%%gradscope check
x = gs.ones(3, requires_grad=True)
h = x.exp()
h.add_(1)
h.sum().backward()""",
    "ignored": """%%gradscope check --ignore GS101 --keep-going
h = x.exp()
h.add_(1)
h.sum().backward()
print("after")""",
    "commented": """%%gradscope check --keep-going
h = x.exp()
h.add_(1)  # gradscope: ignore[GS101]
h.sum().backward()""",
    "going": """%%gradscope check --keep-going
h = x.exp()
h.add_(1)
h.sum().backward()""",
    "findings": "[finding.code for finding in _.findings]",
    "doctor": """%%gradscope doctor
for step in range(4):
    loss = (model(gs.randn(4, 2)).detach() ** 2).mean().requires_grad_()
    loss.backward()
    opt.step()""",
    "symptoms": "[symptom.kind for symptom in _.symptoms]",
    "steps": """%%gradscope doctor --steps 2
for step in range(8):
    opt.zero_grad()
    (model(gs.randn(4, 2)) ** 2).mean().backward()
    opt.step()
print("never")""",
    "step": "step",
    "record": """%%gradscope record -o run.gscope
for step in range(3):
    loss = (model(gs.randn(4, 2)) ** 2).mean()
    loss.backward()
loss.requires_grad""",
    "recording": "len(_.tasks()), [str(node.location) for node in _.tasks()[0].nodes][0]",
    "recorded error": "%%gradscope record\n(model(gs.ones(4, 2)) ** 2).mean().backward()\n1 / 0",
    "timed": "%%gradscope check\n%%time\ngs.ones(2, requires_grad=True).sum().backward()",
    "unload": "%unload_ext gradscope",
    "gone": "%%gradscope check\n1",
}


@pytest.fixture(scope="module")
def outputs(tmp_path_factory: pytest.TempPathFactory) -> Any:
    directory = tmp_path_factory.mktemp("notebook")
    return directory, dict(zip(CELLS, run_notebook(directory, *CELLS.values())))


@pytest.fixture
def told(outputs):
    return {name: texts(cell) for name, cell in outputs[1].items()}


def number_of(cell):
    return next(number for number, name in zip(itertools.count(1), CELLS) if name == cell)


def test_a_finding_has_the_lines_of_the_cell(outputs, told):
    cell = outputs[1]["check"]
    assert kinds(cell) == ["display_data", "error"]
    number = number_of("check")
    assert f"In[{number}]:4  h.add_(1)           <- written here by add_" in told["check"]
    assert "Found 1 error in 1 backward pass, 1 in-place write." in told["check"]
    assert "modified by an inplace operation" in told["check"]  # what ended the cell
    assert not any(f"gradscope/{room}/" in told["check"] for room in ("inspect", "check"))
    assert f'<td style="text-align: left; white-space: pre-wrap">In[{number}]:4</td>' in html_of(cell)


def test_what_was_found_is_the_result_of_the_cell(outputs, told):
    assert kinds(outputs[1]["going"]) == ["execute_result"]
    assert told["findings"] == "['GS101']"
    assert told["symptoms"] == "['no gradient']"


def test_findings_can_be_left_out(told):
    assert told["ignored"].startswith("after\n")
    assert "Nothing found in 1 backward pass" in told["ignored"]
    assert "Nothing found (1 suppressed) in 1 backward pass" in told["commented"]


def test_the_doctor_names_the_line(told):
    assert f"detached at In[{number_of('doctor')}]:3" in told["doctor"]
    assert "Remove the detach()." in told["doctor"]


def test_the_doctor_ends_a_cell_after_so_many_steps(outputs, told):
    assert kinds(outputs[1]["steps"]) == ["execute_result"]
    assert "2 backward passes" in told["steps"]
    assert told["step"] == "1"


def test_a_recording_is_the_result_beside_that_of_the_lines(outputs, told):
    assert kinds(outputs[1]["record"]) == ["execute_result", "execute_result"]
    assert told["record"].startswith("True\n<Recording ")
    assert told["recording"] == f"(3, 'In[{number_of('record')}]:3')"
    with gi.open_recording(outputs[0] / "run.gscope") as recording:
        assert recording.runs[0].name == "notebook"


def test_a_recording_of_a_cell_that_fails_is_shown(outputs, told):
    assert kinds(outputs[1]["recorded error"]) == ["display_data", "error"]
    assert (outputs[0] / "notebook.gscope").exists()
    assert "division by zero" in told["recorded error"]


def test_an_error_of_the_lines_ends_the_cell_and_nothing_else_is_said(outputs, told):
    assert kinds(outputs[1]["fails"]) == kinds(outputs[1]["syntax"]) == ["error"]
    assert told["fails"] == "division by zero"
    trace = "\n".join(outputs[1]["fails"][0]["traceback"])
    assert "1 / 0" in trace
    assert "magics.py" not in trace  # the frames that ran the lines are none of the reader's


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("no such", "UsageError: %%gradscope: argument COMMAND: invalid choice: 'cure'"),
        ("quote", "UsageError: %%gradscope: No closing quotation"),
        ("code", "UsageError: %%gradscope check: no code 'GS999'"),
        ("limit", "UsageError: %%gradscope doctor: "),
        ("budget", "UsageError: %%gradscope record: "),
        ("gone", "UsageError: Cell magic `%%gradscope` not found."),
        ("help", "usage: %%gradscope [-h] COMMAND ..."),
        ("unchecked", "2\nNothing was checked"),
    ],
)
def test_what_a_cell_is_told(told, cell, said):
    assert told[cell].startswith(said)
    assert "Traceback" not in told[cell]


def test_another_magic_may_stand_below(told):
    assert "CPU times" in told["timed"]
    assert "Nothing found in 1 backward pass" in told["timed"]
