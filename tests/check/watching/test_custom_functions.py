import gc
import weakref

import pytest

import gradscope as gs
from gradscope.check import Sanitizer
from gradscope.check.watching.custom_functions import FunctionCalls
from gradscope.inspect.adapters import NativeAdapter, adapter_for
from gradscope.inspect.records.write_account import WriteAccount


class Keep(gs.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.x, ctx.other = x, gs.zeros(2)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad


def test_of_what_is_on_ctx_inputs_and_outputs_are_looked_at():
    calls = FunctionCalls(NativeAdapter(), WriteAccount())
    x = gs.ones(2, requires_grad=True) * 1
    calls.applied(Keep, (x, 3))
    node = Keep.apply(x).grad_fn
    assert list(calls.recorded(node)) == []
    assert (calls.kept, calls.given) == (True, {})
    node.other.add_(1)
    assert list(calls.changed(node)) == []
    x.data.add_(1)
    assert [kept.name for kept in calls.changed(node)] == ["x"]


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_a_view_of_a_leaf_that_forward_keeps_leads_nowhere(framework):
    """It requires grad, and has neither a node nor an AccumulateGrad."""
    fw = gs if framework == "gradscope" else pytest.importorskip("torch")

    class Scaled(fw.autograd.Function):
        @staticmethod
        def forward(ctx, x, factor):
            ctx.factor = factor.expand(4, 1)
            return x * ctx.factor

        @staticmethod
        def backward(ctx, grad):
            assert adapter_for(grad).root(ctx.factor) is None
            return grad * ctx.factor, grad.sum()

    x, factor = fw.ones(4, 2, requires_grad=True), fw.tensor(2.0, requires_grad=True)
    with Sanitizer() as sanitizer:
        Scaled.apply(x, factor).sum().backward()
    assert (sanitizer.findings, factor.grad.item()) == ([], 8.0)


def test_a_call_that_records_nothing_keeps_no_tensor_alive():
    with Sanitizer(), gs.no_grad():
        x = gs.ones(2)
        Keep.apply(x)
        gone = weakref.ref(x)
        del x
        gc.collect()
        assert gone() is None
