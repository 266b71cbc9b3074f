"""Losses of elements: squared, absolute and binary ones. Those of classes are in :mod:`cross_entropy`.

Operators take the reduction as PyTorch's nodes save it: 0 none, 1 mean, 2 sum.
"""

from __future__ import annotations

import math

import numpy

from ... import autocast, state
from ...kernels import row_sums
from ...kernels.elementwise import in_blocks, shared
from ...kernels.forms import LEAST, pointwise
from ...memory import device
from ...memory.dtype import scalar_type
from ...user_warnings import warn
from ..declaration.annotations import Array, Cases, Formula, Gradient, Make, Namespace, Number, Shape
from ..declaration.references import from_library, reduced_losses
from ..declaration.registry import METHODS, operator
from ..execution.array_errors import cannot_hold, refuse_kinds, undefined_for
from ..execution.bare_functions import array_operators, clipped, is_half, over, single

REDUCTIONS = {"none": 0, "mean": 1, "sum": 2}
NONE, MEAN, SUM = 0, 1, 2


def reduction_code(reduction: str, size_average: bool | None = None, reduce: bool | None = None) -> int:
    """Return the number of a reduction; of what the older arguments say, where they are given.

    Raises
    ------
    ValueError
        If it is not 'none', 'mean' or 'sum'.
    """
    if size_average is not None or reduce is not None:
        reduction = older_reduction(size_average, reduce)
    try:
        return REDUCTIONS[reduction]
    except KeyError:
        raise ValueError(f"{reduction} is not a valid value for reduction\nUse 'none', 'mean' or 'sum'.") from None


def older_reduction(size_average: bool | None, reduce: bool | None) -> str:
    """Return the reduction that PyTorch's older arguments mean: the mean unless one of them is false."""
    mean, some = size_average is None or bool(size_average), reduce is None or bool(reduce)
    reduction = "none" if not some else "mean" if mean else "sum"
    warn(f"size_average and reduce args will be deprecated, please use reduction='{reduction}' instead.")
    return reduction


def reduced(xp: Namespace, losses: Array, reduction: int) -> Array:
    """Return the losses, their mean or their sum."""
    if reduction == NONE:
        return losses
    if is_half(losses):
        return reduced(xp, single(losses), reduction).astype(losses.dtype)
    total = row_sums.reduced(xp.add, losses)
    return total if reduction == SUM else total / losses.dtype.type(losses.size)


# --- regression -------------------------------------------------------------------------------------------------------


def _share(g: Gradient, reduction: int, shape: Shape) -> Gradient:
    """Return the gradient of each loss before the reduction."""
    return over(g, max(math.prod(shape), 1)) if reduction == MEAN else g


def _distant(make: Make) -> Cases:
    return [((make(2, 3), make(2, 3, low=3.5, high=6.0), code), {}) for code in (NONE, MEAN, SUM)]


def _linear_beyond(
    name: str, losses: Formula, derivatives: dict[str, Formula], reference: Formula, doc: str, extra: str
) -> None:
    """Declare a loss that is squared near the target and linear beyond: ``losses(xp, self, target, where)``."""
    kernel = f"{name.removesuffix('_loss')}_cpu"

    def forward(xp: Namespace, self: Array, target: Array, reduction: int = MEAN, where: float = 1.0) -> Array:
        refuse_kinds(kernel, self, "biuc")
        return reduced(xp, losses(xp, self, target, where), reduction)

    operator(
        f"{name}(Tensor self, Tensor target, int reduction=1{extra})",
        forward,
        promote="numeric",
        method=False,
        public_name=False,
        derivatives=derivatives,
        doc=doc,
        samples=_three_regions,
        reference=lambda self, target, reduction, where: reduced_losses(reference(self - target, where), reduction),
        supports="f",
    )


def _huber(xp: Namespace, self: Array, target: Array, delta: Number) -> Array:
    """Return half a square up to `delta`, and on from there a line: no element asks on which side it is."""

    def formula(self: Array, target: Array) -> Array:
        size = xp.absolute(self - target)
        near = clipped(xp, size, None, delta)
        return near * (size - 0.5 * near)

    return pointwise("activation_loops.huber", formula, self, target, settings=(delta,))


def _huber_gradient(
    g: Gradient, self: Array, target: Array, reduction: int, delta: Number, factor: Number, F: Namespace
) -> Gradient:
    """Return the gradient of a loss, times a factor; of one that is reduced in one pass."""
    if not _are_alike(g, self, target):
        difference = self - target
        return _share(g, reduction, difference.shape) * (F.hardtanh(difference, -delta, delta) * factor)
    share = _share(g, reduction, self.shape) * g.dtype.type(factor)
    name = "activation_loops.huber_backward"
    return pointwise(name, lambda x, y: (x - y).clip(-delta, delta) * share, self, target, settings=(delta, share))


