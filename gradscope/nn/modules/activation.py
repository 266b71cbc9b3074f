"""Activation functions as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.creation import empty
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "SELU",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "LeakyReLU",
    "LogSigmoid",
    "LogSoftmax",
    "Mish",
    "PReLU",
    "RReLU",
    "ReLU",
    "ReLU6",
    "SiLU",
    "Sigmoid",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
]


class _Elementwise(Module):
    """An activation described by its settings: their names, in the order of the constructor, and the function.

    A setting named ``inplace`` is shown only when true, as PyTorch shows it.
    """

    _settings: tuple[str, ...] = ()
    _unnamed: tuple[str, ...] = ()

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        shown = []
        for name in self._settings:
            value = getattr(self, name)
            if name == "inplace" and not value:
                continue
            shown.append(str(value) if name in self._unnamed else f"{name}={value!r}")
        return ", ".join(shown)


class ReLU(_Elementwise):
    """``max(input, 0)``; `inplace` writes into the input.

    See Also
    --------
    LeakyReLU, GELU, nn.functional.relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReLU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([0., 0., 2.])
    """

    _settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return ``max(input, 0)``."""
        return F.relu(input, self.inplace)


class Hardtanh(_Elementwise):
    """The input limited to [min_val, max_val].

    See Also
    --------
    Tanh, ReLU6, nn.functional.hardtanh

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Hardtanh()(gs.tensor([-4.0, 0.5, 1.5]))
    tensor([-1.0000,  0.5000,  1.0000])
    """

    _settings: tuple[str, ...] = ("min_val", "max_val", "inplace")

    def __init__(self, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        if min_val >= max_val:
            raise ValueError(f"max_val must be larger than min_val, got {min_val} and {max_val}")
        self.min_val = min_val
        self.max_val = max_val
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the limited input."""
        return F.hardtanh(input, self.min_val, self.max_val, self.inplace)


class ReLU6(Hardtanh):
    """The input limited to [0, 6].

    See Also
    --------
    ReLU, Hardtanh, nn.functional.relu6

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ReLU6()(gs.tensor([-1.0, 2.0, 8.0]))
    tensor([0., 2., 6.])
    """

    _settings: tuple[str, ...] = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__(0.0, 6.0, inplace)


class Threshold(_Elementwise):
    """The input where above a threshold, else a value.

    See Also
    --------
    ReLU, nn.functional.threshold

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Threshold(0.5, -1.0)(gs.tensor([0.2, 0.7]))
    tensor([-1.0000,  0.7000])
    """

    _settings = ("threshold", "value", "inplace")

    def __init__(self, threshold: float, value: float, inplace: bool = False) -> None:
        super().__init__()
        self.threshold = threshold
        self.value = value
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the input or the value."""
        return F.threshold(input, self.threshold, self.value, self.inplace)


class LeakyReLU(_Elementwise):
    """The input, times `negative_slope` where negative.

    See Also
    --------
    ReLU, PReLU, RReLU, nn.functional.leaky_relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LeakyReLU(0.1)(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1000,  0.0000,  2.0000])
    """

    _settings = ("negative_slope", "inplace")

    def __init__(self, negative_slope: float = 1e-2, inplace: bool = False) -> None:
        super().__init__()
        self.negative_slope = negative_slope
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the leaky rectified input."""
        return F.leaky_relu(input, self.negative_slope, self.inplace)


class RReLU(_Elementwise):
    """The input where positive, else times a slope: drawn from [lower, upper] in training, their mean else.

    See Also
    --------
    LeakyReLU, nn.functional.rrelu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.RReLU().eval()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2292,  0.0000,  2.0000])
    """

    _settings = ("lower", "upper", "inplace")

    def __init__(self, lower: float = 1.0 / 8, upper: float = 1.0 / 3, inplace: bool = False) -> None:
        super().__init__()
        self.lower = lower
        self.upper = upper
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the randomly leaky rectified input."""
        return F.rrelu(input, self.lower, self.upper, self.training, self.inplace)


class ELU(_Elementwise):
    """The input where positive, else ``alpha * expm1(input)``.

    See Also
    --------
    SELU, CELU, nn.functional.elu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.ELU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    _settings = ("alpha", "inplace")

    def __init__(self, alpha: float = 1.0, inplace: bool = False) -> None:
        super().__init__()
        self.alpha = alpha
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the exponential linear unit."""
        return F.elu(input, self.alpha, self.inplace)


