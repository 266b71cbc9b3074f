"""Regions that parameters and samples of distributions have to lie in."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.memory.dtype import finfo
from ..runtime.ops.linalg.cholesky_and_triangular import cholesky_ex
from ..runtime.ops.linalg.svd_and_eigen import eigvalsh
from ..runtime.tensor.creation import full
from ..runtime.tensor.tensor import Tensor

__all__ = [
    "Constraint",
    "MixtureSameFamilyConstraint",
    "boolean",
    "cat",
    "corr_cholesky",
    "dependent",
    "dependent_property",
    "greater_than",
    "greater_than_eq",
    "half_open_interval",
    "independent",
    "integer_interval",
    "interval",
    "is_dependent",
    "less_than",
    "lower_cholesky",
    "lower_triangular",
    "multinomial",
    "nonnegative",
    "nonnegative_integer",
    "one_hot",
    "positive",
    "positive_definite",
    "positive_integer",
    "positive_semidefinite",
    "real",
    "real_vector",
    "simplex",
    "square",
    "stack",
    "symmetric",
    "unit_interval",
]


class Constraint:
    """A region of values.

    Attributes
    ----------
    is_discrete : bool
        Whether it holds isolated values only.
    event_dim : int
        How many dimensions, from the right, one value has.
    """

    is_discrete = False
    event_dim = 0

    def check(self, value: Tensor) -> Tensor:
        """Say for each value whether it lies in the region."""
        raise NotImplementedError(f"{type(self).__name__} does not define check()")

    def __repr__(self) -> str:
        name = type(self).__name__.lstrip("_")
        return f"{name}({', '.join(f'{key}={value}' for key, value in vars(self).items())})"


class Dependent(Constraint):
    """A region that depends on other parameters: an instance says which it is.

    Parameters
    ----------
    is_discrete : bool, optional
        Whether the region holds isolated values only, where that is known beforehand.
    event_dim : int, optional
        How many dimensions a value has, where that is known beforehand.
    """

    def __init__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> None:
        self._known: dict[str, Any] = {"is_discrete": is_discrete, "event_dim": event_dim}

    def _ask(self, name: str) -> Any:
        if self._known[name] is None:
            raise NotImplementedError(f".{name} cannot be determined statically\nAsk the `support` of an instance.")
        return self._known[name]

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the region holds isolated values only."""
        return self._ask("is_discrete")

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has."""
        return self._ask("event_dim")

    def __call__(self, *, is_discrete: bool | None = None, event_dim: int | None = None) -> Any:
        """Return the region with what is known of it beforehand."""
        known: dict[str, Any] = {"is_discrete": is_discrete, "event_dim": event_dim}
        return Dependent(**{name: self._known[name] if value is None else value for name, value in known.items()})

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def check(self, value: Tensor) -> Tensor:
        """Raise: there is nothing to check by."""
        raise ValueError("Cannot determine validity of dependent constraint\nAsk the distribution's `support`.")


class DependentProperty(property, Dependent):
    """A property of a distribution that is a region; of the class it is one that depends on parameters.

    It is a decorator, alone or with what is known beforehand: ``@dependent_property(is_discrete=False, event_dim=0)``.
    """

    def __init__(
        self,
        fn: Callable[[Any], Constraint] | None = None,
        *,
        is_discrete: bool | None = None,
        event_dim: int | None = None,
    ) -> None:
        property.__init__(self, fn)
        Dependent.__init__(self, is_discrete=is_discrete, event_dim=event_dim)

    def __call__(self, fn: Callable[[Any], Constraint]) -> Any:  # type: ignore[override]
        """Return the property that a function computes."""
        return DependentProperty(fn, **self._known)


def is_dependent(constraint: Any) -> bool:
    """Return whether a region depends on parameters."""
    return isinstance(constraint, Dependent)


class Real(Constraint):
    """All numbers but NaN."""

    def check(self, value: Tensor) -> Tensor:
        return value == value


class GreaterThan(Constraint):
    """Numbers above a bound."""

    def __init__(self, lower_bound: Any) -> None:
        self.lower_bound = lower_bound

    def check(self, value: Tensor) -> Tensor:
        return value > self.lower_bound


class GreaterThanEq(GreaterThan):
    """Numbers from a bound on."""

    def check(self, value: Tensor) -> Tensor:
        return value >= self.lower_bound


class LessThan(Constraint):
    """Numbers below a bound."""

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return value < self.upper_bound


class Interval(Constraint):
    """Numbers from one bound to another."""

    def __init__(self, lower_bound: Any, upper_bound: Any) -> None:
        self.lower_bound = lower_bound
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value <= self.upper_bound)


class HalfOpenInterval(Interval):
    """Numbers from one bound on, up to another, exclusive."""

    def check(self, value: Tensor) -> Tensor:
        return (value >= self.lower_bound) & (value < self.upper_bound)


class IntegerInterval(Interval):
    """Integers from one bound to another."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & super().check(value)


