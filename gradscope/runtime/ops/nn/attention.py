"""Scaled dot-product attention, made of matrix products and a softmax."""

from __future__ import annotations

import math
from typing import Any

from ... import autocast, state
from ...memory import device as devices
from ...memory.dtype import scalar_type
from ..declaration.registry import METHODS, OPERATORS
from ..execution.bare_functions import HALVES
from .normalization import dropout


def scaled_dot_product_attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
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
    if enable_gqa:
        times = _queries_of_each(query._array.shape, key._array.shape)
        key, value = (METHODS["repeat_interleave"](t, times, -3) for t in (key, value))
    mask = _causal(query, key) if is_causal else attn_mask
    if query._dtype.char not in HALVES:
        return _attended(query, key, value, mask, dropout_p, scale)
    # Rounded once, as in PyTorch, not at each step.
    mask = mask if mask is None or mask._dtype.kind == "b" else mask.float()
    return _attended(query.float(), key.float(), value.float(), mask, dropout_p, scale).to(query.dtype)


def _attended(query: Any, key: Any, value: Any, mask: Any, dropout_p: float, scale: float | None) -> Any:
    factor = 1 / math.sqrt(query._array.shape[-1]) if scale is None else scale
    scores = METHODS["matmul"](query * factor, METHODS["transpose"](key, -2, -1))
    if mask is not None and mask._dtype.kind == "b":
        scores = METHODS["masked_fill"](scores, METHODS["logical_not"](mask), -math.inf)
    elif mask is not None:
        scores = scores + mask.to(scores.dtype)
    weights = METHODS["softmax"](scores, -1)
    if mask is not None:
        # A query that sees no key: its weights are 0 / 0, and stand for nothing.
        unseen = (scores.detach() == -math.inf).all(-1, True)
        weights = METHODS["masked_fill"](weights, unseen, 0.0)
    return METHODS["matmul"](dropout(weights, dropout_p) if dropout_p else weights, value)


def _check(query: Any, key: Any, value: Any, attn_mask: Any, is_causal: bool) -> None:
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


def _causal(query: Any, key: Any) -> Any:
    """Return a mask of the keys up to each query's place."""
    xp = devices.array_module(query._array)
    square = xp.ones((query._array.shape[-2], key._array.shape[-2]), dtype=bool)
    return type(query.detach())._wrap(OPERATORS["tril"].run_forward(xp, square, 0))
