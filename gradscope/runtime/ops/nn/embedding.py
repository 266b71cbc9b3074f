"""Embeddings: rows of a table, looked up by index, one by one or in bags."""

from __future__ import annotations

import math

import numpy

from ... import events, state
from ...kernels.copies import taken
from ...memory import device
from ...memory.dtype import scalar_type
from ...tensor import creation
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, Cases, Gradient, Make, Namespace, Results, Shape
from ..declaration.registry import OPERATORS, operator, public
from ..execution.bare_functions import is_half, single
from ..index.accumulate_at import accumulate_at
from ..index.indexing import add_at

# --- rows -------------------------------------------------------------------------------------------------------------


def _embedding(
    xp: Namespace, weight: Array, indices: Array, padding_idx: int = -1, scale_grad_by_freq: bool = False
) -> Array:
    if indices.dtype.kind not in "iu":
        raise RuntimeError(
            f"Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{indices.dtype} instead (while checking arguments for embedding)\nConvert them with .long()."
        )
    if weight.ndim != 2:
        raise RuntimeError("'weight' must be 2-D")
    if type(indices) is device.ndarray and indices.size and (indices.min() < 0 or indices.max() >= weight.shape[0]):
        raise IndexError(
            f"index out of range in self\nThe indices run from {indices.min()} to {indices.max()}, the rows from 0 to "
            f"{weight.shape[0] - 1}."
        )
    return taken(weight, indices, 0)  # many times faster than weight[indices] where rows are short


def _embedding_backward(
    xp: Namespace, grad_output: Gradient, indices: Array, count: int, padding_idx: int, scale_grad_by_freq: bool
) -> Array:
    width = grad_output.shape[-1]
    result = xp.zeros((count, width), dtype=grad_output.dtype)
    rows, at = grad_output.reshape(indices.size, width), indices.reshape(-1)
    if scale_grad_by_freq:
        times = xp.zeros(count, dtype=grad_output.dtype)
        accumulate_at(xp, "add", times, at, xp.ones(at.shape, dtype=grad_output.dtype))
        rows = rows / times[at][:, None]
    add_at(xp, result, (at,), (0,), rows)
    if padding_idx >= 0:
        result[padding_idx] = 0
    return result


def _embedding_adjoint(
    g: Gradient, indices: Array, padding_idx: int, scale_grad_by_freq: bool, F: Namespace
) -> Gradient:
    rows = F.embedding_rows(g, indices, padding_idx, scale_grad_by_freq)
    if padding_idx < 0:
        return rows
    return F.where(F.unsqueeze(indices == padding_idx, -1), F.zeros_like(rows), rows)


_LOOKUP = "Tensor weight, Tensor indices, int padding_idx=-1, bool scale_grad_by_freq=False"

operator(
    f"embedding_rows({_LOOKUP})",
    _embedding,
    method=False,
    public_name=False,
    node="EmbeddingBackward0",
    derivatives={
        "weight": lambda g, indices, weight_shape, padding_idx, scale_grad_by_freq, F: F.embedding_backward(
            g, indices, weight_shape[0], padding_idx, scale_grad_by_freq
        ),
    },
    doc="Return rows of the weight.",
    samples=lambda make: [((make(5, 3), _indices()), {}), ((make(5, 3), _indices(), 2), {})],
    reference=lambda weight, indices, *rest: weight[indices],
    supports="f",
)


def _embedding_backward_reference(grad: Gradient, indices: Array, count: int, padding_idx: int, by_freq: bool) -> Array:
    result = numpy.zeros((count, grad.shape[-1]), grad.dtype)
    for place in numpy.ndindex(indices.shape):
        if indices[place] != padding_idx:
            result[indices[place]] += grad[place]
    return result


operator(
    "embedding_backward(Tensor grad_output, Tensor indices, int count, int padding_idx, bool scale_grad_by_freq)",
    _embedding_backward,
    method=False,
    public_name=False,
    node="EmbeddingDenseBackwardBackward0",
    derivatives={"grad_output": _embedding_adjoint},
    doc="The adjoint of the choice of rows: adds each gradient to its row.",
    samples=lambda make: [((make(2, 3, 3), _indices(), 5, 2, False), {})],
    reference=_embedding_backward_reference,
    supports="f",
)


def _indices() -> Array:
    return creation.tensor([[0, 2, 4], [2, 2, 1]])