class IntegerGreaterThan(GreaterThan):
    """Integers from a bound on."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value % 1 == 0) & (value >= self.lower_bound)


class Boolean(Constraint):
    """Zeros and ones."""

    is_discrete = True

    def check(self, value: Tensor) -> Tensor:
        return (value == 0) | (value == 1)


class Simplex(Constraint):
    """Vectors of numbers that are not negative, with the sum 1."""

    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & ((value.sum(-1) - 1).abs() < 1e-6)


class OneHot(Constraint):
    """Vectors of zeros with a one among them."""

    is_discrete = True
    event_dim = 1

    def check(self, value: Tensor) -> Tensor:
        return ((value == 0) | (value == 1)).all(-1) & (value.sum(-1) == 1)


class Multinomial(Constraint):
    """Vectors of counts with a given sum at most."""

    is_discrete = True
    event_dim = 1

    def __init__(self, upper_bound: Any) -> None:
        self.upper_bound = upper_bound

    def check(self, value: Tensor) -> Tensor:
        return (value >= 0).all(-1) & (value.sum(-1) <= self.upper_bound)

    def __repr__(self) -> str:
        return "Multinomial()"


class Square(Constraint):
    """Matrices with as many rows as columns."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        square = value.shape[-2] == value.shape[-1]
        return full(value.shape[:-2], square, dtype="bool", device=value.device)


class Symmetric(Square):
    """Matrices that are their own transpose, up to rounding."""

    def check(self, value: Tensor) -> Tensor:
        if value.shape[-2] != value.shape[-1]:
            return super().check(value)
        return value.isclose(value.mT, atol=1e-6).all(-1).all(-1)


class PositiveSemidefinite(Symmetric):
    """Symmetric matrices without negative eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        square = value.shape[-2] == value.shape[-1]
        return symmetric & (eigvalsh(value.detach()) >= 0).all(-1) if square else symmetric


class PositiveDefinite(Symmetric):
    """Symmetric matrices with positive eigenvalues."""

    def check(self, value: Tensor) -> Tensor:
        symmetric = super().check(value)
        square = value.shape[-2] == value.shape[-1]
        return symmetric & (cholesky_ex(value.detach()).info == 0) if square else symmetric


class LowerTriangular(Constraint):
    """Matrices with zeros above the diagonal."""

    event_dim = 2

    def check(self, value: Tensor) -> Tensor:
        return (value.tril() == value).reshape(*value.shape[:-2], -1).all(-1)


class LowerCholesky(LowerTriangular):
    """Lower triangular matrices with a positive diagonal."""

    def check(self, value: Tensor) -> Tensor:
        return super().check(value) & (value.diagonal(dim1=-2, dim2=-1) > 0).all(-1)


class CorrCholesky(LowerCholesky):
    """Lower triangular matrices with a positive diagonal and rows of length 1: factors of correlation matrices."""

    def check(self, value: Tensor) -> Tensor:
        rounding = 10 * value.shape[-1] * finfo(value.dtype).eps
        of_length_one = (value.square().sum(-1) - 1).abs() <= rounding
        return super().check(value) & of_length_one.all(-1)


class MixtureSameFamilyConstraint(Constraint):
    """The region of a mixture's components: a value has no dimension for them."""

    def __init__(self, base_constraint: Constraint) -> None:
        self.base_constraint = base_constraint

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the components are discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has."""
        return self.base_constraint.event_dim

    def check(self, value: Tensor) -> Tensor:
        rank = self.event_dim
        found = self.base_constraint.check(value.unsqueeze(-1 - rank)).all(-1)
        return found.reshape(*value.shape[: value.dim() - rank], *(1,) * rank) if rank else found

    def __repr__(self) -> str:
        return f"MixtureSameFamilyConstraint({self.base_constraint!r})"


class _Several(Constraint):
    """Regions side by side along one dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0) -> None:
        self.cseq, self.dim = list(cseq), dim

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether one of them is discrete."""
        return any(constraint.is_discrete for constraint in self.cseq)

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has."""
        return max(constraint.event_dim for constraint in self.cseq)

    def _answers(self, parts: Iterable[Tensor], rank: int) -> list[Tensor]:
        """Return what each region says of its part, whose last `rank` dimensions are those of one value."""
        return [
            _all_rightmost(constraint.check(part), rank - constraint.event_dim)
            for constraint, part in zip(self.cseq, parts, strict=True)
        ]

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class Cat(_Several):
    """A region for each section of a dimension."""

    def __init__(self, cseq: Sequence[Constraint], dim: int = 0, lengths: Sequence[int] | None = None) -> None:
        super().__init__(cseq, dim)
        self.lengths = [1] * len(self.cseq) if lengths is None else list(lengths)

    def check(self, value: Tensor) -> Tensor:
        dim = batch_dim(value, self.dim, self.event_dim)
        answers = self._answers(sections(value, self.dim, self.lengths), self.event_dim)
        return F.cat(answers, dim) if dim < 0 else functools.reduce(operator.and_, answers)


