"""The loss of a backward, by the variable of which backward() is called."""

from __future__ import annotations

import linecache
import sys

import numpy
import pytest

import gradscope as gs
from gradscope.inspect.adapters import AnyAdapter
from gradscope.inspect.records.loss_value import loss_names, loss_value


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("loss.backward()", ("loss",)),
        ("self.state.loss.backward(retain_graph=True)", ("self.state.loss",)),
        ("accelerator.backward(total)", ("accelerator", "total")),
        ("torch.autograd.backward(loss, inputs=[w])", ("torch.autograd", "loss")),
        ("scaler.scale(loss).backward()", ("loss",)),
        ("loss.backward(weights)", ("loss", "weights")),
        ("(loss / 4).backward()", ()),
        ("model(x).sum().backward()", ()),
        ("loss.forward()", ()),
        ("loss.backward(", ()),
    ],
)
def test_a_loss_is_named_by_the_line_that_calls_backward(source, names):
    filename = f"<{source}>"
    linecache.cache[filename] = (len(source), None, [source + "\n"], filename)
    assert loss_names(filename, 1) == names
    assert loss_names(filename, 2) == ()


def seen_in_backward(loss):
    """Return the value of the loss, read while its backward runs."""
    found = []

    def look(grad):
        frame = sys._getframe()
        while frame.f_code.co_name != "train":
            frame = frame.f_back
        found.append(loss_value(AnyAdapter(), frame))

    def train():
        loss.register_hook(look)
        loss.backward(gs.ones_like(loss))

    train()
    return found[0]


@pytest.mark.parametrize("value", [2.5, float("nan"), float("inf")])
def test_the_value_is_that_of_the_variable(value):
    assert numpy.array_equal(seen_in_backward(gs.tensor([value], requires_grad=True)), value, equal_nan=True)


def test_what_is_not_one_number_has_no_value():
    assert seen_in_backward(gs.ones(3, requires_grad=True)) is None
