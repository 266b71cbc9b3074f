"""The API of PyTorch 0.1, on the same engine.

``Variable(data, requires_grad, volatile)``, functions that are used through instances (``F(args)(x)``), and stochastic
functions with ``reinforce(reward)``. What every tensor has of it (``volatile``, ``creator``, ...) is in
:mod:`gradscope.runtime.tensor.historical`.

A volatile tensor is an input of which nobody will want a gradient: whatever is computed from one is volatile too and
has no ``grad_fn``, whatever else takes part. :class:`gradscope.no_grad` replaced it.
"""

from __future__ import annotations

import inspect
from numbers import Number
from typing import Any

from ..runtime import state
from ..runtime.engine.backward import queue_callback
from ..runtime.graph.graph_node import hold_edge
from ..runtime.tensor import random
from ..runtime.tensor.tensor import Tensor
from .function import Function, FunctionMeta, FunctionNode, delay_error
from .function_calls import begin, finish, push_tangents

__all__ = [
    "Bernoulli",
    "Multinomial",
    "Normal",
    "StochasticFunction",
    "Variable",
    "bernoulli",
    "multinomial",
    "normal",
    "set_stochastic_sampling",
]

modes = state.local


# --- Variable ---------------------------------------------------------------------------------------------------------


class ExecutionEngine:
    """What ``Variable._execution_engine`` is for: callbacks at the end of the backward that runs."""

    queue_callback = staticmethod(queue_callback)


class VariableMeta(type):
    """Makes every Tensor an instance of :class:`Variable`."""

    def __instancecheck__(cls, instance: Any) -> bool:
        return isinstance(instance, Tensor)

    def __call__(
        cls, data: Any = None, requires_grad: bool = False, volatile: bool = False, name: str | None = None
    ) -> Tensor:
        if requires_grad and volatile:
            raise RuntimeError(
                "Variable can't be volatile and require_grad at the same time!\n"
                "Nothing computed from a volatile Variable has a gradient: choose one of them."
            )
        if data is not None and not isinstance(data, Tensor):
            raise TypeError(
                f"Variable data has to be a tensor, but got {type(data).__name__}\nWrap it: gradscope.tensor(...)."
            )
        result = Tensor() if data is None else data.detach()
        result._flags &= ~state.VOLATILE
        if requires_grad:
            result.requires_grad_()
        if volatile:
            result._flags |= state.VOLATILE
        meta = result._extras()
        meta.name, meta.is_variable = name, True
        return result


class Variable(metaclass=VariableMeta):
    """``Variable(data, requires_grad=False, volatile=False)`` returns a tensor that shares memory with `data`.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import Variable
    >>> x = Variable(gs.ones(2), volatile=True)
    >>> w = Variable(gs.ones(2), requires_grad=True)
    >>> y = x * w
    >>> y.volatile, y.requires_grad, isinstance(y, Variable)
    (True, False, True)
    """

    _execution_engine = ExecutionEngine()


# --- functions that are instances -------------------------------------------------------------------------------------


class InstanceNode(FunctionNode):
    """What an instance of a Function is: function and node in one, used once.

    Attributes
    ----------
    requires_grad : bool
        Whether an input required grad.
    """

    used = in_forward = False
    shared_pairs: tuple[tuple[Tensor, Tensor], ...] = ()

    @property
    def num_inputs(self) -> int:
        """How many inputs it was called with."""
        return len(self._is_tensor)

    @property
    def num_outputs(self) -> int:
        """How many outputs forward returned."""
        return len(self._outputs)

    @property
    def requires_grad(self) -> bool:
        """Whether an input required grad."""
        return True in self.needs_input_grad

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (or None) for backward; to be called by forward."""
        self._need_forward("save_for_backward")
        super().save_for_backward(*tensors)

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which inputs have been written in place; to be called by forward."""
        self._need_forward("mark_dirty")
        super().mark_dirty(*tensors)

    def mark_non_differentiable(self, *tensors: Tensor) -> None:
        """Say which outputs have no gradient; to be called by forward."""
        self._need_forward("mark_non_differentiable")
        super().mark_non_differentiable(*tensors)

    def _need_forward(self, method: str) -> None:
        if not self.in_forward:
            raise RuntimeError(
                f"{method}() can only be called inside of forward, by {self.node_name}\n"
                "What is kept for another time may be stored as an attribute."
            )

    def mark_shared_storage(self, *pairs: tuple[Tensor, Tensor]) -> None:
        """Say which (input, output) pairs share memory: they share one version from then on.

        Raises
        ------
        TypeError
            If a pair is not two tensors.
        """
        for pair in pairs:
            if not (isinstance(pair, tuple) and len(pair) == 2 and all(isinstance(t, Tensor) for t in pair)):
                raise TypeError(
                    "mark_shared_storage accepts a number of pairs of an input and an output tensor, but got "
                    f"{type(pair).__name__}\nWrite mark_shared_storage((input, output), ...)."
                )
        self._need_forward("mark_shared_storage")
        self.shared_pairs = pairs

    # Found before Function's: the class method runs forward, that of an instance is what the engine calls.
    apply = FunctionNode.apply

    def apply_graph(self, grads: Any) -> Any:
        """Run backward unrecorded; its gradients say so when somebody differentiates them."""
        grads = super().apply_graph(grads)
        message = f"{self.node_name} is a function of PyTorch 0.1 style, whose backward cannot be differentiated"
        return delay_error(f"{message}\nGive it static forward and backward.", tuple(grads))

    def _call_backward(self, grads: list[Any]) -> Any:
        before = modes.grad_enabled
        modes.grad_enabled = False
        try:
            return self.backward(*([self.take_reward()] if self.seedless else grads))  # type: ignore[attr-defined]
        finally:
            modes.grad_enabled = before


