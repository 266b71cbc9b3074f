"""The hot formulas in CUDA C, which CuPy compiles at first use: one pass over the GPU's memory in the place of several.

They have the names of the kernels that Numba compiles for the CPU (:mod:`.compiled`), take the same arrays and numbers,
and are for single and double precision. A row is the work of one block of threads; sums are added in an order that
depends on the shape alone, so that the same program computes the same numbers each time.
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any, NamedTuple

from ..memory import device

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = [
    "ELEMENTWISE",
    "ROWWISE",
    "STEPS",
    "are_left_out",
    "pointwise",
    "rows",
    "rows_backward",
    "rowwise",
    "step",
    "take",
    "take_alike",
]


def take(arrays: Sequence[Any]) -> bool:
    """Whether kernels take the arrays: on a GPU, not empty, of single or double precision, in row-major order.

    Parameters
    ----------
    arrays : sequence
        What a formula is given; None may be among them. Tensors, which are given where a derivative is recorded, are
        not taken, and nothing is where ``GRADSCOPE_KERNELS=numpy`` is in the environment.

    Examples
    --------
    >>> import numpy
    >>> take([numpy.zeros(3, "f")])
    False
    """
    first = arrays[0]
    if not device.backend_of(first).compiles_cuda or not first.size or first.dtype.char not in "fd":
        return False
    if are_left_out():
        return False
    kinds = type(first), first.dtype
    return all(a is None or ((type(a), a.dtype) == kinds and a.flags.c_contiguous) for a in arrays)


def take_alike(arrays: Sequence[Any]) -> bool:
    """Whether kernels take the arrays, as :func:`take` says, and they are of one shape.

    Examples
    --------
    >>> import numpy
    >>> take_alike([numpy.zeros(3, "f"), numpy.zeros(3, "f")])
    False
    """
    return take(arrays) and all(a.shape == arrays[0].shape for a in arrays)


@cache
def are_left_out() -> bool:
    """Whether ``GRADSCOPE_KERNELS=numpy`` leaves the kernels out, as it does the compiled ones."""
    return os.environ.get("GRADSCOPE_KERNELS") == "numpy"


# --- elementwise ------------------------------------------------------------------------------------------------------


class Elementwise(NamedTuple):
    """An elementwise formula: the names of its arrays and of its numbers, and statements that set ``result``."""

    arrays: str
    statements: str
    numbers: str = ""


# R is the type of the elements. Minima and maxima by fmin and fmax lose a NaN, which is why each formula has its
# argument elsewhere, too.
_FUNCTIONS = """
typedef {real} R;
__device__ R sigmoid(R x) {{ return R(1) / (R(1) + exp(-x)); }}
__device__ R log1p_of_decay(R x) {{ return log1p(exp(-fabs(x))); }}
__device__ R softplus(R x) {{ return x > R(20) ? x : fmax(x, R(0)) + log1p_of_decay(x); }}
"""

_GELU_TANH = f"""
    R square = x * x;
    R t = tanh(R({math.sqrt(2 / math.pi)!r}) * (x + R(0.044715) * (x * square)));
"""

ELEMENTWISE = {
    "gelu": Elementwise("x", f"result = x * (R(0.5) * (erf(x * R({math.sqrt(0.5)!r})) + R(1)));"),
    "gelu_backward": Elementwise(
        "g x",
        f"""
    R below = (erf(x * R({math.sqrt(0.5)!r})) + R(1)) * R(0.5);
    result = g * (below + x * exp(x * x * R(-0.5)) * R({1 / math.sqrt(2 * math.pi)!r}));
""",
    ),
    "gelu_tanh": Elementwise("x", _GELU_TANH + "result = x * (R(0.5) * (t + R(1)));"),
    "gelu_tanh_backward": Elementwise(
        "g x",
        f"""{_GELU_TANH}
    R inner = (square * R({3 * 0.044715!r}) + R(1)) * R({math.sqrt(2 / math.pi)!r});
    result = g * ((t + R(1)) * R(0.5) + x * R(0.5) * (R(1) - t * t) * inner);