class Stack(_Several):
    """A region for each index of a dimension."""

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has: one more than in its regions, where they are stacked among those."""
        rank = super().event_dim
        return rank + (self.dim < 0 and -self.dim <= rank)

    def check(self, value: Tensor) -> Tensor:
        dim = batch_dim(value, self.dim, self.event_dim)
        answers = self._answers(value.unbind(self.dim), self.event_dim - (dim >= 0))
        return F.stack(answers, dim) if dim < 0 else functools.reduce(operator.and_, answers)


def batch_dim(value: Tensor, dim: int, rank: int) -> int:
    """Return the dimension, from the right, that is left of `dim` where `rank` dimensions of one value are summed over.

    It is 0 or more where `dim` is one of these.
    """
    return (dim if dim < 0 else dim - value.dim()) + rank


def _all_rightmost(found: Tensor, count: int) -> Tensor:
    """Return whether all is true over the last `count` dimensions."""
    return found.reshape(*found.shape[: found.dim() - count], -1).all(-1) if count else found


def sections(value: Tensor, dim: int, lengths: Sequence[int]) -> Iterator[Tensor]:
    """Yield the sections of a dimension, of these lengths."""
    start = 0
    for length in lengths:
        yield value.narrow(dim, start, length)
        start += length


class IndependentConstraint(Constraint):
    """A region of which a value takes in several dimensions that are checked one by one."""

    def __init__(self, base_constraint: Constraint, reinterpreted_batch_ndims: int) -> None:
        self.base_constraint = base_constraint
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    @property
    def is_discrete(self) -> bool:  # type: ignore[override]
        """Whether the parts are discrete."""
        return self.base_constraint.is_discrete

    @property
    def event_dim(self) -> int:  # type: ignore[override]
        """How many dimensions a value has."""
        return self.base_constraint.event_dim + self.reinterpreted_batch_ndims

    def check(self, value: Tensor) -> Tensor:
        return _all_rightmost(self.base_constraint.check(value), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"IndependentConstraint({self.base_constraint!r}, {self.reinterpreted_batch_ndims})"


dependent = Dependent()
dependent_property = DependentProperty
real = Real()
positive = GreaterThan(0.0)
nonnegative = GreaterThanEq(0.0)
unit_interval = Interval(0.0, 1.0)
boolean = Boolean()
nonnegative_integer = IntegerGreaterThan(0)
positive_integer = IntegerGreaterThan(1)
simplex = Simplex()
one_hot = OneHot()
real_vector = IndependentConstraint(real, 1)
square = Square()
symmetric = Symmetric()
positive_semidefinite = PositiveSemidefinite()
positive_definite = PositiveDefinite()
lower_triangular = LowerTriangular()
lower_cholesky = LowerCholesky()
corr_cholesky = CorrCholesky()
greater_than = GreaterThan
greater_than_eq = GreaterThanEq
half_open_interval = HalfOpenInterval
less_than = LessThan
interval = Interval
integer_interval = IntegerInterval
multinomial = Multinomial
independent = IndependentConstraint
cat = Cat
stack = Stack
