"""All steps of one direction of a recurrent layer, forwards and by backpropagation through time.

Arrays are rows: the elements of all sequences of one time, then those of the next. `spans` are the rows of each time,
in the order of the steps. Where sequences are of several lengths the longest come first, so that those that run at a
time are the first rows of a state, which has a row for each sequence.

A step is a product of the state with the weights, and one pass over what it gives: in the form that Numba compiled, or
in NumPy's. The formulas of the derivative are handed in, as they are written where the operators are declared.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from . import forms, loading, threads

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array, Gradient, Namespace

__all__ = [
    "before",
    "elman",
    "elman_backward",
    "gru",
    "gru_backward",
    "lstm",
    "lstm_backward",
    "spans_of",
]

Spans = list[slice]
Bias = Any  # an array, or None


def spans_of(sizes: Sequence[int], reverse: bool) -> Spans:
    """Return the rows of each time in the order of the steps, given how many sequences run at each time.

    Examples
    --------
    >>> spans_of([3, 1], reverse=True)
    [slice(3, 4, None), slice(0, 3, None)]
    """
    spans, end = [], 0
    for size in sizes:
        spans.append(slice(end, end + size))
        end += size
    return spans[::-1] if reverse else spans


def before(xp: Namespace, first: Array, states: Array, spans: Spans) -> Array:
    """Return, as rows, the state that each step began with: the one before it, or the first one of its sequence.

    Examples
    --------
    >>> states = numpy.array([[1.0], [2.0], [3.0]])
    >>> before(numpy, numpy.array([[8.0], [9.0]]), states, spans_of([2, 1], reverse=True)).tolist()
    [[3.0], [9.0], [8.0]]
    """
    rows, last = xp.empty_like(states), slice(0, 0)
    for span in spans:
        size = span.stop - span.start
        known = min(size, last.stop - last.start)
        rows[span.start : span.start + known] = states[last.start : last.start + known]
        rows[span.start + known : span.stop] = first[known:size]
        last = span
    return rows


def _compiled(rows: Array) -> Any:
    """Return the compiled kernels, or None: then NumPy's forms run."""
    if type(rows) is not numpy.ndarray or rows.dtype.char != "f" or rows.size < forms.LEAST:
        return None
    return loading.compiled("recurrent_loops")


def _by_rows(step: Callable[..., None], *arrays: Array) -> None:
    """Call a step with rows of all arrays, on several threads if there are many."""
    count, width = arrays[0].shape
    if count * width < 2 * threads.WORTH:
        step(*arrays)
    else:
        threads.over(count, lambda part: step(*[a[part] for a in arrays]), each=width)


_FEW_ROWS, _WIDE = 32, 1 << 18


def _projected(xp: Namespace, state: Array, weight: Array) -> Array:
    """Return ``state @ weight.T``.

    Of few rows and large weights it is the transpose of a product: OpenBLAS, which copies its second factor into the
    order that it wants, then copies the state instead of the weights. With its kernels for AVX-512 that takes half of
    the time, with those for AVX2 about the same.
    """
    if 1 < len(state) <= _FEW_ROWS and weight.size >= _WIDE:
        return xp.ascontiguousarray(xp.dot(weight, state.T).T)
    return xp.dot(state, weight.T)


def _sum(*biases: Bias) -> Bias:
    """Return the sum of those that are given."""
    given = [bias for bias in biases if bias is not None]
    return sum(given[1:], given[0]) if given else None


def _or_zeros(xp: Namespace, bias: Bias, like: Array) -> Array:
    return xp.zeros(like.shape[1:], like.dtype) if bias is None else xp.ascontiguousarray(bias)


def _sigmoid_of(xp: Namespace, x: Array) -> None:
    """Put the sigmoid of an array in its place; where exp(-x) is infinite it is 0."""
    xp.negative(x, out=x)
    xp.exp(x, out=x)
    x += 1
    xp.reciprocal(x, out=x)


def _columns(array: Array, count: int) -> list[Array]:
    """Return each of the parts that stand beside each other."""
    size = array.shape[1] // count
    return [array[:, k * size : (k + 1) * size] for k in range(count)]


# --- long short-term memory -------------------------------------------------------------------------------------------


