"""The API of PyTorch 0.1: programs of that time, run as they were written."""

from __future__ import annotations

import math
import subprocess
import sys

import pytest

import gradscope as gs
from gradscope import autograd
from gradscope.autograd import Function, Variable, legacy
from gradscope.autograd.function import InplaceFunction

# --- Variable and volatile --------------------------------------------------------------------------------------------


def volatile(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), volatile=True)


def leaf(*values):
    return Variable(gs.tensor(list(values) or [1.0, 2.0, 3.0]), requires_grad=True)


def test_variable_shares_memory_and_version():
    data = gs.ones(3)
    x = Variable(data)
    x.add_(1)
    assert isinstance(x, Variable)
    assert isinstance(data, Variable)
    assert not isinstance(3, Variable)
    assert (data.tolist(), data._version, x.requires_grad, x.volatile) == ([2.0, 2.0, 2.0], 1, False, False)


def test_a_variable_keeps_its_name():
    x = Variable(gs.ones(2), name="weights")
    assert x.name == "weights"
    assert Variable(gs.ones(2)).name is None
    x.name = "others"
    assert x.name == "others"


def test_variable_refuses_contradictions_and_numbers():
    with pytest.raises(RuntimeError, match="can't be volatile and require_grad at the same time"):
        Variable(gs.ones(2), requires_grad=True, volatile=True)
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        Variable([1.0])


class Twice(Function):
    @staticmethod
    def forward(ctx, x, y):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2, None


class OldTwice(Function):
    def forward(self, x, y):
        return x * 2

    def backward(self, g):
        return g * 2, None


@pytest.mark.parametrize(
    "compute",
    [
        lambda v, w: v * w,
        lambda v, w: w + v,
        lambda v, w: w * v.exp(),
        lambda v, w: v[:2] * w[:2],
        lambda v, w: v.view(3, 1),
        lambda v, w: v.t() if v.ndim == 2 else v.unsqueeze(0).t(),
        lambda v, w: gs.cat([w, v]),
        lambda v, w: gs.stack([w, v]).sum(),
        lambda v, w: v.unbind()[0],
        lambda v, w: gs.where(w > 0, w, v),
        lambda v, w: w.clone().add_(v),
        lambda v, w: w.clone().copy_(v),
        lambda v, w: w.clone()[:2].mul_(v[:2]),
        lambda v, w: gs.mul(v, 2.0, out=gs.empty(3)),
        lambda v, w: v.detach() * w,
        lambda v, w: v.long() * 1,
        lambda v, w: v.double(),
        lambda v, w: Twice.apply(w, v),
        lambda v, w: OldTwice()(w, v),
    ],
)
def test_one_volatile_input_makes_the_output_volatile(compute):
    y = compute(volatile(), leaf())
    assert (y.volatile, y.requires_grad, y.grad_fn, y.creator) == (True, False, None, None)


def test_volatile_through_an_assignment_of_elements():
    y = leaf() * 1
    sibling = y[1:]
    y[0] = volatile(5.0)[0]
    assert (y.volatile, y.grad_fn, y.requires_grad) == (True, None, False)
    assert (sibling.grad_fn, sibling.volatile, sibling.requires_grad) == (None, True, False)


def test_volatile_can_be_set_on_leaves():
    x = gs.ones(2)
    x.volatile = True
    assert (x * leaf(1.0, 2.0)).volatile
    x.volatile = False
    assert (x * leaf(1.0, 2.0)).requires_grad
    with pytest.raises(RuntimeError, match="volatile can only be set on leaf variables"):
        (leaf() * 2).volatile = True


def test_backward_on_volatile():
    with pytest.raises(RuntimeError, match="calling backward on a volatile variable"):
        (volatile() * leaf()).sum().backward()


# --- names ------------------------------------------------------------------------------------------------------------


def test_creator_and_previous_functions():
    x = leaf()
    y = (x * x).sum()
    assert y.creator is y.grad_fn
    assert x.creator is None
    (multiplication, number), *_ = y.creator.previous_functions
    assert (multiplication.name(), number) == ("MulBackward0", 0)
    assert multiplication.previous_functions[0][0].variable is x


def test_old_keywords_of_backward():
    x = leaf()
    y = x * x
    y.backward(gs.ones(3), retain_variables=True)
    autograd.backward(variables=[y], grad_variables=[gs.ones(3)], retain_variables=False)
    assert x.grad.tolist() == [4.0, 8.0, 12.0]
    with pytest.raises(gs.SavedTensorFreedError):
        y.backward(gs.ones(3))


