"""What nodes save, and what is said when it has been written."""

from __future__ import annotations

import gc
import weakref

import pytest

import gradscope as gs
from gradscope.runtime.graph.saved_tensors import SavedTensor


def make():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    w = gs.tensor([3.0, 4.0], requires_grad=True)
    return x, w, x * w


def test_saved_tensors_by_name():
    x, w, y = make()
    node = y.grad_fn
    assert node._saved_self is x
    assert node._saved_other is w
    raw = node._raw_saved_self
    assert isinstance(raw, SavedTensor)
    assert (raw.name, raw.shape, raw.dtype, raw.nbytes) == ("self", (2,), gs.float32, 8)
    assert (raw.saved_version, raw.current_version, raw.released, raw.is_output) == (0, 0, False, False)
    assert {s.name for s in node.saved_tensors_info()} == {"self", "other"}


def test_saved_result_unpacks_with_its_history_and_makes_no_cycle():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    unpacked = y.grad_fn._saved_result
    assert unpacked.grad_fn is y.grad_fn
    assert unpacked is not y
    alive = weakref.ref(y.grad_fn)
    gc.disable()
    try:
        del y, unpacked
        assert alive() is None
    finally:
        gc.enable()


def test_memory_saved_before_it_had_a_counter_was_at_version_0():
    _x, w, y = make()
    alias = w.detach()  # w gets its counter now
    saved = {s.name: s for s in y.grad_fn.saved_tensors_info()}
    assert saved["other"].saved_version == saved["other"].current_version == 0
    y.sum().backward(retain_graph=True)
    alias.mul_(2)
    assert (saved["other"].saved_version, saved["other"].current_version) == (0, 1)
    with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
        y.sum().backward()


@pytest.mark.parametrize("is_leaf", [True, False])
def test_a_tensor_that_was_given_inference_memory_is_no_common_operand(is_leaf):
    x = gs.ones(2, requires_grad=True)
    y = x if is_leaf else x * 2
    _ = y * y
    node = y.grad_fn
    with gs.inference_mode():
        values = gs.ones(2)
    y.data = values
    for _ in range(2):
        with pytest.raises(RuntimeError, match="Inference tensors cannot be saved for backward"):
            y * y
    assert y.grad_fn is node
    assert y.requires_grad
    y.data = gs.full((2,), 3.0)
    (y * y).sum().backward()
    assert y.grad_fn is node
    assert x.grad.tolist() == ([6.0, 6.0] if is_leaf else [12.0, 12.0])


def test_violation_carries_the_facts():
    x, _, y = make()
    with gs.no_grad():
        x.add_(1)
    raw = y.grad_fn._raw_saved_self
    assert (raw.saved_version, raw.current_version) == (0, 1)
    assert raw.data.tolist() == [2.0, 3.0]
    with pytest.raises(gs.SavedTensorModifiedError) as caught:
        y.sum().backward()
    error = caught.value
    assert (error.operator, error.saved_name, error.shape, error.dtype) == ("MulBackward0", "self", (2,), gs.float32)
    assert (error.saved_version, error.current_version, error.producer) == (0, 1, None)
    text = str(error)
    assert "modified by an inplace operation: [gradscope.FloatTensor [2]]" in text
    assert "is at version 1; expected version 0 instead" in text
    assert "gradscope check" in text


def test_violation_names_the_producer():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sin()
    y.mul_(2)
    with pytest.raises(gs.SavedTensorModifiedError, match="which is output 0 of"):
        z.sum().backward()


def test_released_after_the_node_ran():
    _, _, y = make()
    node = y.grad_fn
    y.sum().backward()
    assert all(s.released for s in node.saved_tensors_info())
    with pytest.raises(gs.SavedTensorFreedError, match="a second time"):
        node._saved_self
    with pytest.raises(gs.SavedTensorFreedError):
        node._raw_saved_self.unpack()


def test_register_hooks_on_a_saved_tensor():
    x, _, y = make()
    packed = []

    def pack(tensor):
        packed.append(tensor)
        return tensor * 10

    y.grad_fn._raw_saved_self.register_hooks(pack, lambda tensor: tensor / 5)
    assert packed == [x]
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 4.0]
    with pytest.raises(RuntimeError):
        y.grad_fn._raw_saved_self.register_hooks(pack, pack)


def test_pack_hook_may_not_write():
    _, _, y = make()
    with pytest.raises(RuntimeError, match="pack hook is modifying its input"), gs.no_grad():
        y.grad_fn._raw_saved_self.register_hooks(lambda t: t.add_(1), lambda t: t)
