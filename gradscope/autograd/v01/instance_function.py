"""Functions that are used through instances, ``F(args)(x)``: an instance is function and node in one, used once."""

from __future__ import annotations

import inspect
from typing import Any

from ...runtime import state
from ...runtime.tensor.tensor import Tensor
from ..function_calls import begin, finish, push_tangents
from ..function_context import FunctionNode
from ..once_differentiable import delay_error

__all__ = ["InstanceStyle", "call_instance"]

modes = state.local


class InstanceStyle:
    """The methods of a Function that its instances use: a base of Function."""

    __slots__ = ()

    def __new__(cls, *args: Any, **kwargs: Any) -> Any:
        """Return an instance in the style of PyTorch 0.1; functions with static methods need none."""
        return new_instance(cls)

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        """Take whatever the function is made with; those that have parameters override this."""

    def __call__(self, *inputs: Any) -> Any:
        """Run the instance's forward on `inputs` and record it as one node."""
        return call_instance(self, inputs)


class InstanceNode(FunctionNode):
    """The class of a Function's instances: function and node in one, used once.

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

    # This is found before Function's: the class method runs forward, and the engine calls that of an instance.
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


def new_instance(cls: Any) -> Any:
    """Return an instance of the Function `cls` that can serve as a node."""
    kind = cls.__dict__.get("_instance_class")
    if kind is None:
        names = {"__module__": cls.__module__, "__qualname__": cls.__qualname__, "__doc__": cls.__doc__}
        kind = type(cls)(cls.__name__, (InstanceNode, cls), {**names, "node_name": cls.__name__})
        kind._forward_cls = cls
        cls._instance_class = kind
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