# --- functions that are instances -------------------------------------------------------------------------------------


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


# --- stochastic functions ---------------------------------------------------------------------------------------------


def test_a_reinforce_program():
    gs.manual_seed(0)
    weights = leaf(0.1, 0.2, 0.3)
    probs = gs.softmax(weights, 0)
    action = probs.multinomial()
    assert (action.dtype, tuple(action.shape), action.requires_grad) == (gs.int64, (1,), False)
    assert isinstance(action.creator, legacy.Multinomial)
    action.reinforce(2.0)
    autograd.backward([action], [None])
    expected = 2.0 * probs.detach()
    expected[action.item()] -= 2.0
    assert weights.grad.tolist() == pytest.approx(expected.tolist(), abs=1e-4)


def test_an_actor_critic_program():
    gs.manual_seed(0)
    weights, value = leaf(0.1, 0.2, 0.3), leaf(1.0)
    actions = [gs.softmax(weights, 0).multinomial() for _ in range(3)]
    for action in actions:
        action.reinforce(0.5)
    loss = (value - 2.0).pow(2).sum()
    autograd.backward([loss, *actions], [gs.ones(()), *(None for _ in actions)])
    assert value.grad.tolist() == [-2.0]
    assert weights.grad.sum().item() == pytest.approx(0.0, abs=1e-4)


def test_multinomial_takes_weights_rows_and_repeated_draws():
    weights = Variable(gs.tensor([[1.0, 0.0], [2.0, 6.0]]), requires_grad=True)
    drawn = legacy.multinomial(weights, 4, True)
    drawn.reinforce(gs.ones(2, 4))
    autograd.backward([drawn], [None])
    counts = [drawn[1].tolist().count(k) for k in (0, 1)]
    assert weights.grad[0].tolist() == pytest.approx([-4.0, 0.0], rel=1e-4)
    assert weights.grad[1].tolist() == pytest.approx([-counts[0] / 0.25, -counts[1] / 0.75], rel=1e-4)


def test_bernoulli():
    probs = leaf(0.25, 0.75, 0.5)
    drawn = legacy.bernoulli(probs)
    drawn.reinforce(gs.tensor([1.0, 2.0, 3.0]))
    drawn.backward()
    x = drawn.tolist()
    expected = [r * (p - d) / (p * (1 - p)) for r, p, d in zip([1.0, 2.0, 3.0], [0.25, 0.75, 0.5], x, strict=True)]
    assert probs.grad.tolist() == pytest.approx(expected, rel=1e-4)


def log_density(x, m, s):
    return -((x - m) ** 2) / (2 * s * s) - math.log(s)


def test_normal_with_a_deviation_for_each():
    means, deviations = leaf(0.0, 1.0), leaf(1.0, 2.0)
    drawn = legacy.normal(means, deviations)
    drawn.reinforce(3.0)
    autograd.backward([drawn], [None])
    step = 1e-5
    for i, x in enumerate(drawn.tolist()):
        m, s = means[i].item(), deviations[i].item()
        of_mean = (log_density(x, m + step, s) - log_density(x, m - step, s)) / (2 * step)
        of_deviation = (log_density(x, m, s + step) - log_density(x, m, s - step)) / (2 * step)
        assert means.grad[i].item() == pytest.approx(-3 * of_mean, rel=1e-3)
        assert deviations.grad[i].item() == pytest.approx(-3 * of_deviation, rel=1e-3)


def test_normal_with_one_deviation():
    means = leaf(0.0, 1.0)
    drawn = legacy.normal(means, 2.0)
    drawn.reinforce(1.0)
    autograd.backward([drawn], [None])
    assert means.grad.tolist() == pytest.approx(((means.detach() - drawn) / 4).tolist(), rel=1e-4)
    with pytest.raises(RuntimeError, match="requires specifying a common stddev, or per-sample stddev"):
        legacy.Normal()(leaf())


def test_a_draw_without_a_reward():
    action = gs.softmax(leaf(), 0).multinomial()
    with pytest.raises(RuntimeError, match="differentiating stochastic functions requires providing a reward"):
        autograd.backward([action], [None])