def embedding(
    input: Array,
    weight: Array,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Array:
    """Return the rows of `weight` that the indices `input` name.

    Parameters
    ----------
    input : Tensor
        Indices of any shape.
    weight : Tensor
        Of shape (rows, width).
    padding_idx : int, optional
        A row that gets no gradient.
    max_norm : float, optional
        Scale the named rows down to this `norm_type`-norm first, in place.
    scale_grad_by_freq : bool
        Divide each row's gradient by how often it was named.
    sparse : bool
        Taken for PyTorch's sake: gradients are dense.

    Raises
    ------
    IndexError
        If an index names no row.

    See Also
    --------
    nn.Embedding, embedding_bag, one_hot

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.embedding(gs.tensor([2, 0]), gs.tensor([[1.0], [2.0], [3.0]]))
    tensor([[3.],
            [1.]])
    """
    if weight._array.ndim != 2:
        raise RuntimeError(f"'weight' must be 2-D\nIts shape is {list(weight._array.shape)}; each row is an embedding.")
    rows = weight._array.shape[0]
    if padding_idx is None:
        padding_idx = -1
    elif not -rows <= padding_idx < rows:
        raise AssertionError("Padding_idx must be within num_embeddings")
    elif padding_idx < 0:
        padding_idx += rows
    if max_norm is not None:
        renormalize(weight, input, max_norm, norm_type)
    return OPERATORS["embedding_rows"].function(weight, input, padding_idx, scale_grad_by_freq)


def renormalize(weight: Array, indices: Array, max_norm: float, norm_type: float) -> None:
    """Scale the rows of `weight` that `indices` name down to this norm, in place."""
    array = weight._array
    xp = device.array_module(array)
    named = xp.unique(indices._array)
    chosen = array[named]
    if state.special and events.wanted(events.WriteStarted):
        events.emit(events.WriteStarted(weight))
    size = xp.absolute(single(chosen) if is_half(chosen) else chosen)
    if norm_type == math.inf:
        norms = size.max(axis=1, keepdims=True)
    else:
        norms = xp.add.reduce(size**norm_type, axis=1, keepdims=True) ** (1.0 / norm_type)
    array[named] = xp.where(norms > max_norm, chosen * (max_norm / (norms + 1e-7)), chosen)
    weight._bump("embedding_renorm_")


# --- bags -------------------------------------------------------------------------------------------------------------

SUM, MEAN, MAX = 0, 1, 2


def _bag_of_each(xp: Namespace, indices: Array, offsets: Array, include_last: bool) -> tuple[Array, int]:
    """Return the bag in which each index is, and how many bags there are."""
    starts = offsets[:-1] if include_last else offsets
    return xp.searchsorted(starts, xp.arange(indices.size), side="right") - 1, starts.size


def _counted(xp: Namespace, indices: Array, offsets: Array, include_last: bool, padding_idx: int) -> Array:
    """Return which indices count: those that are no padding and lie before the last offset, if that is given."""
    counted = indices != padding_idx
    return counted & (xp.arange(indices.size) < offsets[-1]) if include_last else counted


def _sizes(xp: Namespace, bags: Array, counted: Array, count: int) -> Array:
    """Return how many indices of each bag count."""
    sizes = xp.zeros(count, dtype="int64")
    accumulate_at(xp, "add", sizes, bags, counted)
    return sizes


def _reduce_bags(xp: Namespace, name: str, rows: Array, bags: Array, first: Array) -> Array:
    """Combine by the ufunc `name` the rows of each bag; `first` is what an empty one has."""
    if type(rows) is device.ndarray and rows.size:
        # Bags are runs of rows: reducing runs is an order of magnitude faster than ufunc.at.
        ufunc, starts = getattr(xp, name), xp.flatnonzero(xp.concatenate([[True], bags[1:] != bags[:-1]]))
        count = first.shape[0]
        length = len(rows) // count
        if len(starts) == count and length * count == len(rows) and (starts == xp.arange(count) * length).all():
            return ufunc.reduce(rows.reshape(count, length, -1), axis=1)
        first[bags[starts]] = ufunc.reduceat(rows, starts, axis=0)
    else:
        accumulate_at(xp, name, first, bags, rows)
    return first


def _embedding_bag(
    xp: Namespace,
    weight: Array,
    indices: Array,
    offsets: Array,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    per_sample_weights: Array = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> tuple[Array, Array, Array, Array]:
    """Return the bags, and for the derivative the bag of each index, what each counts, and the row of each maximum."""
    _check_bag(weight, indices, offsets, per_sample_weights)
    bags, count = _bag_of_each(xp, indices, offsets, include_last_offset)
    counted = _counted(xp, indices, offsets, include_last_offset, padding_idx)
    sizes = _sizes(xp, bags, counted, count)
    rows = weight[indices]
    if mode == MAX:
        return _largest(xp, rows, indices, bags, counted, sizes)
    share = counted.astype(weight.dtype)
    if per_sample_weights is not None:
        rows *= per_sample_weights[:, None]
    if padding_idx >= 0 or include_last_offset:
        rows[~counted] = 0
    rows = single(rows) if is_half(rows) else rows
    result = _reduce_bags(xp, "add", rows, bags, xp.zeros((count, rows.shape[1]), dtype=rows.dtype))
    if mode == MEAN:
        lengths = xp.maximum(sizes, 1).astype(rows.dtype)
        result /= lengths[:, None]
        share = (share / lengths[bags]).astype(weight.dtype, copy=False)
    return result.astype(weight.dtype, copy=False), bags, share, xp.zeros((count,), dtype="int64")


def _largest(
    xp: Namespace, rows: Array, indices: Array, bags: Array, counted: Array, sizes: Array
) -> tuple[Array, Array, Array, Array]:
    shape = (sizes.size, rows.shape[1])
    filled = (sizes > 0)[:, None]
    lowest = xp.full(shape, -math.inf, dtype=rows.dtype)
    result = _reduce_bags(xp, "maximum", xp.where(counted[:, None], rows, -math.inf), bags, lowest)
    count = indices.size
    if not count:
        return xp.zeros(shape, dtype=rows.dtype), bags, filled, xp.zeros(shape, dtype="int64")
    # The first row that has the maximum; NaN counts as the largest number.
    best = counted[:, None] & ((rows == result[bags]) | (rows != rows))
    places = xp.where(best, xp.arange(count)[:, None], count - 1).astype("int32")
    place = _reduce_bags(xp, "minimum", places, bags, xp.full(shape, count - 1, dtype="int32"))
    found = xp.where(filled, indices[place], 0)
    return xp.where(filled, result, 0).astype(rows.dtype, copy=False), bags, filled.astype(rows.dtype), found


def _check_bag(weight: Array, indices: Array, offsets: Array, per_sample_weights: Array) -> None:
    where = "(while checking arguments for embedding_bag)"
    if indices.dtype.kind not in "iu":
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"gradscope.{scalar_type(indices.dtype)}Tensor instead {where}\nConvert them with .long()."
        )
    if weight.dtype.kind != "f":
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have one of the following scalar types: Half, BFloat16, "
            f"Float, Double; but got gradscope.{scalar_type(weight.dtype)}Tensor instead {where}\nConvert it with "
            ".float()."
        )
    if per_sample_weights is not None and per_sample_weights.dtype != weight.dtype:
        kinds = [scalar_type(array.dtype) for array in (weight, per_sample_weights)]
        raise RuntimeError(
            "Expected tensor for argument #1 'weight' to have the same type as tensor for argument #1 "
            f"'per_sample_weights'; but type gradscope.{kinds[0]}Tensor does not equal gradscope.{kinds[1]}Tensor "
            f"{where}\nConvert one of them with .to()."
        )
    if type(indices) is device.ndarray:
        _check_values(weight.shape[0], indices, offsets)


