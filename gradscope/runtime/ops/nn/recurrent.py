"""Recurrent networks: Elman's network, LSTM and GRU, over sequences and packed sequences, and one step of each.

One direction of one layer is one node (:mod:`~.recurrent_layers`). With oneDNN switched off
(``gradscope.backends.mkldnn``), on other devices than the CPU and in half precision the steps are composed of linear
maps, splits and pointwise operators, one group of nodes for each time step, so that a debugger stops inside of one; the
projection of the input is one product for all time steps. The cells are always composed so.

References
----------
J. L. Elman, "Finding structure in time", Cognitive Science 14 (1990).
S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997).
K. Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014.
H. Sak, A. Senior, F. Beaufays, "Long short-term memory recurrent neural network architectures", Interspeech 2014 (the
projection of the hidden state).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy

from ... import autocast, settings, state
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array
from ..declaration.registry import METHODS, OPERATORS, public
from ..linalg.matmul import linear
from . import recurrent_layers as layers
from .normalization import dropout as thinned
from .recurrent_steps import GRU, LSTM, RELU, TANH, Cell, State, Weights

__all__ = ["gru", "gru_cell", "lstm", "lstm_cell", "rnn_relu", "rnn_relu_cell", "rnn_tanh", "rnn_tanh_cell"]

_cat = OPERATORS["cat"].function
_stack = OPERATORS["stack"].function
_unbind = OPERATORS["unbind"].function
_split_with_sizes = OPERATORS["unsafe_split_with_sizes"].function


# --- one direction of one layer, step by step -------------------------------------------------------------------------


def _over_sequence(cell: Cell, input: Array, state: State, w: Weights, reverse: bool) -> tuple[Array, State]:
    """Run over a sequence (time, batch, features); return the hidden states of all times and the last state."""
    steps = _unbind(linear(input, w.ih, w.bias_ih), 0)
    outputs = []
    for projected in reversed(steps) if reverse else steps:
        state, _ = cell.step(projected, state, w)
        outputs.append(state[0])
    if reverse:
        outputs.reverse()
    return _stack(outputs, 0), state


def _over_packed(cell: Cell, data: Array, sizes: list[int], state: State, w: Weights) -> tuple[Array, State]:
    """Run forwards over packed sequences: the state of those that have ended is put aside."""
    outputs, ended, active = [], [], sizes[0]
    for projected, size in zip(_split_with_sizes(linear(data, w.ih, w.bias_ih), sizes), sizes, strict=True):
        if size < active:
            parts = [_split_with_sizes(part, [size, active - size]) for part in state]
            state = tuple(part[0] for part in parts)
            ended.append(tuple(part[1] for part in parts))
            active = size
        state, _ = cell.step(projected, state, w)
        outputs.append(state[0])
    if ended:
        ended.append(state)
        state = tuple(_cat(parts[::-1], 0) for parts in zip(*ended, strict=True))
    return _cat(outputs, 0), state


def _over_packed_reversed(cell: Cell, data: Array, sizes: list[int], first: State, w: Weights) -> tuple[Array, State]:
    """Run backwards over packed sequences: shorter ones begin when their last element comes."""
    active = sizes[-1]
    state = tuple(METHODS["narrow"](part, 0, 0, active) for part in first)
    steps = _split_with_sizes(linear(data, w.ih, w.bias_ih), sizes)
    outputs = []
    for projected, size in zip(reversed(steps), reversed(sizes), strict=True):
        if size > active:
            begun = (METHODS["narrow"](part, 0, active, size - active) for part in first)
            state = tuple(_cat([old, new], 0) for old, new in zip(state, begun, strict=True))
            active = size
        state, _ = cell.step(projected, state, w)
        outputs.append(state[0])
    return _cat(outputs[::-1], 0), state


# --- one direction of one layer, in one node --------------------------------------------------------------------------


class _Network(NamedTuple):
    """A kind of network."""

    cell: Cell
    gates: int
    layer: Callable[[Array, list[int] | None, State, Weights, bool], tuple[Array, ...]]


def _is_one_node(network: _Network, input: Array, sizes: list[int] | None, state: State, w: Weights) -> bool:
    """Whether a layer is one node: on the CPU, in one of two precisions, where all fits together."""
    tensors = [t for t in (input, *state, *w) if t is not None]
    kind = input._dtype
    if not settings.get_mkldnn_enabled() or kind.char not in "fd":
        return False
    if any(type(t._array) is not numpy.ndarray or t._dtype != kind or not t._array.size for t in tensors):
        return False
    hidden, size = state[0]._array.shape[-1], state[-1]._array.shape[-1]
    width, batch = network.gates * size, input._array.shape[1] if sizes is None else sizes[0]
    shapes: Weights = Weights((width, input._array.shape[-1]), (width, hidden), (width,), (width,), (hidden, size))
    return all(part._array.shape[0] == batch for part in state) and all(
        part is None or part._array.shape == shape for part, shape in zip(w, shapes, strict=True)
    )


def _lstm_layer(input: Array, sizes: list[int] | None, state: State, w: Weights, reverse: bool) -> tuple[Array, ...]:
    if sizes is None and w.hr is None and input._dtype.char == "f":  # for which PyTorch has a node
        return layers.mkldnn_rnn_layer(input, *w[:4], *state, reverse, [])
    return layers.lstm_layer(input, *state, *w, reverse, sizes or [])


def _layer_of_one_state(operator: Callable[..., tuple[Array, ...]]) -> Callable[..., tuple[Array, ...]]:
    def layer(input: Array, sizes: list[int] | None, state: State, w: Weights, reverse: bool) -> tuple[Array, ...]:
        return operator(input, *state, *w[:4], reverse, sizes or [])

    return layer


_LSTM = _Network(LSTM, 4, _lstm_layer)
_GRU = _Network(GRU, 3, _layer_of_one_state(layers.gru_layer))
_TANH = _Network(TANH, 1, _layer_of_one_state(layers.rnn_tanh_layer))
_RELU = _Network(RELU, 1, _layer_of_one_state(layers.rnn_relu_layer))


def _one_direction(
    network: _Network, input: Array, sizes: list[int] | None, state: State, w: Weights, reverse: bool
) -> tuple[Array, State]:
    """Return the hidden states of all times and the last state."""
    if _is_one_node(network, input, sizes, state, w):
        output, *last = network.layer(input, sizes, state, w, reverse)
        return output, tuple(last)
    if sizes is None:
        return _over_sequence(network.cell, input, state, w, reverse)
    return (_over_packed_reversed if reverse else _over_packed)(network.cell, input, sizes, state, w)


# --- all layers -------------------------------------------------------------------------------------------------------


class _Call(NamedTuple):
    """The arguments of a recurrent network."""

    input: Array
    sizes: list[int] | None
    hx: Array
    params: Sequence[Array]
    has_biases: bool
    num_layers: int
    dropout: float
    train: bool
    bidirectional: bool
    batch_first: bool


_PLAIN = ("input", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional", "batch_first")
_PACKED = ("data", "batch_sizes", "hx", "params", "has_biases", "num_layers", "dropout", "train", "bidirectional")


def _call_of(name: str, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> _Call:
    """Read the arguments of either form: of a sequence, and of packed ones."""
    packed = "batch_sizes" in kwargs or (len(args) > 3 and isinstance(args[3], (list, tuple)))
    names = _PACKED if packed else _PLAIN
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    if len(args) + len(kwargs) != len(names) or given.keys() != set(names):
        kinds = ", ".join(type(value).__name__ for value in (*args, *kwargs.values()))
        raise TypeError(
            f"{name}() received an invalid combination of arguments - got ({kinds}), but expected one of:\n"
            f" * ({', '.join(_PACKED)})\n * ({', '.join(_PLAIN)})"
        )
    if not packed:
        return _Call(sizes=None, **given)
    return _Call(given.pop("data"), given.pop("batch_sizes").tolist(), batch_first=False, **given)


def _weights_of(call: _Call, *, projected: bool) -> list[Weights]:
    """Return the parameters of each direction of each layer."""
    each = (4 if call.has_biases else 2) + projected
    wanted = call.num_layers * (2 if call.bidirectional else 1)
    if len(call.params) != each * wanted:
        raise RuntimeError(
            f"got an incorrect number of RNN parameters\nThere are {len(call.params)}; {wanted} layers and directions "
            f"have {each} each."
        )
    parts = [call.params[i : i + each] for i in range(0, len(call.params), each)]
    if not projected:
        return [Weights(*part) for part in parts]
    return [Weights(*part[:-1])._replace(hr=part[-1]) for part in parts]


def _run(network: _Network, call: _Call, hx: State, *, projected: bool = False) -> tuple[Array, ...]:
    """Run all layers; return the output and the last states, stacked over layers and directions."""
    input = METHODS["transpose"](call.input, 0, 1) if call.batch_first else call.input
    if call.sizes is None and not input._array.shape[0]:
        raise RuntimeError("Expected sequence length to be larger than 0 in RNN\nThe first dimension is time.")
    weights, directions = _weights_of(call, projected=projected), 2 if call.bidirectional else 1
    for part in hx:
        if part._array.shape[0] != len(weights):
            raise RuntimeError(
                f"Expected more hidden states in stacked_rnn\nThere are {part._array.shape[0]} of {len(weights)}."
            )
    first = list(zip(*(_unbind(part, 0) for part in hx), strict=True))
    last: list[State] = []
    for layer in range(call.num_layers):
        outputs = []
        for direction in range(directions):
            k = layer * directions + direction
            output, state = _one_direction(network, input, call.sizes, first[k], weights[k], direction == 1)
            outputs.append(output)
            last.append(state)
        input = outputs[0] if directions == 1 else _cat(outputs, -1)
        if call.dropout and call.train and layer < call.num_layers - 1:
            input = thinned(input, call.dropout, True)
    output = METHODS["transpose"](input, 0, 1) if call.batch_first else input
    return output, *(_stack(parts, 0) for parts in zip(*last, strict=True))


@public(method=False)
def lstm(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Run a long short-term memory over sequences; return the outputs, the last hidden and the last cell states.

    ``lstm(input, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first)``, or for packed
    sequences ``lstm(data, batch_sizes, hx, params, has_biases, num_layers, dropout, train, bidirectional)``.
    :class:`gradscope.nn.LSTM` says what they are; `params` is its ``_flat_weights``.

    See Also
    --------
    gradscope.nn.LSTM : holds the parameters, and calls this.
    gradscope.lstm_cell : one step.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.LSTM(3, 4)
    >>> state = (gs.zeros(1, 2, 4), gs.zeros(1, 2, 4))
    >>> output, h, c = gs.lstm(gs.ones(5, 2, 3), state, layer._flat_weights, True, 1, 0.0, False, False, False)
    >>> output.shape, h.shape, c.shape
    (gradscope.Size([5, 2, 4]), gradscope.Size([1, 2, 4]), gradscope.Size([1, 2, 4]))
    """
    if state.casting and autocast.covers("lstm", args):
        return autocast.call("lstm", lambda *given: lstm(*given, **kwargs), *args)
    call = _call_of("lstm", args, kwargs)
    if len(call.hx) != 2:
        raise RuntimeError("lstm expects two hidden states\nGive it (h_0, c_0).")
    hidden, cell = call.hx
    return _run(_LSTM, call, (hidden, cell), projected=hidden.shape[2] != cell.shape[2])


