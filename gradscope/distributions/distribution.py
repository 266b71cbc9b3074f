"""Distribution: what all distributions share."""

from __future__ import annotations

from typing import Any, ClassVar

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.modes import no_grad
from ..runtime.tensor import creation
from ..runtime.tensor.tensor import Size, Tensor
from ..runtime.user_warnings import warn
from . import constraints

__all__ = ["Distribution", "broadcast_all"]


def broadcast_all(*values: Any) -> list[Tensor]:
    """Return tensors and numbers as tensors of one shape; a number takes the dtype of the first tensor."""
    for value in values:
        if not isinstance(value, (Tensor, int, float)):
            raise ValueError(
                "Input arguments must all be instances of Number, gradscope.Tensor or objects implementing "
                f"__torch_function__.\nOne is a {type(value).__name__}."
            )
    like = next((value for value in values if isinstance(value, Tensor)), None)
    tensors = [
        value
        if isinstance(value, Tensor)
        else creation.scalar_tensor(
            value, dtype=None if like is None else like.dtype, device=None if like is None else like.device
        )
        for value in values
    ]
    return list(F.broadcast_tensors(*tensors))


def one_hot(index: Tensor, like: Tensor) -> Tensor:
    """Return vectors of the size of the last dimension of `like`, with a one at each index."""
    places = creation.arange(like.shape[-1], device=like.device)
    return (index.unsqueeze(-1) == places).to(like.dtype)


