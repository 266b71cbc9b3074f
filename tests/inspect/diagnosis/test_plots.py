"""Pictures, and what is said where Matplotlib is missing."""

import sys

import pytest

import gradscope as gs
import gradscope.inspect as gi


def explanations():
    w, v = gs.ones(3, 2, requires_grad=True), gs.ones(3, 2, requires_grad=True)
    with gi.growth() as growth:
        loss = (w * v).exp().sum()
        memory = gi.memory(loss)
        loss.backward()
    return [gi.gradient_flow({"w": w, "v": v}), memory, growth.result]


def test_pictures(tmp_path):
    pytest.importorskip("matplotlib", reason="plots are an extra")
    for number, explanation in enumerate(explanations()):
        axes = explanation.plot()
        assert axes.get_title()
        axes.figure.savefig(tmp_path / f"{number}.png")
        assert (tmp_path / f"{number}.png").stat().st_size > 1000


def test_a_histogram():
    pytest.importorskip("matplotlib", reason="plots are an extra")
    axes = gi.plot_histogram(gi.summarize([0.0, 1.0, 1.5, -4.0, float("nan")], "grad"))
    assert axes.get_title() == "grad (1 zero, 1 NaN left out)"
    assert [(bar.get_x(), bar.get_height()) for bar in axes.patches] == [(0, 2), (2, 1)]


def test_memory_by_something_else():
    with pytest.raises(ValueError, match="by must be one of 'module', 'operator', 'line', got 'colour'"):
        explanations()[1].plot("colour")


def test_without_matplotlib(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    for explanation in explanations():
        with pytest.raises(ImportError, match=r"pip install 'gradscope-debugger\[plots\]'"):
            explanation.plot()
