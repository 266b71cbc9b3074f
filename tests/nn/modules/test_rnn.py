"""Recurrent networks and cells: shown, named and computed as in PyTorch, forwards, backwards and twice."""

from __future__ import annotations

import copy
import warnings
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint

from .alike import assert_alike, pair

rng = numpy.random.default_rng(0)

NETWORKS = {
    "rnn": lambda n: n.RNN(3, 4),
    "rnn relu": lambda n: n.RNN(3, 4, 1, "relu", False),
    "gru": lambda n: n.GRU(3, 4),
    "gru deep": lambda n: n.GRU(3, 4, 2, bidirectional=True, bias=False),
    "lstm": lambda n: n.LSTM(3, 4),
    "lstm deep": lambda n: n.LSTM(3, 4, num_layers=2, bidirectional=True),
    "lstm projected": lambda n: n.LSTM(3, 4, 2, proj_size=2, bidirectional=True, bias=False),
    "lstm thinned": lambda n: n.LSTM(3, 4, 2, dropout=0.3).eval(),
    "batch first": lambda n: n.RNN(3, 4, num_layers=2, batch_first=True, bidirectional=True),
}


def states(module: Any, *batch: int) -> list[Any]:
    """Return first states for a network, as arrays."""
    count = module.num_layers * (2 if module.bidirectional else 1)
    sizes = [module.proj_size or module.hidden_size] + [module.hidden_size] * isinstance(module, nn.LSTM)
    return [rng.normal(size=(count, *batch, size)) for size in sizes]


def run(lib: Any, module: Any, x: Any, *hx: Any) -> Any:
    return module(x, hx if len(hx) == 2 else hx[0]) if hx else module(x)


@pytest.mark.torch
@pytest.mark.parametrize("name", NETWORKS)
def test_network_is_that_of_pytorch(torch: Any, name: str) -> None:
    make = NETWORKS[name]
    mine, theirs = pair(torch, make)
    assert repr(mine) == repr(theirs)
    assert [(n, tuple(p.shape)) for n, p in mine.named_parameters()] == [
        (n, tuple(p.shape)) for n, p in theirs.named_parameters()
    ]
    assert mine._flat_weights_names == theirs._flat_weights_names
    assert [[tuple(w.shape) for w in layer] for layer in mine.all_weights] == [
        [tuple(w.shape) for w in layer] for layer in theirs.all_weights
    ]
    assert_alike(torch, make, run, rng.normal(size=(5, 2, 3)))
    batch = 5 if mine.batch_first else 2
    assert_alike(torch, make, run, rng.normal(size=(5, 2, 3)), *states(mine, batch), twice=False)
    assert_alike(torch, make, run, rng.normal(size=(5, 3)), *states(mine), twice=False)
    assert_alike(torch, make, run, rng.normal(size=(5, 3)), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("name", [n for n in NETWORKS if n != "batch first"])
@pytest.mark.parametrize("lengths", [[4, 4, 2], [2, 5, 1, 2], [3]], ids=str)
def test_network_over_packed_sequences(torch: Any, name: str, lengths: list[int]) -> None:
    def use(lib: Any, module: Any, x: Any, *hx: Any) -> Any:
        packed = lib.nn.utils.rnn.pack_padded_sequence(x, lengths, enforce_sorted=False)
        output, last = run(lib, module, packed, *hx)
        assert output.batch_sizes is packed.batch_sizes
        return output.data, last, lib.nn.utils.rnn.pad_packed_sequence(output)[0]

    make = NETWORKS[name]
    x = rng.normal(size=(max(lengths), len(lengths), 3))
    assert_alike(torch, make, use, x, *states(make(nn), len(lengths)), twice=len(lengths) == 4)
    assert_alike(torch, make, use, x, twice=False)


def test_a_packed_sequence_gives_what_each_sequence_gives() -> None:
    network = nn.LSTM(3, 4, bidirectional=True).double()
    sequences = [gs.randn(n, 3, dtype=gs.float64) for n in (2, 5, 3)]
    output, (hidden, cell) = network(nn.utils.rnn.pack_sequence(sequences, enforce_sorted=False))
    for k, (sequence, part) in enumerate(zip(sequences, nn.utils.rnn.unpack_sequence(output), strict=True)):
        alone, (h, c) = network(sequence)
        for found, expected in ((part, alone), (hidden[:, k], h), (cell[:, k], c)):
            numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-12)