def _are_alike(g: Gradient, self: Array, target: Array) -> bool:
    """Whether NumPy's arrays of one shape and floating dtype have been reduced to one number."""
    plain = type(g) is numpy.ndarray and not g.ndim and g.dtype.char in "fd"
    return plain and self.shape == target.shape and self.dtype == target.dtype == g.dtype


def _smooth_l1(xp: Namespace, self: Array, target: Array, beta: Number) -> Array:
    return xp.absolute(self - target) if beta == 0 else _huber(xp, self, target, beta) / beta


def _smooth_l1_of(sign: int) -> Formula:
    def formula(g: Gradient, self: Array, target: Array, reduction: int, beta: Number, F: Namespace) -> Gradient:
        if beta == 0:
            d = F.sign(self - target)
            return _share(g, reduction, d.shape) * (d if sign > 0 else -d)
        return _huber_gradient(g, self, target, reduction, beta, sign / beta, F)

    return formula


def _three_regions(make: Make) -> Cases:
    return [((make(2, 3), make(2, 3, low=3.5, high=6.0), c, b), {}) for c in (NONE, MEAN, SUM) for b in (0.5, 9.0)]


def _mse(xp: Namespace, self: Array, target: Array, reduction: int = MEAN) -> Array:
    refuse_kinds("mse_cpu", self, "biuc")
    large = type(self) is numpy.ndarray and self.size >= LEAST and self.dtype.char in "fd"
    if large and reduction != NONE and self.shape == target.shape:
        total = row_sums.sum_of_squared_differences(self, target)
        return total if reduction == SUM else total / self.dtype.type(self.size)
    return reduced(xp, shared(xp.square, shared(xp.subtract, self, target)), reduction)


def _mse_of(sign: int) -> Formula:
    return lambda g, self, target, reduction, F: _mse_gradient(g, self, target, reduction, sign, F)


def _mse_gradient(g: Gradient, self: Array, target: Array, reduction: int, sign: int, F: Namespace) -> Gradient:
    """Return the gradient of a loss, or its opposite; of a large one that is reduced block by block."""
    if _are_alike(g, self, target):
        return in_blocks(_write_scaled, self, target, _share(g, reduction, self.shape) * g.dtype.type(2 * sign))
    difference = self - target
    return _share(g, reduction, difference.shape) * (difference * (2 * sign))


def _write_scaled(self: Array, target: Array, factor: Number, result: Array) -> None:
    numpy.subtract(self, target, out=result)
    result *= factor


operator(
    "mse_loss(Tensor self, Tensor target, int reduction=1)",
    _mse,
    promote="numeric",
    method=False,
    public_name=False,
    derivatives={"self": _mse_of(1), "target": _mse_of(-1)},
    doc="Squared error.",
    samples=_distant,
    reference=lambda self, target, reduction: reduced_losses(numpy.square(self - target), reduction),
    supports="f",
)
_linear_beyond("smooth_l1_loss", _smooth_l1, {"self": _smooth_l1_of(1), "target": _smooth_l1_of(-1)},
           lambda d, beta: numpy.where(abs(d) < beta, d**2 / (2 * beta), abs(d) - beta / 2),
           "Absolute error, squared below `beta`.", ", float beta=1.0")  # fmt: skip


def _huber_of(sign: int) -> Formula:
    return lambda g, self, target, reduction, delta, F: _huber_gradient(g, self, target, reduction, delta, sign, F)


_linear_beyond("huber_loss", _huber, {"self": _huber_of(1), "target": _huber_of(-1)},
           lambda d, delta: from_library("scipy.special.huber")(delta, d),
           "Squared error, linear beyond `delta`.", ", float delta=1.0")  # fmt: skip


# --- binary and probabilistic ones -----------------------------------------------------------------------------------


def check_same_size(input: Array, target: Array) -> None:
    """Raise where input and target of a binary cross-entropy have different shapes."""
    if input._array.shape != target._array.shape:
        raise ValueError(f"Target size ({target.shape}) must be the same as input size ({input.shape})")


