"""``gi.set_trace()`` in a cell: the prompt asks in the field that the notebook opens."""

from __future__ import annotations

from .notebooks import run_cell_with_answers, run_notebook, texts

CELL = """import gradscope as gs, gradscope.inspect as gi
x = gs.ones(2, requires_grad=True)
gi.set_trace()
(x * 2).sum().backward()
print(x.grad)"""


def test_a_person_answers():
    told = run_cell_with_answers(CELL, ["step", "step", "set 0 grad * 10", "continue"])
    assert "set_trace() at In[1]:3" in told
    assert "SumBackward0" in told
    assert told.endswith("tensor([20., 20.])\n")


def test_where_nobody_can_answer_the_program_ends_as_if_left(tmp_path):
    (outputs,) = run_notebook(tmp_path, CELL)
    assert "the debugger was left at set_trace()" in texts(outputs)
