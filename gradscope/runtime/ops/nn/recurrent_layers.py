"""One direction of one recurrent layer as one operator: all steps in one node, forwards and backwards.

The projection of the input is one product for all times, and so is the gradient of each weight. Backpropagation through
time runs on bare arrays (:mod:`gradscope.runtime.kernels.recurrent_kernels`); under ``create_graph`` the steps are made
anew of operators, and the same formulas are recorded, step by step.

The node of an LSTM in single precision has PyTorch's name for it, and saves the outputs too: a write to them is found.
Where PyTorch has no node for a layer, outputs may be written: the states that the derivative needs are copies.

References
----------
P. J. Werbos, "Backpropagation through time: what it does and how to do it", Proceedings of the IEEE 78 (1990).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import numpy

from ...kernels import recurrent_kernels as kernels
from ..declaration.annotations import Array, Cases, Formula, Gradient, Make, Namespace, Operand, Results, Sizes
from ..declaration.extremes import mixed, substituted
from ..declaration.registry import OPERATORS, operator
from ..declaration.samples import Samples
from ..linalg.matmul import linear
from .recurrent_steps import (
    GRU,
    LSTM,
    RELU,
    TANH,
    Cell,
    Known,
    State,
    Weights,
    gru_formula,
    lstm_formula,
    relu_formula,
    tanh_formula,
)

__all__ = ["gru_layer", "lstm_layer", "mkldnn_rnn_layer", "rnn_relu_layer", "rnn_tanh_layer"]

Spans = list[slice]


# --- in and out -------------------------------------------------------------------------------------------------------


def _spans(input: Array, batch_sizes: Sequence[int], reverse: bool) -> Spans:
    """Return the rows of each step; without batch sizes the input is (time, batch, features)."""
    sizes = batch_sizes or [input.shape[1]] * input.shape[0]
    return kernels.spans_of(sizes, reverse)


def _rows(input: Array) -> Array:
    """Return the elements of all times as rows."""
    return input if len(input.shape) == 2 else input.reshape(-1, input.shape[-1])


def _like(input: Array, rows: Array) -> Array:
    """Return rows in the dimensions of the input."""
    return rows if len(input.shape) == 2 else rows.reshape(*input.shape[:-1], rows.shape[-1])


def _concatenated(parts: dict[int, Array], F: Namespace) -> Array:
    """Return as rows of all times what there is for each, by its first row."""
    return F.cat([parts[start] for start in sorted(parts)], 0)


# --- back through all steps -------------------------------------------------------------------------------------------


class _Through(NamedTuple):
    """Gradients of backpropagation through time, as rows of all times, and the states that the weights' need."""

    ih: Array  # the gradients of the projected inputs
    hh: Array  # those of the projected hidden states
    state: State  # those of the first state
    before: Array  # the hidden states that the steps began with, where they are needed
    outputs: Array = None  # where outputs are projected, their gradients
    raw: Array = None  # and what was projected


def _weight_gradients(through: _Through, input: Array, needs: Weights, F: Namespace) -> Weights:
    """Return the gradients of the weights that are wanted: one product over all times each."""
    return Weights(
        F.mm(F.t(through.ih), _rows(input)) if needs.ih else None,
        F.mm(F.t(through.hh), through.before) if needs.hh else None,
        F.sum(through.ih, (0,)) if needs.bias_ih else None,
        F.sum(through.hh, (0,)) if needs.bias_hh else None,
        F.mm(F.t(through.outputs), through.raw) if needs.hr else None,
    )


def _input_gradient(through: _Through, input: Array, w: Weights, F: Namespace) -> Array:
    return _like(input, F.mm(through.ih, w.ih))


def _head(part: Array, size: int) -> Array:
    """Return the first rows of a state: those of the sequences that run."""
    return part if part.shape[0] == size else part[:size]


def _with_head(part: Array, head: Array, F: Namespace) -> Array:
    """Return a state with other first rows."""
    size = head.shape[0]
    return head if part.shape[0] == size else F.cat([head, part[size:]], 0)


