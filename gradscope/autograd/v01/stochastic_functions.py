"""Functions that draw and are told a reward, from which their gradients come: ``draw.reinforce(reward)``."""

from __future__ import annotations

from numbers import Number
from typing import Any

from ...runtime import state
from ...runtime.graph.edges import hold_edge
from ...runtime.ops.random import random
from ...runtime.tensor.tensor import Tensor
from ..function import Function
from .instance_function import call_instance

__all__ = ["Bernoulli", "Multinomial", "Normal", "StochasticFunction", "bernoulli", "multinomial", "normal"]

# This keeps the gradients finite where a drawn outcome had a probability of (nearly) 0.
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
            drawn._flags |= state.CONNECTED
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