def new_instance(cls: type[Function]) -> Any:
    """Return an instance of `cls` that can serve as a node."""
    kind = cls.__dict__.get("_instance_class")
    if kind is None:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        kind = FunctionMeta(cls.__name__, (InstanceNode, cls), {**names, "node_name": cls.__name__})
        kind._forward_cls = cls
        cls._instance_class = kind  # type: ignore[attr-defined]
    node = object.__new__(kind)
    begin(node, ())
    return node


def call_instance(node: Any, inputs: tuple[Any, ...]) -> Any:
    """Run ``node.forward`` on `inputs` and record the node."""
    cls = node._forward_cls
    if isinstance(inspect.getattr_static(cls, "forward"), staticmethod):
        raise RuntimeError(
            f"{cls.__name__} has a static forward: it is not called through an instance.\n"
            f"Call {cls.__name__}.apply(...)."
        )
    if node.used:
        raise RuntimeError(
            f"{cls.__name__} has been called already: a function object is one node of the graph and can be used only "
            f"once.\nMake another one for each call: {cls.__name__}(...)(x)."
        )
    for value in inputs:
        if not isinstance(value, Tensor):
            raise TypeError(
                f"expected a Variable argument, but got {type(value).__name__}\n"
                f"Give what is not a tensor to the constructor: {cls.__name__}(value)(x)."
            )
    node.used = True
    recorded = begin(node, inputs)
    before = modes.grad_enabled
    modes.grad_enabled, node.in_forward = False, True
    try:
        raw = node.forward(*inputs)
        outputs = finish(node, inputs, raw, recorded)
    finally:
        modes.grad_enabled, node.in_forward = before, False
    if state.special:
        push_tangents(node, inputs, raw, outputs)
    if node.shared_pairs:
        for first, second in node.shared_pairs:
            second._vc = first._counter()
        node.shared_pairs = ()
    return outputs


# --- stochastic functions ---------------------------------------------------------------------------------------------

# Keeps the gradients finite where a drawn outcome had a probability of (nearly) 0.
EPSILON = 1e-6


class StochasticFunction(Function):
    """Base of functions that draw: their gradient comes from a reward, not from what is computed from the draw.

    The draw does not require grad, and yet has a node. Backward may start at it without a gradient, and passes through
    it when what was computed from it takes part in a graph. The gradients are those of ``-reward * log p(draw)``, so
    that descending them raises the expected reward: REINFORCE, see R. J. Williams, "Simple statistical
    gradient-following algorithms for connectionist reinforcement learning", Machine Learning 8, 1992.
    """

    seedless = True
    reward: Any = None

    def __call__(self, *inputs: Tensor) -> Tensor:
        """Draw."""
        drawn = call_instance(self, inputs)
        if any(edge is not None for edge in self.edges):
            drawn._flags |= state.STOCHASTIC
            hold_edge(drawn, (self, 0))
        return drawn

    def _reinforce(self, reward: Any) -> None:
        shape = self._outputs[0][0]
        if not isinstance(reward, (Number, Tensor)):
            raise TypeError(f"the reward must be a number or a tensor, but got {type(reward).__name__}")
        if isinstance(reward, Tensor) and reward.numel() != 1 and tuple(reward.shape) != shape:
            raise ValueError(
                f"got reward of size {list(reward.shape)}, but expected a tensor of size {list(shape)}\n"
                "Give a number, or one reward for each drawn element."
            )
        if self.reward is not None:
            raise RuntimeError("you can only reinforce a stochastic Function once\nDraw again for another reward.")
        self.reward = reward.detach() if isinstance(reward, Tensor) else reward

    def take_reward(self) -> Any:
        """Return the reward.

        Raises
        ------
        RuntimeError
            If none was given.
        """
        if self.reward is None:
            raise RuntimeError(
                f"differentiating stochastic functions requires providing a reward\n{self.node_name} drew a tensor of "
                f"shape {list(self._outputs[0][0])}: call its reinforce(reward) before backward."
            )
        return self.reward