def _recorded(
    cell: Cell, g: Sequence[Gradient], input: Array, state: State, w: Weights, spans: Spans, F: Namespace
) -> _Through:
    """Go back through all steps on tensors: the steps are made anew, for what they noted in the forward is constant."""
    steps = _steps_anew(cell, input, state, w, spans, F)
    g_rows = None if g[0] is None else _rows(g[0])
    back = [F.zeros_like(part) if grad is None else grad for grad, part in zip(g[1:], state, strict=True)]
    ih: dict[int, Array] = {}
    hh: dict[int, Array] = {}
    outputs: dict[int, Array] = {}
    for span, (_, known) in zip(reversed(spans), reversed(steps), strict=True):
        size, start = span.stop - span.start, span.start
        hidden, *rest = (_head(part, size) for part in back)
        hidden = hidden if g_rows is None else hidden + g_rows[span]
        outputs[start] = hidden
        given = cell.back((hidden if w.hr is None else F.mm(hidden, w.hr), *rest), known, F)
        ih[start], hh[start] = F.cat(given.ih, 1), F.cat(given.hh, 1)
        hidden = F.mm(hh[start], w.hh)
        hidden = hidden if given.hidden is None else hidden + given.hidden
        heads = (hidden,) if given.cell is None else (hidden, given.cell)
        back = [_with_head(part, head, F) for part, head in zip(back, heads, strict=True)]
    began = _concatenated({span.start: before for span, (before, _) in zip(spans, steps, strict=True)}, F)
    through = _Through(_concatenated(ih, F), _concatenated(hh, F), tuple(back), began)
    if w.hr is None:
        return through
    raw = {span.start: known.out * known.squashed for span, (_, known) in zip(spans, steps, strict=True)}
    return through._replace(outputs=_concatenated(outputs, F), raw=_concatenated(raw, F))


def _steps_anew(
    cell: Cell, input: Array, state: State, w: Weights, spans: Spans, F: Namespace
) -> list[tuple[Array, Known]]:
    """Return, for each step, the hidden state that it begins with and what its derivative needs."""
    projected, steps = linear(_rows(input), w.ih, w.bias_ih), []
    for span in spans:
        begin = tuple(_head(part, span.stop - span.start) for part in state)
        after, known = cell.step(projected[span], begin, w)
        steps.append((begin[0], known))
        state = tuple(_with_head(part, head, F) for part, head in zip(state, after, strict=True))
    return steps


# --- long short-term memory -------------------------------------------------------------------------------------------


class _Kept(NamedTuple):
    """The intermediate results of a long short-term memory's forward, for its derivative."""

    states: Array  # the hidden states at all times
    gates: Array
    cells: Array


def _lstm_run(
    xp: Namespace, input: Array, state: State, w: Weights, reverse: bool, batch_sizes: Sequence[int]
) -> tuple[tuple[Array, Array], _Kept]:
    """Return the last state, and what is noted."""
    gates = xp.dot(_rows(input), w.ih.T)
    biases = w.bias_ih, w.bias_hh
    spans = _spans(input, batch_sizes, reverse)
    states, cells, hidden, cell = kernels.lstm(xp, gates, biases, state, w.hh, w.hr, spans)
    return (hidden, cell), _Kept(states, gates, cells)


def _lstm_through(
    g: Sequence[Gradient],
    input: Array,
    state: State,
    w: Weights,
    kept: _Kept,
    spans: Spans,
    needs: Weights,
    F: Namespace,
) -> _Through:
    if hasattr(input, "_array"):
        return _recorded(LSTM, g, input, state, w, spans, F)
    g_rows = None if g[0] is None else _rows(g[0])
    g_gates, g_hidden, g_cell, g_states = kernels.lstm_backward(
        F.xp, lstm_formula, (g_rows, g[1], g[2]), kept.gates, kept.cells, state, w.hh, w.hr, spans
    )
    before = kernels.before(F.xp, state[0], _rows(kept.states), spans) if needs.hh else None
    raw = kept.gates[:, -kept.cells.shape[1] :] * F.xp.tanh(kept.cells) if needs.hr else None
    return _Through(g_gates, g_gates, (g_hidden, g_cell), before, g_states, raw)


def _mkldnn_rnn_layer(
    xp: Namespace,
    input: Array,
    weight0: Array,
    weight1: Array,
    weight2: Array,
    weight3: Array,
    hx_: Array,
    cx_: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
) -> Results:
    w = Weights(weight0, weight1, weight2, weight3)
    last, kept = _lstm_run(xp, input, (hx_, cx_), w, reverse, batch_sizes)
    return (_like(input, kept.states), *last), kept.gates, kept.cells