""",
    ),
    "silu": Elementwise("x", "result = x * sigmoid(x);"),
    "silu_backward": Elementwise("g x", "R s = sigmoid(x); result = g * (s * (x * (R(1) - s) + R(1)));"),
    "threshold_backward": Elementwise("g x", "result = x <= threshold ? R(0) : g;", "threshold"),
    "exps": Elementwise("x", "result = exp(x);"),
    "exp2s": Elementwise("x", "result = exp2(x);"),
    "expm1s": Elementwise("x", "result = expm1(x);"),
    "log2s": Elementwise("x", "result = log2(x);"),
    "log10s": Elementwise("x", "result = log10(x);"),
    "atan2s": Elementwise("x y", "result = atan2(x, y);"),
    "hypots": Elementwise("x y", "result = hypot(x, y);"),
    "logaddexps": Elementwise(
        "x y",
        """
    R sum = fmax(x, y) + (x == y ? log1p(R(1)) : log1p(exp(-fabs(x - y))));
    result = isnan(x) || isnan(y) ? x + y : sum;
""",
    ),
    "logits": Elementwise(
        "x", "R p = x < low ? low : x; p = p > high ? high : p; result = log(p / (R(1) - p));", "low high"
    ),
    "logit_backward": Elementwise(
        "g x", "result = x >= low && x <= high ? g / (x * (R(1) - x)) : outside;", "low high outside"
    ),
    "log1ps": Elementwise("x", "result = log1p(x);"),
    "sinhs": Elementwise("x", "result = sinh(x);"),
    "coshs": Elementwise("x", "result = cosh(x);"),
    "asins": Elementwise("x", "result = asin(x);"),
    "acoss": Elementwise("x", "result = acos(x);"),
    "atans": Elementwise("x", "result = atan(x);"),
    "atanhs": Elementwise("x", "result = atanh(x);"),
    "tans": Elementwise("x", "result = tan(x);"),
    "tanhs": Elementwise("x", "result = tanh(x);"),
    "sigmoids": Elementwise("x", "result = sigmoid(x);"),
    "sigmoid_backward": Elementwise("g y", "result = g * ((R(1) - y) * y);"),
    "tanh_backward": Elementwise("g y", "result = g * (R(1) - y * y);"),
    "log_sigmoid": Elementwise("x", "result = fmin(x, R(0)) - log1p_of_decay(x);"),
    "log_sigmoid_backward": Elementwise("g x", "result = g * sigmoid(-x);"),
    "softplus": Elementwise(
        "x",
        """
    R scaled = x * beta;
    result = scaled > threshold ? x : (fmax(scaled, R(0)) + log1p_of_decay(scaled)) / beta;
""",
        "beta threshold",
    ),
    "softplus_backward": Elementwise(
        "g x", "R scaled = x * beta; result = scaled > threshold ? g : g * sigmoid(scaled);", "beta threshold"
    ),
    "mish": Elementwise("x", "result = x * tanh(softplus(x));"),
    "mish_backward": Elementwise("g x", "R t = tanh(softplus(x)); result = g * (t + x * sigmoid(x) * (R(1) - t * t));"),
    "elu": Elementwise(
        "x", "result = x < R(0) ? expm1(x * input_scale) * (alpha * scale) : x * scale;", "alpha scale input_scale"
    ),
    "elu_backward": Elementwise(
        "g x",
        """
    R slope = exp((x < R(0) ? x : R(0)) * input_scale) * (input_scale * alpha * scale);
    result = g * (x <= R(0) ? slope : scale);
""",
        "alpha scale input_scale",
    ),
    "leaky_relu": Elementwise("x", "result = x > R(0) ? x : x * negative_slope;", "negative_slope"),
    "leaky_relu_backward": Elementwise("g x", "result = x > R(0) ? g : g * negative_slope;", "negative_slope"),
    "hardswish": Elementwise("x", "result = x * fmin(fmax(x + R(3), R(0)), R(6)) / R(6);"),
    "hardswish_backward": Elementwise("g x", "result = x <= R(-3) ? R(0) : x < R(3) ? g * (x / R(3) + R(0.5)) : g;"),
    "hardsigmoid_backward": Elementwise("g x", "result = x > R(-3) && x < R(3) ? g / R(6) : R(0);"),
    "clamp_backward": Elementwise("g x", "result = x >= low && x <= high ? g : R(0);", "low high"),
    "hardtanh_backward": Elementwise("g x", "result = x <= low || x >= high ? R(0) : g;", "low high"),
    "huber": Elementwise(
        "x target",
        "R size = fabs(x - target); R near = size > delta ? delta : size; result = near * (size - R(0.5) * near);",
        "delta",
    ),
    "huber_backward": Elementwise(
        "x target",
        "R below = x - target > delta ? delta : x - target; result = factor * (below < -delta ? -delta : below);",
        "delta factor",
    ),
    "hardshrink": Elementwise("x", "result = fabs(x) <= least ? R(0) : x;", "least"),
    "shrink_backward": Elementwise("g x", "result = x >= -least && x <= least ? R(0) : g;", "least"),
    "threshold": Elementwise("x", "result = x <= limit ? value : x;", "limit value"),
}
"""The formulas of `ops.nn.activations`, of clamp and of Huber's loss that are one kernel each."""


