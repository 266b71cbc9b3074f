"""The API of PyTorch 0.1, on the same engine; nothing of it lives elsewhere.

``Variable(data, requires_grad, volatile)``, ``volatile``, ``creator``, ``previous_functions``, functions that are used
through instances (``F(args)(x)``), and stochastic functions with ``reinforce(reward)``. Importing
:mod:`gradscope.autograd` opens the room: it gives Tensor and Node these names.

A volatile tensor is an input of which nobody will want a gradient: whatever is computed from one is volatile too and
has no ``grad_fn``, whatever else takes part. :class:`gradscope.no_grad` replaced it.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from numbers import Number
from typing import Any

from ..runtime import random, state
from ..runtime.engine import queue_callback
from ..runtime.graph import Node
from ..runtime.ops.registry import METHODS
from ..runtime.tensor import Tensor
from .function import Function, FunctionMeta, FunctionNode, begin, delay_error, finish

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
        if name is not None:
            result._extras().name = name
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


def _get_volatile(self: Tensor) -> bool:
    """Whether nothing computed from the tensor is recorded."""
    return bool(self._flags & state.VOLATILE)


def _set_volatile(self: Tensor, value: bool) -> None:
    if not self.is_leaf:
        raise RuntimeError("volatile can only be set on leaf variables\nUse x.detach(), which is a leaf.")
    if value and self.requires_grad:
        self.requires_grad_(False)
    self._flags = self._flags | state.VOLATILE if value else self._flags & ~state.VOLATILE


def _creator(self: Tensor) -> Node | None:
    """The function that computed the tensor: ``grad_fn``."""
    return self.grad_fn


def _reinforce(self: Tensor, reward: Any) -> None:
    """Give the stochastic function that drew this tensor its reward.

    Parameters
    ----------
    reward : float or Tensor
        A number, or a tensor of this tensor's shape.

    Raises
    ------
    RuntimeError
        If no stochastic function drew the tensor.
    """
    function = self.grad_fn
    if not isinstance(function, StochasticFunction):
        raise RuntimeError(
            "reinforce() can be only called on outputs of stochastic functions\n"
            "Draw with probs.multinomial(), or with multinomial(), bernoulli() or normal() of "
            "gradscope.autograd.legacy, from probabilities that require grad."
        )
    function._reinforce(reward)


# --- functions that are instances -------------------------------------------------------------------------------------


class InstanceNode(FunctionNode):
    """What an instance of a Function is: function and node in one, used once.

    Attributes
    ----------
    num_inputs, num_outputs : int
    """

    used = False
    shared_pairs: tuple[tuple[Tensor, Tensor], ...] = ()

    @property
    def num_inputs(self) -> int:
        """How many inputs it was called with."""
        return len(self._is_tensor)

    @property
    def num_outputs(self) -> int:
        """How many outputs forward returned."""
        return len(self._outputs)

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
            return self._backward(grads)
        finally:
            modes.grad_enabled = before

    def _backward(self, grads: list[Any]) -> Any:
        return self.backward(*grads)  # type: ignore[attr-defined]


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
    modes.grad_enabled = False
    try:
        outputs = finish(node, inputs, node.forward(*inputs), recorded)
    finally:
        modes.grad_enabled = before
    for first, second in node.shared_pairs:
        second._vc = first._counter()
    del node.shared_pairs, node.dirty_tensors, node.non_differentiable
    return outputs