def _mkldnn_rnn_layer_joint(
    g: Sequence[Gradient],
    input: Array,
    weight0: Array,
    weight1: Array,
    weight2: Array,
    weight3: Array,
    hx_: Array,
    cx_: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
    result0: Array,
    gates: Array,
    cells: Array,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, ...]:
    w, wanted = Weights(weight0, weight1, weight2, weight3), Weights(*needs[1:5])
    kept, spans = _Kept(result0, gates, cells), _spans(input, batch_sizes, reverse)
    through = _lstm_through(g, input, (hx_, cx_), w, kept, spans, wanted, F)
    return (
        _input_gradient(through, input, w, F) if needs[0] else None,
        *_weight_gradients(through, input, wanted, F)[:4],
        *through.state,
    )


def _lstm_layer(
    xp: Namespace,
    input: Array,
    hx: Array,
    cx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array,
    b_hh: Array,
    w_hr: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
) -> Results:
    last, kept = _lstm_run(xp, input, (hx, cx), Weights(w_ih, w_hh, b_ih, b_hh, w_hr), reverse, batch_sizes)
    return (_like(input, kept.states.copy()), *last), *kept


def _lstm_layer_joint(
    g: Sequence[Gradient],
    input: Array,
    hx: Array,
    cx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array,
    b_hh: Array,
    w_hr: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
    states: Array,
    gates: Array,
    cells: Array,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, ...]:
    w, wanted = Weights(w_ih, w_hh, b_ih, b_hh, w_hr), Weights(*needs[3:])
    kept, spans = _Kept(states, gates, cells), _spans(input, batch_sizes, reverse)
    through = _lstm_through(g, input, (hx, cx), w, kept, spans, wanted, F)
    return (
        _input_gradient(through, input, w, F) if needs[0] else None,
        *through.state,
        *_weight_gradients(through, input, wanted, F),
    )


# --- gated recurrent units, and Elman's network -----------------------------------------------------------------------


def _gru_layer(
    xp: Namespace,
    input: Array,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array,
    b_hh: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
) -> Results:
    gates = xp.dot(_rows(input), w_ih.T)
    spans = _spans(input, batch_sizes, reverse)
    states, projected, hidden = kernels.gru(xp, gates, (b_ih, b_hh), hx, w_hh, spans)
    return (_like(input, states.copy()), hidden), states, gates, projected


def _gru_layer_joint(
    g: Sequence[Gradient],
    input: Array,
    hx: Array,
    w_ih: Array,
    w_hh: Array,
    b_ih: Array,
    b_hh: Array,
    reverse: bool,
    batch_sizes: Sequence[int],
    states: Array,
    gates: Array,
    projected: Array,
    needs: Sequence[bool],
    F: Namespace,
) -> tuple[Gradient, ...]:
    w, spans = Weights(w_ih, w_hh, b_ih, b_hh), _spans(input, batch_sizes, reverse)
    if hasattr(input, "_array"):
        return _of_one_state(_recorded(GRU, g, input, (hx,), w, spans, F), input, w, needs, F)
    g_rows = None if g[0] is None else _rows(g[0])
    g_ih, g_hh, g_hidden, before = kernels.gru_backward(
        F.xp, gru_formula, (g_rows, g[1]), gates, projected, states, hx, w_hh, spans
    )
    return _of_one_state(_Through(g_ih, g_hh, (g_hidden,), before), input, w, needs, F)


def _of_one_state(
    through: _Through, input: Array, w: Weights, needs: Sequence[bool], F: Namespace
) -> tuple[Gradient, ...]:
    """Return the gradients of the input, the state and the weights of a network whose state is one tensor."""
    return (
        _input_gradient(through, input, w, F) if needs[0] else None,
        *through.state,
        *_weight_gradients(through, input, Weights(*needs[2:]), F)[:4],
    )


def _elman_layer(activation: Formula) -> Formula:
    """Return the forward of a layer of Elman's network; the activation writes to its argument."""

    def forward(
        xp: Namespace,
        input: Array,
        hx: Array,
        w_ih: Array,
        w_hh: Array,
        b_ih: Array,
        b_hh: Array,
        reverse: bool,
        batch_sizes: Sequence[int],
    ) -> Results:
        states = xp.dot(_rows(input), w_ih.T)
        spans = _spans(input, batch_sizes, reverse)
        hidden = kernels.elman(xp, states, (b_ih, b_hh), hx, w_hh, spans, partial(activation, xp))
        return (_like(input, states.copy()), hidden), states

    return forward