@pytest.mark.torch
@pytest.mark.parametrize(
    "name", ["RNNCell", "GRUCell", "LSTMCell", "RNNCell relu"], ids=lambda name: name.replace(" ", "-")
)
@pytest.mark.parametrize("bias", [True, False])
def test_cell_is_that_of_pytorch(torch: Any, name: str, bias: bool) -> None:
    def make(n: Any) -> Any:
        relu = {"nonlinearity": "relu"} if name.endswith("relu") else {}
        return getattr(n, name.split()[0])(3, 4, bias, **relu)

    mine, theirs = pair(torch, make)
    assert repr(mine) == repr(theirs)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    count = 2 if name == "LSTMCell" else 1
    for batch in ((2,), ()):
        assert_alike(torch, make, run, rng.normal(size=(*batch, 3)))
        assert_alike(torch, make, run, *(rng.normal(size=(*batch, size)) for size in (3, 4, 4)[: count + 1]))


@pytest.mark.torch
def test_the_graph_of_a_cell_is_that_of_pytorch(torch: Any) -> None:
    """Each gate is a node of its own: split, sigmoids, tanh."""

    def names(lib: Any, cell: Any) -> set[str]:
        found, waiting = set(), [next(iter(cell(lib.ones(2, 3)))).grad_fn]
        while waiting:
            node = waiting.pop()
            found.add(node.name().split("::")[-1])
            waiting += [n for n, _ in node.next_functions if n is not None]
        return found

    for name in ("LSTMCell", "GRUCell"):
        mine, theirs = names(gs, getattr(nn, name)(3, 4)), names(torch, getattr(torch.nn, name)(3, 4))
        assert theirs - mine - {"TBackward0", "UnbindBackward0"} == set()


def test_gradients_of_a_lstm_are_those_of_finite_differences() -> None:
    network = nn.LSTM(2, 3, 2, bidirectional=True, proj_size=2).double()
    x = gs.randn(3, 2, 2, dtype=gs.float64, requires_grad=True)
    parameters = list(network.parameters())

    def outputs(x: Any, *_: Any) -> Any:
        output, (h, c) = network(x)
        return output, h, c

    assert gs.autograd.gradcheck(outputs, (x, *parameters))
    single = nn.GRU(2, 2).double()
    assert gs.autograd.gradgradcheck(lambda x, *_: single(x)[0], (x, *single.parameters()))


def test_dropout_between_layers_only_in_training() -> None:
    gs.manual_seed(0)
    network, x = nn.GRU(3, 50, 2, dropout=0.5), gs.ones(2, 4, 3)
    assert not gs.equal(network(x)[0], network(x)[0])
    network.eval()
    assert gs.equal(network(x)[0], network(x)[0])


def test_parameters_are_bounded_and_survive_copies() -> None:
    network = nn.LSTM(3, 16)
    for parameter in network.parameters():
        assert 0.2 < parameter.detach().abs().max().item() <= 0.25
    twin = copy.deepcopy(network)
    network.double()
    network.weight_hh_l0 = nn.Parameter(gs.zeros(64, 16, dtype=gs.float64))
    assert network._flat_weights[1] is network.weight_hh_l0
    assert (twin._flat_weights[0].dtype, network._flat_weights[0].dtype) == (gs.float32, gs.float64)
    network.flatten_parameters()
    assert network(gs.zeros(2, 1, 3, dtype=gs.float64))[0].dtype is gs.float64


def test_a_carried_state_continues_the_sequence() -> None:
    network, x = nn.LSTM(3, 4, 2).double(), gs.randn(6, 2, 3, dtype=gs.float64)
    whole, _ = network(x)
    first, state = network(x[:4])
    second, _ = network(x[4:], state)
    numpy.testing.assert_allclose(gs.cat([first, second]).detach().numpy(), whole.detach().numpy(), rtol=1e-12)


# --- functions --------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_the_functions_of_the_package(torch: Any) -> None:
    weights = [rng.normal(size=shape) for shape in ((12, 3), (12, 4), (12,), (12,))]
    data, hidden = rng.normal(size=(3, 3)), rng.normal(size=(1, 2, 4))
    found = []
    for lib in (gs, torch):
        params = [lib.tensor(w) for w in weights]
        settings = {"params": params, "has_biases": True, "num_layers": 1, "dropout": 0.0, "train": True}
        output, last = lib.gru(
            data=lib.tensor(data),
            batch_sizes=lib.tensor([2, 1]),
            hx=lib.tensor(hidden),
            bidirectional=False,
            **settings,
        )
        single = lib.gru_cell(lib.tensor(data[:2]), lib.tensor(hidden[0]), *params)
        found.append([t.numpy() for t in (output, last, single)])
    for mine, theirs in zip(*found, strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-12)


def zeros(lib: Any, kind: str, *shape: int) -> Any:
    return (lib.zeros(*shape), lib.zeros(*shape)) if kind.startswith("LSTM") else lib.zeros(*shape)


