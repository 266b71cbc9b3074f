"""Transform, and transforms that are made of others."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from typing import Any

from ..runtime.dispatch import TENSOR_OPERATORS as F
from ..runtime.tensor.tensor import Size, Tensor
from . import constraints
from .independent import sum_rightmost

__all__ = [
    "CatTransform",
    "ComposeTransform",
    "IndependentTransform",
    "ReshapeTransform",
    "StackTransform",
    "Transform",
    "identity_transform",
]


class Transform:
    """A function of values, with its inverse.

    A subclass defines `domain`, `codomain`, ``_call()``, and, if it has them, ``_inverse()`` and
    :meth:`log_abs_det_jacobian`.

    Parameters
    ----------
    cache_size : {0, 1}
        1 keeps the last value and its image, so that the inverse of what was just computed is that very value: exact,
        and part of its graph.

    Attributes
    ----------
    domain, codomain : Constraint
        Where values and their images lie.
    bijective : bool
        Whether each image has one value.
    sign : int or Tensor
        1 where it increases, -1 where it decreases.

    See Also
    --------
    TransformedDistribution, ComposeTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.ExpTransform().inv(gs.tensor(1.0))
    tensor(0.)
    """

    bijective = False
    domain: Any
    codomain: Any

    def __init__(self, cache_size: int = 0) -> None:
        if cache_size not in (0, 1):
            raise ValueError(f"cache_size must be 0 or 1\nIt is {cache_size!r}.")
        self._cache_size = cache_size
        self._cached_x_y: tuple[Any, Any] = (None, None)

    @property
    def event_dim(self) -> int:
        """How many dimensions one value has, where its image has as many."""
        if self.domain.event_dim != self.codomain.event_dim:
            raise ValueError("Please use either .domain.event_dim or .codomain.event_dim")
        return self.domain.event_dim

    @property
    def inv(self) -> Transform:
        """The inverse."""
        return _InverseTransform(self)

    @property
    def sign(self) -> Any:
        """1 where it increases, -1 where it decreases."""
        raise NotImplementedError(f"{type(self).__name__} does not define sign")

    def with_cache(self, cache_size: int = 1) -> Transform:
        """Return the same transform with a cache of that size."""
        if self._cache_size == cache_size:
            return self
        if type(self).__init__ is Transform.__init__:
            return type(self)(cache_size=cache_size)
        raise NotImplementedError(f"{type(self)}.with_cache is not implemented")

    def __eq__(self, other: object) -> bool:
        return self is other or (type(self).__init__ is Transform.__init__ and type(self) is type(other))

    __hash__ = None  # type: ignore[assignment]

    def __call__(self, x: Tensor) -> Tensor:
        """Return the image of a value."""
        if self._cache_size and x is self._cached_x_y[0]:
            return self._cached_x_y[1]
        return self._kept(x, self._call(x))[1]

    def _inv_call(self, y: Tensor) -> Tensor:
        if self._cache_size and y is self._cached_x_y[1]:
            return self._cached_x_y[0]
        return self._kept(self._inverse(y), y)[0]

    def _kept(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
        if self._cache_size:
            self._cached_x_y = x, y
        return x, y

    def _call(self, x: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} does not define _call()")

    def _inverse(self, y: Tensor) -> Tensor:
        raise NotImplementedError(f"{type(self).__name__} has no inverse: it does not define _inverse()")

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        """Return the logarithm of the absolute value of the determinant of the Jacobian, at `x` with the image `y`."""
        raise NotImplementedError(f"{type(self).__name__} does not define log_abs_det_jacobian()")

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"

    def forward_shape(self, shape: Any) -> Any:
        """Return the shape of the image of a value of a shape."""
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        """Return the shape of the value whose image has a shape."""
        return shape


class _InverseTransform(Transform):
    """The inverse of a transform."""

    def __init__(self, transform: Transform) -> None:
        super().__init__(transform._cache_size)
        self._inv = transform

    @property
    def domain(self) -> Any:
        return self._inv.codomain

    @property
    def codomain(self) -> Any:
        return self._inv.domain

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether it is one to one."""
        return self._inv.bijective

    @property
    def sign(self) -> Any:
        return self._inv.sign

    @property
    def inv(self) -> Transform:
        return self._inv

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self._inv.with_cache(cache_size).inv

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _InverseTransform) and self._inv == other._inv

    __hash__ = None

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self._inv!r})"

    def __call__(self, x: Tensor) -> Tensor:
        return self._inv._inv_call(x)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return -self._inv.log_abs_det_jacobian(y, x)

    def forward_shape(self, shape: Any) -> Any:
        return self._inv.inverse_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self._inv.forward_shape(shape)