def _check_values(rows: int, indices: Array, offsets: Array) -> None:
    """Look at indices and offsets: on the host only, on a GPU it would wait for the device."""
    if offsets.size and offsets[0] != 0:
        raise RuntimeError(
            "offsets[0] has to be 0, i.e., the first sequence in the mini-batch has to start from position 0. However, "
            f"got {offsets[0]}"
        )
    if offsets.size and offsets[-1] > indices.size:
        raise RuntimeError(
            f"offsets[-1] can not be greater than input's length {indices.size} but got offsets[-1] of {offsets[-1]}"
        )
    if (offsets[1:] < offsets[:-1]).any():
        raise RuntimeError("Expected offsets that do not fall\nEach bag starts where the one before ends, or later.")
    if indices.size and (indices.min() < 0 or indices.max() >= rows):
        place = int(((indices < 0) | (indices >= rows)).argmax())
        raise RuntimeError(
            f"Index {place} of input takes value {indices[place]} which is not in the valid range [0, {rows})\n"
            f"The weight has {rows} rows."
        )


def _bag_backward(
    g: Gradient,
    weight_shape: Shape,
    indices: Array,
    scale_grad_by_freq: bool,
    mode: int,
    per_sample_weights: Array,
    padding_idx: int,
    result1: Array,
    result2: Array,
    result3: Array,
    F: Namespace,
) -> Gradient:
    if mode == MAX:
        return F.gather_backward(g * result2, weight_shape, 0, result3)
    share = result2 if per_sample_weights is None else result2 * per_sample_weights
    each = F.index_select(g, 0, result1) * F.unsqueeze(share, 1)
    return F.embedding_backward(each, indices, weight_shape[0], padding_idx, scale_grad_by_freq)