@public(method=False)
def gru(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run gated recurrent units over sequences; return the outputs and the last hidden states, see :func:`lstm`.

    See Also
    --------
    gradscope.nn.GRU : holds the parameters, and calls this.
    gradscope.gru_cell : one step.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer, state = gs.nn.GRU(3, 4), gs.zeros(1, 2, 4)
    >>> output, h = gs.gru(gs.ones(5, 2, 3), state, layer._flat_weights, True, 1, 0.0, False, False, False)
    >>> output.shape, h.shape
    (gradscope.Size([5, 2, 4]), gradscope.Size([1, 2, 4]))
    """
    if state.casting and autocast.covers("gru", args):
        return autocast.call("gru", lambda *given: gru(*given, **kwargs), *args)
    call = _call_of("gru", args, kwargs)
    return _run(_GRU, call, (call.hx,))


@public(method=False)
def rnn_tanh(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run Elman's network with tanh; return the outputs and the last hidden states, see :func:`lstm`.

    See Also
    --------
    gradscope.nn.RNN : holds the parameters, and calls this.
    gradscope.rnn_tanh_cell : one step.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer, state = gs.nn.RNN(3, 4), gs.zeros(1, 2, 4)
    >>> output, h = gs.rnn_tanh(gs.ones(5, 2, 3), state, layer._flat_weights, True, 1, 0.0, False, False, False)
    >>> output.shape, (output.abs() <= 1).all()
    (gradscope.Size([5, 2, 4]), tensor(True))
    """
    if state.casting and autocast.covers("rnn_tanh", args):
        return autocast.call("rnn_tanh", lambda *given: rnn_tanh(*given, **kwargs), *args)
    call = _call_of("rnn_tanh", args, kwargs)
    return _run(_TANH, call, (call.hx,))


@public(method=False)
def rnn_relu(*args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Run Elman's network with a rectifier; return the outputs and the last hidden states, see :func:`lstm`.

    See Also
    --------
    gradscope.nn.RNN : with ``nonlinearity="relu"``, holds the parameters and calls this.
    gradscope.rnn_relu_cell : one step.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer, state = gs.nn.RNN(3, 4, nonlinearity="relu"), gs.zeros(1, 2, 4)
    >>> output, h = gs.rnn_relu(gs.ones(5, 2, 3), state, layer._flat_weights, True, 1, 0.0, False, False, False)
    >>> output.shape, (output >= 0).all()
    (gradscope.Size([5, 2, 4]), tensor(True))
    """
    if state.casting and autocast.covers("rnn_relu", args):
        return autocast.call("rnn_relu", lambda *given: rnn_relu(*given, **kwargs), *args)
    call = _call_of("rnn_relu", args, kwargs)
    return _run(_RELU, call, (call.hx,))


# --- single cells -----------------------------------------------------------------------------------------------------


def _cell(name: str, cell: Cell, input: Array, hx: State, w: Weights) -> State:
    """Take one step of a cell, whose operands autocast casts by the name of the function that the user called."""
    if state.casting and autocast.covers(name, (input, *hx)):
        return autocast.call(name, lambda x, h, given: _cell(name, cell, x, tuple(h), Weights(*given)), input, hx, w)
    features = w.ih._array.shape[1]
    if input._array.shape[1] != features:
        raise RuntimeError(
            f"input has inconsistent input_size: got {input._array.shape[1]} expected {features}\n"
            f"The input, of shape {list(input.shape)}, is (batch, features)."
        )
    for number, part in enumerate(hx):
        batch, size = part._array.shape[0], part._array.shape[-1]
        if batch != input._array.shape[0]:
            raise RuntimeError(
                f"Input batch size {input._array.shape[0]} doesn't match hidden{number} batch size {batch}\n"
                f"Input and states are (batch, features); the shapes are {list(input.shape)} and {list(part.shape)}."
            )
        if size != w.hh._array.shape[1]:
            raise RuntimeError(
                f"hidden{number} has inconsistent hidden_size: got {size}, expected {w.hh._array.shape[1]}\n"
                f"Its shape is {list(part.shape)}: (batch, features)."
            )
    return cell.step(linear(input, w.ih, w.bias_ih), hx, w)[0]


@public(method=False)
def lstm_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Return hidden and cell state after one step of a long short-term memory.

    Parameters
    ----------
    input : Tensor
        Of shape (batch, input_size).
    hx : tuple of Tensor
        Hidden and cell state, of shape (batch, hidden_size).
    w_ih, w_hh : Tensor
        Of shape (4 * hidden_size, input_size) and (4 * hidden_size, hidden_size): input, forget, cell, output gate.
    b_ih, b_hh : Tensor, optional
        Of shape (4 * hidden_size).

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.ones(12, 3)
    >>> hidden, cell = gs.lstm_cell(gs.ones(2, 3), (gs.zeros(2, 3), gs.zeros(2, 3)), w, w)
    >>> hidden.shape
    gradscope.Size([2, 3])
    """
    if len(hx) != 2:
        raise RuntimeError("lstm_cell expects two hidden states\nGive it (h, c).")
    return _cell("lstm_cell", LSTM, input, tuple(hx), Weights(w_ih, w_hh, b_ih, b_hh))


@public(method=False)
def gru_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return the hidden state after one step of a gated recurrent unit: reset, update and new gate.

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.ones(9, 3)
    >>> gs.gru_cell(gs.ones(2, 3), gs.zeros(2, 3), w, w).shape
    gradscope.Size([2, 3])
    """
    return _cell("gru_cell", GRU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@public(method=False)
def rnn_tanh_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return ``tanh(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.ones(3, 3)
    >>> gs.rnn_tanh_cell(gs.ones(2, 3), gs.zeros(2, 3), w, w).shape
    gradscope.Size([2, 3])
    """
    return _cell("rnn_tanh_cell", TANH, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]


@public(method=False)
def rnn_relu_cell(
    input: Tensor, hx: Tensor, w_ih: Tensor, w_hh: Tensor, b_ih: Tensor | None = None, b_hh: Tensor | None = None
) -> Tensor:
    """Return ``relu(input @ w_ih.T + b_ih + hx @ w_hh.T + b_hh)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.ones(3, 3)
    >>> gs.rnn_relu_cell(gs.ones(2, 3), gs.zeros(2, 3), w, w).shape
    gradscope.Size([2, 3])
    """
    return _cell("rnn_relu_cell", RELU, input, (hx,), Weights(w_ih, w_hh, b_ih, b_hh))[0]
