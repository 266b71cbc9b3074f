"""Parameter and Buffer."""

from __future__ import annotations

import copy
import pickle

import pytest

import gradscope as gs
from gradscope import nn


def test_a_parameter_is_a_leaf_that_shares_memory_and_version() -> None:
    x = gs.zeros(2)
    p = nn.Parameter(x)
    assert isinstance(p, gs.Tensor)
    assert (p.is_leaf, p.requires_grad) == (True, True)
    x.add_(1)
    assert p.tolist() == [1.0, 1.0]
    assert p._version == 1
    assert not nn.Parameter(x, requires_grad=False).requires_grad


def test_results_are_plain_tensors() -> None:
    p = nn.Parameter(gs.ones(2))
    for result in (p * 2, 2 * p, p + p, p.detach(), p.data, p[0], p.sum()):
        assert type(result) is gs.Tensor


def test_repr() -> None:
    assert repr(nn.Parameter(gs.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_copies_stay_parameters() -> None:
    p = nn.Parameter(gs.ones(2))
    p.grad = gs.ones(2)
    for other in (copy.deepcopy(p), pickle.loads(pickle.dumps(p))):
        assert type(other) is nn.Parameter
        assert other.requires_grad
        assert other.tolist() == [1.0, 1.0]
        assert other.data_ptr() != p.data_ptr()
        assert other.grad is None


def test_a_parameter_of_an_inference_tensor_is_one() -> None:
    with gs.inference_mode():
        x = gs.ones(2)
        assert nn.Parameter(x).is_inference()
    with pytest.raises(RuntimeError, match="on inference tensor outside InferenceMode"):
        nn.Parameter(x)
    assert nn.Parameter(x.clone()).requires_grad


def test_wrong_data() -> None:
    with pytest.raises(TypeError, match="Creating a Parameter from an instance of type list"):
        nn.Parameter([1.0])
    with pytest.raises(RuntimeError, match="floating point and complex dtype can require gradients"):
        nn.Parameter(gs.tensor([1]))


def test_buffers_become_part_of_the_state() -> None:
    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.kept = nn.Buffer(gs.zeros(1))
            self.scratch = nn.Buffer(gs.zeros(1), persistent=False)

    module = Counter()
    assert [name for name, _ in module.named_buffers()] == ["kept", "scratch"]
    assert list(module.state_dict()) == ["kept"]


@pytest.mark.filterwarnings("ignore:Lazy modules are a new feature:UserWarning")
def test_what_waits_for_a_shape_can_be_pickled() -> None:
    for made in (gs.nn.LazyLinear(3, dtype=gs.float64), gs.nn.LazyBatchNorm1d()):
        again = pickle.loads(pickle.dumps(made))
        assert nn.parameter.is_lazy(again.weight)
        assert repr(again) == repr(made)
        again(gs.ones(2, 4, dtype=gs.float64 if isinstance(made, gs.nn.LazyLinear) else None))
        assert not nn.parameter.is_lazy(again.weight)
        assert nn.parameter.is_lazy(made.weight)
    assert pickle.loads(pickle.dumps(gs.nn.UninitializedParameter(requires_grad=False))).requires_grad is False


def test_a_copy_of_a_hooks_handle_removes_the_copys_hook() -> None:
    layer = nn.Linear(1, 1)
    layer.handle = layer.register_forward_hook(print)
    for again in (copy.deepcopy(layer), pickle.loads(pickle.dumps(layer))):
        again.handle.remove()
        assert len(again._forward_hooks) == 0
    assert len(layer._forward_hooks) == 1
    assert layer.register_forward_hook(print).id not in (layer.handle.id,)
