"""Places among sorted numbers, and runs of equal elements."""

from __future__ import annotations

from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Operand, Results
from ..declaration.registry import public
from ..execution import inplace_and_out

# --- places among sorted numbers --------------------------------------------------------------------------------------


def _need_integers_or_floats(name: str, *arrays: Array) -> None:
    for array in arrays:
        if array.dtype.kind in "bc":
            raise RuntimeError(
                f"{name}(): not implemented for '{scalar_type(array.dtype)}'\nConvert the tensors, e.g. with .float()."
            )


@public(method=False)
def searchsorted(
    sorted_sequence: Tensor,
    input: Operand,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Tensor | None = None,
    out: Tensor | None = None,
) -> Tensor:
    """Return where values would stand in rows of sorted numbers.

    Parameters
    ----------
    sorted_sequence : Tensor
        A vector, or rows whose leading dimensions are those of `input`.
    input : Tensor or number
        The values.
    out_int32 : bool
        Return ``int32`` instead of ``int64``.
    right : bool
        Behind equal numbers, not before them.
    side : {"left", "right"}, optional
        The same by name.
    sorter : Tensor, optional
        The indices that sort `sorted_sequence`.

    Raises
    ------
    RuntimeError
        If the leading dimensions differ, or `side` contradicts `right`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.searchsorted(gs.tensor([1, 3, 5]), gs.tensor([0, 3, 9]))
    tensor([0, 1, 3])
    """
    if out is not None:
        options = {"out_int32": out_int32, "right": right, "side": side, "sorter": sorter}
        return inplace_and_out.into(
            out, "searchsorted", [], lambda: searchsorted(sorted_sequence, input, **options), exact=True
        )
    if side not in (None, "left", "right"):
        raise RuntimeError(f"searchsorted(): side can only be 'left' or 'right' but got {side}")
    if side == "left" and right:
        raise RuntimeError(
            "searchsorted(): side and right can't be set to opposites, got side of left while right was True"
        )
    rows = sorted_sequence._array
    xp = devices.array_module(rows)
    values = input._array if hasattr(input, "_array") else xp.asarray(input)
    _need_integers_or_floats("searchsorted", rows, values)
    if rows.ndim != 1 and (rows.ndim != values.ndim or rows.shape[:-1] != values.shape[:-1]):
        raise RuntimeError(
            "searchsorted(): boundaries tensor should be 1 dimension or the first N-1 dimensions of boundaries tensor "
            "and input value tensor must match, but we got boundaries tensor "
            f"{list(rows.shape)} and input value tensor {list(values.shape)}"
        )
    if sorter is not None:
        rows = xp.take_along_axis(rows, sorter._array, axis=-1)
    where = "right" if right or side == "right" else "left"
    if rows.ndim == 1:
        found = xp.searchsorted(rows, values, side=where)
    elif not values.size:
        found = xp.zeros(values.shape)
    else:
        flat, lines = values.reshape(-1, values.shape[-1]), rows.reshape(-1, rows.shape[-1])
        pairs = zip(lines, flat, strict=True)
        found = xp.stack([xp.searchsorted(line, row, side=where) for line, row in pairs]).reshape(values.shape)
    kind = dtypes.int32 if out_int32 else dtypes.int64
    return sorted_sequence.__class__._wrap(xp.asarray(found).astype(kind.numpy))


@public(method=False)
def bucketize(
    input: Operand, boundaries: Tensor, *, out_int32: bool = False, right: bool = False, out: Tensor | None = None
) -> Tensor:
    """Return the number of the bucket that each value falls into: see :func:`searchsorted`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.bucketize(gs.tensor([1.5, 4.0]), gs.tensor([1.0, 2.0, 3.0]))
    tensor([1, 3])
    """
    if boundaries._array.ndim != 1:
        raise RuntimeError(f"bucketize(): boundaries tensor must be 1 dimension, but got dim({boundaries._array.ndim})")
    return searchsorted(boundaries, input, out_int32=out_int32, right=right, out=out)


# --- runs -------------------------------------------------------------------------------------------------------------


@public
def unique_consecutive(
    self: Tensor, return_inverse: bool = False, return_counts: bool = False, dim: int | None = None
) -> Results:
    """Return the elements (or slices along `dim`) without those that are equal to the one before.

    Parameters
    ----------
    return_inverse : bool
        Return also where in the result each element is.
    return_counts : bool
        Return also how long each run is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.unique_consecutive(gs.tensor([1, 1, 2, 1]))
    tensor([1, 2, 1])
    """
    array = self._array
    xp = devices.array_module(array)
    slices = array.reshape(-1) if dim is None else xp.moveaxis(array, dim, 0)
    size = slices.shape[0]
    rows = slices.reshape(size, -1) if size else slices.reshape(0, 1)
    starts = xp.concatenate((xp.ones(min(size, 1), dtype=bool), (rows[1:] != rows[:-1]).any(axis=1)))
    first = starts.nonzero()[0]
    kept = slices[first]
    parts = [kept if dim is None else xp.ascontiguousarray(xp.moveaxis(kept, 0, dim))]
    if return_inverse:
        inverse = xp.cumsum(starts, dtype="int64") - 1
        parts.append(inverse.reshape(array.shape) if dim is None else inverse)
    if return_counts:
        parts.append(xp.diff(xp.concatenate((first, xp.asarray([size])))).astype("int64"))
    wrapped = tuple(self.__class__._wrap(part) for part in parts)
    return wrapped if len(wrapped) > 1 else wrapped[0]
