"""Initial values of parameters. Each function writes a tensor in place, outside the graph, and returns it.

References
----------
X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", AISTATS 2010.
K. He, X. Zhang, S. Ren, J. Sun, "Delving deep into rectifiers", ICCV 2015.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from typing import Any

from ..runtime.memory import device as devices
from ..runtime.modes import no_grad
from ..runtime.ops.declaration.registry import METHODS
from ..runtime.ops.random.random import Generator, rand, randn
from ..runtime.tensor.tensor import Tensor
from ..runtime.user_warnings import warn

__all__ = [
    "calculate_gain",
    "constant",
    "constant_",
    "dirac",
    "dirac_",
    "eye",
    "eye_",
    "kaiming_normal",
    "kaiming_normal_",
    "kaiming_uniform",
    "kaiming_uniform_",
    "normal",
    "normal_",
    "ones_",
    "orthogonal",
    "orthogonal_",
    "sparse",
    "sparse_",
    "trunc_normal_",
    "uniform",
    "uniform_",
    "xavier_normal",
    "xavier_normal_",
    "xavier_uniform",
    "xavier_uniform_",
    "zeros_",
]

_GAINS = {"tanh": 5.0 / 3, "relu": math.sqrt(2.0), "selu": 3.0 / 4}
_LINEAR = (
    "linear",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "sigmoid",
)


def calculate_gain(nonlinearity: str, param: float | None = None) -> float:
    """Return the factor by which weights before a nonlinearity are larger.

    Parameters
    ----------
    nonlinearity : str
        ``"linear"``, ``"sigmoid"``, ``"tanh"``, ``"relu"``, ``"leaky_relu"``, ``"selu"`` or a convolution.
    param : float, optional
        The negative slope of ``"leaky_relu"``.

    See Also
    --------
    xavier_uniform_, kaiming_uniform_

    Examples
    --------
    >>> calculate_gain("tanh")
    1.6666666666666667
    """
    if nonlinearity in _LINEAR:
        return 1.0
    if nonlinearity == "leaky_relu":
        if param is not None and (isinstance(param, bool) or not isinstance(param, (int, float))):
            raise ValueError(f"negative_slope {param} not a valid number")
        return math.sqrt(2.0 / (1 + (0.01 if param is None else param) ** 2))
    if nonlinearity in _GAINS:
        return _GAINS[nonlinearity]
    raise ValueError(f"Unsupported nonlinearity {nonlinearity}")


def _calculate_fan_in_and_fan_out(tensor: Tensor) -> tuple[int, int]:
    # Programs call it by this name.
    shape = tensor.shape
    if len(shape) < 2:
        raise ValueError("Fan in and fan out can not be computed for tensor with fewer than 2 dimensions")
    field = math.prod(shape[2:])
    return shape[1] * field, shape[0] * field


def _fan(tensor: Tensor, mode: str) -> int:
    mode = mode.lower()
    if mode not in ("fan_in", "fan_out"):
        raise ValueError(f"Mode {mode} not supported, please use one of ['fan_in', 'fan_out']")
    return _calculate_fan_in_and_fan_out(tensor)[mode == "fan_out"]


def uniform_(tensor: Tensor, a: float = 0.0, b: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with numbers drawn uniformly from [a, b).

    See Also
    --------
    normal_, xavier_uniform_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.uniform_(gs.empty(3, 5)).shape
    gradscope.Size([3, 5])
    """
    with no_grad():
        return tensor.uniform_(a, b, generator=generator)