class CELU(ELU):
    """The input where positive, else ``alpha * expm1(input / alpha)``.

    See Also
    --------
    ELU, SELU, nn.functional.celu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.CELU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.6321,  0.0000,  2.0000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the continuously differentiable exponential linear unit."""
        return F.celu(input, self.alpha, self.inplace)


class SELU(_Elementwise):
    """The self-normalizing exponential linear unit.

    See Also
    --------
    ELU, AlphaDropout, nn.functional.selu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.SELU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.1113,  0.0000,  2.1014])
    """

    _settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the self-normalizing exponential linear unit."""
        return F.selu(input, self.inplace)


class PReLU(Module):
    """The input, times a learned weight where negative.

    Parameters
    ----------
    num_parameters : int
        1, or the number of channels.

    See Also
    --------
    LeakyReLU, nn.functional.prelu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.PReLU()(gs.tensor([-1.0, 0.0, 2.0])).detach()
    tensor([-0.2500,  0.0000,  2.0000])
    """

    def __init__(self, num_parameters: int = 1, init: float = 0.25, device: Any = None, dtype: Any = None) -> None:
        super().__init__()
        self.num_parameters = num_parameters
        self.init = init
        self.weight = Parameter(empty(num_parameters, device=device, dtype=dtype))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Put the weights back to their first value."""
        init.constant_(self.weight, self.init)

    def forward(self, input: Tensor) -> Tensor:
        """Return the parametric rectified input."""
        return F.prelu(input, self.weight)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        return f"num_parameters={self.num_parameters}"


class Sigmoid(Module):
    """``1 / (1 + exp(-input))``.

    See Also
    --------
    LogSigmoid, BCEWithLogitsLoss, sigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Sigmoid()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([0.2689, 0.5000, 0.8808])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the logistic function."""
        return F.sigmoid(input)


class Tanh(Module):
    """The hyperbolic tangent.

    See Also
    --------
    Hardtanh, tanh

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Tanh()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.7616,  0.0000,  0.9640])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the hyperbolic tangent."""
        return F.tanh(input)


class LogSigmoid(Module):
    """``log(sigmoid(input))``.

    See Also
    --------
    Sigmoid, nn.functional.logsigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LogSigmoid()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-1.3133, -0.6931, -0.1269])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the logarithm of the logistic function."""
        return F.logsigmoid(input)


class Softsign(Module):
    """``input / (1 + |input|)``.

    See Also
    --------
    Tanh, nn.functional.softsign

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softsign()(gs.tensor([-1.0, 0.0, 3.0]))
    tensor([-0.5000,  0.0000,  0.7500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the soft sign."""
        return F.softsign(input)


class Tanhshrink(Module):
    """``input - tanh(input)``.

    See Also
    --------
    Softshrink, nn.functional.tanhshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Tanhshrink()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2384,  0.0000,  1.0360])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the difference from the hyperbolic tangent."""
        return F.tanhshrink(input)


class SiLU(_Elementwise):
    """``input * sigmoid(input)``.

    See Also
    --------
    GELU, Hardswish, nn.functional.silu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.SiLU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.2689,  0.0000,  1.7616])
    """

    _settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the sigmoid linear unit."""
        return F.silu(input, self.inplace)


class Mish(_Elementwise):
    """``input * tanh(softplus(input))``.

    See Also
    --------
    SiLU, nn.functional.mish

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Mish()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.3034,  0.0000,  1.9440])
    """

    _settings = ("inplace",)

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the mish function."""
        return F.mish(input, self.inplace)


class Hardsigmoid(Module):
    """``min(max(input + 3, 0), 6) / 6``.

    See Also
    --------
    Sigmoid, Hardswish, nn.functional.hardsigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Hardsigmoid()(gs.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the piecewise linear sigmoid."""
        return F.hardsigmoid(input, self.inplace)


class Hardswish(Module):
    """``input * hardsigmoid(input)``.

    See Also
    --------
    SiLU, nn.functional.hardswish

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Hardswish()(gs.tensor([-4.0, 0.0, 1.5]))
    tensor([-0.0000, 0.0000, 1.1250])
    """

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace

    def forward(self, input: Tensor) -> Tensor:
        """Return the piecewise linear swish."""
        return F.hardswish(input, self.inplace)


