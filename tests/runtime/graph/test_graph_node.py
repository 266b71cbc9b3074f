"""Nodes, edges and saved tensors, as an instrument sees them."""

from __future__ import annotations

import gc
import weakref

import pytest

import gradscope as gs
from gradscope.runtime.graph.accumulate_grad import AccumulateGrad
from gradscope.runtime.graph.graph_node import GradientEdge, SavedTensor


def make():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    w = gs.tensor([3.0, 4.0], requires_grad=True)
    return x, w, x * w


def test_names_edges_and_variable():
    x, w, y = make()
    node = y.grad_fn
    assert node.name() == "MulBackward0"
    (left, left_nr), (right, right_nr) = node.next_functions
    assert isinstance(left, AccumulateGrad)
    assert (left.variable, right.variable) == (x, w)
    assert (left_nr, right_nr) == (0, 0)
    assert left.name() == "AccumulateGrad"
    assert left._sequence_nr() == 2**64 - 1


def test_an_edge_that_leads_nowhere_is_none():
    x = gs.ones(2, requires_grad=True)
    assert (x * 2).grad_fn.next_functions[1] == (None, 0)


def test_sequence_numbers_rise_and_topological_numbers_count_to_the_leaves():
    _, _, y = make()
    z = y.exp().sum()
    assert z.grad_fn._sequence_nr() > z.grad_fn.next_functions[0][0]._sequence_nr()
    assert z.grad_fn.topological_nr() == 3
    assert y.grad_fn.topological_nr() == 1


def test_metadata_lives_with_the_node():
    _, _, y = make()
    y.grad_fn.metadata["note"] = 1
    assert y.grad_fn.metadata == {"note": 1}


def test_input_metadata():
    _, _, y = make()
    (meta,) = y.grad_fn._input_metadata
    assert (meta.shape, meta.dtype, str(meta.device)) == ((2,), gs.float32, "cpu")


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


def test_gradient_edge_as_target_and_as_root():
    x, _, y = make()
    edge = gs.autograd.graph.get_gradient_edge(y)
    assert isinstance(edge, GradientEdge)
    z = y.exp().sum()
    (by_edge,) = gs.autograd.grad(z, [edge], retain_graph=True)
    (by_tensor,) = gs.autograd.grad(z, [y], retain_graph=True)
    assert by_edge.tolist() == by_tensor.tolist()
    gs.autograd.backward([edge], [gs.ones(2)])
    assert x.grad.tolist() == [3.0, 4.0]


def test_running_one_node_alone():
    _, _, y = make()
    left, right = y.grad_fn(gs.ones(2))
    assert left.tolist() == [3.0, 4.0]
    assert right.tolist() == [1.0, 2.0]


def test_a_leaf_nobody_holds_still_gets_its_hooks():
    seen = []

    def loss():
        x = gs.ones(2, requires_grad=True)
        x.register_hook(lambda grad: seen.append(grad.tolist()))
        return (x * 2).sum()

    loss().backward()
    assert seen == [[2.0, 2.0]]


def test_variable_of_a_leaf_nobody_holds():
    x = gs.ones(2, requires_grad=True)
    node = (x * 2).grad_fn.next_functions[0][0]
    del x
    (node.variable * 3).sum().backward()
    assert node.variable.grad.tolist() == [3.0, 3.0]