# --- made of others ---------------------------------------------------------------------------------------------------


class ComposeTransform(Transform):
    """Transforms one after the other.

    Parameters
    ----------
    cache_size : {0, 1}

    See Also
    --------
    AffineTransform, Transform

    Examples
    --------
    >>> import gradscope as gs
    >>> parts = [gs.distributions.AffineTransform(0.0, 2.0), gs.distributions.ExpTransform()]
    >>> gs.distributions.ComposeTransform(parts)(gs.tensor(0.5))
    tensor(2.7183)
    """

    def __init__(self, parts: Sequence[Transform], cache_size: int = 0) -> None:
        self.parts = [part.with_cache(cache_size) for part in parts] if cache_size else list(parts)
        super().__init__(cache_size)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, ComposeTransform) and self.parts == other.parts

    __hash__ = None

    @property
    def domain(self) -> Any:
        if not self.parts:
            return constraints.real
        rank = self.parts[-1].codomain.event_dim
        for part in reversed(self.parts):
            rank = max(rank + part.domain.event_dim - part.codomain.event_dim, part.domain.event_dim)
        return _widened(self.parts[0].domain, rank)

    @property
    def codomain(self) -> Any:
        if not self.parts:
            return constraints.real
        rank = self.parts[0].domain.event_dim
        for part in self.parts:
            rank = max(rank + part.codomain.event_dim - part.domain.event_dim, part.codomain.event_dim)
        return _widened(self.parts[-1].codomain, rank)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.bijective for part in self.parts)

    @property
    def sign(self) -> Any:
        return functools.reduce(operator.mul, (part.sign for part in self.parts), 1)

    @property
    def inv(self) -> Transform:
        return _InverseTransform(self)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ComposeTransform(self.parts, cache_size)

    def __call__(self, x: Tensor) -> Tensor:
        for part in self.parts:
            x = part(x)
        return x

    def _inv_call(self, y: Tensor) -> Tensor:
        for part in reversed(self.parts):
            y = part.inv(y)
        return y

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        if not self.parts:
            return F.zeros_like(x)
        values = [x]
        for part in self.parts[:-1]:
            values.append(part(values[-1]))
        values.append(y)
        terms, rank = [], self.domain.event_dim
        for part, before, after in zip(self.parts, values[:-1], values[1:], strict=True):
            terms.append(sum_rightmost(part.log_abs_det_jacobian(before, after), rank - part.domain.event_dim))
            rank += part.codomain.event_dim - part.domain.event_dim
        return functools.reduce(operator.add, terms)

    def forward_shape(self, shape: Any) -> Any:
        for part in self.parts:
            shape = part.forward_shape(shape)
        return shape

    def inverse_shape(self, shape: Any) -> Any:
        for part in reversed(self.parts):
            shape = part.inverse_shape(shape)
        return shape

    def __repr__(self) -> str:
        parts = ",\n    ".join(repr(part) for part in self.parts)
        return f"{type(self).__name__}(\n    {parts}\n)"


identity_transform = ComposeTransform([])


def _widened(region: Any, rank: int) -> Any:
    """Return a region of values with `rank` dimensions."""
    return constraints.independent(region, rank - region.event_dim) if rank > region.event_dim else region


def _need_rank(shape: Any, rank: int) -> None:
    if len(shape) < rank:
        raise ValueError(f"Too few dimensions on input\nIts shape is {list(shape)}; {rank} are needed.")


