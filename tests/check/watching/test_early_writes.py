import gc

import pytest

import gradscope as gs
from gradscope.check.watching.early_writes import EarlyWriteWatch
from gradscope.inspect.adapters import AnyAdapter


@pytest.fixture
def told():
    """The facts that a watch has told, while it is open."""
    found = []
    watch = EarlyWriteWatch(lambda facts, error: found.append(facts), AnyAdapter())
    yield found, watch
    watch.close()


def test_a_result_that_was_changed_is_told_once_with_both_ends(told):
    found, _ = told
    h = gs.ones(3, requires_grad=True) * 2
    h.data.zero_()
    h.sum(), h.exp()
    (facts,) = found
    assert (facts.producer, facts.reader, facts.shape) == ("MulBackward0", "SumBackward0", (3,))
    assert [write.operator for write in facts.writes] == ["zero_"]
    assert (facts.made.source, facts.read.source) == ("h = gs.ones(3, requires_grad=True) * 2", "h.sum(), h.exp()")


def test_a_counted_write_does_not_hide_one_that_was_not(told):
    found, _ = told
    h = gs.ones(3, requires_grad=True) * 2
    h.data.zero_()
    with gs.no_grad():
        h.add_(1)
    assert found == []
    h.sum()
    assert [(facts.producer, facts.reader) for facts in found] == [("MulBackward0", "SumBackward0")]
    assert [write.operator for write in found[0].writes] == ["zero_"]


def test_a_result_is_remembered_as_the_last_operator_left_it(told):
    found, _ = told
    h = gs.ones(3, requires_grad=True) * 2
    h.mul_(3).add_(1)
    h.sum()
    assert found == []


def test_nothing_is_kept_of_results_that_are_gone(told):
    _, watch = told
    for _ in range(3):
        (gs.ones(3, requires_grad=True) * 2)[0].exp()
    gc.collect()
    assert (watch._results, watch._by_memory) == ({}, {})


@pytest.mark.torch
def test_pytorch_keeps_its_inference_paths():
    import torch

    class Modes(torch.nn.Module):
        def forward(self):
            return torch._C._len_torch_function_stack()  # fused paths are left where there is one

    watch = EarlyWriteWatch(lambda facts, error: None, AnyAdapter())
    try:
        with torch.no_grad():
            without = Modes()()
        assert (without, Modes()()) == (0, 1)
    finally:
        watch.close()
