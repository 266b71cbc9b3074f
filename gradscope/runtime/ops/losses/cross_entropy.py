"""Losses of classes: negative log-likelihood and cross-entropy."""

from __future__ import annotations

import math

import numpy

from ... import autocast, state
from ...memory import device
from ...memory import dtype as dtypes
from ...memory.dtype import scalar_type
from ...tensor import creation
from ..declaration.annotations import Array, Cases, Gradient, Make, Namespace
from ..declaration.references import adjoint
from ..declaration.registry import OPERATORS, operator
from ..declaration.samples import Samples
from ..execution.bare_functions import is_half, single
from ..linalg.matmul import linear
from ..nn.activations import need_floating
from .elementwise_losses import MEAN, NONE, SUM, reduction_code

# --- negative log-likelihood ------------------------------------------------------------------------------------------


def _check_nll(self: Array, target: Array, weight: Array) -> None:
    if target.dtype.kind not in "iu":
        kind = scalar_type(target.dtype)
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {kind}\nConvert it with .long().")
    wanted = () if self.ndim == 1 else (*self.shape[:1], *self.shape[2:])
    if not self.ndim or target.shape != wanted:
        raise RuntimeError(
            f"size mismatch (got input: {list(self.shape)} , target: {list(target.shape)})\n"
            f"The target of such an input has shape {list(wanted)}: that of the input without the classes."
        )
    classes = self.shape[1 if self.ndim > 1 else 0]
    if weight is not None and weight.shape != (classes,):
        raise RuntimeError(
            f"weight tensor should be defined either for all {classes} classes or no classes but got weight tensor of "
            f"shape: {list(weight.shape)}"
        )


_UNSIGNED = {1: "uint8", 2: "uint16", 4: "uint32", 8: "uint64"}


def _classes(xp: Namespace, classes: int, target: Array, ignore_index: int) -> tuple[Array, Array]:
    """Return (class indices that are safe to use, mask of those that count or None if all do)."""
    if type(target) is device.ndarray:
        # On the host a look at the largest tells whether all are classes (a negative number is a large one without
        # its sign); on a GPU it would wait for the device.
        unsigned = target.view(_UNSIGNED[target.dtype.itemsize])
        if not target.size or (xp.maximum.reduce(unsigned, axis=None) < classes and not 0 <= ignore_index < classes):
            return target, None
        wrong = ((target < 0) | (target >= classes)) & (target != ignore_index)
        if wrong.any():
            raise IndexError(
                f"Target {int(target[wrong].flat[0])} is out of bounds.\n"
                f"There are {classes} classes: targets are 0 to {classes - 1}, or ignore_index ({ignore_index})."
            )
    kept = target != ignore_index
    return xp.where(kept, target, 0), kept


def _positions(xp: Namespace, shape: tuple[int, ...], target: Array) -> tuple[Array, ...]:
    """Return the index of the target's class at every position of an array of `shape`."""
    if len(shape) == 1:
        return (target,)
    if len(shape) == 2:
        return (xp.arange(shape[0]), target)
    places = []
    for axis, size in enumerate(target.shape):
        around = [1] * target.ndim
        around[axis] = size
        places.append(xp.arange(size).reshape(around))
    return (places[0], target, *places[1:])


def _class_weights(xp: Namespace, weight: Array, safe: Array, kept: Array) -> Array:
    """Return the weight of each target, None if all weigh 1."""
    if weight is None:
        return kept
    chosen = weight[safe]
    return chosen if kept is None else xp.where(kept, chosen, 0)


def _total_weight(xp: Namespace, safe: Array, weights: Array, kind: numpy.dtype) -> Array:
    return kind.type(safe.size) if weights is None else xp.add.reduce(weights, axis=None, dtype=kind)


