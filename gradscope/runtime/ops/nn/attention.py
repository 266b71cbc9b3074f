"""Scaled dot-product attention: one node, or where PyTorch does so matrix products and a softmax."""

from __future__ import annotations

import math
from typing import Any

import numpy

from ... import autocast, state
from ...kernels import attention_kernels as kernels
from ...kernels.broadcasting import expandable
from ...memory import bfloat16
from ...memory import device as devices
from ...memory.dtype import scalar_type
from ...tensor.tangents import tangent_of
from ..declaration.annotations import Array, Cases, Gradient, Make, Namespace, Shape
from ..declaration.extremes import rows
from ..declaration.registry import METHODS, OPERATORS, operator
from ..execution.bare_functions import HALVES, array_operators, is_half, single
from .normalization import dropout


def scaled_dot_product_attention(
    query: Array,
    key: Array,
    value: Array,
    attn_mask: Array = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Array:
    """Return values, averaged for each query with the softmax of its products with the keys as weights.

    Parameters
    ----------
    query : Tensor
        Of shape (..., L, E).
    key : Tensor
        Of shape (..., S, E).
    value : Tensor
        Of shape (..., S, V); the result has shape (..., L, V).
    attn_mask : Tensor, optional
        Broadcasts to (..., L, S): where True a key takes part, or numbers that are added to the products.
    dropout_p : float
        Probability with which a weight is put to zero.
    is_causal : bool
        A query sees the keys up to its own place; not together with `attn_mask`.
    scale : float, optional
        Factor of the products; ``1 / sqrt(E)`` unless given.
    enable_gqa : bool
        Fewer heads (dimension -3) of keys and values than of queries; each serves several.

    Raises
    ------
    RuntimeError
        If dtypes or dimensions do not fit, or a mask is given for causal attention.

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    See Also
    --------
    nn.MultiheadAttention, multi_head_attention_forward, nn.attention.sdpa_kernel

    Examples
    --------
    >>> import gradscope as gs
    >>> q = gs.zeros(1, 2, 3)
    >>> gs.nn.functional.scaled_dot_product_attention(q, q, gs.tensor([[[1.0], [3.0]]]), is_causal=True)
    tensor([[[1.],
             [2.]]])
    """
    if state.casting and autocast.covers("scaled_dot_product_attention", (query, key, value)):
        return autocast.call(
            "scaled_dot_product_attention",
            scaled_dot_product_attention,
            query,
            key,
            value,
            attn_mask,
            dropout_p,
            is_causal,
            scale,
            enable_gqa,
        )
    _check(query, key, value, attn_mask, is_causal)
    if not 0.0 <= dropout_p <= 1.0:
        raise RuntimeError(f"dropout probability has to be between 0 and 1, but got {dropout_p:g}")
    if attn_mask is not None and attn_mask._dtype.kind == "b":
        attn_mask = _as_numbers(attn_mask, query)
    times = _queries_of_each(query._array.shape, key._array.shape) if enable_gqa else 1
    return _attended(query, key, value, attn_mask, dropout_p, is_causal, scale, times)


def _attended(
    query: Array, key: Array, value: Array, mask: Array, dropout_p: float, causal: bool, scale: float | None, times: int
) -> Array:
    """Return attended values; a head of keys serves so many `times` a head of queries."""
    char = query._dtype.char
    if not dropout_p and char != bfloat16.CHAR and _in_one_node(query, key, value, mask, times):
        flash = OPERATORS["scaled_dot_product_flash_attention_for_cpu"].function
        return flash(query, key, value, 0.0, causal, attn_mask=mask, scale=scale)
    if char not in HALVES:
        return _in_parts(query, key, value, mask, dropout_p, causal, scale, times)
    # Rounded once, as in PyTorch, not at each step.
    wide = mask if mask is None else mask.float()
    found = _attended(query.float(), key.float(), value.float(), wide, dropout_p, causal, scale, times)
    return found.to(query.dtype)


def _in_parts(
    query: Array, key: Array, value: Array, mask: Array, dropout_p: float, causal: bool, scale: float | None, times: int
) -> Array:
    if times > 1:
        key, value = (METHODS["repeat_interleave"](t, times, -3) for t in (key, value))
    mask = _causal(query, key) if causal else mask
    factor = _factor(query._array.shape, scale)
    root = math.sqrt(abs(factor))
    scaled = OPERATORS["mul.Scalar"].function
    keys = scaled(METHODS["transpose"](key, -2, -1), root)
    scores = METHODS["matmul"](scaled(query, math.copysign(root, factor)), keys)
    if mask is not None:
        scores = scores + mask.to(scores.dtype)
    weights = OPERATORS["safe_softmax"].function(scores, -1)
    return METHODS["matmul"](dropout(weights, dropout_p) if dropout_p else weights, value)


def _factor(query: Shape, scale: float | None) -> float:
    if scale is not None:
        return scale
    return 1 / math.sqrt(query[-1]) if query[-1] else math.inf


def _in_one_node(query: Array, key: Array, value: Array, mask: Array, times: int) -> bool:
    """Whether one node computes it, as in PyTorch: four dimensions, one number of features, a mask without gradient."""
    q, k, v = (t._array.shape for t in (query, key, value))
    if len(q) != 4 or k != v or len(k) != 4 or not (math.prod(q) and math.prod(k)):
        return False
    if q[0] != k[0] or q[3] != k[3] or q[1] != k[1] * times:
        return False
    if any(t._array.strides[3] != t._array.itemsize for t in (query, key, value)):
        return False
    return mask is None or (_is_constant(mask) and _broadcasts(mask._array.shape, (*q[:3], k[2])))


def _is_constant(mask: Array) -> bool:
    return not mask.requires_grad and tangent_of(mask) is None


def _broadcasts(mask: Shape, scores: Shape) -> bool:
    return len(mask) in (2, 4) and expandable(mask, scores)


def _check(query: Array, key: Array, value: Array, attn_mask: Array, is_causal: bool) -> None:
    kinds = {t._dtype for t in (query, key, value)}
    if len(kinds) > 1:
        names = ", ".join(
            f"{n}.dtype: {scalar_type(t._dtype)}" for n, t in zip("qkv", (query, key, value), strict=True)
        )
        raise RuntimeError(
            f"Expected query, key, and value to have the same dtype, but got {names}\nConvert them with .to()."
        )
    if any(t._array.ndim < 2 for t in (query, key, value)):
        shapes = ", ".join(str(list(t.shape)) for t in (query, key, value))
        raise RuntimeError(
            "Expected query, key, and value to all be  at least 2 dimensional\n"
            f"Their shapes are {shapes}: the last two are places and features."
        )
    if attn_mask is not None and attn_mask._dtype not in ("bool", "float32", query._dtype):
        raise RuntimeError(
            "Expected attn_mask dtype to be bool or float or to match query dtype, but got attn_mask.dtype: "
            f"{attn_mask.dtype} and query.dtype: {query.dtype} instead.\nConvert it with .to(query.dtype)."
        )
    if is_causal and attn_mask is not None:
        raise RuntimeError(
            "_scaled_dot_product_attention: Explicit attn_mask should not be set when is_causal=True\n"
            "Put the causal mask into attn_mask, or leave one out."
        )


def _queries_of_each(query: tuple[int, ...], key: tuple[int, ...]) -> int:
    """Return how many heads of queries a head of keys serves."""
    if len(query) < 3 or len(key) < 3:
        raise IndexError(
            "Dimension out of range (expected to be in range of [-2, 1], but got -3)\n"
            f"The shapes are {list(query)} and {list(key)}: with enable_gqa the last but two counts the heads."
        )
    heads, shared = query[-3], key[-3]
    if heads % shared if shared else heads:
        raise RuntimeError(
            "Number of heads in key and value must divide the number of heads in query\n"
            f"There are {shared} of keys and {heads} of queries."
        )
    return heads // shared if shared else 1


def _causal(query: Array, key: Array) -> Array:
    """Return a mask of the keys up to each query's place."""
    xp = devices.array_module(query._array)
    square = xp.ones((query._array.shape[-2], key._array.shape[-2]), dtype=bool)
    return _as_numbers(type(query.detach())._wrap(OPERATORS["tril"].run_forward(xp, square, 0)), query)


def _as_numbers(mask: Array, query: Array) -> Array:
    """Return what is added to scores for a mask that says which keys take part."""
    return METHODS["masked_fill"](
        mask.new_zeros(mask.shape, dtype=query.dtype), METHODS["logical_not"](mask), -math.inf
    )


# --- in one node ------------------------------------------------------------------------------------------------------


def _flash(
    xp: Namespace,
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Array = None,
    scale: float | None = None,
) -> tuple[Array, Array]:
    if query.dtype.char not in "fd":
        rest = dropout_p, is_causal, single(attn_mask), scale
        output, logsumexp = _flash(xp, single(query), single(key), single(value), *rest)
        return output.astype(query.dtype), logsumexp
    F = array_operators(xp)
    key, value = (_for_each_head(a, query.shape[1], F) for a in (key, value))
    factor = _factor(query.shape, scale)
    if xp is numpy:
        mask = None if attn_mask is None else attn_mask.astype(query.dtype, copy=False)
        return kernels.attend(query, key, value, mask, is_causal, factor)
    scores = _scores(query, key, attn_mask, is_causal, factor, F)
    most = scores.max(axis=3, keepdims=True)
    most = xp.where(most == -math.inf, 0, most)
    weights = xp.exp(scores - most)
    total = weights.sum(axis=3, keepdims=True)
    total = xp.where(total == 0, 1, total)
    return xp.matmul(weights / total, value), (most + xp.log(total))[..., 0]


def _scores(query: Array, key: Array, mask: Array, causal: bool, factor: float, F: Namespace) -> Array:
    """Return the scores, -inf where a query does not see a key; of arrays or tensors."""
    scores = F.matmul(query, F.transpose(key, 2, 3)) * factor
    if causal:
        scores = F.masked_fill(scores, F.tril(F.ones_like(scores)) == 0, -math.inf)
    return scores if mask is None else scores + mask


def _for_each_head(x: Array, heads: int, F: Namespace) -> Array:
    """Return keys or values with a head for each head of queries, where several share one."""
    batch, shared, keys, features = x.shape
    if shared == heads:
        return x
    shape = (batch, shared, heads // shared, keys, features)
    return F.reshape(F.broadcast_to(F.unsqueeze(x, 2), shape), (batch, heads, keys, features))


def _of_shared_heads(g: Array, shared: int, F: Namespace) -> Array:
    """Return the gradient of keys or values of which each head served several of queries."""
    batch, heads, keys, features = g.shape
    return g if shared == heads else F.sum(F.reshape(g, (batch, shared, heads // shared, keys, features)), 2)


def _flash_joint(
    g: Gradient,
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    logsumexp: Array,
    dropout_p: float,
    is_causal: bool,
    attn_mask: Array,
    scale: float | None,
    F: Namespace,
) -> tuple[Gradient, Gradient, Gradient]:
    """Return the gradients of query, key and value.

    T. Dao and others, "FlashAttention", NeurIPS 2022, appendix B.2, has the formulas.
    """
    heads, factor = key.shape[1], _factor(query.shape, scale)
    key, value = (_for_each_head(x, query.shape[1], F) for x in (key, value))
    if type(g) is numpy.ndarray:
        found = _in_blocks(g, query, key, value, output, logsumexp, attn_mask, is_causal, factor)
    else:
        weights = F.safe_softmax(_scores(query, key, attn_mask, is_causal, factor, F), 3)
        slopes = F.softmax_data(F.matmul(g, F.transpose(value, 2, 3)), weights, 3) * factor
        found = (
            F.matmul(slopes, key),
            F.matmul(F.transpose(slopes, 2, 3), query),
            F.matmul(F.transpose(weights, 2, 3), g),
        )
    return found[0], *(_of_shared_heads(x, heads, F) for x in found[1:])


def _in_blocks(
    g: Array, query: Array, key: Array, value: Array, output: Array, logsumexp: Array, mask: Array, *how: Any
) -> tuple[Array, Array, Array]:
    arrays = g, query, key, value
    if is_half(query):  # the output was rounded
        arrays = tuple(single(a) for a in arrays)
        mask = single(mask)
        output, logsumexp = kernels.attend(*arrays[1:], mask, *how)
    elif mask is not None:
        mask = mask.astype(query.dtype, copy=False)
    return kernels.attend_backward(*arrays, output, logsumexp, mask, *how)


def _flash_samples(make: Make) -> Cases:
    q, k, v = make(1, 2, 3, 2), make(1, 2, 4, 2), make(1, 2, 4, 2)
    mask = make(3, 4).detach()
    return [
        ((q, k, v), {}),
        ((q, k, v, 0.0, True), {}),
        ((q, k, v, 0.0, False), {"attn_mask": mask, "scale": 0.3}),
        ((make(2, 2, 2, 3), make(2, 1, 2, 3), make(2, 1, 2, 3)), {"scale": -0.5}),
    ]


def _flash_reference(
    query: Array,
    key: Array,
    value: Array,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    attn_mask: Array = None,
    scale: float | None = None,
) -> Array:
    times = query.shape[1] // key.shape[1]
    key, value = (numpy.repeat(a, times, axis=1) for a in (key, value))
    scores = numpy.einsum("bhle,bhse->bhls", query, key) * (query.shape[3] ** -0.5 if scale is None else scale)
    if is_causal:
        scores[..., numpy.tri(*scores.shape[2:]) == 0] = -math.inf
    if attn_mask is not None:
        scores = scores + attn_mask
    most = scores.max(3, keepdims=True)
    weights = numpy.exp(scores - most)
    total = weights.sum(3, keepdims=True)
    return numpy.einsum("bhls,bhse->bhle", weights / total, value)


def _flash_extremes(make: Make) -> Cases:
    """Return queries of zeros, denormal and large numbers and NaN, equal keys, and keys that are seen by none."""
    query = make.of([0.0, -0.0, 1e-310, -1e-310, 1e4, -3e4, math.nan, 1.0]).reshape(1, 1, 4, 2)
    key = make.of([1.0, 0.5, 1.0, 0.5, -0.0, 1e-310]).reshape(1, 1, 3, 2)
    value = make.of([0.0, -1e-310, 1e30, -1e30, 3.0, -2.0]).reshape(1, 1, 3, 2)
    unseen = make.of([0.0, -math.inf, -1e4]).reshape(1, 3).detach()
    return [
        ((query, key, value), {}),
        ((query, key, value, 0.0, True), {}),
        ((query, key, value), {"attn_mask": unseen}),
    ]


operator(
    "scaled_dot_product_flash_attention_for_cpu(Tensor query, Tensor key, Tensor value, float dropout_p=0.0, "
    "bool is_causal=False, *, Tensor? attn_mask=None, float? scale=None)",
    _flash,
    outputs=("output",),
    aux=("logsumexp",),
    method=False,
    public_name=False,
    joint=_flash_joint,
    joint_for=("query", "key", "value"),
    doc="Return attended values; the logarithms of the sums of the scores' exponentials are saved.",
    samples=_flash_samples,
    reference=_flash_reference,
    extremes=_flash_extremes,
    supports="f",
)


# --- in several nodes -------------------------------------------------------------------------------------------------


def _safe_softmax(xp: Namespace, self: Array, dim: int) -> Array:
    unseen = (self == -math.inf).all(axis=dim, keepdims=True)
    return xp.where(unseen, 0, OPERATORS["softmax.int"].run_forward(xp, self, dim)).astype(self.dtype, copy=False)


def _safe_softmax_reference(self: Array, dim: int) -> Array:
    powers = numpy.exp(self - self.max(dim, keepdims=True))
    shares = powers / powers.sum(dim, keepdims=True)
    return numpy.where((self == -math.inf).all(dim, keepdims=True), 0, shares)


operator(
    "safe_softmax(Tensor self, int dim)",
    _safe_softmax,
    method=False,
    public_name=False,
    derivatives={"self": lambda g, result, dim, F: F.softmax_data(g, result, dim)},
    doc="Return the softmax along a dimension; 0 where there are no finite numbers, but all are -inf.",
    samples=lambda make: [((make(2, 3), 1), {}), ((make(2, 3, 2), 0), {})],
    reference=_safe_softmax_reference,
    extremes=rows(-1),
    supports="f",
)