def _binary_cross_entropy(
    xp: Namespace, self: Array, target: Array, weight: Array = None, reduction: int = MEAN
) -> Array:
    if target.dtype != self.dtype:
        raise RuntimeError(
            f"Found dtype {scalar_type(target.dtype)} but expected {scalar_type(self.dtype)}\nThe target has to have "
            "the dtype of the input: target.to(input.dtype)."
        )
    refuse_kinds("binary_cross_entropy", self, "biuc")
    if type(self) is device.ndarray and self.size and not (self.min() >= 0 and self.max() <= 1):
        raise RuntimeError(
            "all elements of input should be between 0 and 1\nApply sigmoid() first, or use "
            "binary_cross_entropy_with_logits."
        )
    if type(target) is device.ndarray and target.size and not (target.min() >= 0 and target.max() <= 1):
        raise RuntimeError("all elements of target should be between 0 and 1\nThey are probabilities of the class 1.")
    # Logarithms are bounded below by -100, so that a certain wrong answer has a finite loss.
    tiny = 1e-45 if self.dtype.itemsize < 8 else 5e-324
    low = xp.maximum(xp.log(xp.maximum(self, tiny)), -100)
    high = xp.maximum(xp.log1p(-xp.minimum(self, 1 - 1e-16)), -100)
    high = xp.where(self == 1, -100, high)
    low = xp.where(self == 0, -100, low)
    losses = (target - 1) * high - target * low
    if weight is not None:
        losses = losses * weight
    return reduced(xp, losses.astype(self.dtype, copy=False), reduction)


def _bce_backward(g: Gradient, self: Array, target: Array, weight: Array, reduction: int, F: Namespace) -> Gradient:
    scale = _share(g, reduction, self.shape)
    if weight is not None:
        scale = scale * weight
    inside = self * (1 - self)
    return scale * (self - target) / F.where(inside > 1e-12, inside, F.zeros_like(inside) + 1e-12)


def _bce_target(g: Gradient, self: Array, target: Array, weight: Array, reduction: int, F: Namespace) -> Gradient:
    scale = _share(g, reduction, target.shape)
    if weight is not None:
        scale = scale * weight
    return scale * (F.log(1 - self) - F.log(self))


def _binary_reference(self: Array, target: Array, weight: Array = None, reduction: int = MEAN) -> Array:
    losses = -(target * numpy.maximum(numpy.log(self), -100) + (1 - target) * numpy.maximum(numpy.log1p(-self), -100))
    return reduced_losses(losses if weight is None else losses * weight, reduction)


def _probable_extremes(make: Make) -> Cases:
    """Probabilities from 0 to 1, both ends among them, with each of some targets."""
    ends = [0.0, 5e-324, 1e-300, 1e-38, 1e-7, 0.5, 1 - 1e-7, 1.0]
    return [((make.of(ends), make.of([target] * len(ends)), None, NONE), {}) for target in (0.0, 0.25, 1.0)]


operator(
    "binary_cross_entropy(Tensor self, Tensor target, Tensor? weight=None, int reduction=1)",
    _binary_cross_entropy,
    method=False,
    public_name=False,
    derivatives={"self": _bce_backward, "target": _bce_target},
    doc="Cross-entropy of probabilities and targets in [0, 1].",
    samples=lambda make: (
        [((make(2, 3, low=0.2, high=0.8), make(2, 3, low=0.1, high=0.9), None, code), {}) for code in (NONE, MEAN, SUM)]
        + [
            (
                (
                    make(2, 3, low=0.2, high=0.8),
                    make(2, 3, low=0.1, high=0.9),
                    make(3, low=0.5, high=2.0).detach(),
                    MEAN,
                ),
                {},
            )
        ]
    ),
    reference=_binary_reference,
    extremes=_probable_extremes,
    supports="f",
)


def _bce_with_logits(
    xp: Namespace, self: Array, target: Array, weight: Array = None, pos_weight: Array = None, reduction: int = MEAN
) -> Array:
    refuse_kinds("log_sigmoid_cpu", self, "biuc")
    if target.dtype.kind == "b":
        raise RuntimeError(undefined_for("sub", {"b"}))
    if target.dtype.kind in "iu":
        raise cannot_hold(scalar_type(self.dtype), target.dtype)
    # log sigmoid(x) = -softplus(-x); both logarithms stay exact for large scores.
    softplus = -array_operators(xp).log_sigmoid(self)
    if pos_weight is None:
        losses = (1 - target) * self + softplus
    else:
        losses = (1 - target) * self + (1 + (pos_weight - 1) * target) * softplus
    if weight is not None:
        losses = losses * weight
    return reduced(xp, losses.astype(target.dtype, copy=False), reduction)


def _logits_slope(self: Array, target: Array, pos_weight: Array, F: Namespace) -> Array:
    if pos_weight is None:
        return F.sigmoid(self) - target
    return (1 - target) * F.sigmoid(self) - pos_weight * target * F.sigmoid(-self)


def _logits_backward(
    g: Gradient, self: Array, target: Array, weight: Array, pos_weight: Array, reduction: int, F: Namespace
) -> Gradient:
    slope = _share(g, reduction, self.shape) * _logits_slope(self, target, pos_weight, F)
    return slope if weight is None else slope * weight