class Multinomial(StochasticFunction):
    """Draw category numbers with the probabilities that the rows of a tensor are proportional to."""

    def __init__(self, num_samples: int = 1, with_replacement: bool = False) -> None:
        super().__init__()
        self.num_samples = num_samples
        self.with_replacement = with_replacement

    def forward(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        """Draw."""
        drawn = random.multinomial(probs, self.num_samples, self.with_replacement)
        self.save_for_backward(probs, drawn.detach())
        self.mark_non_differentiable(drawn)
        return drawn

    def backward(self, reward: Any) -> Tensor:  # type: ignore[override]
        """Return ``-reward / p`` at what was drawn; as in PyTorch 0.1, p is the normalized row."""
        weights, drawn = self.saved_tensors
        probs = weights / weights.sum(-1, keepdim=True)
        gradients = (probs.gather(-1, drawn) + EPSILON).reciprocal() * -reward
        return (probs * 0).scatter_add(-1, drawn, gradients)


class Bernoulli(StochasticFunction):
    """Draw ones with given probabilities, else zeros."""

    def forward(self, probs: Tensor) -> Tensor:  # type: ignore[override]
        """Draw."""
        drawn = random.bernoulli(probs)
        self.save_for_backward(probs, drawn.detach())
        self.mark_non_differentiable(drawn)
        return drawn

    def backward(self, reward: Any) -> Tensor:  # type: ignore[override]
        """Return ``reward * (p - draw) / (p * (1 - p))``."""
        probs, drawn = self.saved_tensors
        return (probs - drawn) / (probs * (1 - probs) + EPSILON) * reward


class Normal(StochasticFunction):
    """Draw normal numbers around given means.

    Parameters
    ----------
    stddev : float, optional
        The standard deviation of all of them; without it, a second input gives one for each.
    """

    def __init__(self, stddev: float | None = None) -> None:
        super().__init__()
        if stddev is not None and not stddev > 0:
            raise ValueError(f"the standard deviation must be positive, got {stddev}")
        self.stddev = stddev

    def forward(self, means: Tensor, stddevs: Tensor | None = None) -> Tensor:  # type: ignore[override]
        """Draw."""
        if self.stddev is None and stddevs is None:
            raise RuntimeError(
                "Normal function requires specifying a common stddev, or per-sample stddev\n"
                "Write Normal(stddev)(means) or Normal()(means, stddevs)."
            )
        drawn = random.normal(means, stddevs if self.stddev is None else self.stddev)
        self.save_for_backward(drawn.detach(), means, stddevs)
        self.mark_non_differentiable(drawn)
        return drawn

    def backward(self, reward: Any) -> Any:  # type: ignore[override]
        """Return ``reward * (m - x) / s**2`` and ``reward * (1 - ((x - m) / s)**2) / s``, Williams' section 6."""
        drawn, means, stddevs = self.saved_tensors
        distance = means - drawn
        if self.stddev is not None:
            return (distance * (reward / (self.stddev**2 + EPSILON)), *(None,) * (len(self._is_tensor) - 1))
        variance = stddevs * stddevs
        of_means = distance / (variance + EPSILON) * reward
        of_stddevs = (variance - distance * distance) / (variance * stddevs + EPSILON) * reward
        return of_means, of_stddevs


def multinomial(probs: Tensor, num_samples: int = 1, with_replacement: bool = False) -> Tensor:
    """Draw category numbers; the result takes a ``reinforce(reward)``.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.autograd import backward
    >>> from gradscope.autograd.legacy import multinomial
    >>> probs = gs.tensor([0.0, 1.0], requires_grad=True)
    >>> action = multinomial(probs)
    >>> action.reinforce(2.0)
    >>> backward([action], [None])
    >>> probs.grad
    tensor([ 0.0000, -2.0000])
    """
    return Multinomial(num_samples, with_replacement)(probs)


def bernoulli(probs: Tensor) -> Tensor:
    """Draw ones with the probabilities `probs`, else zeros; the result takes a ``reinforce(reward)``."""
    return Bernoulli()(probs)


def normal(means: Tensor, std: float | Tensor = 1.0) -> Tensor:
    """Draw normal numbers around `means`; the result takes a ``reinforce(reward)``."""
    return Normal()(means, std) if isinstance(std, Tensor) else Normal(std)(means)


class _Sampling:
    always = False


class set_stochastic_sampling:  # noqa: N801 - named like set_grad_enabled
    """Set whether Tensor's own ``multinomial`` and ``bernoulli`` draw as in PyTorch 0.1, from what requires grad.

    At once and, as a context manager, until the end of the block; for the whole process. Without it only what
    ``Variable(...)`` made does, and ``probs.multinomial()``, a call without the number of samples that later versions
    ask for.
    """

    def __init__(self, mode: bool = True) -> None:
        self._before = _Sampling.always
        _Sampling.always = mode

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exc_info: object) -> None:
        _Sampling.always = self._before


class _Draws:
    """What :mod:`gradscope.runtime.tensor.random` asks: whether a tensor draws by stochastic functions."""

    multinomial = staticmethod(multinomial)
    bernoulli = staticmethod(bernoulli)
    normal = staticmethod(normal)

    def wanted(self, tensor: Tensor) -> bool:
        """Whether `tensor` draws as in PyTorch 0.1: ``Variable(...)`` made it, or all do."""
        if not (modes.grad_enabled and tensor.requires_grad):
            return False
        return _Sampling.always or (tensor._meta is not None and tensor._meta.is_variable)


random.stochastic = _Draws()
