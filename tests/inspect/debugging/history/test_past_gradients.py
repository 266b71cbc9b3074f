"""Copies of gradients that passed, and how many of them are kept."""

import math

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.history.past_gradients import GradientCopies, ValueStore


def group(*values):
    return GradientCopies(NativeAdapter(), [None if v is None else gs.tensor(v) for v in values], "grad_outputs")


def test_a_group_is_a_copy():
    grad = gs.tensor([1.0, 2.0])
    kept = GradientCopies(NativeAdapter(), [grad, None], "grad_outputs")
    grad.mul_(5)
    one, two = kept.tensors(NativeAdapter())
    assert (one.tolist(), two, kept.known) == ([1.0, 2.0], None, None)
    assert (kept.summaries[0].name, kept.summaries[0].max, kept.summaries[1]) == ("grad_outputs[0]", 2.0, None)
    assert kept.known is kept.summaries


def test_the_newest_values_are_kept():
    store = ValueStore(32)
    groups = [group([float(i)] * 4) for i in range(4)]
    for each in groups:
        store.keep(each)
    assert [g.tensors(NativeAdapter()) is not None for g in groups] == [False, False, True, True]
    assert store.nbytes == 32
    assert [g.summaries[0].max for g in groups] == [0.0, 1.0, 2.0, 3.0]


def test_the_norm_is_that_of_all_of_them_before_and_after_the_values_have_gone():
    adapter = NativeAdapter()
    grads = [gs.tensor([3.0]), None, gs.tensor([4.0])]
    kept, gone = (GradientCopies(adapter, grads, "grad_outputs") for _ in range(2))
    gone.drop()
    assert (kept.norm, gone.norm) == (5.0, 5.0)
    assert GradientCopies(adapter, [None], "grad_outputs").norm is None
    assert math.isnan(GradientCopies(adapter, [gs.tensor([math.inf]), gs.tensor([math.nan])], "grad_outputs").norm)