def _elman_layer_joint(cell: Cell, formula: Formula) -> Formula:
    """Return the derivative of a layer of Elman's network."""

    def joint(
        g: Sequence[Gradient],
        input: Array,
        hx: Array,
        w_ih: Array,
        w_hh: Array,
        b_ih: Array,
        b_hh: Array,
        reverse: bool,
        batch_sizes: Sequence[int],
        states: Array,
        needs: Sequence[bool],
        F: Namespace,
    ) -> tuple[Gradient, ...]:
        w, spans = Weights(w_ih, w_hh, b_ih, b_hh), _spans(input, batch_sizes, reverse)
        if hasattr(input, "_array"):
            return _of_one_state(_recorded(cell, g, input, (hx,), w, spans, F), input, w, needs, F)
        g_rows = None if g[0] is None else _rows(g[0])
        g_sums, g_hidden = kernels.elman_backward(F.xp, partial(formula, F=F), (g_rows, g[1]), states, hx, w_hh, spans)
        before = kernels.before(F.xp, hx, states, spans) if needs[3] else None
        return _of_one_state(_Through(g_sums, g_sums, (g_hidden,), before), input, w, needs, F)

    return joint


# --- declarations -----------------------------------------------------------------------------------------------------


def _samples(gates: int, states: int, projected: bool = False) -> Samples:
    """Return samples of a layer: of whole batches, backwards and forwards, and of packed sequences without biases."""

    def samples(make: Make) -> Cases:
        size, out = 2, 1 if projected else 2
        make = partial(make, low=0.2, high=1.0)  # in sums of positive numbers no digits cancel
        weights = make(gates * size, 3), make(gates * size, out)
        biases = make(gates * size), make(gates * size)
        projection = (make(out, size),) if projected else ((None,) if states == 2 else ())
        state = [make(2, out), make(2, size)][:states]
        return [
            ((make(3, 2, 3), *state, *weights, *biases, *projection, False, []), {}),
            ((make(3, 2, 3), *state, *weights, None, None, *projection, True, []), {}),
            ((make(5, 3), *state, *weights, *biases, *projection, False, [2, 2, 1]), {}),
            ((make(5, 3), *state, *weights, None, None, *projection, True, [2, 2, 1]), {}),
        ]

    return samples


def _without_overflow(finfo: numpy.finfo) -> list[list[float]]:
    """Return the extreme numbers of which sums do not overflow: whether those do depends on the order."""
    return [numbers for numbers in mixed(finfo) if float(finfo.max) not in numbers]


def _sigmoid(x: Array) -> Array:
    return 1 / (1 + numpy.exp(-x))


def _lstm_reference_step(gates: Array, projected: Array, hidden: Array, cell: Array) -> tuple[Array, ...]:
    into, forget, new, out = numpy.split(gates + projected, 4, axis=1)
    cell = _sigmoid(forget) * cell + _sigmoid(into) * numpy.tanh(new)
    return _sigmoid(out) * numpy.tanh(cell), cell


def _gru_reference_step(gates: Array, projected: Array, hidden: Array) -> tuple[Array, ...]:
    (reset, update, new), (reset_hh, update_hh, new_hh) = (numpy.split(part, 3, axis=1) for part in (gates, projected))
    update = _sigmoid(update + update_hh)
    new = numpy.tanh(new + _sigmoid(reset + reset_hh) * new_hh)
    return ((1 - update) * new + update * hidden,)


def _reference(step: Formula) -> Formula:
    """Return a layer written out: each sequence of a batch on its own."""

    def layer(
        input: Array,
        state: list[Array],
        w_ih: Array,
        w_hh: Array,
        b_ih: Array,
        b_hh: Array,
        w_hr: Array,
        reverse: bool,
        sizes: Sizes,
    ) -> list[Array]:
        packed = input.ndim == 2
        sizes = sizes if packed else [input.shape[1]] * len(input)
        starts = numpy.cumsum([0, *sizes])
        rows, (b_ih, b_hh) = input.reshape(-1, input.shape[-1]), (0 if b is None else b for b in (b_ih, b_hh))
        outputs, last = numpy.zeros((len(rows), state[0].shape[1])), [part.copy() for part in state]
        for k in range(sizes[0]):
            places = [start + k for start, size in zip(starts, sizes, strict=False) if k < size]
            current = [part[k : k + 1] for part in state]
            for place in reversed(places) if reverse else places:
                current = list(step(rows[[place]] @ w_ih.T + b_ih, current[0] @ w_hh.T + b_hh, *current))
                current[0] = current[0] if w_hr is None else current[0] @ w_hr.T
                outputs[place] = current[0][0]
            for part, value in zip(last, current, strict=True):
                part[k] = value[0]
        return [outputs if packed else outputs.reshape(*input.shape[:2], -1), *last]

    return layer


