"""Activation functions."""

from __future__ import annotations

from typing import Any

from ...runtime.ops.declaration.registry import OPERATORS
from ...runtime.ops.families import PUBLIC
from ...runtime.tensor.tensor import Tensor
from ...runtime.user_warnings import warn

__all__ = [
    "celu",
    "celu_",
    "elu",
    "elu_",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "leaky_relu",
    "leaky_relu_",
    "log_softmax",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rrelu",
    "rrelu_",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
]


def _form(name: str, inplace: bool) -> Any:
    op = OPERATORS[name]
    return op.inplace_function if inplace else op.function


_relu = OPERATORS["relu"].function
relu_ = OPERATORS["relu"].inplace_function
threshold_ = OPERATORS["threshold"].inplace_function
leaky_relu_ = OPERATORS["leaky_relu"].inplace_function
elu_ = OPERATORS["elu"].inplace_function
celu_ = OPERATORS["celu"].inplace_function
hardtanh_ = OPERATORS["hardtanh"].inplace_function
selu_ = PUBLIC["selu_"]
rrelu_ = PUBLIC["rrelu_"]
sigmoid = PUBLIC["sigmoid"]
tanh = PUBLIC["tanh"]
prelu = PUBLIC["prelu"]


def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``max(input, 0)``.

    See Also
    --------
    nn.ReLU, leaky_relu, gelu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.relu(gs.tensor([-1.0, 2.0]))
    tensor([0., 2.])
    """
    return relu_(input) if inplace else _relu(input)  # type: ignore[misc]


def threshold(input: Tensor, threshold: float, value: float, inplace: bool = False) -> Tensor:
    """Return the elements above the threshold, and `value` for the others.

    See Also
    --------
    nn.Threshold, relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.threshold(gs.tensor([0.2, 0.7]), 0.5, -1.0)
    tensor([-1.0000,  0.7000])
    """
    return _form("threshold", inplace)(input, threshold, value)


def leaky_relu(input: Tensor, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    """Return the input, times `negative_slope` where negative.

    See Also
    --------
    nn.LeakyReLU, relu, prelu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.leaky_relu(gs.tensor([-1.0, 2.0]), 0.1)
    tensor([-0.1000,  2.0000])
    """
    return _form("leaky_relu", inplace)(input, negative_slope)


def rrelu(
    input: Tensor, lower: float = 1.0 / 8, upper: float = 1.0 / 3, training: bool = False, inplace: bool = False
) -> Tensor:
    """Return the input where positive, else times a slope: drawn from [lower, upper] in training, their mean else.

    See Also
    --------
    nn.RReLU, leaky_relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.rrelu(gs.tensor([-1.0, 2.0]))
    tensor([-0.2292,  2.0000])
    """
    return PUBLIC["rrelu_" if inplace else "rrelu"](input, lower, upper, training)


def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where positive, else ``alpha * expm1(input)``.

    See Also
    --------
    nn.ELU, celu, selu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.elu(gs.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _form("elu", inplace)(input, alpha)


def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input where positive, else ``alpha * expm1(input / alpha)``.

    See Also
    --------
    nn.CELU, elu, selu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.celu(gs.tensor([-1.0, 2.0]))
    tensor([-0.6321,  2.0000])
    """
    return _form("celu", inplace)(input, alpha)


def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the self-normalizing exponential linear unit.

    See Also
    --------
    nn.SELU, elu, alpha_dropout

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.selu(gs.tensor([-1.0, 2.0]))
    tensor([-1.1113,  2.1014])
    """
    return PUBLIC["selu_" if inplace else "selu"](input)


def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Return the input limited to [min_val, max_val].

    See Also
    --------
    nn.Hardtanh, relu6, clamp

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.hardtanh(gs.tensor([-4.0, 0.5]))
    tensor([-1.0000,  0.5000])
    """
    if min_val > max_val:
        raise ValueError(f"min_val cannot be greater than max_val, got {min_val} and {max_val}")
    return _form("hardtanh", inplace)(input, min_val, max_val)


def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """Return the input limited to [0, 6].

    See Also
    --------
    nn.ReLU6, hardtanh

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.relu6(gs.tensor([-1.0, 8.0]))
    tensor([0., 6.])
    """
    return hardtanh(input, 0.0, 6.0, inplace)


