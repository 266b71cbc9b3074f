"""Attributes that every tensor and every node had in PyTorch 0.1."""

from __future__ import annotations

from typing import Any

from ...runtime import state
from ...runtime.graph.graph_node import Node
from ...runtime.tensor.tensor import Tensor

__all__ = ["NodeAttributes", "TensorAttributes"]


class NodeAttributes:
    """Attributes of a node: another name of its edges."""

    previous_functions = Node.next_functions


class TensorAttributes:
    """Attributes of a tensor: the part of it that was Variable's."""

    @property
    def volatile(self: Any) -> bool:
        """Whether nothing computed from the tensor is recorded: only of what ``Variable(data, volatile=True)`` made."""
        return bool(self._flags & state.INERT)

    @volatile.setter
    def volatile(self: Any, value: bool) -> None:
        if not self.is_leaf:
            raise RuntimeError("volatile can only be set on leaf variables\nUse x.detach(), which is a leaf.")
        if value and self.requires_grad:
            self.requires_grad_(False)
        self._flags = self._flags | state.INERT if value else self._flags & ~state.INERT

    @property
    def creator(self: Any) -> Node | None:
        """The function that computed the tensor: ``grad_fn``."""
        return self.grad_fn

    def reinforce(self: Any, reward: Any) -> None:
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
        take_reward = getattr(self.grad_fn, "_reinforce", None)
        if take_reward is None:
            raise RuntimeError(
                "reinforce() can be only called on outputs of stochastic functions\n"
                "Draw with multinomial(), bernoulli() or normal() of gradscope.autograd.legacy, or from a Variable, "
                "with probabilities that require grad."
            )
        take_reward(reward)

    @property
    def _refused_backward(self) -> str:
        """Return the error of a backward from an inert tensor."""
        return "calling backward on a volatile variable\nNothing computed from a volatile tensor is recorded."

    def _multinomial_by_other_names(
        self: Any, num_samples: int | None, replacement: bool, generator: Any, out: Any, others: dict[str, Any]
    ) -> Tensor:
        """Draw as ``multinomial(num_samples=1, with_replacement=False)`` did.

        Without the number of samples, which later versions ask for, the draw takes a ``reinforce(reward)`` where the
        probabilities require grad.
        """
        from .stochastic_functions import multinomial  # most programs that ask for `volatile` draw nothing

        for name, value in others.items():
            if name != "with_replacement":
                raise TypeError(f"multinomial() got an unexpected keyword argument '{name}'")
            replacement = replacement if value is None else value
        plain = generator is None and out is None
        if num_samples is None and plain and state.local.grad_enabled and self.requires_grad:
            return multinomial(self, 1, replacement)
        return self.multinomial(1 if num_samples is None else num_samples, replacement, generator=generator, out=out)
