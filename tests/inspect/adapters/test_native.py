"""What the native adapter answers."""

import numpy as np
import pytest

import gradscope as gs
from gradscope.inspect import Location
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.adapters.native import location_of
from gradscope.inspect.records import TensorSpec


class Everything:
    """An observer that keeps what it hears."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args: self.heard.append(name)


def test_tensors_and_roots():
    adapter = NativeAdapter()
    x = gs.ones(2, requires_grad=True)
    assert adapter.is_tensor(x)
    assert not adapter.is_tensor(np.ones(2))
    assert adapter.root(gs.ones(2)) is None
    leaf, nr = adapter.root(x)
    assert (adapter.node_name(leaf), nr) == ("AccumulateGrad", 0)
    assert adapter.variable(leaf) is x
    first, second = x.unbind()
    node, nr = adapter.root(second)
    assert (adapter.node_name(node), nr, adapter.variable(node)) == ("UnbindBackward0", 1, None)
    assert first.grad_fn is node
    assert adapter.outputs(node) == (TensorSpec((), "float32", "cpu"),) * 2


def test_specs_and_host_values():
    adapter = NativeAdapter()
    x = gs.ones(2, 3, dtype=gs.float64, requires_grad=True)
    assert adapter.spec(x) == TensorSpec((2, 3), "float64", "cpu")
    assert adapter.to_host(x).tolist() == [[1.0] * 3] * 2


def test_tensor_like():
    adapter, spec = NativeAdapter(), TensorSpec((2,), "float16", "cpu")
    made = adapter.tensor_like(3, spec)
    assert (made.dtype, made.tolist(), made.requires_grad) == (gs.float16, [3.0, 3.0], False)
    kept = gs.tensor([1.0, 2.0])
    copy = adapter.tensor_like(kept, TensorSpec((2,), "float32", "cpu"))
    copy.mul_(0)
    assert kept.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="cannot take a value"):
        adapter.tensor_like([1, 2, 3], spec)


def test_observation_of_both_directions():
    adapter, everything = NativeAdapter(), Everything()
    model = gs.nn.Linear(2, 1)
    with adapter.observe(everything, forward=True, backward=True):
        model(gs.ones(1, 2)).sum().backward()
    expected = ["module_entered", "operator_recorded", "module_left", "operator_recorded", "task_started"]
    assert everything.heard == expected + ["node_entered", "node_exited"] * 4 + ["task_finished"]
    model(gs.ones(1, 2)).sum().backward()
    assert len(everything.heard) == len(expected) + 9


def test_observation_of_one_direction():
    adapter, everything = NativeAdapter(), Everything()
    with adapter.observe(everything, forward=False, backward=True) as observation:
        x = gs.ones(1, requires_grad=True)
        (x * 2).backward()
        assert set(everything.heard) == {"task_started", "node_entered", "node_exited", "task_finished"}
        observation.close()
        observation.close()


def test_failures_and_violations_are_told():
    adapter, everything = NativeAdapter(), Everything()
    y = gs.ones(2, requires_grad=True).exp()
    loss = y.sum()
    with gs.no_grad():
        y.mul_(2)
    with adapter.observe(everything, forward=False, backward=True), pytest.raises(RuntimeError):
        loss.backward()
    assert everything.heard[-2:] == ["violation", "task_failed"]


def test_locations():
    adapter = NativeAdapter()
    with adapter.observe(Everything(), forward=True, backward=False):
        y = gs.ones(2, requires_grad=True) * 2  # this line
    location = adapter.location(y.grad_fn)
    assert isinstance(location, Location)
    assert (location.filename, location.source) == (__file__, "y = gs.ones(2, requires_grad=True) * 2  # this line")
    assert location_of(None) is None
    assert adapter.location((gs.ones(2, requires_grad=True) * 2).grad_fn) is None