def _nll(xp: Namespace, self: Array, target: Array, weight: Array, reduction: int, ignore_index: int) -> Array:
    if self.dtype.char not in "fd":
        need_floating("nll_loss_out_frame", self)
        return _nll(xp, single(self), target, single(weight), reduction, ignore_index).astype(self.dtype)
    _check_nll(self, target, weight)
    safe, kept = _classes(xp, self.shape[1 if self.ndim > 1 else 0], target, ignore_index)
    losses = -self[_positions(xp, self.shape, safe)] if self.size else xp.zeros(target.shape, dtype=self.dtype)
    weights = _class_weights(xp, weight, safe, kept)
    if kept is not None:
        losses = xp.where(kept, losses, 0)
    if weight is not None:
        losses = losses * weights
    if reduction == NONE:
        return losses
    total = xp.add.reduce(losses, axis=None)
    if reduction == SUM:
        return total
    if weights is None and safe.size:
        return total / self.dtype.type(safe.size)
    return _quotient(xp, total, _total_weight(xp, safe, weights, self.dtype))


def _quotient(xp: Namespace, total: Array, count: Array) -> Array:
    # 0 / 0, where every target is ignored, is NaN in PyTorch as well, and no reason for a warning.
    over_zero = xp.where(total > 0, math.inf, xp.where(total < 0, -math.inf, math.nan))
    return xp.where(count == 0, over_zero, total).astype(total.dtype) / xp.where(count == 0, 1, count).astype(
        total.dtype
    )


def _nll_backward(
    xp: Namespace, grad_output: Gradient, self: Array, target: Array, weight: Array, reduction: int, ignore_index: int
) -> Array:
    if is_half(self):
        rest = (target, single(weight), reduction, ignore_index)
        return _nll_backward(xp, single(grad_output), single(self), *rest).astype(self.dtype)
    shape, kind = self.shape, self.dtype
    safe, kept = _classes(xp, shape[1 if len(shape) > 1 else 0], target, ignore_index)
    weights = _class_weights(xp, weight, safe, kept)
    each = -grad_output
    if reduction == MEAN:
        total = _total_weight(xp, safe, weights, kind)
        each = each / total if weights is None and safe.size else _quotient(xp, each, total)
    result = xp.zeros(shape, dtype=kind)
    if not result.size:
        return result
    shares = each if weights is None else each * weights
    result[_positions(xp, shape, safe)] = shares if kept is None else xp.where(kept, shares, 0)
    return result


def _nll_samples(*shape: int, weighted: bool) -> Samples:
    def samples(make: Make) -> Cases:
        classes = shape[1]
        size = (shape[0], *shape[2:])
        count = math.prod(size)
        target = creation.tensor([i % classes for i in range(count)]).reshape(*size)
        weight = (make(classes, low=0.5, high=2.0).detach(),) if weighted else ()
        return [((make(*shape), target, *weight, r, i), {}) for r in (NONE, MEAN, SUM) for i in (-100, 1)]

    return samples


def _nll_backward_samples(make: Make) -> Cases:
    target = creation.tensor([0, 2, 1, 0])
    weight = make(3, low=0.5, high=2.0).detach()
    return [
        ((make(4) if r == NONE else make(), make(4, 3), target, w, r, -100), {})
        for r in (NONE, MEAN, SUM)
        for w in (None, weight)
    ]


def _nll_reference(self: Array, target: Array, weight: Array, reduction: int, ignore_index: int) -> Array:
    scores = numpy.moveaxis(self, 1, -1)
    losses, weights = numpy.zeros(target.shape, self.dtype), numpy.zeros(target.shape, self.dtype)
    for place in numpy.ndindex(target.shape):
        if target[place] != ignore_index:
            weights[place] = 1 if weight is None else weight[target[place]]
            losses[place] = -weights[place] * scores[place][target[place]]
    return (losses, losses.sum() / weights.sum(), losses.sum())[reduction]


def _nll_backward_reference(
    grad_output: Gradient, self: Array, target: Array, weight: Array, reduction: int, ignore_index: int
) -> Array:
    return adjoint(lambda x: _nll_reference(x, target, weight, reduction, ignore_index), self.shape, grad_output)


