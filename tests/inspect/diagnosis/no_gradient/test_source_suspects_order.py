"""In which order lines of the program are suspected."""

import importlib
import sys

import gradscope as gs
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
