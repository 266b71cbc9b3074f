"""Compiled gates of recurrent networks, beside NumPy's forms and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both

SPECIAL = [0.0, -0.0, 1e-40, 1e-30, 1.0, -1.0, 88.5, -88.5, 200.0, -200.0, 3e38, -3e38]
NETWORKS = {
    "lstm": lambda nn: nn.LSTM(8, 16, 2, bidirectional=True),
    "lstm projected": lambda nn: nn.LSTM(8, 20, proj_size=5),
    "gru": lambda nn: nn.GRU(8, 21, 2),
    "gru without biases": lambda nn: nn.GRU(8, 20, bias=False, bidirectional=True),
}
SHAPE = (12, 40, 8)


def inputs(*special):
    """Return a sequence that is long enough for the compiled form, with special numbers in it."""
    x = np.random.default_rng(0).standard_normal(SHAPE).astype("f")
    x.reshape(-1)[: 97 * len(special) : 97] = special
    return x


def run(lib, make, x):
    """Return outputs and gradients of one network, whose parameters follow from their shapes."""
    network = make(lib.nn)
    rng = np.random.default_rng(1)
    with lib.no_grad():
        for parameter in network.parameters():
            parameter.copy_(lib.tensor(rng.uniform(-0.3, 0.3, tuple(parameter.shape)).astype("f")))
    leaf = lib.tensor(x, requires_grad=True)
    output, last = network(leaf)
    outputs = [output, *(last if isinstance(last, tuple) else [last])]
    seeds = [lib.tensor(rng.standard_normal(tuple(part.shape)).astype("f")) for part in outputs]
    grads = lib.autograd.grad(outputs, [leaf, *network.parameters()], seeds)
    return [part.detach().numpy() for part in (*outputs, *grads)]


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_both_forms_agree(make):
    for one, other in zip(*both("recurrent_loops", run, gs, make, inputs(*SPECIAL[:10])), strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * max(1, float(np.abs(other).max())))


@pytest.mark.filterwarnings("ignore:LSTM with projections is not supported")
@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_they_are_pytorchs(torch, make):
    expected = run(torch, make, inputs())
    for form in both("recurrent_loops", run, gs, make, inputs()):
        for one, other in zip(form, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-5 * max(1, float(np.abs(other).max())))


@pytest.mark.parametrize("make", NETWORKS.values(), ids=NETWORKS)
def test_numbers_without_bounds_saturate_and_nan_stays(make):
    """Gates are between 0 and 1 at any number, and what a NaN reaches is NaN: in both forms the same places."""
    for special in ([np.inf, -np.inf, *SPECIAL], [np.nan]):
        compiled, plain = both("recurrent_loops", run, gs, make, inputs(*special))
        for one, other in zip(compiled, plain, strict=True):
            assert (np.isnan(one) == np.isnan(other)).all()
    assert np.isnan(compiled[0]).any()


def test_small_layers_are_numpys():
    """Below the size for which a call is worth it, both forms are one."""
    x = inputs()[:3, :4]
    for one, other in zip(*both("recurrent_loops", run, gs, NETWORKS["lstm"], x), strict=True):
        assert (one == other).all()