# One operator without class weights and one with: tensors that are always there are recorded faster. One node name for
# rows of classes and one for images of them, as in PyTorch.
for _suffix, _node, _shape in (("", "NllLossBackward0", (4, 3)), ("2d", "NllLoss2DBackward0", (2, 3, 2, 2))):
    operator(
        f"nll_loss{_suffix}.plain(Tensor self, Tensor target, int reduction, int ignore_index)",
        lambda xp, self, target, reduction, ignore_index: _nll(xp, self, target, None, reduction, ignore_index),
        method=False,
        node=_node,
        derivatives={
            "self": lambda g, self, target, reduction, ignore_index, F: F.nll_loss_backward(
                g, self, target, None, reduction, ignore_index
            ),
        },
        doc="Return minus the entry of each target's class.",
        samples=_nll_samples(*_shape, weighted=False),
        reference=lambda self, target, *rest: _nll_reference(self, target, None, *rest),
        supports="f",
    )
    operator(
        f"nll_loss{_suffix}.weighted(Tensor self, Tensor target, Tensor weight, int reduction, int ignore_index)",
        _nll,
        method=False,
        node=_node,
        derivatives={
            "self": lambda g, self, target, weight, reduction, ignore_index, F: F.nll_loss_backward(
                g, self, target, weight, reduction, ignore_index
            ),
        },
        doc="Return minus the entry of each target's class, times the weight of the class.",
        samples=_nll_samples(*_shape, weighted=True),
        reference=_nll_reference,
        supports="f",
    )
operator(
    "nll_loss_backward(Tensor grad_output, Tensor self, Tensor target, Tensor? weight, int reduction, "
    "int ignore_index)",
    _nll_backward,
    method=False,
    public_name=False,
    derivatives={
        "grad_output": lambda g, target, weight, reduction, ignore_index: nll(
            g, target, weight, reduction, ignore_index
        ),
    },
    doc="The adjoint of nll_loss.",
    samples=_nll_backward_samples,
    reference=_nll_backward_reference,
    differs=(
        (
            lambda grad, self, target, weight, *rest: weight is not None and not weight.any(),
            "what no target has a part in has no gradient, though all classes weigh 0",
        ),
    ),
    supports="f",
)


def nll(self: Array, target: Array, weight: Array, reduction: int, ignore_index: int) -> Array:
    """Run the operator for the given arguments, on tensors or arrays."""
    if not hasattr(self, "_array"):
        return _nll(device.array_module(self), self, target, weight, reduction, ignore_index)
    ndim = self._array.ndim
    if ndim > 1 and self._array.shape[:1] != target._array.shape[:1]:
        raise ValueError(
            f"Expected input batch_size ({self._array.shape[0]}) to match target batch_size "
            f"({target._array.shape[0] if target._array.ndim else 0}).\n"
            f"The input has shape {list(self.shape)}, the target {list(target.shape)}."
        )
    if ndim not in (0, 1, 2, 4):
        return _nll_as_images(self, target, weight, reduction, ignore_index)
    name = "nll_loss2d" if ndim == 4 else "nll_loss"
    if weight is None:
        return OPERATORS[name + ".plain"].function(self, target, reduction, ignore_index)
    return OPERATORS[name + ".weighted"].function(self, target, weight, reduction, ignore_index)


def _nll_as_images(self: Array, target: Array, weight: Array, reduction: int, ignore_index: int) -> Array:
    """Run the operator on (N, C, 1, rest), as PyTorch does for any other number of dimensions."""
    _check_nll(self._array, target._array, None if weight is None else weight._array)
    rows, classes = self._array.shape[:2]
    images = self.reshape(rows, classes, 1, -1) if self._array.size else self.reshape(rows, classes, 1, 0)
    count = images._array.shape[3]
    result = nll(images, target.reshape(rows, 1, count), weight, reduction, ignore_index)
    return result.reshape(target._array.shape) if reduction == NONE else result


