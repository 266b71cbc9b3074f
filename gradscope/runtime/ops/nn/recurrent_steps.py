"""One step of each recurrent network, in terms of operators, and its derivative.

A step takes the projected input and the state, and returns the next state and what its derivative needs. The
derivatives are arithmetic alone: they run on bare arrays and are recorded on tensors.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

from ..declaration.annotations import Array, Formula, Namespace
from ..declaration.registry import OPERATORS
from ..linalg.matmul import linear

__all__ = [
    "GRU",
    "LSTM",
    "RELU",
    "TANH",
    "Cell",
    "Known",
    "State",
    "Weights",
    "gru_formula",
    "lstm_formula",
    "relu_formula",
    "tanh_formula",
]

_split = OPERATORS["unsafe_split"].function
_sigmoid = OPERATORS["sigmoid"].function
_tanh = OPERATORS["tanh"].function
_relu = OPERATORS["relu"].function

State = tuple[Array, ...]  # the hidden state of one direction, and for an LSTM the cell state
# What a step notes for its derivative: arrays, which for an LSTM have names (:class:`Noted`).
Known: TypeAlias = Any
Step = Callable[[Array, State, "Weights"], tuple[State, Known]]


class Weights(NamedTuple):
    """The parameters of one direction of one layer."""

    ih: Array
    hh: Array
    bias_ih: Array = None
    bias_hh: Array = None
    hr: Array = None


class Back(NamedTuple):
    """The gradients that a step gives: of the projected input and state, part by part, and of the state itself."""

    ih: tuple[Array, ...]
    hh: tuple[Array, ...]
    hidden: Array = None  # but for what the projected state gives
    cell: Array = None


class Cell(NamedTuple):
    """A step, and its derivative, of the gradients of the state and of what the step has returned beside it."""

    step: Step
    back: Callable[..., Back]


# --- long short-term memory -------------------------------------------------------------------------------------------


class Noted(NamedTuple):
    """What one LSTM step notes for its derivative; `squashed` is tanh of the next cell state."""

    into: Array
    forget: Array
    new: Array
    out: Array
    cell_before: Array
    squashed: Array


def _lstm_step(projected: Array, state: State, w: Weights) -> tuple[State, Noted]:
    hidden, cell = state
    gates = linear(hidden, w.hh, w.bias_hh) + projected
    into, forget, new, out = _split(gates, gates._array.shape[1] // 4, 1)
    into, forget, new, out = _sigmoid(into), _sigmoid(forget), _tanh(new), _sigmoid(out)
    after = forget * cell + into * new
    squashed = _tanh(after)
    raw = out * squashed
    hidden = raw if w.hr is None else linear(raw, w.hr)
    return (hidden, after), Noted(into, forget, new, out, cell, squashed)


def lstm_formula(
    g: Array, g_cell: Array, into: Array, forget: Array, new: Array, out: Array, cell_before: Array, squashed: Array
) -> tuple[tuple[Array, ...], Array]:
    """Return the gradients of the gates before their activation, and that of the cell state before the step."""
    g_cell = g_cell + g * out * (1 - squashed * squashed)
    g_into = g_cell * new * into * (1 - into)
    g_forget = g_cell * cell_before * forget * (1 - forget)
    g_new = g_cell * into * (1 - new * new)
    g_out = g * squashed * out * (1 - out)
    return (g_into, g_forget, g_new, g_out), g_cell * forget


def _lstm_back(g: State, known: Known, F: Namespace) -> Back:
    gates, before = lstm_formula(*g, *known)
    return Back(gates, gates, None, before)


LSTM = Cell(_lstm_step, _lstm_back)

# --- gated recurrent units --------------------------------------------------------------------------------------------


def _gru_step(projected: Array, state: State, w: Weights) -> tuple[State, tuple[Array, ...]]:
    (hidden,) = state
    size = projected._array.shape[1] // 3
    reset, update, new = _split(projected, size, 1)
    reset_hh, update_hh, new_hh = _split(linear(hidden, w.hh, w.bias_hh), size, 1)
    reset = _sigmoid(reset_hh + reset)
    update = _sigmoid(update_hh + update)
    new = _tanh(new + new_hh * reset)
    return ((hidden - new) * update + new,), (reset, update, new, new_hh, hidden)


def gru_formula(
    g: Array, reset: Array, update: Array, new: Array, new_hh: Array, hidden_before: Array
) -> tuple[tuple[Array, ...], tuple[Array, ...], Array]:
    """Return the gradients of the projected input and state, and that of the state but for its projection."""
    g_new = g * (1 - update) * (1 - new * new)
    g_update = g * (hidden_before - new) * update * (1 - update)
    g_reset = g_new * new_hh * reset * (1 - reset)
    return (g_reset, g_update, g_new), (g_reset, g_update, g_new * reset), g * update


def _gru_back(g: State, known: Known, F: Namespace) -> Back:
    return Back(*gru_formula(*g, *known))


GRU = Cell(_gru_step, _gru_back)

# --- Elman's network --------------------------------------------------------------------------------------------------


def _tanh_step(projected: Array, state: State, w: Weights) -> tuple[State, tuple[Array, ...]]:
    hidden = _tanh(linear(state[0], w.hh, w.bias_hh) + projected)
    return (hidden,), (hidden,)


def _relu_step(projected: Array, state: State, w: Weights) -> tuple[State, tuple[Array, ...]]:
    hidden = _relu(linear(state[0], w.hh, w.bias_hh) + projected)
    return (hidden,), (hidden,)


def tanh_formula(g: Array, hidden: Array, F: Namespace) -> Array:
    """Return the gradient of the sum that tanh was given."""
    return g * (1 - hidden * hidden)


def relu_formula(g: Array, hidden: Array, F: Namespace) -> Array:
    """Return the gradient of the sum that the rectifier was given."""
    return F.threshold_backward(g, hidden, 0)


def _elman_back(formula: Formula) -> Callable[..., Back]:
    def back(g: State, known: Known, F: Namespace) -> Back:
        sums = (formula(*g, *known, F),)
        return Back(sums, sums)

    return back


TANH = Cell(_tanh_step, _elman_back(tanh_formula))
RELU = Cell(_relu_step, _elman_back(relu_formula))
