"""Products of several matrices, of vectors along a dimension, and powers in the columns of a matrix."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ... import autocast, state
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.registry import METHODS, PUBLIC, public
from ..execution import inplace_and_out
from ..execution.bare_functions import conj

if TYPE_CHECKING:
    from ..declaration.annotations import Array

__all__ = ["multi_dot", "vander", "vecdot"]


@public(namespace="linalg")
def multi_dot(tensors: Sequence[Tensor], *, out: Tensor | None = None) -> Tensor:
    """Return the product of several matrices, in the order of fewest multiplications.

    Parameters
    ----------
    tensors : sequence of Tensor
        Two at least; the first and the last may be vectors.

    Raises
    ------
    RuntimeError
        If they do not fit.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.multi_dot([gs.ones(2, 3), gs.ones(3, 1), gs.ones(1)])
    tensor([3., 3.])
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.multi_dot", list(tensors), lambda: multi_dot(tensors), exact=True)
    if state.casting and autocast.covers("linalg_multi_dot", tensors):
        return autocast.call("linalg_multi_dot", multi_dot, tensors)
    count = len(tensors)
    if count < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {count}\nA product needs two factors.")
    matrices, shape = _as_matrices(tensors)
    _need_chain(tensors, matrices)
    sizes = [m._array.shape[0] for m in matrices] + [matrices[-1]._array.shape[1]]
    best = _best_splits(sizes) if count > 2 else {(0, 1): 0}

    def product(first: int, last: int) -> Array:
        if first == last:
            return matrices[first]
        split = best[first, last]
        return METHODS["mm"](product(first, split), product(split + 1, last))

    return METHODS["view"](product(0, count - 1), shape)


def _as_matrices(tensors: Sequence[Tensor]) -> tuple[list[Tensor], tuple[int, ...]]:
    """Return the factors as matrices, and the shape of their product."""
    first, last = tensors[0]._array, tensors[-1]._array
    for which, array in (("first", first), ("last", last)):
        if array.ndim not in (1, 2):
            raise RuntimeError(f"multi_dot(): the {which} tensor must be 1D or 2D but got {array.ndim}D")
    matrices = list(tensors)
    shape: tuple[int, ...] = ()
    if first.ndim == 1:
        matrices[0] = METHODS["unsqueeze"](tensors[0], 0)
    else:
        shape += (first.shape[0],)
    if last.ndim == 1:
        matrices[-1] = METHODS["unsqueeze"](tensors[-1], -1)
    else:
        shape += (last.shape[1],)
    return matrices, shape


def _need_chain(tensors: Sequence[Tensor], matrices: Sequence[Tensor]) -> None:
    kind = tensors[0]._dtype
    for nr, tensor in enumerate(tensors):
        array = tensor._array
        if 0 < nr < len(tensors) - 1 and array.ndim != 2:
            raise RuntimeError(f"multi_dot(): tensor {nr} must be 2D but got {array.ndim}D")
        if array.dtype != kind:
            raise RuntimeError(
                "multi_dot(): all tensors must have be the same dtype but tensor 0 is "
                f"{scalar_type(kind).lower()} and tensor {nr} {scalar_type(array.dtype).lower()}"
            )
    for nr in range(len(tensors) - 1):
        if matrices[nr]._array.shape[1] != matrices[nr + 1]._array.shape[0]:
            shapes = [list(m._array.shape) for m in matrices[nr : nr + 2]]
            raise RuntimeError(
                f"multi_dot(): tensors {nr} and {nr + 1} with shapes {shapes[0]} and {shapes[1]} cannot be multiplied"
            )


def _best_splits(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Return where to split each part of a chain (T. H. Cormen et al., *Introduction to Algorithms*, section 15.2)."""
    count = len(sizes) - 1
    cost = {(i, i): 0 for i in range(count)}
    best = {}
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            costs = [cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1] for k in range(i, j)]
            cost[i, j] = min(costs)
            best[i, j] = i + costs.index(cost[i, j])
    return best


@public(namespace="linalg")
def vecdot(x: Tensor, y: Tensor, *, dim: int = -1, out: Tensor | None = None) -> Tensor:
    """Return the inner products of vectors along a dimension; those of `x` are conjugated.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.vecdot(gs.tensor([1.0, 2.0]), gs.tensor([3.0, 4.0]))
    tensor(11.)
    """
    if out is not None:
        return inplace_and_out.into(out, "linalg.vecdot", [x, y], lambda: vecdot(x, y, dim=dim), exact=True)
    if state.casting and autocast.covers("linalg_vecdot", (x, y)):
        return autocast.call("linalg_vecdot", lambda x, y: vecdot(x, y, dim=dim), x, y)
    if x._array.ndim == y._array.ndim == 1:
        return METHODS["vdot"](x, y)
    return METHODS["sum"](conj(x) * y, dim)


@public(namespace="linalg")
def vander(x: Tensor, N: int | None = None) -> Tensor:
    """Return the Vandermonde matrix: the powers 0 to N - 1 of each element of `x`, along a new last dimension.

    Parameters
    ----------
    x : Tensor
        Of shape (..., n).
    N : int, optional
        How many powers; n unless given.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.linalg.vander(gs.tensor([2, 3]), N=3)
    tensor([[1, 2, 4],
            [1, 3, 9]])
    """
    array = x._array
    if array.dtype.kind == "b" or (array.dtype.itemsize == 2 and array.dtype.kind == "f"):
        raise RuntimeError(
            "linalg.vander supports floating point, complex, and integer tensors, but got "
            f"{scalar_type(array.dtype)}\nConvert it with .float()."
        )
    if array.ndim == 0:
        x = METHODS["unsqueeze"](x, 0)
        array = x._array
    count = array.shape[-1] if N is None else N
    if count <= 1:
        raise RuntimeError("N must be greater than 1.")
    powers = METHODS["cumprod"](METHODS["unsqueeze"](x, -1).expand(*array.shape, count - 1), -1)
    return PUBLIC["cat"]([x.new_ones((*array.shape, 1), dtype=powers.dtype), powers], -1)
