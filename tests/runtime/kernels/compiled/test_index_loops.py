"""Compiled sums of rows at indices, beside NumPy's form and PyTorch."""

import numpy as np
import pytest

import gradscope as gs
from tests.runtime.kernels.both_forms import both

ROWS, WIDTH = 50, 40
CALLS = {
    "embedding": lambda lib, table, at: lib.nn.functional.embedding(at, table),
    "padding": lambda lib, table, at: lib.nn.functional.embedding(at, table, padding_idx=3),
    "frequency": lambda lib, table, at: lib.nn.functional.embedding(at, table, scale_grad_by_freq=True),
    "index": lambda lib, table, at: table[at],
    "index from the end": lambda lib, table, at: table[at - ROWS],
    "int32": lambda lib, table, at: lib.nn.functional.embedding(at.int(), table),
    "columns": lambda lib, table, at: table.T.contiguous()[:, at],
    "elements": lambda lib, table, at: table.reshape(-1)[at * WIDTH],
}


def gradient(lib, call, expanded=False, count=60):
    rng = np.random.default_rng(0)
    table = lib.tensor(rng.standard_normal((ROWS, WIDTH)).astype("f"), requires_grad=True)
    result = call(lib, table, lib.tensor(rng.integers(ROWS, size=(count, 16))))
    if expanded:
        result.sum().backward()
    else:
        result.backward(lib.tensor(rng.standard_normal(result.shape).astype("f")))
    return table.grad.numpy()


@pytest.mark.parametrize("expanded", [False, True], ids=["own gradient", "expanded gradient"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_both_forms_are_pytorchs(torch, call, expanded):
    count = 2000 if call is CALLS["elements"] else 60
    expected = gradient(torch, call, expanded, count)
    for form in both("index_loops", gradient, gs, call, expanded, count):
        np.testing.assert_allclose(form, expected, rtol=1e-5, atol=1e-4)


def test_both_forms_add_in_the_same_order():
    compiled, plain = both("index_loops", gradient, gs, CALLS["embedding"])
    np.testing.assert_array_equal(compiled, plain)
