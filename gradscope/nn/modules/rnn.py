"""Recurrent networks, and their cells, as modules."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.ops.nn.recurrent import (
    gru,
    gru_cell,
    lstm,
    lstm_cell,
    rnn_relu,
    rnn_relu_cell,
    rnn_tanh,
    rnn_tanh_cell,
)
from ...runtime.tensor.creation import empty, zeros
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn
from .. import init
from ..parameter import Parameter
from ..utils.rnn import PackedSequence
from .module import Module

__all__ = ["GRU", "LSTM", "RNN", "GRUCell", "LSTMCell", "RNNBase", "RNNCell", "RNNCellBase"]

_NETWORKS: dict[str, Any] = {"LSTM": lstm, "GRU": gru, "RNN_TANH": rnn_tanh, "RNN_RELU": rnn_relu}
_GATES = {"LSTM": 4, "GRU": 3, "RNN_TANH": 1, "RNN_RELU": 1}
_CELLS: dict[str, Any] = {"tanh": rnn_tanh_cell, "relu": rnn_relu_cell}


class RNNBase(Module):
    """Base of :class:`RNN`, :class:`LSTM` and :class:`GRU`: parameters and checks.

    Parameters
    ----------
    mode : {"LSTM", "GRU", "RNN_TANH", "RNN_RELU"}
    num_layers : int
        Each layer runs over the outputs of the one below.
    batch_first : bool
        Input and output are (batch, time, features) instead of (time, batch, features).
    dropout : float
        Probability with which, in training, an output of any layer but the last is put to zero.
    bidirectional : bool
        Run each layer also backwards in time; the output has the features of both.
    proj_size : int
        For an LSTM, the size to which the hidden state is projected; 0 for no projection.

    Attributes
    ----------
    weight_ih_l0, weight_hh_l0, bias_ih_l0, bias_hh_l0, weight_hr_l0 : Parameter
        Of the gates, one below the other, of layer 0, drawn uniformly from ±1 / sqrt(hidden_size). Those of the other
        layers end in their number, those of the other direction in ``_reverse``.

    Notes
    -----
    All steps of one direction of one layer are one node of the graph. With
    ``gradscope.backends.mkldnn.flags(enabled=False)`` a layer is composed of single steps, some ten nodes each, so that
    a debugger stops inside of one; a loop over :class:`LSTMCell` always is.

    See Also
    --------
    RNNCellBase : the base of the single steps.

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.GRU(3, 4, bidirectional=True)
    >>> isinstance(layer, gs.nn.RNNBase), layer.mode
    (True, 'GRU')
    >>> [(name, tuple(weight.shape)) for name, weight in layer.named_parameters() if name.endswith("_reverse")][:2]
    [('weight_ih_l0_reverse', (12, 3)), ('weight_hh_l0_reverse', (12, 4))]
    """

    mode: str
    input_size: int
    hidden_size: int
    num_layers: int
    bias: bool
    batch_first: bool
    dropout: float
    bidirectional: bool
    proj_size: int

    def __init__(
        self,
        mode: str,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        bias: bool = True,
        batch_first: bool = False,
        dropout: float = 0.0,
        bidirectional: bool = False,
        proj_size: int = 0,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        _check_dropout(dropout, num_layers)
        _check_kinds(bias, batch_first)
        _check_sizes(input_size, hidden_size, num_layers, proj_size)
        if mode not in _GATES:
            raise ValueError("Unrecognized RNN mode: " + mode)
        self.mode = mode
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.num_layers = num_layers
        self.bias = bias
        self.batch_first = batch_first
        self.dropout = float(dropout)
        self.bidirectional = bidirectional
        self.proj_size = proj_size
        self._all_weights: list[list[str]] = []
        for layer in range(num_layers):
            for suffix in ("", "_reverse")[: self._directions]:
                shapes = self._shapes_of(layer)
                names = [f"{name}_l{layer}{suffix}" for name in shapes]
                for name, shape in zip(names, shapes.values(), strict=True):
                    setattr(self, name, Parameter(empty(*shape, device=device, dtype=dtype)))
                self._all_weights.append(names)
        self._flat_weights_names = [name for names in self._all_weights for name in names]
        self.reset_parameters()

    @property
    def _directions(self) -> int:
        return 2 if self.bidirectional else 1

    def _shapes_of(self, layer: int) -> dict[str, tuple[int, ...]]:
        """Return the shapes of the parameters of one direction of a layer."""
        gates, hidden = _GATES[self.mode] * self.hidden_size, self.proj_size or self.hidden_size
        below = hidden * self._directions if layer else self.input_size
        shapes: dict[str, tuple[int, ...]] = {"weight_ih": (gates, below), "weight_hh": (gates, hidden)}
        if self.bias:
            shapes |= {"bias_ih": (gates,), "bias_hh": (gates,)}
        if self.proj_size:
            shapes["weight_hr"] = (self.proj_size, self.hidden_size)
        return shapes

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size)
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def flatten_parameters(self) -> None:
        """Do nothing: the parameters need not lie side by side."""

    @property
    def _flat_weights(self) -> list[Any]:
        return [getattr(self, name, None) for name in self._flat_weights_names]

    @property
    def all_weights(self) -> list[list[Any]]:
        """The parameters of each direction of each layer."""
        return [[getattr(self, name) for name in names] for names in self._all_weights]

    # --- checks ---

    def check_input(self, input: Any, batch_sizes: Any) -> None:
        """Raise if the input has the wrong dtype, number of dimensions or features."""
        kind = self._flat_weights[0].dtype
        if input.dtype != kind:
            raise ValueError(
                f"RNN input dtype ({input.dtype}) does not match weight dtype ({kind}). Convert input: "
                f"input.to({kind}), or convert model: model.to({input.dtype})"
            )
        expected = 3 if batch_sizes is None else 2
        if input.ndim != expected:
            raise RuntimeError(
                f"input must have {expected} dimensions, got {input.ndim}\n"
                f"They are {'time, batch and features' if expected == 3 else 'elements and features'}."
            )
        if input.shape[-1] != self.input_size:
            raise RuntimeError(
                f"input.size(-1) must be equal to input_size. Expected {self.input_size}, got {input.shape[-1]}\n"
                f"The last dimension of the input, of shape {list(input.shape)}, is its features."
            )

    def get_expected_hidden_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that the hidden state must have."""
        return self._state_shape(input, batch_sizes, self.proj_size or self.hidden_size)

    def _state_shape(self, input: Any, batch_sizes: Any, features: int) -> tuple[int, int, int]:
        batch = input.shape[0 if self.batch_first else 1] if batch_sizes is None else int(batch_sizes[0])
        return self.num_layers * self._directions, batch, features

    def check_hidden_size(
        self, hx: Any, expected_hidden_size: tuple[int, int, int], msg: str = "Expected hidden size {}, got {}"
    ) -> None:
        """Raise if a state has another shape than expected."""
        if hx.shape != expected_hidden_size:
            raise RuntimeError(msg.format(expected_hidden_size, list(hx.shape)) + f"\n{_state_dimensions(3)}")

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise if input or state do not fit the network."""
        self.check_input(input, batch_sizes)
        self.check_hidden_size(hidden, self.get_expected_hidden_size(input, batch_sizes))

    def permute_hidden(self, hx: Any, permutation: Any) -> Any:
        """Return the state of the sequences in another order."""
        return hx if permutation is None else self._each(hx, lambda part: part.index_select(1, permutation))

    # --- running; a state is one tensor here, and a pair of them in an LSTM ---

    def _each(self, hx: Any, function: Any) -> Any:
        return function(hx)

    def _first_state(self, input: Any, batch_sizes: Any) -> Any:
        shape = self.get_expected_hidden_size(input, batch_sizes)
        return zeros(*shape, dtype=input.dtype, device=input.device)

    def _check_rank(self, hx: Any, rank: int) -> None:
        if hx.ndim != rank:
            raise RuntimeError(
                f"For {'' if rank == 3 else 'un'}batched {rank}-D input, hx should also be {rank}-D but got "
                f"{hx.ndim}-D tensor\n{_state_dimensions(rank)}"
            )

    def _state_of(self, results: Any) -> Any:
        return results[1]

    def _settings(self) -> tuple[Any, ...]:
        return self._flat_weights, self.bias, self.num_layers, self.dropout, self.training, self.bidirectional

    def _run(self, input: Any, hx: Any) -> tuple[Any, Any]:
        if isinstance(input, PackedSequence):
            return self._run_packed(input, hx)
        if input.ndim not in (2, 3):
            kind = " tensor" if self.mode.startswith("RNN") else ""
            raise ValueError(
                f"{self.mode.partition('_')[0]}: Expected input to be 2D or 3D, got {input.ndim}D{kind} instead"
            )
        if hx is not None:
            self._check_rank(hx, input.ndim)
        if input.ndim == 2:
            return self._run_unbatched(input, hx)
        return self._run_batch(input, hx)

    def _run_unbatched(self, input: Any, hx: Any) -> tuple[Any, Any]:
        batch = 0 if self.batch_first else 1
        if hx is not None:
            hx = self._each(hx, lambda part: part.unsqueeze(1))
        output, last = self._run_batch(input.unsqueeze(batch), hx)
        return output.squeeze(batch), self._each(last, lambda part: part.squeeze(1))

    def _run_batch(self, input: Any, hx: Any) -> tuple[Any, Any]:
        hx = self._first_state(input, None) if hx is None else hx
        self.check_forward_args(input, hx, None)
        results = _NETWORKS[self.mode](input, hx, *self._settings(), self.batch_first)
        return results[0], self._state_of(results)

    def _run_packed(self, input: PackedSequence, hx: Any) -> tuple[PackedSequence, Any]:
        data, sizes, order, inverse = input
        hx = self._first_state(data, sizes) if hx is None else self.permute_hidden(hx, order)
        self.check_forward_args(data, hx, sizes)
        results = _NETWORKS[self.mode](data, sizes, hx, *self._settings())
        output = PackedSequence(results[0], sizes, order, inverse)
        return output, self.permute_hidden(self._state_of(results), inverse)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        usual = {
            "proj_size": 0,
            "num_layers": 1,
            "bias": True,
            "batch_first": False,
            "dropout": 0,
            "bidirectional": False,
        }
        others = [f"{name}={getattr(self, name)}" for name, value in usual.items() if getattr(self, name) != value]
        return ", ".join([str(self.input_size), str(self.hidden_size), *others])


def _check_dropout(dropout: Any, num_layers: int) -> None:
    if not isinstance(dropout, (int, float)) or isinstance(dropout, bool) or not 0 <= dropout <= 1:
        raise ValueError(
            "dropout should be a number in range [0, 1] representing the probability of an element being zeroed"
        )
    if dropout > 0 and num_layers == 1:
        warn(
            "dropout option adds dropout after all but last recurrent layer, so non-zero dropout expects num_layers "
            f"greater than 1, but got dropout={dropout} and num_layers={num_layers}",
        )


def _check_kinds(bias: Any, batch_first: Any) -> None:
    for name, value in (("bias", bias), ("batch_first", batch_first)):
        if not isinstance(value, bool):
            raise TypeError(f"{name} should be of type bool, got: {type(value).__name__}")


def _check_sizes(input_size: Any, hidden_size: Any, num_layers: int, proj_size: int) -> None:
    for name, size in (("input_size", input_size), ("hidden_size", hidden_size)):
        if not isinstance(size, int):
            raise TypeError(f"{name} should be of type int, got: {type(size).__name__}")
        if size <= 0:
            raise ValueError(f"{name} must be greater than zero")
    if num_layers <= 0:
        raise ValueError("num_layers must be greater than zero")
    if proj_size < 0:
        raise ValueError("proj_size should be a positive integer or zero to disable projections")
    if proj_size >= hidden_size:
        raise ValueError("proj_size has to be smaller than hidden_size")


def _state_dimensions(rank: int) -> str:
    return f"The dimensions are layers times directions, {'batch, ' if rank == 3 else ''}and features."


def _without_projection(kwargs: dict[str, Any]) -> dict[str, Any]:
    if "proj_size" in kwargs:
        raise ValueError("proj_size argument is only supported for LSTM, not RNN or GRU")
    return kwargs


class RNN(RNNBase):
    """Elman's network: ``h = tanh(x @ weight_ih.T + bias_ih + h @ weight_hh.T + bias_hh)`` at each time.

    The parameters are those of :class:`RNNBase`, and:

    Parameters
    ----------
    nonlinearity : {"tanh", "relu"}

    See Also
    --------
    LSTM, GRU, RNNCell, nn.utils.rnn.pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> output, hidden = gs.nn.RNN(4, 6)(gs.randn(5, 3, 4))
    >>> output.shape, hidden.shape
    (gradscope.Size([5, 3, 6]), gradscope.Size([1, 3, 6]))
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        num_layers: int = 1,
        nonlinearity: str = "tanh",
        *args: Any,
        **kwargs: Any,
    ) -> None:
        if nonlinearity not in ("tanh", "relu"):
            raise ValueError(f"Unknown nonlinearity '{nonlinearity}'. Select from 'tanh' or 'relu'.")
        kwargs = _without_projection(kwargs)
        super().__init__("RNN_" + nonlinearity.upper(), input_size, hidden_size, num_layers, *args, **kwargs)
        self.nonlinearity = nonlinearity

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the hidden states of the last layer at all times, and those of all layers at the last.

        Parameters
        ----------
        input : Tensor or PackedSequence
            Of shape (time, batch, input_size), or (time, input_size).
        hx : Tensor, optional
            The first hidden states, of shape (layers * directions, batch, hidden_size), or without the batch; zeros
            unless given.
        """
        return self._run(input, hx)


class GRU(RNNBase):
    """Gated recurrent units; the parameters are those of :class:`RNNBase`.

    References
    ----------
    K. Cho et al., "Learning phrase representations using RNN encoder-decoder", EMNLP 2014.

    See Also
    --------
    LSTM, RNN, GRUCell, nn.utils.rnn.pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> output, hidden = gs.nn.GRU(4, 6)(gs.randn(5, 3, 4))
    >>> output.shape, hidden.shape
    (gradscope.Size([5, 3, 6]), gradscope.Size([1, 3, 6]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("GRU", *args, **_without_projection(kwargs))

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the hidden states of the last layer at all times, and those of all layers at the last.

        The arguments are those of :meth:`RNN.forward`.
        """
        return self._run(input, hx)


class LSTM(RNNBase):
    """Long short-term memory; the parameters are those of :class:`RNNBase`.

    References
    ----------
    S. Hochreiter, J. Schmidhuber, "Long short-term memory", Neural Computation 9 (1997).

    See Also
    --------
    GRU, RNN, LSTMCell, nn.utils.rnn.pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> network = gs.nn.LSTM(4, 8, num_layers=2)
    >>> output, (h, c) = network(gs.zeros(5, 3, 4))
    >>> output.shape, h.shape
    (gradscope.Size([5, 3, 8]), gradscope.Size([2, 3, 8]))
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__("LSTM", *args, **kwargs)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, tuple[Any, Any]]:
        """Return the hidden states of the last layer at all times, and both states of all layers at the last.

        Parameters
        ----------
        input : Tensor or PackedSequence
            Of shape (time, batch, input_size), or (time, input_size).
        hx : tuple of Tensor, optional
            The first hidden and cell states, of shape (layers * directions, batch, proj_size or hidden_size) and
            (layers * directions, batch, hidden_size), or without the batch; zeros unless given.
        """
        return self._run(input, hx)

    def get_expected_cell_size(self, input: Any, batch_sizes: Any) -> tuple[int, int, int]:
        """Return the shape that the cell state must have."""
        return self._state_shape(input, batch_sizes, self.hidden_size)

    def check_forward_args(self, input: Any, hidden: Any, batch_sizes: Any) -> None:
        """Raise if input or states do not fit the network."""
        self.check_input(input, batch_sizes)
        expected = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        for k in range(2):
            self.check_hidden_size(hidden[k], expected[k], f"Expected hidden[{k}] size {{}}, got {{}}")

    def _each(self, hx: Any, function: Any) -> Any:
        return function(hx[0]), function(hx[1])

    def _first_state(self, input: Any, batch_sizes: Any) -> Any:
        shapes = self.get_expected_hidden_size(input, batch_sizes), self.get_expected_cell_size(input, batch_sizes)
        return tuple(zeros(*shape, dtype=input.dtype, device=input.device) for shape in shapes)

    def _check_rank(self, hx: Any, rank: int) -> None:
        if hx[0].ndim != rank or hx[1].ndim != rank:
            raise RuntimeError(
                f"For {'' if rank == 3 else 'un'}batched {rank}-D input, hx and cx should also be {rank}-D but got "
                f"({hx[0].ndim}-D, {hx[1].ndim}-D) tensors\n{_state_dimensions(rank)}"
            )

    def _state_of(self, results: Any) -> Any:
        return results[1:]


# --- cells ------------------------------------------------------------------------------------------------------------


class RNNCellBase(Module):
    """Base of the cells: the parameters of one step.

    Parameters
    ----------
    num_chunks : int
        How many gates there are.

    Attributes
    ----------
    weight_ih, weight_hh, bias_ih, bias_hh : Parameter
        Of the gates, one below the other, drawn uniformly from ±1 / sqrt(hidden_size).

    See Also
    --------
    RNNBase : the base of the layers, which run over sequences.

    Examples
    --------
    >>> import gradscope as gs
    >>> cell = gs.nn.GRUCell(3, 4)
    >>> isinstance(cell, gs.nn.RNNCellBase), cell.weight_ih.shape, cell.bias_ih.shape
    (True, gradscope.Size([12, 3]), gradscope.Size([12]))
    """

    input_size: int
    hidden_size: int
    bias: bool

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool, num_chunks: int, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__()
        self.input_size = input_size
        self.hidden_size = hidden_size
        self.bias = bias
        gates = num_chunks * hidden_size
        for name, shape in (("weight_ih", (gates, input_size)), ("weight_hh", (gates, hidden_size))):
            setattr(self, name, Parameter(empty(*shape, device=device, dtype=dtype)))
        for name in ("bias_ih", "bias_hh"):
            self.register_parameter(name, Parameter(empty(gates, device=device, dtype=dtype)) if bias else None)
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        bound = 1 / math.sqrt(self.hidden_size) if self.hidden_size > 0 else 0
        for parameter in self.parameters():
            init.uniform_(parameter, -bound, bound)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        shown = f"{self.input_size}, {self.hidden_size}" + ("" if self.bias is True else f", bias={self.bias}")
        nonlinearity = getattr(self, "nonlinearity", "tanh")
        return shown if nonlinearity == "tanh" else f"{shown}, nonlinearity={nonlinearity}"

    def _weights(self) -> tuple[Any, ...]:
        return self.weight_ih, self.weight_hh, self.bias_ih, self.bias_hh

    def _check_ranks(self, input: Any, **states: Any) -> None:
        """Raise unless input and states have one or two dimensions."""
        for name, value in {"input": input, **states}.items():
            if value.ndim not in (1, 2):
                raise ValueError(f"{self._get_name()}: Expected {name} to be 1D or 2D, got {value.ndim}D instead")

    def _zeros(self, input: Any) -> Any:
        return zeros(input.shape[0], self.hidden_size, dtype=input.dtype, device=input.device)

    def _step(self, cell: Any, input: Any, hx: Any) -> Any:
        """Run a cell whose state is one tensor."""
        self._check_ranks(input, **({} if hx is None else {"hidden": hx}))
        if input.ndim == 1:
            batch = input.unsqueeze(0)
            return cell(batch, self._zeros(batch) if hx is None else hx.unsqueeze(0), *self._weights()).squeeze(0)
        return cell(input, self._zeros(input) if hx is None else hx, *self._weights())


class RNNCell(RNNCellBase):
    """One step of Elman's network, see :class:`RNN`.

    Parameters
    ----------
    nonlinearity : {"tanh", "relu"}

    See Also
    --------
    RNN, LSTMCell

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.RNNCell(4, 6)(gs.randn(3, 4)).shape
    gradscope.Size([3, 6])
    """

    def __init__(
        self,
        input_size: int,
        hidden_size: int,
        bias: bool = True,
        nonlinearity: str = "tanh",
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 1, device, dtype)
        self.nonlinearity = nonlinearity

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the next hidden state; `hx` is the one before, zeros unless given."""
        if self.nonlinearity not in _CELLS:
            raise RuntimeError(f"Unknown nonlinearity: {self.nonlinearity}")
        return self._step(_CELLS[self.nonlinearity], input, hx)


class GRUCell(RNNCellBase):
    """One step of a gated recurrent unit, see :class:`GRU`.

    See Also
    --------
    GRU, LSTMCell

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.GRUCell(4, 6)(gs.randn(3, 4)).shape
    gradscope.Size([3, 6])
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 3, device, dtype)

    def forward(self, input: Tensor, hx: Any = None) -> Any:
        """Return the next hidden state; `hx` is the one before, zeros unless given."""
        return self._step(gru_cell, input, hx)