def pointwise(name: str, arrays: Sequence[Array], numbers: Sequence[float]) -> Array:
    """Return an elementwise formula of arrays of one shape.

    Parameters
    ----------
    name : str
        One of `ELEMENTWISE`.
    arrays : sequence of array
        Of which :func:`take_alike` holds.
    numbers : sequence of float
        The formula's numbers.
    """
    like = arrays[-1]
    return _elementwise(device.module_of(type(like)), name, like.dtype.name)(*arrays, *map(float, numbers))


@cache
def _elementwise(module: Any, name: str, real: str) -> Any:
    formula = ELEMENTWISE[name]
    given = [f"{real} {parameter}" for parameter in (formula.arrays + " " + formula.numbers).split()]
    return module.ElementwiseKernel(
        ", ".join(given), f"{real} result", formula.statements, f"gradscope_{name}", preamble=_preamble(real)
    )


def _preamble(real: str) -> str:
    return _FUNCTIONS.format(real="float" if real == "float32" else "double")


# --- steps of optimizers ----------------------------------------------------------------------------------------------


class Step(NamedTuple):
    """A step of an optimizer: the arrays that it changes beside the parameter ``p``, its numbers, its statements."""

    kept: str
    numbers: str
    statements: str


STEPS = {
    "sgd": Step("", "lr decay", "p -= (g + p * decay) * lr;"),
    "sgd_momentum": Step(
        "b",
        "lr decay sign momentum keep nesterov",
        """
    R w = sign * g + p * decay;
    b = b * momentum + w * keep;
    p -= (nesterov != R(0) ? w + b * momentum : b) * lr;
""",
    ),
    "adam": Step(
        "mean square",
        "shrink decay sign share keep rest root eps step",
        """
    R x = p * shrink;
    R w = sign * g + x * decay;
    mean += (w - mean) * share;
    square = square * keep + w * w * rest;
    p = x - mean / (sqrt(square) / root + eps) * step;
""",
    ),
}
"""The steps of `optim.sgd` and `optim.adam` that are one kernel each."""


def step(name: str, arrays: Sequence[Array], numbers: Sequence[float]) -> None:
    """Take a step of an optimizer: the parameter and what is kept of it are changed in place.

    Parameters
    ----------
    name : str
        One of `STEPS`.
    arrays : sequence of array
        The parameter, its gradient, and what the optimizer keeps, as vectors.
    numbers : sequence of float
        The numbers of the step.
    """
    parameter, gradient, *kept = arrays
    kernel = _step(device.module_of(type(parameter)), name, parameter.dtype.name)
    kernel(gradient, *map(float, numbers), parameter, *kept)


@cache
def _step(module: Any, name: str, real: str) -> Any:
    formula = STEPS[name]
    read, changed = ["g", *formula.numbers.split()], ["p", *formula.kept.split()]
    declared = [", ".join(f"{real} {parameter}" for parameter in parameters) for parameters in (read, changed)]
    return module.ElementwiseKernel(*declared, formula.statements, f"gradscope_{name}", preamble=_preamble(real))


# --- rows -------------------------------------------------------------------------------------------------------------