def hardsigmoid(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``min(max(input + 3, 0), 6) / 6``.

    See Also
    --------
    nn.Hardsigmoid, sigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.hardsigmoid(gs.tensor([-4.0, 0.0, 1.5]))
    tensor([0.0000, 0.5000, 0.7500])
    """
    return _form("hardsigmoid", inplace)(input)


def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * min(max(input + 3, 0), 6) / 6``.

    See Also
    --------
    nn.Hardswish, silu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.hardswish(gs.tensor([-4.0, 0.0, 1.5]))
    tensor([-0.0000, 0.0000, 1.1250])
    """
    return _form("hardswish", inplace)(input)


def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * sigmoid(input)``.

    See Also
    --------
    nn.SiLU, gelu, hardswish

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.silu(gs.tensor([-1.0, 2.0]))
    tensor([-0.2689,  1.7616])
    """
    return _form("silu", inplace)(input)


def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """Return ``input * tanh(softplus(input))``.

    See Also
    --------
    nn.Mish, silu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.mish(gs.tensor([-1.0, 2.0]))
    tensor([-0.3034,  1.9440])
    """
    return _form("mish", inplace)(input)


def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """Return the Gaussian error linear unit, exact (``"none"``) or by tanh (``"tanh"``).

    See Also
    --------
    nn.GELU, silu, relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.gelu(gs.tensor([-1.0, 2.0]))
    tensor([-0.1587,  1.9545])
    """
    return OPERATORS["gelu"].function(input, approximate=approximate, out=out)


def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``; the input itself where ``beta * input`` exceeds the threshold.

    See Also
    --------
    nn.Softplus, relu

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.softplus(gs.tensor([-1.0, 2.0]))
    tensor([0.3133, 2.1269])
    """
    return OPERATORS["softplus"].function(input, beta, threshold, out=out)


def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Return ``log(sigmoid(input))``.

    See Also
    --------
    nn.LogSigmoid, sigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.logsigmoid(gs.tensor([-1.0, 2.0]))
    tensor([-1.3133, -0.1269])
    """
    return OPERATORS["log_sigmoid"].function(input, out=out)


def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return the elements beyond [-lambd, lambd], and 0 for the others.

    See Also
    --------
    nn.Hardshrink, softshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.hardshrink(gs.tensor([-1.0, 0.2]))
    tensor([-1.,  0.])
    """
    return OPERATORS["hardshrink"].function(input, lambd, out=out)


def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """Return the elements moved towards 0 by `lambd`.

    See Also
    --------
    nn.Softshrink, hardshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.softshrink(gs.tensor([-1.0, 0.2]))
    tensor([-0.5000,  0.0000])
    """
    if lambd < 0:
        raise RuntimeError(f"lambda must be greater or equal to 0, but found to be {lambd}.")
    return OPERATORS["softshrink"].function(input, lambd, out=out)


def softsign(input: Any) -> Tensor:
    """Return ``input / (1 + |input|)``.

    See Also
    --------
    nn.Softsign, tanh

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.softsign(gs.tensor([-1.0, 3.0]))
    tensor([-0.5000,  0.7500])
    """
    return input / (input.abs() + 1)


def tanhshrink(input: Any) -> Tensor:
    """Return ``input - tanh(input)``.

    See Also
    --------
    nn.Tanhshrink, softshrink

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.tanhshrink(gs.tensor([-1.0, 2.0]))
    tensor([-0.2384,  1.0360])
    """
    return input - input.tanh()


def glu(input: Tensor, dim: int = -1) -> Tensor:
    """Return the first half of `input` along `dim`, times the sigmoid of the second.

    See Also
    --------
    nn.GLU, sigmoid

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.glu(gs.tensor([1.0, 2.0, 0.0, 3.0]))
    tensor([0.5000, 1.9051])
    """
    return OPERATORS["glu"].function(input, dim)


def _implicit_dim(name: str, ndim: int) -> int:
    warn(f"Implicit dimension choice for {name} has been deprecated. Change the call to include dim=X as an argument.")
    return 0 if ndim in (0, 1, 3) else 1


def softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return ``exp(input)`` divided by its sum along `dim`.

    See Also
    --------
    nn.Softmax, log_softmax, cross_entropy

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.softmax(gs.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.0900, 0.2447, 0.6652])
    """
    return input.softmax(_implicit_dim("softmax", input.ndim) if dim is None else dim, dtype)


def log_softmax(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along `dim`.

    See Also
    --------
    nn.LogSoftmax, nll_loss, softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.log_softmax(gs.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([-2.4076, -1.4076, -0.4076])
    """
    return input.log_softmax(_implicit_dim("log_softmax", input.ndim) if dim is None else dim, dtype)


def softmin(input: Any, dim: int | None = None, _stacklevel: int = 3, dtype: Any = None) -> Tensor:
    """Return the softmax of the negative input along `dim`.

    See Also
    --------
    nn.Softmin, softmax

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.functional.softmin(gs.tensor([1.0, 2.0, 3.0]), dim=0)
    tensor([0.6652, 0.2447, 0.0900])
    """
    return (-input).softmax(_implicit_dim("softmin", input.ndim) if dim is None else dim, dtype)