class Softplus(_Elementwise):
    """``log(1 + exp(beta * input)) / beta``; the input itself beyond the threshold.

    See Also
    --------
    ReLU, nn.functional.softplus

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softplus()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([0.3133, 0.6931, 2.1269])
    """

    _settings = ("beta", "threshold")

    def __init__(self, beta: float = 1.0, threshold: float = 20.0) -> None:
        super().__init__()
        self.beta = beta
        self.threshold = threshold

    def forward(self, input: Tensor) -> Tensor:
        """Return the smooth rectifier."""
        return F.softplus(input, self.beta, self.threshold)


class Hardshrink(_Elementwise):
    """The input beyond [-lambd, lambd], else 0.

    See Also
    --------
    Softshrink, nn.functional.hardshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Hardshrink()(gs.tensor([-1.0, 0.2, 2.0]))
    tensor([-1.,  0.,  2.])
    """

    _settings = ("lambd",)
    _unnamed = ("lambd",)

    def __init__(self, lambd: float = 0.5) -> None:
        super().__init__()
        self.lambd = lambd

    def forward(self, input: Tensor) -> Tensor:
        """Return the hard-shrunk input."""
        return F.hardshrink(input, self.lambd)


class Softshrink(Hardshrink):
    """The input moved towards 0 by `lambd`.

    See Also
    --------
    Hardshrink, nn.functional.softshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softshrink()(gs.tensor([-1.0, 0.2, 2.0]))
    tensor([-0.5000,  0.0000,  1.5000])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the soft-shrunk input."""
        return F.softshrink(input, self.lambd)


class GELU(_Elementwise):
    """The Gaussian error linear unit, exact or by tanh.

    See Also
    --------
    SiLU, ReLU, nn.functional.gelu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.GELU()(gs.tensor([-1.0, 0.0, 2.0]))
    tensor([-0.1587,  0.0000,  1.9545])
    """

    _settings = ("approximate",)

    def __init__(self, approximate: str = "none") -> None:
        super().__init__()
        self.approximate = approximate

    def forward(self, input: Tensor) -> Tensor:
        """Return the Gaussian error linear unit."""
        return F.gelu(input, approximate=self.approximate)


class GLU(_Elementwise):
    """The first half of the input along `dim`, times the sigmoid of the second.

    See Also
    --------
    Sigmoid, nn.functional.glu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.GLU()(gs.tensor([1.0, 2.0, 0.0, 3.0]))
    tensor([0.5000, 1.9051])
    """

    _settings = ("dim",)

    def __init__(self, dim: int = -1) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the gated linear unit."""
        return F.glu(input, self.dim)


class Softmax(_Elementwise):
    """``exp(input)`` divided by its sum along `dim`.

    See Also
    --------
    LogSoftmax, CrossEntropyLoss, nn.functional.softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softmax(dim=0)(gs.tensor([1.0, 2.0, 3.0]))
    tensor([0.0900, 0.2447, 0.6652])
    """

    _settings = ("dim",)

    def __init__(self, dim: int | None = None) -> None:
        super().__init__()
        self.dim = dim

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax."""
        return F.softmax(input, self.dim)


class Softmax2d(Module):
    """The softmax over the channels of images (N, C, H, W) or (C, H, W).

    See Also
    --------
    Softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softmax2d()(gs.zeros(1, 4, 2, 2))[0, :, 0, 0]
    tensor([0.2500, 0.2500, 0.2500, 0.2500])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmax."""
        if input.ndim not in (3, 4):
            raise ValueError(f"Softmax2d: expected input to be 3D or 4D, got {input.ndim}D instead")
        return F.softmax(input, -3)


class LogSoftmax(Softmax):
    """The logarithm of the softmax along `dim`.

    See Also
    --------
    Softmax, NLLLoss, nn.functional.log_softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.LogSoftmax(dim=0)(gs.tensor([1.0, 2.0, 3.0]))
    tensor([-2.4076, -1.4076, -0.4076])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the logarithm of the softmax."""
        return F.log_softmax(input, self.dim)


class Softmin(Softmax):
    """The softmax of the negative input along `dim`.

    See Also
    --------
    Softmax, nn.functional.softmin

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Softmin(dim=0)(gs.tensor([1.0, 2.0, 3.0]))
    tensor([0.6652, 0.2447, 0.0900])
    """

    def forward(self, input: Tensor) -> Tensor:
        """Return the softmin."""
        return F.softmin(input, self.dim)