class IndependentTransform(Transform):
    """A transform whose last batch dimensions are part of its values.

    Parameters
    ----------
    cache_size : {0, 1}

    See Also
    --------
    Independent

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.IndependentTransform(gs.distributions.ExpTransform(), 1)(gs.zeros(2))
    tensor([1., 1.])
    """

    def __init__(self, base_transform: Transform, reinterpreted_batch_ndims: int, cache_size: int = 0) -> None:
        super().__init__(cache_size)
        self.base_transform = base_transform.with_cache(cache_size)
        self.reinterpreted_batch_ndims = reinterpreted_batch_ndims

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return IndependentTransform(self.base_transform, self.reinterpreted_batch_ndims, cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(self.base_transform.domain, self.reinterpreted_batch_ndims)

    @property
    def codomain(self) -> Any:
        return constraints.independent(self.base_transform.codomain, self.reinterpreted_batch_ndims)

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether the base is."""
        return self.base_transform.bijective

    @property
    def sign(self) -> Any:
        return self.base_transform.sign

    def _call(self, x: Tensor) -> Tensor:
        _need_rank(x.shape, self.domain.event_dim)
        return self.base_transform(x)

    def _inverse(self, y: Tensor) -> Tensor:
        _need_rank(y.shape, self.codomain.event_dim)
        return self.base_transform.inv(y)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return sum_rightmost(self.base_transform.log_abs_det_jacobian(x, y), self.reinterpreted_batch_ndims)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.base_transform!r}, {self.reinterpreted_batch_ndims})"

    def forward_shape(self, shape: Any) -> Any:
        return self.base_transform.forward_shape(shape)

    def inverse_shape(self, shape: Any) -> Any:
        return self.base_transform.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Values in another shape.

    Parameters
    ----------
    in_shape, out_shape : tuple of int
        Of the last dimensions.
    cache_size : {0, 1}

    See Also
    --------
    IndependentTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.distributions.ReshapeTransform((4,), (2, 2))(gs.arange(4.0))
    tensor([[0., 1.],
            [2., 3.]])
    """

    bijective = True

    def __init__(self, in_shape: Any, out_shape: Any, cache_size: int = 0) -> None:
        self.in_shape, self.out_shape = Size(in_shape), Size(out_shape)
        if self.in_shape.numel() != self.out_shape.numel():
            raise ValueError(
                "in_shape, out_shape have different numbers of elements\n"
                f"They are {list(self.in_shape)} and {list(self.out_shape)}."
            )
        super().__init__(cache_size)

    @property
    def domain(self) -> Any:
        return constraints.independent(constraints.real, len(self.in_shape))

    @property
    def codomain(self) -> Any:
        return constraints.independent(constraints.real, len(self.out_shape))

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else ReshapeTransform(self.in_shape, self.out_shape, cache_size)

    def _call(self, x: Tensor) -> Tensor:
        return x.reshape(self.forward_shape(x.shape))

    def _inverse(self, y: Tensor) -> Tensor:
        return y.reshape(self.inverse_shape(y.shape))

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        return x.new_zeros(x.shape[: x.dim() - len(self.in_shape)])

    def forward_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.in_shape, self.out_shape)

    def inverse_shape(self, shape: Any) -> Any:
        return _exchanged(shape, self.out_shape, self.in_shape)


def _exchanged(shape: Any, before: Size, after: Size) -> tuple[int, ...]:
    _need_rank(shape, len(before))
    cut = len(shape) - len(before)
    if tuple(shape[cut:]) != tuple(before):
        raise ValueError(f"Shape mismatch: expected {tuple(shape[cut:])} but got {before}")
    return (*shape[:cut], *after)


class _Several(Transform):
    """Transforms side by side along one dimension."""

    transforms: list[Transform]
    dim: int

    def __init__(self, tseq: Sequence[Transform], dim: int, cache_size: int) -> None:
        if not all(isinstance(part, Transform) for part in tseq):
            raise AssertionError("All elements of tseq must be Transform instances")
        super().__init__(cache_size)
        self.transforms = [part.with_cache(cache_size) for part in tseq] if cache_size else list(tseq)
        self.dim = dim

    @property
    def bijective(self) -> bool:  # type: ignore[override]
        """Whether all parts are."""
        return all(part.bijective for part in self.transforms)

    def _need_length(self, value: Tensor, length: int, what: str) -> None:
        if not -value.dim() <= self.dim < value.dim():
            raise AssertionError(f"dim {self.dim} out of range for tensor with {value.dim()} dimensions")
        if value.shape[self.dim] != length:
            raise AssertionError(f"x.size({self.dim}) = {value.shape[self.dim]} must equal {what} {length}")

    def _log_volumes(self, xs: Sequence[Tensor], ys: Sequence[Tensor], rank: int) -> list[Tensor]:
        """Return what each part adds, for values with `rank` dimensions."""
        return [
            sum_rightmost(part.log_abs_det_jacobian(x, y), rank - part.domain.event_dim)
            for part, x, y in zip(self.transforms, xs, ys, strict=True)
        ]