def _sample_weight_backward(
    g: Gradient, weight: Array, indices: Array, result1: Array, result2: Array, F: Namespace
) -> Gradient:
    found = F.sum(F.index_select(g, 0, result1) * F.index_select(weight, 0, indices), 1)
    return F.where(result2 == 0, F.zeros_like(found), found * result2)


def _bag_samples(make: Make) -> Cases:
    indices, offsets = creation.tensor([0, 2, 4, 2, 2, 1]), creation.tensor([0, 2, 2, 3])
    settings: list[tuple[Argument, ...]] = [(SUM,), (MEAN,), (MAX,), (SUM, make(6))]
    settings += [(SUM, make(6), False, 2), (MEAN, None, False, 2), (MAX, None, False, 2)]
    found: Cases = [((make(5, 3), indices, offsets, False, *given), {}) for given in settings]
    return found + [
        ((make(5, 3), indices, creation.tensor([0, 2, 6]), False, mode, None, True), {}) for mode in (SUM, MAX)
    ]


def _bags_reference(
    weight: Array,
    indices: Array,
    offsets: Array,
    by_freq: bool = False,
    mode: int = SUM,
    per_sample_weights: Array = None,
    include_last_offset: bool = False,
    padding_idx: int = -1,
) -> Array:
    ends = [*offsets[1:], len(indices)]
    found = []
    for start, end in list(zip(offsets, ends))[: -1 if include_last_offset else None]:
        places = [place for place in range(start, end) if indices[place] != padding_idx]
        rows = weight[indices[places]] if places else numpy.zeros((0, weight.shape[1]), weight.dtype)
        rows = rows if per_sample_weights is None else rows * per_sample_weights[places][:, None]
        found.append((numpy.sum, numpy.mean, numpy.max)[mode](rows, axis=0) if places else numpy.zeros(weight.shape[1]))
    return numpy.array(found)


operator(
    "embedding_bag.bags(Tensor weight, Tensor indices, Tensor offsets, bool scale_grad_by_freq=False, int mode=0, "
    "Tensor? per_sample_weights=None, bool include_last_offset=False, int padding_idx=-1)",
    _embedding_bag,
    aux=("result1", "result2", "result3"),
    method=False,
    node="EmbeddingBagBackward0",
    derivatives={"weight": _bag_backward, "per_sample_weights": _sample_weight_backward},
    doc="Return sums, means or maxima of rows of the weight.",
    samples=_bag_samples,
    reference=_bags_reference,
    supports="f",
)


@public(method=False)
def embedding_bag(
    weight: Tensor,
    indices: Tensor,
    offsets: Tensor,
    scale_grad_by_freq: bool = False,
    mode: int = SUM,
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Results:
    """Return sums (mode 0), means (1) or maxima (2) of rows; the bag of each index; the bags' sizes; rows of maxima.

    See :func:`gradscope.nn.functional.embedding_bag`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.embedding_bag(gs.tensor([[1.0], [2.0], [3.0]]), gs.tensor([0, 2]), gs.tensor([0]))[0]
    tensor([[4.]])
    """
    padding = padding_index(weight, padding_idx)
    settings = (scale_grad_by_freq, mode, per_sample_weights, include_last_offset, padding)
    result = OPERATORS["embedding_bag.bags"].function(weight, indices, offsets, *settings)
    xp = device.array_module(indices._array)
    bags, count = _bag_of_each(xp, indices._array, offsets._array, include_last_offset)
    sizes = xp.zeros(offsets._array.size, dtype="int64")
    if mode != SUM:
        counted = _counted(xp, indices._array, offsets._array, include_last_offset, padding)
        sizes = _sizes(xp, bags, counted, count)
    largest = sizes.copy()
    if mode == MAX:
        *_, largest = _embedding_bag(xp, weight._array, indices._array, offsets._array, *settings)
    return (result, *(weight.detach()._wrap(array) for array in (bags, sizes, largest)))


def padding_index(weight: Array, padding_idx: int | None) -> int:
    """Return the row of padding, counted from the first; -1 if there is none."""
    if padding_idx is None:
        return -1
    rows = weight._array.shape[0]
    if not -rows <= padding_idx < rows:
        raise RuntimeError(
            f"padding_idx must be within the number of embeddings, -{rows} through {rows - 1}, but got {padding_idx}"
        )
    return padding_idx % rows