WRONG_RUNS = {
    "features": lambda lib, net, kind: net(lib.zeros(4, 2, 3)),
    "one dimension": lambda lib, net, kind: net(lib.zeros(4)),
    "dtype": lambda lib, net, kind: net(lib.zeros(4, 2, 2).double()),
    "no time": lambda lib, net, kind: net(lib.zeros(0, 2, 2)),
    "batch of the state": lambda lib, net, kind: net(lib.zeros(4, 2, 2), zeros(lib, kind, 1, 3, 3)),
    "unbatched state": lambda lib, net, kind: net(lib.zeros(4, 2, 2), zeros(lib, kind, 1, 3)),
    "batched state": lambda lib, net, kind: net(lib.zeros(4, 2), zeros(lib, kind, 1, 1, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["RNN", "LSTM", "GRU"])
@pytest.mark.parametrize("wrong", WRONG_RUNS)
def test_wrong_inputs_raise_what_pytorch_raises(torch: Any, kind: str, wrong: str) -> None:
    same_complaint(torch, lambda lib: WRONG_RUNS[wrong](lib, getattr(lib.nn, kind)(2, 3), kind))


WRONG_STEPS = {
    "features": lambda lib, cell, kind: cell(lib.zeros(4, 3)),
    "dimensions": lambda lib, cell, kind: cell(lib.zeros(1, 4, 2)),
    "batch of the state": lambda lib, cell, kind: cell(lib.zeros(4, 2), zeros(lib, kind, 3, 3)),
    "unbatched state": lambda lib, cell, kind: cell(lib.zeros(4, 2), zeros(lib, kind, 3)),
    "features of the state": lambda lib, cell, kind: cell(lib.zeros(4, 2), zeros(lib, kind, 4, 2)),
    "dimensions of the state": lambda lib, cell, kind: cell(lib.zeros(4, 2), zeros(lib, kind, 1, 4, 3)),
}


@pytest.mark.torch
@pytest.mark.parametrize("kind", ["RNNCell", "LSTMCell", "GRUCell"])
@pytest.mark.parametrize("wrong", WRONG_STEPS)
def test_wrong_steps_raise_what_pytorch_raises(torch: Any, kind: str, wrong: str) -> None:
    same_complaint(torch, lambda lib: WRONG_STEPS[wrong](lib, getattr(lib.nn, kind)(2, 3), kind))


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.nn.LSTM(2, 3, proj_size=3),
        lambda lib: lib.nn.LSTM(2, 3, proj_size=-1),
        lambda lib: lib.nn.LSTM(0, 3),
        lambda lib: lib.nn.GRU(2, 0),
        lambda lib: lib.nn.GRU(2, 3.0),
        lambda lib: lib.nn.GRU(2, 3, 0),
        lambda lib: lib.nn.GRU(2, 3, bias=1),
        lambda lib: lib.nn.GRU(2, 3, batch_first=None),
        lambda lib: lib.nn.GRU(2, 3, dropout=2),
        lambda lib: lib.nn.GRU(2, 3, proj_size=1),
        lambda lib: lib.nn.RNN(2, 3, proj_size=1),
        lambda lib: lib.nn.RNN(2, 3, nonlinearity="sin"),
        lambda lib: lib.nn.RNNBase("X", 2, 3),
        lambda lib: lib.nn.RNNBase("GRU", 2, 3)(lib.zeros(1, 1, 2)),
        lambda lib: lib.nn.RNNCell(2, 3, nonlinearity="sin")(lib.zeros(1, 2)),
        lambda lib: lib.lstm(lib.zeros(4, 2, 2), [lib.zeros(1, 2, 3)], [], True, 1, 0.0, True, False, False),
        lambda lib: lib.lstm_cell(lib.zeros(4, 2), [lib.zeros(4, 3)], lib.zeros(12, 2), lib.zeros(12, 3)),
    ],
)
def test_wrong_settings_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_wrong_calls_of_the_functions() -> None:
    x, h = gs.zeros(4, 2, 2), gs.zeros(1, 2, 3)
    weights = nn.GRU(2, 3)._flat_weights
    with pytest.raises(TypeError, match=r"gru\(\) received an invalid combination of arguments - got \(Tensor, Tensor"):
        gs.gru(x, h, weights, True, 1, 0.0, True, False)
    with pytest.raises(RuntimeError, match="incorrect number of RNN parameters"):
        gs.gru(x, h, weights[:3], True, 1, 0.0, True, False, False)
    with pytest.raises(RuntimeError, match="Expected more hidden states"):
        gs.gru(x, h, weights * 2, True, 2, 0.0, True, False, False)


def test_dropout_of_one_layer_warns_where_the_network_is_made() -> None:
    for make in (lambda: nn.LSTM(2, 3, dropout=0.5), lambda: nn.RNN(2, 3, dropout=0.5)):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            make()
        assert [w.filename for w in caught] == [__file__]
        assert "dropout option adds dropout after all but last recurrent layer" in str(caught[0].message)