def _lstm_reference(input: Array, hx: Array, cx: Array, *others: Operand) -> list[Array]:
    return _reference(_lstm_reference_step)(input, [hx, cx], *others)


def _mkldnn_reference(
    input: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array, hx: Array, cx: Array, *others: Operand
) -> list[Array]:
    return _lstm_reference(input, hx, cx, w_ih, w_hh, b_ih, b_hh, None, *others)


def _reference_of_one_state(step: Formula) -> Formula:
    def reference(
        input: Array, hx: Array, w_ih: Array, w_hh: Array, b_ih: Array, b_hh: Array, *others: Operand
    ) -> list[Array]:
        return _reference(step)(input, [hx], w_ih, w_hh, b_ih, b_hh, None, *others)

    return reference


def _lstm_samples(make: Make) -> Cases:
    return [*_samples(4, 2)(make), *_samples(4, 2, projected=True)(make)]


def _mkldnn_samples(make: Make) -> Cases:
    return [
        ((input, *weights, hx, cx, *others), {})
        for (input, hx, cx, *weights, _, reverse, sizes), _ in _samples(4, 2)(make)
        for others in [(reverse, sizes)]
    ]


_ONE_STATE = (
    "Tensor input, Tensor hx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, bool reverse, int[] batch_sizes"
)

operator(
    "mkldnn_rnn_layer(Tensor input, Tensor weight0, Tensor weight1, Tensor? weight2, Tensor? weight3, Tensor hx_, "
    "Tensor cx_, bool reverse, int[] batch_sizes)",
    _mkldnn_rnn_layer,
    outputs=("result0", "result1", "result2"),
    graded=3,
    aux=("gates", "cells"),
    method=False,
    public_name=False,
    joint=_mkldnn_rnn_layer_joint,
    doc="Run one direction of one layer of an LSTM; its outputs are saved.",
    samples=_mkldnn_samples,
    reference=_mkldnn_reference,
    extremes=substituted(_mkldnn_samples, _without_overflow),
    supports="f",
)

operator(
    "lstm_layer(Tensor input, Tensor hx, Tensor cx, Tensor w_ih, Tensor w_hh, Tensor? b_ih, Tensor? b_hh, "
    "Tensor? w_hr, bool reverse, int[] batch_sizes)",
    _lstm_layer,
    outputs=("output", "hidden", "cell"),
    graded=3,
    aux=("states", "gates", "cells"),
    method=False,
    public_name=False,
    joint=_lstm_layer_joint,
    doc="Run one direction of one layer of an LSTM.",
    samples=_lstm_samples,
    reference=_lstm_reference,
    extremes=substituted(_lstm_samples, _without_overflow),
    supports="f",
)

operator(
    f"gru_layer({_ONE_STATE})",
    _gru_layer,
    outputs=("output", "hidden"),
    graded=2,
    aux=("states", "gates", "projected"),
    method=False,
    public_name=False,
    joint=_gru_layer_joint,
    doc="Run one direction of one layer of gated recurrent units.",
    samples=_samples(3, 1),
    reference=_reference_of_one_state(_gru_reference_step),
    extremes=substituted(_samples(3, 1), _without_overflow),
    supports="f",
)


def _elman(
    name: str,
    cell: Cell,
    formula: Formula,
    activation: Callable[[Namespace, Array], Array],
    reference: Callable[[Array], Array],
) -> None:
    """Declare a layer of Elman's network with an activation, which writes to its argument."""
    operator(
        f"{name}({_ONE_STATE})",
        _elman_layer(activation),
        outputs=("output", "hidden"),
        graded=2,
        aux=("states",),
        method=False,
        public_name=False,
        joint=_elman_layer_joint(cell, formula),
        doc="Run one direction of one layer of Elman's network.",
        samples=_samples(1, 1),
        reference=_reference_of_one_state(lambda given, projected, hidden: (reference(given + projected),)),
        extremes=substituted(_samples(1, 1), _without_overflow),
        supports="f",
    )


_elman("rnn_tanh_layer", TANH, tanh_formula, lambda xp, x: xp.tanh(x, out=x), numpy.tanh)
_elman("rnn_relu_layer", RELU, relu_formula, lambda xp, x: xp.maximum(x, 0, out=x), lambda x: numpy.maximum(x, 0))

gru_layer, lstm_layer, mkldnn_rnn_layer, rnn_relu_layer, rnn_tanh_layer = (
    OPERATORS[name].function
    for name in ("gru_layer", "lstm_layer", "mkldnn_rnn_layer", "rnn_relu_layer", "rnn_tanh_layer")
)
