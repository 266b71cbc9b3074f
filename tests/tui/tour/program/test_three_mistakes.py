from __future__ import annotations

import runpy

import pytest

import gradscope as gs
from gradscope_tui.tour.guided_app import PROGRAM


def test_each_part_makes_the_mistake_that_it_is_there_for(capsys):
    program = runpy.run_path(str(PROGRAM))
    program["vanish"]()
    program["divide_by_nothing"]()
    assert capsys.readouterr().out.count("\n") == 2
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        program["write_what_is_saved"]()


def test_a_root_at_zero_sends_nan_to_the_points():
    points = gs.zeros(3, 2, requires_grad=True)
    points.pow(2).sum(1).sqrt().sum().backward()
    assert bool(gs.isnan(points.grad).all())
