"""A program can be run for some steps alone, which changes nothing about what is found."""

import pytest

import gradscope.inspect as gi
from gradscope.cli import main
from gradscope.inspect.diagnosis.step_limit import EnoughSeen

SCRIPT = """
import gradscope as gs

model = gs.nn.Linear(4, 4)
optimizer = gs.optim.SGD(model.parameters(), lr=1e-9)
for step in range(1_000_000):
    optimizer.zero_grad()
    (model(gs.randn(8, 4)) - 1).square().mean().backward()
    optimizer.step()
"""


def test_the_script_ends_after_so_many_steps(tmp_path, capsys):
    path = tmp_path / "long.py"
    path.write_text(SCRIPT)
    assert main(["doctor", "--steps", "7", str(path)]) == 1
    text = capsys.readouterr().out
    assert text.startswith("D325 updates (likely): no step of SGD")
    assert "1 finding in 7 backward passes." in text


def train_for_ever(fw):
    model = fw.nn.Linear(2, 1)
    optimizer = fw.optim.SGD(model.parameters(), lr=0.1)
    while True:
        optimizer.zero_grad()
        model(fw.randn(4, 2)).square().mean().backward()
        optimizer.step()


def test_the_block_is_left_by_the_step(fw):
    with pytest.raises(EnoughSeen, match="2 steps of SGD"), gi.Doctor(steps=2) as doctor:
        train_for_ever(fw)
    assert (doctor.diagnosis.backwards, doctor.diagnosis.symptoms) == (2, ())


def test_no_steps_are_refused():
    with pytest.raises(ValueError, match="steps must be at least 1, got 0"):
        gi.Doctor(steps=0)