def normal_(tensor: Tensor, mean: float = 0.0, std: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers.

    See Also
    --------
    trunc_normal_, uniform_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.normal_(gs.empty(3, 5), std=0.1).shape
    gradscope.Size([3, 5])
    """
    with no_grad():
        return tensor.normal_(mean, std, generator=generator)


def trunc_normal_(
    tensor: Tensor,
    mean: float = 0.0,
    std: float = 1.0,
    a: float = -2.0,
    b: float = 2.0,
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers, those outside [a, b] drawn again.

    See Also
    --------
    normal_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.trunc_normal_(gs.empty(100)).abs().max() <= 2
    tensor(True)
    """
    if mean < a - 2 * std or mean > b + 2 * std:
        warn(
            "mean is more than 2 std from [a, b] in nn.init.trunc_normal_. The distribution of values may be "
            "incorrect.",
        )

    def below(x: float) -> float:
        return (1.0 + math.erf(x / math.sqrt(2.0))) / 2.0

    low, high = below((a - mean) / std), below((b - mean) / std)
    with no_grad():
        # The inverse of the normal distribution function, of uniform numbers.
        tensor.uniform_(2 * low - 1, 2 * high - 1, generator=generator)
        METHODS["erfinv_"](tensor)
        tensor.mul_(std * math.sqrt(2.0)).add_(mean)
        array = tensor._array
        xp = devices.array_module(array)
        tensor._write(xp.minimum(xp.maximum(array, a), b))
    return tensor


def constant_(tensor: Tensor, val: float) -> Tensor:
    """Fill with a number.

    See Also
    --------
    zeros_, ones_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.constant_(gs.empty(2), 0.5)
    tensor([0.5000, 0.5000])
    """
    with no_grad():
        return tensor.fill_(val)


def ones_(tensor: Tensor) -> Tensor:
    """Fill with ones.

    See Also
    --------
    zeros_, constant_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.ones_(gs.empty(3))
    tensor([1., 1., 1.])
    """
    return constant_(tensor, 1.0)


def zeros_(tensor: Tensor) -> Tensor:
    """Fill with zeros.

    See Also
    --------
    ones_, constant_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.zeros_(gs.empty(3))
    tensor([0., 0., 0.])
    """
    return constant_(tensor, 0.0)


def _write(tensor: Tensor, array: Any) -> Tensor:
    with no_grad():
        return tensor.copy_(Tensor._wrap(array))


def eye_(tensor: Tensor) -> Tensor:
    """Fill a matrix with the identity.

    See Also
    --------
    dirac_, orthogonal_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.eye_(gs.empty(2, 3))
    tensor([[1., 0., 0.],
            [0., 1., 0.]])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    return _write(tensor, devices.array_module(tensor._array).eye(*tensor.shape, dtype=tensor._dtype))


def dirac_(tensor: Tensor, groups: int = 1) -> Tensor:
    """Fill the weight of a convolution so that it passes its input on.

    See Also
    --------
    eye_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.dirac_(gs.empty(1, 1, 3))
    tensor([[[0., 1., 0.]]])
    """
    if tensor.ndim not in (3, 4, 5):
        raise ValueError("Only tensors with 3, 4, or 5 dimensions are supported")
    outputs, inputs = tensor.shape[:2]
    if outputs % groups:
        raise ValueError("dim 0 must be divisible by groups")
    array = devices.array_module(tensor._array).zeros(tuple(tensor.shape), dtype=tensor._dtype)
    middle = tuple(size // 2 for size in tensor.shape[2:])
    for group in range(groups):
        for channel in range(min(outputs // groups, inputs)):
            array[(group * (outputs // groups) + channel, channel, *middle)] = 1
    return _write(tensor, array)


def xavier_uniform_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill uniformly, with a variance after the mean of both fans (Glorot and Bengio).

    See Also
    --------
    xavier_normal_, kaiming_uniform_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.xavier_uniform_(gs.empty(3, 5)).shape
    gradscope.Size([3, 5])
    """
    bound = gain * math.sqrt(6.0 / sum(_calculate_fan_in_and_fan_out(tensor)))
    return uniform_(tensor, -bound, bound, generator)


def xavier_normal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with normal numbers, with a variance after the mean of both fans (Glorot and Bengio).

    See Also
    --------
    xavier_uniform_, kaiming_normal_

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.xavier_normal_(gs.empty(3, 5)).shape
    gradscope.Size([3, 5])
    """
    return normal_(tensor, 0.0, gain * math.sqrt(2.0 / sum(_calculate_fan_in_and_fan_out(tensor))), generator)


def _kaiming_std(tensor: Tensor, a: float, mode: str, nonlinearity: str) -> float | None:
    if 0 in tensor.shape:
        warn("Initializing zero-element tensors is a no-op")
        return None
    return calculate_gain(nonlinearity, a) / math.sqrt(_fan(tensor, mode))


def kaiming_uniform_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill uniformly, with a variance that rectifiers keep (He et al.).

    Parameters
    ----------
    a : float
        The negative slope of the rectifier that follows.
    mode : {"fan_in", "fan_out"}
        Keep the variance forward or backward.
    nonlinearity : str
        See :func:`calculate_gain`.

    See Also
    --------
    kaiming_normal_, calculate_gain

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.kaiming_uniform_(gs.empty(3, 5)).shape
    gradscope.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else uniform_(tensor, -math.sqrt(3.0) * std, math.sqrt(3.0) * std, generator)


def kaiming_normal_(
    tensor: Tensor,
    a: float = 0,
    mode: str = "fan_in",
    nonlinearity: str = "leaky_relu",
    generator: Generator | None = None,
) -> Tensor:
    """Fill with normal numbers, with a variance that rectifiers keep (He et al.); see :func:`kaiming_uniform_`.

    See Also
    --------
    kaiming_uniform_, calculate_gain

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.init.kaiming_normal_(gs.empty(3, 5)).shape
    gradscope.Size([3, 5])
    """
    std = _kaiming_std(tensor, a, mode, nonlinearity)
    return tensor if std is None else normal_(tensor, 0.0, std, generator)


def orthogonal_(tensor: Tensor, gain: float = 1.0, generator: Generator | None = None) -> Tensor:
    """Fill with a (semi-)orthogonal matrix (A. Saxe et al., "Exact solutions to ...", ICLR 2014).

    See Also
    --------
    eye_, nn.utils.parametrizations.orthogonal

    Examples
    --------
    >>> import gradscope as gs
    >>> w = gs.nn.init.orthogonal_(gs.empty(3, 3))
    >>> gs.allclose(w @ w.T, gs.eye(3), atol=1e-5)
    True
    """
    if tensor.ndim < 2:
        raise ValueError("Only tensors with 2 or more dimensions are supported")
    if not tensor.numel():
        return tensor
    rows = tensor.shape[0]
    columns = tensor.numel() // rows
    drawn = randn(rows, columns, dtype=tensor.dtype, device=tensor.device, generator=generator)._array
    xp = devices.array_module(drawn)
    q, r = xp.linalg.qr(drawn.T if rows < columns else drawn)
    # The signs of r's diagonal make the distribution uniform.
    q = q * xp.sign(xp.diagonal(r))
    return _write(tensor, gain * (q.T if rows < columns else q).reshape(tuple(tensor.shape)))


def sparse_(tensor: Tensor, sparsity: float, std: float = 0.01, generator: Generator | None = None) -> Tensor:
    """Fill a matrix with normal numbers, and with zeros a share `sparsity` of each column (rounded up).

    References
    ----------
    J. Martens, "Deep learning via Hessian-free optimization", ICML 2010.

    See Also
    --------
    normal_

    Examples
    --------
    >>> import gradscope as gs
    >>> (gs.nn.init.sparse_(gs.empty(10, 4), sparsity=0.3) == 0).sum(0)
    tensor([3, 3, 3, 3])
    """
    if tensor.ndim != 2:
        raise ValueError("Only tensors with 2 dimensions are supported")
    rows, columns = tensor.shape
    normal_(tensor, 0.0, std, generator)
    # A random order of the rows of each column.
    order = rand(rows, columns, device=tensor.device, generator=generator).argsort(0)
    with no_grad():
        return tensor.masked_fill_(order < math.ceil(sparsity * rows), 0)


# --- the names of PyTorch 0.3 -----------------------------------------------------------------------------------------


def _former(function: Callable[..., Tensor], arguments: str, shown: str, result: str) -> Callable[..., Tensor]:
    """Return a function under its former name, which warns; its example shows what a call returns."""
    new = function.__name__
    old = new[:-1]

    @functools.wraps(function)
    def deprecated(*args: Any, **kwargs: Any) -> Tensor:
        warn(f"`nn.init.{old}` is now deprecated in favor of `nn.init.{new}`.", FutureWarning)
        return function(*args, **kwargs)

    deprecated.__name__ = old
    deprecated.__doc__ = _FORMER.format(new=new, call=f"gs.nn.init.{old}({arguments}){shown}", result=result)
    return deprecated


_FORMER = """Do what :func:`{new}` does, with a FutureWarning.

See Also
--------
{new} : describes the arguments, and does not warn.

Examples
--------
>>> import warnings
>>> import gradscope as gs
>>> with warnings.catch_warnings(action="ignore"):
...     {call}
{result}
"""

constant = _former(constant_, "gs.empty(2), 0.5", "", "tensor([0.5000, 0.5000])")
dirac = _former(dirac_, "gs.empty(1, 1, 3)", "", "tensor([[[0., 1., 0.]]])")
eye = _former(eye_, "gs.empty(2, 2)", "", "tensor([[1., 0.],\n        [0., 1.]])")
kaiming_normal = _former(kaiming_normal_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
kaiming_uniform = _former(kaiming_uniform_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
normal = _former(normal_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
orthogonal = _former(orthogonal_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
sparse = _former(sparse_, "gs.empty(9, 2), 1 / 3", ".eq(0).sum(0)", "tensor([3, 3])")
uniform = _former(uniform_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
xavier_normal = _former(xavier_normal_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
xavier_uniform = _former(xavier_uniform_, "gs.empty(3, 5)", ".shape", "gradscope.Size([3, 5])")
