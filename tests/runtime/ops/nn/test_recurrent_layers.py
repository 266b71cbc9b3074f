"""Recurrent layers in one node: named and guarded as in PyTorch, with the numbers of the single steps."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from gradscope.runtime.errors import SavedTensorModifiedError

NETWORKS: dict[str, Callable[[Any], Any]] = {
    "lstm": lambda n: n.LSTM(3, 4, 2, bidirectional=True),
    "lstm without biases": lambda n: n.LSTM(3, 4, bias=False),
    "lstm projected": lambda n: n.LSTM(3, 4, 2, proj_size=2, bidirectional=True),
    "gru": lambda n: n.GRU(3, 4, 2, bidirectional=True, batch_first=True),
    "rnn tanh": lambda n: n.RNN(3, 4, bidirectional=True),
    "rnn relu": lambda n: n.RNN(3, 4, 2, "relu", False),
}
ONE_STEP_A_NODE: Any = {"enabled": False}


def nodes_of(*tensors: Any) -> Counter[str]:
    """Return how many nodes of each name the graphs of tensors have, without leaves."""
    found, seen, waiting = Counter[str](), set(), [t.grad_fn for t in tensors]
    while waiting:
        node = waiting.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        found[node.name().split("::")[-1]] += 1
        waiting += [n for n, _ in node.next_functions]
    del found["AccumulateGrad"]
    return found


def results(network: Any, x: Any, hx: Any, packed: bool) -> list[Any]:
    """Return the output and the last states, and the gradients of all that goes in."""
    given = nn.utils.rnn.pack_padded_sequence(x, [5, 3, 3], batch_first=network.batch_first) if packed else x
    output, last = network(given, hx if isinstance(network, nn.LSTM) else hx[0])
    output, last = (output.data if packed else output), last if isinstance(last, tuple) else (last,)
    total = sum((part * gs.cos(gs.arange(float(part.numel()))).reshape(part.shape)).sum() for part in (output, *last))
    leaves = [x, *hx[: len(last)], *network.parameters()]
    return [part.detach().numpy() for part in (output, *last, *gs.autograd.grad(total, leaves))]


@pytest.mark.parametrize("dtype", [gs.float32, gs.float64], ids=str)
@pytest.mark.parametrize("packed", [False, True], ids=["whole", "packed"])
@pytest.mark.parametrize("name", NETWORKS)
def test_one_node_gives_what_single_steps_give(name: str, packed: bool, dtype: Any) -> None:
    gs.manual_seed(0)
    network = NETWORKS[name](nn).to(dtype)
    count = network.num_layers * (1 + network.bidirectional)
    x = gs.randn(*((3, 5, 3) if network.batch_first else (5, 3, 3)), dtype=dtype, requires_grad=True)
    sizes = network.proj_size or 4, 4
    hx = tuple(gs.randn(count, 3, size, dtype=dtype, requires_grad=True) for size in sizes)
    found = results(network, x, hx, packed)
    with gs.backends.mkldnn.flags(**ONE_STEP_A_NODE):
        expected = results(network, x, hx, packed)
    tolerance = 1e-5 if dtype is gs.float32 else 1e-12
    for one, other in zip(found, expected, strict=True):
        numpy.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


# --- the graph --------------------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:TF32 acceleration")
@pytest.mark.parametrize("enabled", [True, False])
@pytest.mark.parametrize(
    "make",
    [
        lambda n: n.LSTM(3, 4, 2, bidirectional=True),
        lambda n: n.LSTM(3, 4, bias=False),
        lambda n: n.LSTM(3, 4, 3, dropout=0.5).eval(),
    ],
)
def test_the_graph_of_a_lstm_is_that_of_pytorch(torch: Any, make: Any, enabled: bool) -> None:
    graphs = []
    for lib in (gs, torch):
        with lib.backends.mkldnn.flags(enabled=enabled):
            graphs.append(nodes_of(make(lib.nn)(lib.ones(5, 2, 3))[0]))
    mine, theirs = graphs
    if enabled:
        assert mine == theirs
    else:  # weights are not transposed by a node of its own, and a product with a bias is one of three dimensions
        assert theirs.keys() - mine.keys() <= {"TBackward0", "ViewBackward0", "ToCopyBackward0"}


@pytest.mark.torch
def test_the_node_of_a_lstm_is_that_of_pytorch(torch: Any) -> None:
    nodes = [lib.nn.LSTM(3, 4)(lib.ones(5, 2, 3))[0].grad_fn for lib in (gs, torch)]
    for name in ("input", "weight0", "weight1", "weight2", "weight3", "hx_", "cx_", "result0"):
        mine, theirs = (getattr(node, f"_saved_{name}").shape for node in nodes)
        assert tuple(mine) == tuple(theirs)
    assert [len(node.next_functions) for node in nodes] == [7, 7]
    assert [(list(node._saved_batch_sizes), node._saved_reverse) for node in nodes] == [([], False)] * 2


@pytest.mark.parametrize(
    ("network", "name"),
    [
        (nn.LSTM(3, 4, proj_size=2), "LstmLayerBackward0"),
        (nn.LSTM(3, 4).double(), "LstmLayerBackward0"),
        (nn.GRU(3, 4), "GruLayerBackward0"),
        (nn.RNN(3, 4), "RnnTanhLayerBackward0"),
        (nn.RNN(3, 4, nonlinearity="relu"), "RnnReluLayerBackward0"),
    ],
    ids=lambda part: part if isinstance(part, str) else repr(part),
)
def test_a_layer_is_a_node_where_pytorch_has_none(network: Any, name: str) -> None:
    output, _ = network(gs.ones(5, 2, 3, dtype=network.weight_ih_l0.dtype))
    assert nodes_of(output) == {name: 1}
    packed, _ = network(nn.utils.rnn.pack_sequence([output.new_ones(5, 3), output.new_ones(2, 3)]))
    assert nodes_of(packed.data) == {name: 1}


def test_half_precision_is_composed_of_steps() -> None:
    output, _ = nn.LSTM(3, 4).bfloat16()(gs.ones(5, 2, 3, dtype=gs.bfloat16))
    assert nodes_of(output)["SigmoidBackward0"] == 15


def test_the_switch_can_be_set_for_good() -> None:
    gs.backends.mkldnn.enabled = False
    try:
        assert "StackBackward0" in nodes_of(nn.GRU(3, 4)(gs.ones(5, 2, 3))[0])
    finally:
        gs.backends.mkldnn.enabled = True
    assert nodes_of(nn.GRU(3, 4)(gs.ones(5, 2, 3))[0]) == {"GruLayerBackward0": 1}


# --- what is saved ----------------------------------------------------------------------------------------------------


def written(lib: Any, make: Callable[[Any], Any], place: str) -> None:
    """Write to something between forward and backward."""
    network = make(lib.nn)
    x, h = lib.ones(5, 2, 3), lib.zeros(1, 2, 4)
    output, last = network(x, (h, lib.zeros(1, 2, 4)) if isinstance(network, lib.nn.LSTM) else h)
    total = output.sum()
    last = last[0] if isinstance(last, tuple) else last
    with lib.no_grad():
        {"input": x, "state": h, "weight": network.weight_hh_l0, "output": output, "last": last}[place].add_(1)
    total.backward()


PLACES = {"input": "input", "state": "hx_", "weight": "weight1", "output": "result0"}


@pytest.mark.torch
@pytest.mark.parametrize("place", PLACES)
def test_a_write_to_what_a_lstm_has_saved_is_found_as_in_pytorch(torch: Any, place: str) -> None:
    for lib in (gs, torch):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            written(lib, lambda n: n.LSTM(3, 4), place)
    with pytest.raises(SavedTensorModifiedError, match=f"MkldnnRnnLayerBackward0 saved it as `{PLACES[place]}`"):
        written(gs, lambda n: n.LSTM(3, 4), place)


@pytest.mark.torch
@pytest.mark.parametrize("make", [lambda n: n.GRU(3, 4), lambda n: n.RNN(3, 4)], ids=["gru", "rnn"])
@pytest.mark.parametrize("place", ["input", "state", "weight"])
def test_a_write_to_what_a_layer_has_saved_is_found(torch: Any, make: Any, place: str) -> None:
    for lib in (gs, torch):
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            written(lib, make, place)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")
@pytest.mark.parametrize("name", NETWORKS)
def test_outputs_may_be_written_where_pytorch_lets_them(torch: Any, name: str) -> None:
    make = {"lstm": lambda n: n.LSTM(3, 4).double(), "lstm without biases": lambda n: n.LSTM(3, 4)}.get(
        name, NETWORKS[name]
    )
    for lib in (gs, torch):
        network = make(lib.nn)
        output, last = network(lib.ones(5, 2, 3, dtype=network.weight_ih_l0.dtype))
        (last[0] if isinstance(last, tuple) else last).mul_(2)
        if name != "lstm without biases":  # that of single precision saves its output
            output.mul_(0)
        output.sum().backward()
        assert (float(network.weight_hh_l0.grad.abs().sum()) == 0) == (name != "lstm without biases")


def test_what_was_saved_is_kept_for_a_second_backward_and_then_released() -> None:
    network, x = nn.LSTM(3, 4), gs.randn(5, 2, 3, requires_grad=True)
    total = network(x)[0].sum()
    (first,) = gs.autograd.grad(total, x, retain_graph=True)
    (second,) = gs.autograd.grad(total, x)
    assert gs.equal(first, second)
    with pytest.raises(RuntimeError, match="second time"):
        gs.autograd.grad(total, x)


def test_tensors_that_hooks_pack_are_those_that_are_saved() -> None:
    network, x = nn.LSTM(3, 4), gs.randn(5, 2, 3, requires_grad=True)
    (expected,) = gs.autograd.grad(network(x)[0].sum(), x)
    packed: list[Any] = []

    def pack(tensor: Any) -> int:
        packed.append(tensor.detach().clone())
        return len(packed) - 1

    with gs.autograd.graph.saved_tensors_hooks(pack, packed.__getitem__):
        output, _ = network(x)
    assert {(5, 2, 3), (5, 2, 4), (16, 3), (16, 4), (10, 16)} <= {tuple(t.shape) for t in packed}
    assert gs.equal(gs.autograd.grad(output.sum(), x)[0], expected)


# --- backward ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NETWORKS)
def test_gradients_are_the_same_alone(name: str) -> None:
    network = NETWORKS[name](nn)
    x = gs.randn(3, 5, 3, requires_grad=True)
    leaves = [x, *network.parameters()]

    def gradients(*wanted: Any) -> tuple[Any, ...]:
        output, last = network(x)
        last = last if isinstance(last, tuple) else (last,)
        return gs.autograd.grad(output.square().sum() + sum(part.sum() for part in last), wanted)

    together = gradients(*leaves)
    for leaf, expected in zip(leaves, together, strict=True):
        for other in leaves:
            other.requires_grad_(other is leaf)
        assert gs.equal(gradients(leaf)[0], expected)
        for other in leaves:
            other.requires_grad_()


def test_gradients_of_both_biases_are_two_tensors() -> None:
    network = nn.LSTM(3, 4)
    network(gs.randn(5, 2, 3))[0].sum().backward()
    assert gs.equal(network.bias_ih_l0.grad, network.bias_hh_l0.grad)
    network.bias_ih_l0.grad.zero_()
    assert network.bias_hh_l0.grad.abs().sum() > 0


@pytest.mark.parametrize("name", NETWORKS)
def test_backward_leaves_what_came_in_alone(name: str) -> None:
    network = NETWORKS[name](nn)
    outputs = network(gs.randn(3, 5, 3))
    outputs = [outputs[0], *(outputs[1] if isinstance(outputs[1], tuple) else outputs[1:])]
    grads = [gs.randn(part.shape) for part in outputs]
    before = [grad.clone() for grad in grads]
    gs.autograd.backward(outputs, grads)
    assert all(map(gs.equal, grads, before))


@pytest.mark.torch
def test_second_derivatives_of_a_lstm_in_single_precision(torch: Any) -> None:
    rng = numpy.random.default_rng(0)
    x, g = (rng.standard_normal(shape).astype("f") for shape in ((5, 2, 3), (5, 2, 4)))
    weights = [rng.standard_normal(shape).astype("f") for shape in ((16, 3), (16, 4), (16,), (16,))]

    def derivatives(lib: Any) -> list[Any]:
        network, leaf = lib.nn.LSTM(3, 4), lib.tensor(x, requires_grad=True)
        with lib.no_grad():
            for parameter, weight in zip(network.parameters(), weights, strict=True):
                parameter.copy_(lib.tensor(weight))
        leaves = [leaf, *network.parameters()]
        first = lib.autograd.grad(network(leaf)[0], leaves, lib.tensor(g), create_graph=True)
        second = lib.autograd.grad(sum(part.square().sum() for part in first), leaves)
        return [part.detach().numpy() for part in (*first, *second)]

    for mine, theirs in zip(derivatives(gs), derivatives(torch), strict=True):
        numpy.testing.assert_allclose(mine, theirs, rtol=1e-3, atol=1e-3)


@pytest.mark.parametrize("name", NETWORKS)
def test_tangents_are_those_of_the_single_steps(name: str) -> None:
    network = NETWORKS[name](nn).double()
    x, t = (gs.randn(3, 5, 3, dtype=gs.float64) for _ in range(2))
    _, found = gs.func.jvp(lambda x: network(x)[0], (x,), (t,))
    with gs.backends.mkldnn.flags(**ONE_STEP_A_NODE):
        _, expected = gs.func.jvp(lambda x: network(x)[0], (x,), (t,))
    numpy.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=1e-10, atol=1e-12)


@pytest.mark.filterwarnings("ignore:Anomaly Detection", "ignore:Error detected in MkldnnRnnLayerBackward0")
def test_anomaly_mode_names_the_layer() -> None:
    network, x = nn.LSTM(3, 4), gs.full((5, 2, 3), float("nan"))
    with gs.autograd.detect_anomaly():
        total = network(x)[0].sum()
        with pytest.raises(RuntimeError, match="Function 'MkldnnRnnLayerBackward0' returned nan"):
            total.backward()


def test_nothing_is_recorded_without_grad_or_in_inference_mode() -> None:
    network, x = nn.LSTM(3, 4), gs.randn(5, 2, 3)
    expected, _ = network(x)
    with gs.no_grad():
        plain, _ = network(x)
    with gs.inference_mode():
        inferred, _ = network(x)
    assert (plain.grad_fn, plain.requires_grad, inferred.is_inference()) == (None, False, True)
    assert gs.equal(plain, expected.detach())
    assert gs.equal(inferred, plain)


def test_two_threads_compute_the_same_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradscope.runtime.kernels import threads

    network, x = nn.LSTM(4, 8), gs.randn(3, 256, 4)

    def gradients() -> list[Any]:
        return list(gs.autograd.grad(network(x)[0].square().sum(), list(network.parameters())))

    expected = gradients()
    monkeypatch.setattr(threads, "WORTH", 1024)
    monkeypatch.setattr(threads._Threads, "count", 2)
    assert all(map(gs.equal, gradients(), expected))