def test_a_reward_reaches_through_what_is_computed_from_the_draw():
    probs, w = leaf(0.5, 0.5), leaf(1.0, 1.0)
    drawn = legacy.bernoulli(probs)
    loss = (drawn * w).sum()
    drawn.reinforce(1.0)
    loss.backward()
    assert w.grad.tolist() == drawn.tolist()
    assert probs.grad.tolist() == pytest.approx([(0.5 - d) / 0.25 for d in drawn.tolist()], rel=1e-4)


def test_a_draw_in_the_graph_without_a_reward():
    probs, w = leaf(0.5, 0.5), leaf(1.0, 1.0)
    loss = (legacy.bernoulli(probs) * w).sum()
    with pytest.raises(RuntimeError, match="requires providing a reward"):
        loss.backward()


def test_wrong_rewards():
    drawn = legacy.bernoulli(leaf(0.5, 0.5))
    with pytest.raises(ValueError, match=r"got reward of size \[3\], but expected a tensor of size \[2\]"):
        drawn.reinforce(gs.ones(3))
    with pytest.raises(TypeError, match="the reward must be a number or a tensor"):
        drawn.reinforce("good")
    drawn.reinforce(1.0)
    with pytest.raises(RuntimeError, match="you can only reinforce a stochastic Function once"):
        drawn.reinforce(1.0)
    with pytest.raises(RuntimeError, match="reinforce\\(\\) can be only called on outputs of stochastic functions"):
        leaf().reinforce(1.0)


def test_later_programs_draw_as_ever():
    probs = gs.tensor([0.5, 0.5], requires_grad=True)
    assert probs.multinomial(1).grad_fn is None
    assert probs.bernoulli().grad_fn.name() == "BernoulliBackward0"
    assert gs.tensor([0.0, 1.0]).multinomial().grad_fn is None
    with legacy.set_stochastic_sampling():
        assert isinstance(probs.multinomial(2, True).creator, legacy.Multinomial)
        assert isinstance(probs.bernoulli().creator, legacy.Bernoulli)
        with gs.no_grad():
            assert probs.bernoulli().creator is None
    assert probs.bernoulli().grad_fn.name() == "BernoulliBackward0"


def test_an_execution_engine_takes_callbacks():
    calls = []
    x = leaf()
    x.register_hook(lambda g: Variable._execution_engine.queue_callback(lambda: calls.append(x.grad.tolist())))
    x.sum().backward()
    assert calls == [[1.0, 1.0, 1.0]]


def test_a_variable_draws_by_stochastic_functions():
    probs = Variable(gs.tensor([0.25, 0.75]), requires_grad=True)
    drawn = [
        probs.multinomial(3, with_replacement=True),
        probs.multinomial(num_samples=1),
        probs.multinomial(2),
        probs.bernoulli(),
        gs.normal(probs, 0.5),
        gs.normal(probs, probs),
    ]
    names = ["Multinomial", "Multinomial", "Multinomial", "Bernoulli", "Normal", "Normal"]
    assert [draw.creator.name() for draw in drawn] == names
    assert [draw.numel() for draw in drawn[:3]] == [3, 1, 2]
    for draw in drawn:
        draw.reinforce(1.0)
    autograd.backward(drawn, [None] * len(drawn))
    assert probs.grad.isfinite().all()
    assert probs.grad[0] != 0


def test_a_variable_of_constants_draws_without_a_node():
    probs = Variable(gs.tensor([0.25, 0.75]))
    assert probs.multinomial(1).creator is None
    assert probs.bernoulli().creator is None


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


def test_every_tensor_has_the_attributes_of_the_founding_documents():
    code = """
import gradscope as gs, sys
x = gs.ones(2, 3, requires_grad=True)
y = x * 2
y.sum().backward()
assert x.name is None and x.names == (None, None) and gs.ones(()).names == ()
assert x.volatile is False and x._grad is x.grad and x._grad_fn is None and y._grad_fn is y.grad_fn is y.creator
assert isinstance(x._cdata, int) and x._cdata == x._cdata != y._cdata
assert x._backward_hooks is None and y._backward_hooks is None
hook = lambda grad: None
for tensor in (x, y):
    tensor.register_hook(hook)
    assert list(tensor._backward_hooks.values()) == [hook]
for place in ("vulkan", "mlc", "ipu", "xla", "maia", "mps", "xpu", "mtia"):
    assert getattr(x, "is_" + place) is False
assert y.grad_fn.previous_functions == y.grad_fn.next_functions
assert "gradscope.autograd" not in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
