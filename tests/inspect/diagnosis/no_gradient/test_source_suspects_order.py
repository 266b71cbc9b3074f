"""In which order lines of the program are suspected."""

import importlib
import sys

import gradscope as gs
from gradscope.inspect import why_no_grad
from gradscope.inspect.diagnosis.no_gradient.source_suspects import freezers
from tests.inspect.diagnosis.lines import line


def test_lines_of_the_files_that_run_come_first(tmp_path, monkeypatch):
    for number in range(12):
        (tmp_path / f"aaa_freezing_{number}.py").write_text("def freeze(p):\n    p.requires_grad = False\n")
    monkeypatch.syspath_prepend(tmp_path)
    for number in range(12):
        monkeypatch.setitem(sys.modules, f"aaa_freezing_{number}", importlib.import_module(f"aaa_freezing_{number}"))
    weight = gs.nn.Parameter(gs.ones(2))
    weight.requires_grad = False  # HERE: frozen
    first, *_ = freezers([sys._getframe()])
    assert (first.location.filename, first.location.lineno) == (__file__, line(__file__, "frozen"))


class Fuse(gs.nn.Module):
    """Cuts a value off once beside it, and once for all that follows."""

    def __init__(self):
        super().__init__()
        self.image, self.text = gs.nn.Linear(2, 2), gs.nn.Linear(2, 2)

    def forward(self, x):
        a, b = self.image(x), self.text(x)
        gate = (a * b).detach()  # HERE: beside
        b = gs.tensor(b.tolist())  # HERE: replaced
        return a * gate.sigmoid() + b


def test_a_line_that_leaves_no_other_value_comes_before_one_beside_which_the_value_goes_on():
    model = Fuse()
    model(gs.ones(3, 2)).sum().backward()
    found = why_no_grad(model.text.weight, model(gs.ones(3, 2)).sum())
    assert [one.location.lineno for one in found.suspects] == [line(__file__, "replaced"), line(__file__, "beside")]
