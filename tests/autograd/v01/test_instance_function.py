"""Functions that are used through instances."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope import autograd
from gradscope.autograd import Function, Variable
from gradscope.autograd.function import InplaceFunction


def leaf(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), requires_grad=True)


class Twice(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class Scale(Function):
    def __init__(self, factor):
        super().__init__()
        self.factor = factor

    def forward(self, x, y):
        self.save_for_backward(x, None)
        return x * self.factor, y + 1

    def backward(self, g, h):
        x, nothing = self.saved_tensors
        assert nothing is None
        assert x.shape == g.shape
        return g * self.factor, h


class MyAdd(InplaceFunction):
    def forward(self, x, y):
        if self.inplace:
            self.mark_dirty(x)
            return x.add_(y)
        return x + y

    def backward(self, g):
        return g, g * 2


def test_an_instance_is_function_and_node():
    x, y = leaf(), gs.ones(3)
    function = Scale(3)
    a, b = function(x, y)
    assert a.creator is function
    assert (a.grad_fn is b.grad_fn, b.output_nr, function.name()) == (True, 1, "Scale")
    assert (function.num_inputs, function.num_outputs, function.needs_input_grad) == (2, 2, (True, False))
    assert [p[0] and p[0].name() for p in function.previous_functions] == ["AccumulateGrad", None]
    (a.sum() + b.sum()).backward()
    assert x.grad.tolist() == [3.0, 3.0, 3.0]
    with pytest.raises(gs.SavedTensorFreedError):
        function.saved_tensors


def test_an_instance_is_used_once():
    function = Scale(3)
    function(leaf(), leaf())
    with pytest.raises(RuntimeError, match="can be used only once"):
        function(leaf(), leaf())


def test_an_instance_takes_variables():
    with pytest.raises(TypeError, match="expected a Variable argument, but got float"):
        Scale(3)(leaf(), 2.0)


def test_a_static_function_is_not_called_through_an_instance():
    with pytest.raises(RuntimeError, match=r"Call Twice\.apply"):
        Twice()(leaf(), leaf())


@pytest.mark.parametrize("inplace", [False, True])
def test_an_inplace_function(inplace):
    x, y = leaf(), leaf()
    a = x * 1
    b = MyAdd(inplace)(a, y)
    b.sum().backward()
    assert (b is a, a._version) == (inplace, 2 if inplace else 0)
    assert (x.grad.tolist(), y.grad.tolist()) == ([1.0] * 3, [2.0] * 3)


def test_an_inplace_function_on_a_leaf():
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        MyAdd(True)(leaf(), leaf())


def test_shared_storage_shares_the_version():
    class Alias(Function):
        def forward(self, x):
            y = x.data.view(3, 1)
            self.mark_shared_storage((x, y))
            return y

        def backward(self, g):
            return g.view(3)

    x = leaf() * 1
    y = Alias()(x)
    with gs.no_grad():
        y.zero_()
    assert (x._version, y._version) == (1, 1)
    with pytest.raises(TypeError, match="mark_shared_storage accepts a number of pairs"):
        Scale(2).mark_shared_storage(x)


def test_non_differentiable_outputs():
    class SortLike(Function):
        def forward(self, x):
            indices = x.long()
            self.mark_non_differentiable(indices)
            return x * 2, indices

        def backward(self, g, h):
            assert h.tolist() == [0, 0, 0]
            return g * 2

    x = leaf()
    y, indices = SortLike()(x)
    y.sum().backward()
    assert (indices.requires_grad, x.grad.tolist()) == (False, [2.0] * 3)


def test_saving_an_output():
    class Exp(Function):
        def forward(self, x):
            y = x.exp()
            self.save_for_backward(y)
            return y

        def backward(self, g):
            return g * self.saved_tensors[0]

    x = leaf(0.0)
    Exp()(x).backward()
    assert x.grad.tolist() == [1.0]
    y = Exp()(x)
    y.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError):
        y.backward()


def test_the_backward_of_an_instance_cannot_be_differentiated():
    x = leaf()
    (gradient,) = autograd.grad(Scale(3)(x, x)[0].sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="whose backward cannot be differentiated"):
        gradient.sum().backward()


def test_module_style_code_of_2017():
    """Several instances in one graph, one of them used by another."""
    x = leaf()
    y = Scale(2)(Scale(3)(x, x)[0], x)[0]
    y.sum().backward()
    assert x.grad.tolist() == [6.0] * 3


def test_an_instance_knows_whether_an_input_required_grad():
    seen = []

    class Identity(Function):
        def forward(self, x):
            seen.append(self.requires_grad)
            return x * 1

        def backward(self, grad):
            return grad

    for x in (leaf(), gs.ones(1)):
        function = Identity()
        assert not function.requires_grad
        function(x)
        seen.append(function.requires_grad)
    assert seen == [True, True, False, False]


@pytest.mark.parametrize(
    "method", ["save_for_backward", "mark_dirty", "mark_non_differentiable", "mark_shared_storage"]
)
def test_what_forward_says_of_its_tensors_is_refused_elsewhere(method):
    x = leaf()

    def say(function, tensor):
        getattr(function, method)((tensor, tensor) if method == "mark_shared_storage" else tensor)

    class Early(Function):
        def __init__(self):
            super().__init__()
            say(self, x)

    class Late(Function):
        def forward(self, x):
            return x * 1

        def backward(self, grad):
            say(self, grad)
            return grad

    message = rf"{method}\(\) can only be called inside of forward"
    with pytest.raises(RuntimeError, match=message):
        Early()
    with pytest.raises(RuntimeError, match=message):
        Late()(x).sum().backward()