class LSTMCell(RNNCellBase):
    """One step of a long short-term memory, see :class:`LSTM`.

    See Also
    --------
    LSTM, GRUCell

    Examples
    --------
    >>> import gradscope as gs
    >>> hidden, cell = gs.nn.LSTMCell(4, 6)(gs.randn(3, 4))
    >>> hidden.shape, cell.shape
    (gradscope.Size([3, 6]), gradscope.Size([3, 6]))
    """

    def __init__(
        self, input_size: int, hidden_size: int, bias: bool = True, device: Any = None, dtype: Any = None
    ) -> None:
        super().__init__(input_size, hidden_size, bias, 4, device, dtype)

    def forward(self, input: Any, hx: Any = None) -> tuple[Any, Any]:
        """Return the next hidden and cell state; `hx` is the pair before, zeros unless given."""
        self._check_ranks(input, **({} if hx is None else {f"hx[{k}]": part for k, part in enumerate(hx)}))
        batch = input if input.ndim == 2 else input.unsqueeze(0)
        if hx is None:
            hx = (self._zeros(batch),) * 2
        elif input.ndim == 1:
            hx = (hx[0].unsqueeze(0), hx[1].unsqueeze(0))
        hidden, cell = lstm_cell(batch, hx, *self._weights())
        return (hidden, cell) if input.ndim == 2 else (hidden.squeeze(0), cell.squeeze(0))
