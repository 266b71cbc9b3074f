"""What every tensor still has of PyTorch 0.1; the rest of that API is :mod:`gradscope.autograd.legacy`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from .. import state

if TYPE_CHECKING:
    from ..graph.graph_node import Node
    from .gradient_holder import TensorMeta

__all__ = ["Historical"]


class Historical:
    """The part of a tensor that was Variable's."""

    __slots__ = ()

    _meta: TensorMeta | None
    grad_fn: Any
    _extras: Any

    @property
    def volatile(self: Any) -> bool:
        """Whether nothing computed from the tensor is recorded: only of what ``Variable(data, volatile=True)`` made."""
        return bool(self._flags & state.VOLATILE)

    @volatile.setter
    def volatile(self: Any, value: bool) -> None:
        if not self.is_leaf:
            raise RuntimeError("volatile can only be set on leaf variables\nUse x.detach(), which is a leaf.")
        if value and self.requires_grad:
            self.requires_grad_(False)
        self._flags = self._flags | state.VOLATILE if value else self._flags & ~state.VOLATILE

    @property
    def name(self) -> str | None:
        """The name that ``Variable(data, name=...)`` gave the tensor."""
        return None if self._meta is None else self._meta.name

    @name.setter
    def name(self, value: str | None) -> None:
        self._extras().name = value

    @property
    def creator(self) -> Node | None:
        """The function that computed the tensor: ``grad_fn``."""
        return self.grad_fn

    def reinforce(self, reward: Any) -> None:
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