class Distribution:
    """Base of all distributions.

    Parameters
    ----------
    batch_shape : tuple of int
        The shape of independent distributions that lie in one object.
    event_shape : tuple of int
        The shape of one sample of one of them.
    validate_args : bool, optional
        Whether parameters and samples are checked; they are unless told otherwise, here or for all distributions by
        :meth:`set_default_validate_args`.

    Attributes
    ----------
    has_rsample : bool
        Whether :meth:`rsample` passes gradients to the parameters.
    arg_constraints : dict
        Where the parameters have to lie.

    See Also
    --------
    Normal, kl_divergence

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.Normal(gs.zeros(3), 1.0).batch_shape
    gradscope.Size([3])
    """

    has_rsample: ClassVar[bool] = False
    has_enumerate_support: ClassVar[bool] = False
    arg_constraints: ClassVar[dict[str, constraints.Constraint]] = {}
    _validate_args = __debug__

    def __init__(self, batch_shape: Any = (), event_shape: Any = (), validate_args: bool | None = None) -> None:
        self._batch_shape = Size(batch_shape)
        self._event_shape = Size(event_shape)
        if validate_args is not None:
            self._validate_args = validate_args
        if self._validate_args:
            self._check_parameters()

    def _check_parameters(self) -> None:
        for name, value in self._given().items():
            constraint = self.arg_constraints.get(name, constraints.dependent)
            if constraints.is_dependent(constraint) or not isinstance(value, Tensor):
                continue
            if not bool(constraint.check(value).all()):
                raise ValueError(
                    f"Expected parameter {name} ({type(value).__name__} of shape {tuple(value.shape)}) of distribution "
                    f"{self!r} to satisfy the constraint {constraint!r}, but found invalid values:\n{value}"
                )

    @staticmethod
    def set_default_validate_args(value: bool) -> None:
        """Set whether distributions check parameters and samples unless told otherwise."""
        if value not in (True, False):
            raise ValueError(f"it is a bool, not {value!r}")
        Distribution._validate_args = value

    @property
    def batch_shape(self) -> Size:
        """The shape of independent distributions."""
        return self._batch_shape

    @property
    def event_shape(self) -> Size:
        """The shape of one sample."""
        return self._event_shape

    @property
    def support(self) -> constraints.Constraint:
        """Where samples lie."""
        raise NotImplementedError(f"{type(self).__name__} does not define support")

    @property
    def mean(self) -> Tensor:
        """The mean."""
        raise NotImplementedError(f"{type(self).__name__} does not define mean")

    @property
    def mode(self) -> Tensor:
        """The most probable value."""
        raise NotImplementedError(f"{type(self).__name__} does not define mode")

    @property
    def variance(self) -> Tensor:
        """The variance."""
        raise NotImplementedError(f"{type(self).__name__} does not define variance")

    @property
    def stddev(self) -> Tensor:
        """The standard deviation."""
        return self.variance.sqrt()

    def sample(self, sample_shape: Any = ()) -> Tensor:
        """Return samples, of the shape of the sample, batch and event one after the other; they have no history."""
        with no_grad():
            return self.rsample(sample_shape)

    def sample_n(self, n: int) -> Tensor:
        """Return `n` samples; deprecated, use :meth:`sample`."""
        warn("`sample_n(n)` will be deprecated. Use `sample((n,))` instead.", FutureWarning)
        return self.sample((n,))

    def rsample(self, sample_shape: Any = ()) -> Tensor:
        """Return samples that are functions of the parameters, and pass gradients to them."""
        raise NotImplementedError(
            f"{type(self).__name__} has no rsample()\n"
            "Its samples are no differentiable function of the parameters: use sample() and log_prob()."
        )

    def log_prob(self, value: Tensor) -> Tensor:
        """Return the logarithm of the probability, or of its density, at a value."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_prob()")

    def cdf(self, value: Tensor) -> Tensor:
        """Return the probability of at most a value."""
        raise NotImplementedError(f"{type(self).__name__} does not define cdf()")

    def icdf(self, value: Tensor) -> Tensor:
        """Return the inverse of :meth:`cdf`."""
        raise NotImplementedError(f"{type(self).__name__} does not define icdf()")

    def entropy(self) -> Tensor:
        """Return the entropy in nats."""
        raise NotImplementedError(f"{type(self).__name__} does not define entropy()")

    def perplexity(self) -> Tensor:
        """Return the exponential of the entropy."""
        return self.entropy().exp()

    def enumerate_support(self, expand: bool = True) -> Tensor:
        """Return all values of a discrete distribution, along a new first dimension."""
        raise NotImplementedError(f"{type(self).__name__} does not define enumerate_support()")

    def expand(self, batch_shape: Any, _instance: Any = None) -> Any:
        """Return the distribution with its batch expanded to a shape."""
        shape = Size(batch_shape)
        rank = len(self._batch_shape)
        expanded = {
            name: value.expand(*shape, *value.shape[rank:]) if isinstance(value, Tensor) else value
            for name, value in self._given().items()
        }
        found = type(self)(**expanded, validate_args=False)  # the parameters have been checked
        found._validate_args = self._validate_args
        return found

    def _given(self) -> dict[str, Any]:
        """Return the parameters as the constructor takes them: of two forms of one, that which it was given."""
        return {name: self.__dict__[name] for name in self.arg_constraints if name in self.__dict__}

    def _extended_shape(self, sample_shape: Any = ()) -> Size:
        """Return the shape of samples."""
        return Size((*sample_shape, *self._batch_shape, *self._event_shape))

    def _validate_sample(self, value: Tensor) -> None:
        """Raise ValueError for a value that is no sample."""
        if not self._validate_args:
            return
        if not isinstance(value, Tensor):
            raise ValueError("The value argument to log_prob must be a Tensor\nWrap it: gradscope.tensor(...).")
        rank = value.dim() - len(self._event_shape)
        if tuple(value.shape[max(rank, 0) :]) != tuple(self._event_shape):
            raise ValueError(
                f"The right-most size of value must match event_shape: {value.shape} vs {self._event_shape}."
            )
        whole = Size((*self._batch_shape, *self._event_shape))
        for own, given in zip(reversed(whole), reversed(value.shape), strict=False):
            if own != 1 and given not in (1, own):
                raise ValueError(f"Value is not broadcastable with batch_shape+event_shape: {value.shape} vs {whole}.")
        if not bool(self.support.check(value).all()):
            raise ValueError(
                f"Expected value argument ({type(value).__name__} of shape {tuple(value.shape)}) to be within the "
                f"support ({self.support!r}) of the distribution {self!r}, but found invalid values:\n{value}"
            )

    def __repr__(self) -> str:
        parts = (
            f"{name}: {value if value.numel() == 1 else value.size()}"
            for name, value in self._given().items()
            if isinstance(value, Tensor) and name in self.__dict__
        )
        return f"{type(self).__name__}({', '.join(parts)})"