def lstm(
    xp: Namespace,
    gates: Array,
    biases: tuple[Bias, Bias],
    state: tuple[Array, Array],
    w_hh: Array,
    w_hr: Any,
    spans: Spans,
) -> tuple[Array, Array, Array, Array]:
    """Run a long short-term memory.

    Parameters
    ----------
    gates : ndarray
        The projected inputs, of shape (rows, 4 * hidden_size); they become the input, forget, cell and output gates.
    biases : tuple of ndarray or None
        Those of the projections of the input and of the state.
    state : tuple of ndarray
        The first hidden states and the first cell states, of shape (batch, features).
    w_hh, w_hr : ndarray
        The weights of the hidden state, and of its projection or None.

    Returns
    -------
    tuple of ndarray
        The hidden and the cell states at all times, and both states at the end.
    """
    hidden, cell = (xp.array(part, order="C") for part in state)
    states, cells = (xp.empty((len(gates), part.shape[1]), gates.dtype) for part in (hidden, cell))
    loops, bias = _compiled(gates), _or_zeros(xp, _sum(*biases), gates)
    step = partial(_lstm_step, xp, bias) if loops is None else partial(loops.lstm, bias)
    raw = hidden if w_hr is None else xp.empty_like(cell)
    with numpy.errstate(over="ignore"):
        for span in spans:
            size = span.stop - span.start
            product = _projected(xp, hidden[:size], w_hh)
            _by_rows(step, gates[span], product, cell[:size], cells[span], raw[:size])
            if w_hr is not None:
                hidden[:size] = _projected(xp, raw[:size], w_hr)
            states[span] = hidden[:size]
    return states, cells, hidden, cell


def _lstm_step(xp: Namespace, bias: Array, gates: Array, product: Array, cell: Array, cells: Array, raw: Array) -> None:
    """Write the gates, the next cell state (to both places) and what comes out of it."""
    gates += product
    gates += bias
    into, forget, new, out = _columns(gates, 4)
    squashed = xp.tanh(new)
    _sigmoid_of(xp, gates)  # all gates at once: contiguous memory takes less time than three quarters of it in pieces
    new[...] = squashed
    cell *= forget
    squashed *= into
    cell += squashed
    cells[...] = cell
    xp.tanh(cell, out=raw)
    raw *= out


def lstm_backward(
    xp: Namespace,
    formula: Callable[..., Any],
    g: tuple[Any, Any, Any],
    gates: Array,
    cells: Array,
    state: tuple[Array, Array],
    w_hh: Array,
    w_hr: Any,
    spans: Spans,
) -> tuple[Array, Array, Array, Any]:
    """Go back through a long short-term memory.

    Parameters
    ----------
    formula : callable
        ``formula(g_hidden, g_cell, into, forget, new, out, cell_before, squashed)`` returns the gradients of the gates
        before their activation, and that of the cell state before the step.
    g : tuple of ndarray or None
        The gradients of the hidden states at all times, and of both states at the end.
    gates, cells : ndarray
        What the forward wrote and returned.
    state, w_hh, w_hr, spans
        What it was given.

    Returns
    -------
    tuple of ndarray
        The gradients of the gates before their activation, of both first states, and, where there is a projection, of
        what it gave at all times.
    """
    g_hidden, g_cell = (_begun(xp, grad, part) for grad, part in zip(g[1:], state, strict=True))
    g_gates, loops = xp.empty_like(gates), _compiled(gates)
    g_states = None if w_hr is None else xp.empty((len(gates), g_hidden.shape[1]), gates.dtype)
    step = partial(_lstm_step_back, xp, formula) if loops is None else loops.lstm_backward
    cells_before = before(xp, state[1], cells, spans)
    for span in reversed(spans):
        size = span.stop - span.start
        back = g_hidden[:size]
        if g[0] is not None:
            back += g[0][span]
        if g_states is not None:
            g_states[span] = back
            back = xp.dot(back, w_hr)
        _by_rows(step, gates[span], cells[span], cells_before[span], back, g_cell[:size], g_gates[span])
        g_hidden[:size] = xp.dot(g_gates[span], w_hh)
    return g_gates, g_hidden, g_cell, g_states


def _lstm_step_back(
    xp: Namespace,
    formula: Callable[..., Any],
    gates: Array,
    cell: Array,
    cell_before: Array,
    g_hidden: Array,
    g_cell: Array,
    g_gates: Array,
) -> None:
    parts, before = formula(g_hidden, g_cell, *_columns(gates, 4), cell_before, xp.tanh(cell))
    for place, part in zip(_columns(g_gates, 4), parts, strict=True):
        place[...] = part
    g_cell[...] = before


def _begun(xp: Namespace, g: Gradient, like: Array) -> Array:
    """Return the gradient of a last state to begin with, as an array that may be written."""
    return xp.zeros(like.shape, like.dtype) if g is None else xp.array(g, order="C")


# --- gated recurrent units --------------------------------------------------------------------------------------------


def gru(
    xp: Namespace, gates: Array, biases: tuple[Bias, Bias], hidden: Array, w_hh: Array, spans: Spans
) -> tuple[Array, Array, Array]:
    """Run gated recurrent units.

    Parameters
    ----------
    gates : ndarray
        The projected inputs, of shape (rows, 3 * hidden_size); they become the reset, update and new gates.
    biases, hidden, w_hh, spans
        As those of :func:`lstm`.

    Returns
    -------
    tuple of ndarray
        The hidden states at all times, the projected state that the reset gate was multiplied with, at all times, and
        the state at the end.
    """
    hidden = xp.array(hidden, order="C")
    states, kept = (xp.empty((len(gates), hidden.shape[1]), gates.dtype) for _ in range(2))
    loops, (bias_ih, bias_hh) = _compiled(gates), (_or_zeros(xp, bias, gates) for bias in biases)
    step = partial(_gru_step, xp, bias_ih, bias_hh) if loops is None else partial(loops.gru, bias_ih, bias_hh)
    with numpy.errstate(over="ignore"):
        for span in spans:
            size = span.stop - span.start
            product = _projected(xp, hidden[:size], w_hh)
            _by_rows(step, gates[span], product, kept[span], hidden[:size])
            states[span] = hidden[:size]
    return states, kept, hidden