def _logits_target(
    g: Gradient, self: Array, target: Array, weight: Array, pos_weight: Array, reduction: int, F: Namespace
) -> Gradient:
    slope = -self if pos_weight is None else F.log_sigmoid(-self) - F.log_sigmoid(self) * pos_weight
    slope = _share(g, reduction, target.shape) * slope
    return slope if weight is None else slope * weight


def _logits_reference(
    self: Array, target: Array, weight: Array = None, pos_weight: Array = None, reduction: int = MEAN
) -> Array:
    # -log(sigmoid(x)) and -log(1 - sigmoid(x)).
    wrong, right = numpy.logaddexp(0, -self), numpy.logaddexp(0, self)
    losses = target * wrong * (1 if pos_weight is None else pos_weight) + (1 - target) * right
    return reduced_losses(losses if weight is None else losses * weight, reduction)


operator(
    "binary_cross_entropy_with_logits(Tensor self, Tensor target, Tensor? weight=None, Tensor? pos_weight=None, "
    "int reduction=1)",
    _bce_with_logits,
    method=False,
    public_name=False,
    derivatives={"self": _logits_backward, "target": _logits_target},
    doc="Cross-entropy of scores and targets in [0, 1].",
    samples=lambda make: (
        [((make(2, 3), make(2, 3, low=0.1, high=0.9), None, None, code), {}) for code in (NONE, MEAN, SUM)]
        + [((make(2, 3), make(2, 3, low=0.1, high=0.9), make(3).detach(), make(3, low=0.5, high=2.0).detach(), 1), {})]
    ),
    reference=_logits_reference,
    supports="f",
)


def _kl_div(xp: Namespace, self: Array, target: Array, reduction: int = MEAN, log_target: bool = False) -> Array:
    kinds = self.dtype.kind + target.dtype.kind
    if kinds != "ff":
        what = "Complex" if "c" in kinds else "Integral"
        raise RuntimeError(f"kl_div: {what} inputs not supported.\nConvert them with .float().")
    if log_target:
        losses = xp.exp(target) * (target - self)
    else:
        logs = xp.log(xp.where(target > 0, target, 1))
        entropy = xp.where(target < 0, target.dtype.type(math.nan), target * logs)
        losses = entropy - target * self
    return reduced(xp, losses, reduction)


def _kl_self(g: Gradient, self: Array, target: Array, reduction: int, log_target: bool, F: Namespace) -> Gradient:
    weight = F.exp(target) if log_target else target
    losses = F.zeros_like(self + target)
    return _share(g, reduction, losses.shape) * (losses - weight)


def _kl_target(g: Gradient, self: Array, target: Array, reduction: int, log_target: bool, F: Namespace) -> Gradient:
    if log_target:
        slope = F.exp(target) * (target - self + 1)
    else:
        # The quotient is 1, and NaN where the target is 0: there PyTorch's gradient is NaN.
        slope = F.log(target) + target / target - self
    return _share(g, reduction, slope.shape) * slope


def _kl_div_reference(self: Array, target: Array, reduction: int = MEAN, log_target: bool = False) -> Array:
    if log_target:
        return reduced_losses(numpy.exp(target) * (target - self), reduction)
    return reduced_losses(from_library("scipy.special.xlogy")(target, target) - target * self, reduction)


operator(
    "kl_div(Tensor self, Tensor target, int reduction=1, bool log_target=False)",
    _kl_div,
    method=False,
    public_name=False,
    derivatives={"self": _kl_self, "target": _kl_target},
    doc="Kullback-Leibler divergence of a target distribution and log-probabilities.",
    samples=lambda make: [
        ((make(2, 3), make(2, 3, low=0.1, high=0.9), code, logs), {})
        for code in (NONE, MEAN, SUM)
        for logs in (False, True)
    ],
    reference=_kl_div_reference,
    supports="f",
)


# --- with reductions by name ------------------------------------------------------------------------------------------


def warn_broadcast(input: Array, target: Array) -> None:
    """Warn, as PyTorch does, where the target has another shape than the input."""
    if input._array.shape != target._array.shape:
        warn(
            f"Using a target size ({target.shape}) that is different to the input size ({input.shape}). This will "
            "likely lead to incorrect results due to broadcasting. Please ensure they have the same size.",
        )


def l1(input: Array, target: Array, code: int) -> Array:
    """Return the absolute error, reduced, from the operators PyTorch makes it of."""
    if state.casting and autocast.covers("l1_loss", (input, target)):
        return autocast.call("l1_loss", l1, input, target, code)
    losses = METHODS["abs"](input - target)
    return losses if code == NONE else losses.mean() if code == MEAN else losses.sum()