class CatTransform(_Several):
    """A transform for each section of a dimension.

    Parameters
    ----------
    dim : int
        The dimension.
    lengths : sequence of int, optional
        Those of the sections: 1 each, unless given.
    cache_size : {0, 1}

    See Also
    --------
    StackTransform, ComposeTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import CatTransform, ExpTransform, identity_transform
    >>> CatTransform([ExpTransform(), identity_transform], lengths=[1, 2])(gs.zeros(3))
    tensor([1., 0., 0.])
    """

    def __init__(
        self, tseq: Sequence[Transform], dim: int = 0, lengths: Sequence[int] | None = None, cache_size: int = 0
    ) -> None:
        super().__init__(tseq, dim, cache_size)
        self.lengths = [1] * len(self.transforms) if lengths is None else list(lengths)
        if len(self.lengths) != len(self.transforms):
            raise AssertionError(f"lengths ({len(self.lengths)}) must match transforms ({len(self.transforms)})")

    @property
    def length(self) -> int:
        """The length of the dimension."""
        return sum(self.lengths)

    @property
    def domain(self) -> Any:
        return constraints.cat([part.domain for part in self.transforms], self.dim, self.lengths)

    @property
    def codomain(self) -> Any:
        return constraints.cat([part.codomain for part in self.transforms], self.dim, self.lengths)

    def with_cache(self, cache_size: int = 1) -> Transform:
        if self._cache_size == cache_size:
            return self
        return CatTransform(self.transforms, self.dim, self.lengths, cache_size)

    def _sections(self, value: Tensor) -> list[Tensor]:
        self._need_length(value, self.length, "length")
        return list(constraints.sections(value, self.dim, self.lengths))

    def _call(self, x: Tensor) -> Tensor:
        return F.cat([part(s) for part, s in zip(self.transforms, self._sections(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.cat([part.inv(s) for part, s in zip(self.transforms, self._sections(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        terms = self._log_volumes(self._sections(x), self._sections(y), self.domain.event_dim)
        dim = constraints.batch_dim(x, self.dim, self.domain.event_dim)
        return F.cat(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)


class StackTransform(_Several):
    """A transform for each index of a dimension.

    Parameters
    ----------
    dim : int
        The dimension.
    cache_size : {0, 1}

    See Also
    --------
    CatTransform, ComposeTransform

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.distributions import ExpTransform, StackTransform, identity_transform
    >>> StackTransform([ExpTransform(), identity_transform], dim=-1)(gs.zeros(3, 2))
    tensor([[1., 0.],
            [1., 0.],
            [1., 0.]])
    """

    def __init__(self, tseq: Sequence[Transform], dim: int = 0, cache_size: int = 0) -> None:
        super().__init__(tseq, dim, cache_size)

    @property
    def domain(self) -> Any:
        return constraints.stack([part.domain for part in self.transforms], self.dim)

    @property
    def codomain(self) -> Any:
        return constraints.stack([part.codomain for part in self.transforms], self.dim)

    def with_cache(self, cache_size: int = 1) -> Transform:
        return self if self._cache_size == cache_size else StackTransform(self.transforms, self.dim, cache_size)

    def _slices(self, value: Tensor) -> tuple[Tensor, ...]:
        self._need_length(value, len(self.transforms), "len(transforms)")
        return value.unbind(self.dim)

    def _call(self, x: Tensor) -> Tensor:
        return F.stack([part(s) for part, s in zip(self.transforms, self._slices(x), strict=True)], self.dim)

    def _inverse(self, y: Tensor) -> Tensor:
        return F.stack([part.inv(s) for part, s in zip(self.transforms, self._slices(y), strict=True)], self.dim)

    def log_abs_det_jacobian(self, x: Tensor, y: Tensor) -> Tensor:
        dim = constraints.batch_dim(x, self.dim, self.domain.event_dim)
        rank = self.domain.event_dim - (
            dim >= 0
        )  # where the parts are stacked in one value, a part has a dimension less
        terms = self._log_volumes(self._slices(x), self._slices(y), rank)
        return F.stack(terms, dim) if dim < 0 else functools.reduce(operator.add, terms)