def _gru_step(
    xp: Namespace, bias_ih: Array, bias_hh: Array, gates: Array, product: Array, kept: Array, hidden: Array
) -> None:
    """Write the gates, the projected state that the reset gate is multiplied with, and the next state."""
    size = hidden.shape[1]
    product += bias_hh
    gates += bias_ih
    kept[...] = product[:, 2 * size :]
    both = gates[:, : 2 * size]
    both += product[:, : 2 * size]
    _sigmoid_of(xp, both)
    reset, update, new = _columns(gates, 3)
    new += kept * reset
    xp.tanh(new, out=new)
    hidden -= new
    hidden *= update
    hidden += new


def gru_backward(
    xp: Namespace,
    formula: Callable[..., Any],
    g: tuple[Any, Any],
    gates: Array,
    kept: Array,
    states: Array,
    hidden: Array,
    w_hh: Array,
    spans: Spans,
) -> tuple[Array, Array, Array, Array]:
    """Go back through gated recurrent units.

    Parameters
    ----------
    formula : callable
        ``formula(g_hidden, reset, update, new, new_hh, hidden_before)`` returns the gradients of the projected input,
        those of the projected state, and that of the state before the step but for its projection.
    g : tuple of ndarray or None
        The gradients of the hidden states at all times, and of the last one.
    gates, kept, states : ndarray
        What the forward wrote and returned.
    hidden, w_hh, spans
        What it was given.

    Returns
    -------
    tuple of ndarray
        The gradients of the projected inputs, of the projected states, and of the first state, and the states that the
        steps began with.
    """
    g_hidden = _begun(xp, g[1], hidden)
    g_ih, g_hh, loops = xp.empty_like(gates), xp.empty_like(gates), _compiled(gates)
    step = partial(_gru_step_back, formula) if loops is None else loops.gru_backward
    states_before = before(xp, hidden, states, spans)
    for span in reversed(spans):
        back = g_hidden[: span.stop - span.start]
        if g[0] is not None:
            back += g[0][span]
        _by_rows(step, gates[span], kept[span], states_before[span], back, g_ih[span], g_hh[span])
        back += xp.dot(g_hh[span], w_hh)
    return g_ih, g_hh, g_hidden, states_before


def _gru_step_back(
    formula: Callable[..., Any],
    gates: Array,
    kept: Array,
    hidden_before: Array,
    g_hidden: Array,
    g_ih: Array,
    g_hh: Array,
) -> None:
    into, back, direct = formula(g_hidden, *_columns(gates, 3), kept, hidden_before)
    for places, parts in ((g_ih, into), (g_hh, back)):
        for place, part in zip(_columns(places, 3), parts, strict=True):
            place[...] = part
    g_hidden[...] = direct


# --- Elman's network --------------------------------------------------------------------------------------------------


def elman(
    xp: Namespace,
    states: Array,
    biases: tuple[Bias, Bias],
    hidden: Array,
    w_hh: Array,
    spans: Spans,
    activation: Callable[[Array], Any],
) -> Array:
    """Run Elman's network; the projected inputs become the hidden states at all times. Return the last state.

    Parameters
    ----------
    activation : callable
        It writes to its argument.
    """
    hidden, bias = xp.array(hidden, order="C"), _or_zeros(xp, _sum(*biases), states)
    for span in spans:
        size, rows = span.stop - span.start, states[span]
        rows += _projected(xp, hidden[:size], w_hh)
        rows += bias
        activation(rows)
        hidden[:size] = rows
    return hidden


def elman_backward(
    xp: Namespace,
    formula: Callable[..., Any],
    g: tuple[Any, Any],
    states: Array,
    hidden: Array,
    w_hh: Array,
    spans: Spans,
) -> tuple[Array, Array]:
    """Go back through Elman's network; return the gradients of the sums, and of the first state.

    Parameters
    ----------
    formula : callable
        ``formula(g_hidden, hidden)`` returns the gradient of the sum that the activation was given.
    """
    g_hidden, g_sums = _begun(xp, g[1], hidden), xp.empty_like(states)
    for span in reversed(spans):
        back = g_hidden[: span.stop - span.start]
        if g[0] is not None:
            back += g[0][span]
        g_sums[span] = formula(back, states[span])
        back[...] = xp.dot(g_sums[span], w_hh)
    return g_sums, g_hidden
