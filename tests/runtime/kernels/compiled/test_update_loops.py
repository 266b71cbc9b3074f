"""Steps of optimizers in one compiled pass, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels import loading, updates
from tests.runtime.kernels.both_forms import both, numpy_alone

LARGE = (updates.LEAST // 128, 64)
OPTIMIZERS = {
    "sgd": lambda lib, p: lib.optim.SGD(p, lr=0.1),
    "sgd with decay": lambda lib, p: lib.optim.SGD(p, lr=0.1, weight_decay=0.3),
    "sgd upwards": lambda lib, p: lib.optim.SGD(p, lr=0.1, weight_decay=0.3, maximize=True),
    "momentum": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, dampening=0.2, weight_decay=0.1),
    "momentum upwards": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, maximize=True),
    "nesterov": lambda lib, p: lib.optim.SGD(p, lr=0.1, momentum=0.9, nesterov=True),
    "adam": lambda lib, p: lib.optim.Adam(p, lr=0.1),
    "adam with decay": lambda lib, p: lib.optim.Adam(p, lr=0.1, weight_decay=0.2, maximize=True),
    "adamw": lambda lib, p: lib.optim.AdamW(p, lr=0.1, betas=(0.8, 0.95), eps=1e-3),
    "amsgrad": lambda lib, p: lib.optim.Adam(p, lr=0.1, amsgrad=True),
}


def trained(lib, build, shape=LARGE, steps=4):
    """Return a parameter after some steps, what the optimizer keeps of it, and its version."""
    rng = np.random.default_rng(0)
    parameter = lib.nn.Parameter(lib.from_numpy(rng.standard_normal(shape).astype("f")))
    optimizer = build(lib, [parameter])
    for _ in range(steps):
        parameter.grad = lib.from_numpy(rng.standard_normal(shape).astype("f"))
        before = parameter.grad.numpy().copy()
        optimizer.step()
        assert np.array_equal(parameter.grad.numpy(), before)
    kept = [value.numpy() for value in optimizer.state[parameter].values()]
    return [parameter.detach().numpy(), *kept], parameter._version


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_both_forms_take_the_same_steps(name):
    (found, version), (expected, written) = both("update_loops", trained, gs, OPTIMIZERS[name])
    assert version == written
    for one, other in zip(found, expected, strict=True):
        # A compiler may round a product and a sum once.
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_steps_are_pytorchs(torch, name):
    pytest.importorskip("numba", reason="compiles kernels")
    (found, version), (expected, theirs) = (trained(lib, OPTIMIZERS[name]) for lib in (gs, torch))
    assert version == theirs
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=2e-5, atol=2e-6)


def test_nan_and_infinities_are_kept():
    def step():
        parameter = gs.nn.Parameter(gs.zeros(LARGE))
        parameter.grad = gs.zeros(LARGE)
        parameter.grad.view(-1)[:3] = gs.tensor([float("nan"), float("inf"), -float("inf")])
        gs.optim.Adam([parameter], lr=0.1).step()
        return parameter.detach().numpy()

    found, expected = both("update_loops", step)
    assert np.array_equal(found, expected, equal_nan=True)


def test_threads_make_no_difference():
    pytest.importorskip("numba", reason="compiles kernels")
    count = gs.get_num_threads()
    try:
        gs.set_num_threads(1)
        (one, *_), _ = trained(gs, OPTIMIZERS["adam"], (1 << 20,), 2)
        gs.set_num_threads(2)
        (two, *_), _ = trained(gs, OPTIMIZERS["adam"], (1 << 20,), 2)
    finally:
        gs.set_num_threads(count)
    assert np.array_equal(one, two)


def test_without_numba_the_written_formulas_run():
    with numpy_alone():
        assert loading.compiled("update_loops") is None
        assert trained(gs, OPTIMIZERS["adam"])[1] == 4