def nll_loss(
    input: Array,
    target: Array,
    weight: Array = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Array:
    """Return minus the log-probability of each target's class, reduced.

    Parameters
    ----------
    input : Tensor
        Log-probabilities of shape (C), (N, C) or (N, C, d1, d2, ...).
    target : Tensor
        Class indices of shape (), (N) or (N, d1, d2, ...).
    weight : Tensor, optional
        One weight a class; ``"mean"`` divides by the sum of the targets' weights.
    ignore_index : int
        A target that does not count.
    reduction : {"mean", "sum", "none"}
    size_average, reduce : bool, optional
        What `reduction` was before; where one is given it decides.

    Raises
    ------
    IndexError
        If a target is no class.
    ValueError
        If the batch sizes differ.

    See Also
    --------
    nn.NLLLoss, cross_entropy, log_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.nll_loss(gs.tensor([[0.2, 0.8]]).log(), gs.tensor([1]))
    tensor(0.2231)
    """
    return nll(input, target, weight, reduction_code(reduction, size_average, reduce), ignore_index)


# --- cross-entropy ----------------------------------------------------------------------------------------------------


def cross_entropy(
    input: Array,
    target: Array,
    weight: Array = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Array:
    """Return the cross-entropy of unnormalised log-probabilities and targets: log_softmax, then nll_loss.

    Parameters
    ----------
    input : Tensor
        Scores of shape (C), (N, C) or (N, C, d1, d2, ...).
    target : Tensor
        Class indices of shape (), (N) or (N, d1, ...); or class probabilities of the shape of `input`.
    weight : Tensor, optional
        One weight a class.
    ignore_index : int
        A target that does not count; for class indices only.
    reduction : {"mean", "sum", "none"}
    size_average, reduce : bool, optional
        What `reduction` was before; where one is given it decides.
    label_smoothing : float
        Share of the target that is spread over all classes, in [0, 1].

    See Also
    --------
    nn.CrossEntropyLoss, nll_loss, linear_cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.cross_entropy(gs.tensor([[0.0, 0.0]]), gs.tensor([1]))
    tensor(0.6931)
    """
    if state.casting and autocast.covers("cross_entropy_loss", (input, target, weight)):
        given = (input, target, weight, size_average, ignore_index, reduce, reduction, label_smoothing)
        return autocast.call("cross_entropy_loss", cross_entropy, *given)
    code = reduction_code(reduction, size_average, reduce)
    array, wanted = input._array, target._array
    logs = OPERATORS["log_softmax.int"].function(input, 0 if array.ndim == 1 else 1)
    if wanted.dtype.kind in dtypes.FLOATING and wanted.shape == array.shape:
        return _probability_loss(logs, target, weight, code, label_smoothing)
    if not label_smoothing:
        return nll(logs, target, weight, code, ignore_index)
    if not 0.0 <= label_smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {label_smoothing}")
    return _smoothed_loss(logs, target, weight, code, ignore_index, label_smoothing)


def linear_cross_entropy(
    input: Array,
    linear_weight: Array,
    target: Array,
    *,
    linear_bias: Array = None,
    weight: Array = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
) -> Array:
    """Return the cross-entropy of the scores ``input @ linear_weight.T + linear_bias`` and targets.

    Parameters
    ----------
    input : Tensor
        Of shape (in_features) or (N, in_features).
    linear_weight : Tensor
        Of shape (C, in_features), or (C, d1, d2, ..., in_features) for scores of shape (N, C, d1, d2, ...).
    target : Tensor
        As for :func:`cross_entropy`.
    linear_bias : Tensor, optional
        Of the shape of `linear_weight` without its last dimension.
    weight, reduction, label_smoothing
        As for :func:`cross_entropy`.
    ignore_index : int, optional
        A target that does not count, for class indices only; -100 unless given.

    Raises
    ------
    RuntimeError
        If shapes do not fit, or `ignore_index` is given with probabilities.

    See Also
    --------
    linear, cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.linear_cross_entropy(gs.ones(1, 3), gs.zeros(2, 3), gs.tensor([1]))
    tensor(0.6931)
    """
    _check_linear_scores(input, linear_weight, linear_bias)
    if ignore_index is not None and target.dtype.is_floating_point:
        raise RuntimeError(
            "ignore_index cannot be specified when target contains probabilities\n"
            "Give indices of classes, or leave it away."
        )
    classes = linear_weight.shape[:-1]
    bias = None if linear_bias is None else linear_bias.reshape(-1)
    scores = linear(input, linear_weight.reshape(-1, linear_weight.shape[-1]), bias).unflatten(-1, classes)
    return cross_entropy(
        scores,
        target,
        weight,
        ignore_index=-100 if ignore_index is None else ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )


def _check_linear_scores(input: Array, linear_weight: Array, linear_bias: Array) -> None:
    if input.dim() not in (1, 2):
        raise RuntimeError(
            f"expected input with dimensionality 1 or 2, got {input.dim()}\n"
            f"Its shape is {list(input.shape)}; give (N, in_features)."
        )
    if linear_weight.dim() < 2:
        raise RuntimeError(
            f"expected linear_weight with dimensionality at least 2, got {linear_weight.dim()}\n"
            f"Its shape is {list(linear_weight.shape)}; give (classes, in_features)."
        )
    if input.shape[-1] != linear_weight.shape[-1]:
        raise RuntimeError(
            "expected equal input and linear_weight last dimensions (in_features), got "
            f"{input.shape[-1]} and {linear_weight.shape[-1]}, respectively"
        )
    if input.dim() == 1 and linear_weight.dim() > 2:
        raise RuntimeError(
            f"K-dimensional loss defined by linear_weight shape {tuple(linear_weight.shape)} requires batched input, "
            f"(N, {input.shape[-1]}), got unbatched input with shape {tuple(input.shape)}"
        )
    if linear_bias is not None and linear_bias.shape != linear_weight.shape[:-1]:
        wanted, found = tuple(linear_weight.shape[:-1]), tuple(linear_bias.shape)
        raise RuntimeError(f"expected linear_bias shape {wanted}, got {found}\nIt has a number for each class.")


def _per_class(weight: Array, ndim: int) -> Array:
    return weight if ndim == 1 else weight.reshape((1, -1) + (1,) * (ndim - 2))


def _probability_loss(logs: Array, target: Array, weight: Array, code: int, smoothing: float) -> Array:
    shape = logs._array.shape
    axis = 1 if len(shape) > 1 else 0
    if not 0.0 <= smoothing <= 1.0:
        raise RuntimeError(f"label_smoothing must be between 0.0 and 1.0. Got: {smoothing}")
    if smoothing:
        target = target * (1 - smoothing) + smoothing / shape[axis]
    product = logs * target
    if weight is not None:
        product = product * _per_class(weight, len(shape))
    if code == NONE:
        return -product.sum(axis)
    total = -product.sum()
    return total if code == SUM else total / math.prod(size for dim, size in enumerate(shape) if dim != axis)


def _smoothed_loss(logs: Array, target: Array, weight: Array, code: int, ignore: int, smoothing: float) -> Array:
    shape = logs._array.shape
    axis = 1 if len(shape) > 1 else 0
    sharp = nll(logs, target, weight, code, ignore)
    spread = -(logs if weight is None else logs * _per_class(weight, len(shape))).sum(axis)
    spread = spread.masked_fill(target == ignore, 0.0)
    if code != NONE:
        spread = spread.sum()
    if code == MEAN:
        kept = target != ignore
        count = kept if weight is None else weight[target * kept] * kept
        spread = spread / count.sum().to(logs.dtype)
    return sharp * (1 - smoothing) + spread * (smoothing / shape[axis])


del _suffix, _node, _shape
