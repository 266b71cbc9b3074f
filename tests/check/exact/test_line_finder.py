import sys

import numpy as np
import pytest

import gradscope as gs
from gradscope.check.exact.line_finder import LineFinder, SavedOnce
from gradscope.inspect.adapters import adapter_for


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    """A framework: gradscope's own, or PyTorch."""
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


def run(lib, write, look=lambda node: None):
    """Save memory of an array, write it, and go backward."""
    array = np.ones(3)
    w = lib.ones(3, dtype=lib.float64, requires_grad=True)
    product = w * lib.from_numpy(array)
    look(product.grad_fn)
    if write:
        array[1] = 7
    unrelated = array.sum()
    product.sum().backward()
    array[2] = unrelated


def found(lib, write, **changes):
    adapter = adapter_for(lib.ones(1))
    numbers = []
    run(lib, write, lambda node: numbers.append(adapter.sequence_nr(node)))
    facts = {"framework": adapter.name, "number": 0, "node": "MulBackward0", "saved_name": "other", **changes}
    # The next run is numbered after this one: as many nodes further.
    finder = LineFinder(adapter, [SavedOnce(**{**facts, "number": n}) for n in range(numbers[0], numbers[0] + 50)])
    try:
        run(lib, write)
    finally:
        finder.close()
    return [place.source for place in finder.found.values()]


def test_the_line_that_writes_is_found(lib):
    before = sys.gettrace()
    assert found(lib, True) == ["array[1] = 7"]
    assert sys.gettrace() is before


def test_a_write_after_the_node_has_run_is_none(lib):
    assert found(lib, False) == []


@pytest.mark.parametrize("changes", [{"framework": "another"}, {"node": "AddBackward0"}, {"saved_name": "result"}])
def test_what_is_not_met_again_is_not_found(lib, changes):
    assert found(lib, True, **changes) == []
