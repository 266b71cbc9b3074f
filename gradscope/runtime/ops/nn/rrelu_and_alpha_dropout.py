"""Noise in training: rectifiers of random slope, and dropout that keeps mean and variance.

References
----------
B. Xu, N. Wang, T. Chen, M. Li, "Empirical evaluation of rectified activations in convolutional network", 2015.
G. Klambauer, T. Unterthiner, A. Mayr, S. Hochreiter, "Self-normalizing neural networks", NeurIPS 2017.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy

from ...kernels.casts import cast
from ...kernels.selection import select
from ...memory import device
from ...tensor.tensor import Tensor
from ..declaration.annotations import Array, Gradient, Namespace, RandomSource, Shape
from ..declaration.registry import METHODS, OPERATORS, operator, public
from ..execution.array_errors import cannot_hold
from ..random.random import generator_for
from .activations import SELU_ALPHA, SELU_SCALE, leaky_relu_forward, need_floating
from .normalization import check_probability, feature_shape

if TYPE_CHECKING:
    from ..random.random import Generator

# --- rectifiers -------------------------------------------------------------------------------------------------------


def _rrelu(
    xp: Namespace, self: Array, noise: Array, lower: float = 0.125, upper: float = 1.0 / 3.0, training: bool = False
) -> Array:
    if training:
        need_floating("rrelu_with_noise_out_cpu", self)
        return select(xp, self <= 0, self * noise, self)
    return leaky_relu_forward(xp, self, (lower + upper) / 2)


def _rrelu_backward(
    g: Gradient, self: Array, noise: Array, lower: float, upper: float, training: bool, F: Namespace
) -> Gradient:
    return g * noise if training else F.leaky_relu_backward(g, self, (lower + upper) / 2)


def _rrelu_reference(self: Array, noise: Array, lower: float, upper: float, training: bool) -> Array:
    return numpy.where(self > 0, self, self * (noise if training else (lower + upper) / 2))


operator(
    "rrelu_with_noise(Tensor self, Tensor noise, Scalar lower=0.125, Scalar upper=0.3333333333333333, "
    "bool training=False)",
    _rrelu,
    inplace=True,
    inplace_node="RreluWithNoiseBackward1",
    method=False,
    public_name=False,
    derivatives={"self": _rrelu_backward},
    doc="Return ``self`` where positive, else ``noise * self`` in training and the mean slope times ``self`` else.",
    samples=lambda make: [
        ((make(3, 4, low=-2.0, high=-0.2), make(3, 4, low=0.1, high=0.9).detach(), 0.1, 0.9, training), {})
        for training in (True, False)
    ],
    reference=_rrelu_reference,
    supports="f",
)


def _slopes(self: Array, lower: float, upper: float, training: bool, generator: RandomSource) -> Array:
    """Return what rrelu_with_noise multiplies by in training: 1 where the input is positive."""
    array = self._array
    xp = device.array_module(array)
    if not training:
        return self._wrap(xp.zeros(array.shape, dtype=array.dtype))
    source = generator_for(device.device_of(array)) if generator is None else generator
    drawn = source.draw("random", array.shape, dtype=xp.float32) * (upper - lower) + lower
    return self._wrap(xp.where(array <= 0, drawn, 1).astype(array.dtype))


def _check_slopes(lower: float, upper: float) -> None:
    for name, bound in (("lower", lower), ("upper", upper)):
        if not math.isfinite(bound):
            raise RuntimeError(f"rrelu: {name} bound must be finite, got {bound}")
    if lower > upper:
        raise RuntimeError(
            f"Lower bound should be less than or equal to the upper bound\nThey are {lower} and {upper}."
        )


@public(method=False)
def rrelu(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return the input where positive, else times a slope: drawn from [lower, upper] in training, their mean else.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.rrelu(gs.tensor([-1.0, 2.0]))
    tensor([-0.2292,  2.0000])
    """
    _check_slopes(lower, upper)
    noise = _slopes(input, lower, upper, training, generator)
    return OPERATORS["rrelu_with_noise"].function(input, noise, lower, upper, training)


@public(method=False)
def rrelu_(
    input: Tensor,
    lower: float = 1.0 / 8,
    upper: float = 1.0 / 3,
    training: bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """In-place form of :func:`rrelu`."""
    _check_slopes(lower, upper)
    noise = _slopes(input, lower, upper, training, generator)
    return OPERATORS["rrelu_with_noise"].inplace_function(input, noise, lower, upper, training)  # type: ignore[misc]


# --- dropout that keeps mean and variance -----------------------------------------------------------------------------

_SATURATION = SELU_ALPHA * SELU_SCALE


def alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """Put elements to where SELU saturates, with probability `p`, and keep mean 0 and variance 1; only in training.

    See Also
    --------
    nn.AlphaDropout, dropout, selu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.alpha_dropout(gs.ones(3), training=False)
    tensor([1., 1., 1.])
    """
    check_probability(p)
    return _alpha_dropped(input, p, training, inplace, input._array.shape)


def feature_alpha_dropout(input: Array, p: float = 0.5, training: bool = False, inplace: bool = False) -> Array:
    """Put whole channels (of dimension 1) to where SELU saturates; otherwise as :func:`alpha_dropout`.

    See Also
    --------
    nn.FeatureAlphaDropout, alpha_dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.feature_alpha_dropout(gs.ones(2, 3, 4), training=False).shape
    gradscope.Size([2, 3, 4])
    """
    check_probability(p)
    return _alpha_dropped(input, p, training, inplace, feature_shape(input) if training else ())


def _alpha_dropped(input: Array, p: float, training: bool, inplace: bool, shape: Shape) -> Array:
    array = input._array
    if p == 0 or not training or not array.size:
        return input
    multiply = METHODS["mul_" if inplace else "mul"]
    if p == 1:
        return multiply(input, 0)
    if array.dtype.kind in "biu":
        raise cannot_hold("Float", array.dtype)
    scale, shift = _scale_and_shift(array, p, shape)
    return METHODS["add_" if inplace else "add"](multiply(input, input._wrap(scale)), input._wrap(shift))


def _scale_and_shift(array: Array, p: float, shape: Shape) -> tuple[Array, Array]:
    """Return what elements are multiplied by, and what is added: mean and variance of the result stay 0 and 1."""
    xp = device.array_module(array)
    drawn = generator_for(device.device_of(array)).draw("random", shape, dtype=xp.float32)
    kept = cast(drawn < 1.0 - p, array.dtype)
    factor = 1.0 / math.sqrt((_SATURATION * _SATURATION * p + 1.0) * (1.0 - p))
    scale, shift = kept * factor, (kept - (1.0 - p)) * (_SATURATION * factor)
    return cast(scale, array.dtype), cast(shift, array.dtype)