_REDUCTIONS = """
typedef {real} R;
#define INFINITE R(__int_as_float(0x7f800000))

__device__ R added(R a, R b) {{ return a + b; }}
__device__ R larger(R a, R b) {{ return fmax(a, b); }}

// What all threads of a block hold, combined; each thread is given the result.
template <R (*combine)(R, R)> __device__ R of_block(R value, R neutral) {{
    __shared__ R parts[32];
    int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    for (int apart = 16; apart; apart >>= 1) value = combine(value, __shfl_down_sync(~0u, value, apart));
    __syncthreads();  // the parts of the combination before this one have been read
    if (!lane) parts[warp] = value;
    __syncthreads();
    value = lane < blockDim.x >> 5 ? parts[lane] : neutral;
    for (int apart = 16; apart; apart >>= 1) value = combine(value, __shfl_down_sync(~0u, value, apart));
    if (!threadIdx.x) parts[0] = value;
    __syncthreads();
    return parts[0];
}}
__device__ R sum(R value) {{ return of_block<added>(value, R(0)); }}
__device__ R largest(R value) {{ return of_block<larger>(value, -INFINITE); }}
#define EACH for (long long j = threadIdx.x; j < size; j += blockDim.x)
"""

ROWWISE = {
    "softmax": (
        "x",
        """
    R most = -INFINITE, total = 0;
    EACH most = fmax(most, x[j]);
    most = largest(most);
    EACH total += result[j] = exp(x[j] - most);
    total = sum(total);
    EACH result[j] /= total;
""",
    ),
    "softmax_backward": (
        "g y",
        """
    R total = 0;
    EACH total += g[j] * y[j];
    total = sum(total);
    EACH result[j] = y[j] * (g[j] - total);
""",
    ),
    "log_softmax": (
        "x",
        """
    R most = -INFINITE, total = 0;
    EACH most = fmax(most, x[j]);
    most = largest(most);
    EACH total += exp(x[j] - most);
    total = log(sum(total));
    EACH result[j] = (x[j] - most) - total;
""",
    ),
    "log_softmax_backward": (
        "g y",
        """
    R total = 0;
    EACH total += g[j];
    total = sum(total);
    EACH result[j] = g[j] - exp(y[j]) * total;
""",
    ),
}
"""The formulas that treat each row along the last axis alone: the names of their arrays, and statements."""


def rowwise(name: str, arrays: Sequence[Array]) -> Array:
    """Return a formula of arrays of one shape that treats each row along the last axis alone.

    Parameters
    ----------
    name : str
        One of `ROWWISE`.
    arrays : sequence of array
        Of which :func:`take_alike` holds.
    """
    like = arrays[-1]
    module, size = device.module_of(type(like)), like.shape[-1]
    result = module.empty_like(like)
    _launch(_rowwise(module, name, like.dtype.name), like.size // size, size, (size, *arrays, result))
    return result


@cache
def _rowwise(module: Any, name: str, real: str) -> Any:
    names, statements = ROWWISE[name]
    given = names.split()
    parameters = ", ".join(("long long size", *(f"const R* {array}" for array in given), "R* result"))
    shifts = "".join(f"{array} += blockIdx.x * size; " for array in (*given, "result"))
    return _kernel(module, real, f"gradscope_{name}", parameters, shifts + statements)


def _kernel(module: Any, real: str, name: str, parameters: str, statements: str) -> Any:
    head = _REDUCTIONS.format(real="float" if real == "float32" else "double")
    source = f'{head}extern "C" __global__ void {name}({parameters}) {{\n{statements}\n}}\n'
    return module.RawKernel(source, name, options=("--std=c++14",))


_MOST_THREADS = 512


def _launch(kernel: Any, count: int, size: int, arguments: tuple[Any, ...]) -> None:
    """Run a kernel, with one block of whole warps for each of `count` rows of `size` elements."""
    threads = min(_MOST_THREADS, -(-size // 32) * 32)
    kernel((count,), (threads,), arguments)


# --- layer norm -------------------------------------------------------------------------------------------------------

_NORMALIZE = """
    x += blockIdx.x * size; result += blockIdx.x * size;
    R total = 0, squares = 0;
    EACH total += x[j];
    R middle = sum(total) / size;
    EACH squares += (x[j] - middle) * (x[j] - middle);
    R scale = R(1) / sqrt(sum(squares) / size + R(eps));
    EACH result[j] = (x[j] - middle) * scale * weight[j] + bias[j];
    if (!threadIdx.x) { mean[blockIdx.x] = middle; rstd[blockIdx.x] = scale; }
"""

_DIFFERENTIATE = """
    g += blockIdx.x * size; x += blockIdx.x * size; result += blockIdx.x * size;
    R middle = mean[blockIdx.x], scale = rstd[blockIdx.x], total = 0, along = 0;
    EACH {
        R scaled = g[j] * weight[j];
        total += scaled;
        along += scaled * ((x[j] - middle) * scale);
    }
    total = sum(total) / size;
    along = sum(along) / size;
    EACH result[j] = (g[j] * weight[j] - total - (x[j] - middle) * scale * along) * scale;
"""

# A thread has a column of a stripe of rows; the stripes are added up afterwards.
_ADD_COLUMNS = """
    long long j = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (j >= size) return;
    R weights = 0, biases = 0;
    long long end = min(count, (blockIdx.y + 1) * each);
    for (long long i = blockIdx.y * each; i < end; i++) {
        R incoming = g[i * size + j];
        weights += incoming * ((x[i * size + j] - mean[i]) * rstd[i]);
        biases += incoming;
    }
    of_weight[blockIdx.y * size + j] = weights;
    of_bias[blockIdx.y * size + j] = biases;
"""

_COLUMNS, _STRIPES = 128, 256  # threads of a block; stripes of rows at most


def rows(x: Array, weight: Array | None, bias: Array | None, size: int, eps: float) -> tuple[Array, Array, Array]:
    """Return rows of `size` elements, each centred and divided by its deviation, scaled and shifted.

    The parameters and results are those of :func:`.normalized_rows.rows`.
    """
    module = device.module_of(type(x))
    result, count = module.empty_like(x), x.size // size
    mean, rstd = module.empty((count, 1), x.dtype), module.empty((count, 1), x.dtype)
    w, b = _vector(module, weight, x, size, 1), _vector(module, bias, x, size, 0)
    kernel = _layer_norm(module, x.dtype.name)
    _launch(kernel, count, size, (size, x, w, b, float(eps), result, mean, rstd))
    return result, mean, rstd


def rows_backward(
    g: Array, x: Array, weight: Array | None, mean: Array, rstd: Array, size: int
) -> tuple[Array, Array, Array]:
    """Return the gradients of the input, the weight and the bias of :func:`rows`."""
    module, count, real = device.module_of(type(x)), x.size // size, x.dtype.name
    result, w = module.empty_like(x), _vector(module, weight, x, size, 1)
    _launch(_layer_norm_backward(module, real), count, size, (size, g, x, w, mean, rstd, result))
    each = -(-count // _STRIPES)
    stripes = -(-count // each)
    of_weight, of_bias = module.empty((2, stripes, size), x.dtype)
    grid = -(-size // _COLUMNS), stripes
    _columns(module, real)(grid, (_COLUMNS,), (size, count, each, g, x, mean, rstd, of_weight, of_bias))
    return result, of_weight.sum(0), of_bias.sum(0)


def _vector(module: Any, value: Array | None, like: Array, size: int, otherwise: int) -> Array:
    """Return a parameter of each column, or what stands for the one that is not there."""
    return module.full(size, otherwise, like.dtype) if value is None else value.reshape(-1)


@cache
def _layer_norm(module: Any, real: str) -> Any:
    parameters = "long long size, const R* x, const R* weight, const R* bias, double eps, R* result, R* mean, R* rstd"
    return _kernel(module, real, "gradscope_layer_norm", parameters, _NORMALIZE)


@cache
def _layer_norm_backward(module: Any, real: str) -> Any:
    given = [f"const R* {array}" for array in ("g", "x", "weight", "mean", "rstd")]
    parameters = ", ".join(("long long size", *given, "R* result"))
    return _kernel(module, real, "gradscope_layer_norm_backward", parameters, _DIFFERENTIATE)


@cache
def _columns(module: Any, real: str) -> Any:
    given = [f"const R* {array}" for array in ("g", "x", "mean", "rstd")]
    parameters = ", ".join(("long long size, long long count, long long each", *given, "R* of_weight", "R* of_bias"))
    return _kernel(module, real, "gradscope_layer_norm_columns", parameters, _ADD_COLUMNS)
