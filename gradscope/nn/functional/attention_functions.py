"""Multi-head attention as a function."""

from __future__ import annotations

import math
from typing import Any

from ...runtime.memory.dtype import FLOATING
from ...runtime.ops.families import METHODS, OPERATORS
from ...runtime.ops.linalg.matmul import linear
from ...runtime.ops.nn.attention import scaled_dot_product_attention
from ...runtime.ops.nn.normalization import dropout
from ...runtime.tensor.creation import zeros, zeros_like
from ...runtime.tensor.tensor import Size
from ...runtime.user_warnings import warn

__all__ = ["canonical_mask", "multi_head_attention_forward"]


def multi_head_attention_forward(
    query: Any,
    key: Any,
    value: Any,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Any,
    in_proj_bias: Any,
    bias_k: Any,
    bias_v: Any,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Any,
    out_proj_bias: Any,
    training: bool = True,
    key_padding_mask: Any = None,
    need_weights: bool = True,
    attn_mask: Any = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Any = None,
    k_proj_weight: Any = None,
    v_proj_weight: Any = None,
    static_k: Any = None,
    static_v: Any = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Any, Any]:
    """Return attention of several heads, and its weights.

    Parameters
    ----------
    query : Tensor
        Of shape (L, N, E), or (L, E) without a batch.
    key, value : Tensor
        Of shape (S, N, features), or (S, features).
    embed_dim_to_check : int
        E.
    num_heads : int
        A divisor of E.
    in_proj_weight, in_proj_bias : Tensor or None
        The projections of query, key and value, one below the other.
    bias_k, bias_v : Tensor or None
        One more key and value, of shape (1, 1, E).
    add_zero_attn : bool
        One more key and value, of zeros.
    dropout_p : float
        Probability with which, in training, a weight is put to zero.
    out_proj_weight, out_proj_bias : Tensor
        The projection of the output.
    key_padding_mask : Tensor, optional
        Of shape (N, S): True where a key takes no part, or numbers that are added to the products.
    need_weights : bool
        Return the weights, and not None.
    attn_mask : Tensor, optional
        Of shape (L, S) or (N * num_heads, L, S), likewise.
    use_separate_proj_weight : bool
        Project with `q_proj_weight`, `k_proj_weight` and `v_proj_weight`.
    static_k, static_v : Tensor, optional
        Keys and values of the heads instead of the projected ones, of shape (N * num_heads, S, E / num_heads).
    average_attn_weights : bool
        Return the mean of the heads' weights.
    is_causal : bool
        Says that `attn_mask` is the causal mask.

    Returns
    -------
    Tensor, Tensor or None
        Of shape (L, N, E), and (N, L, S) or (N, num_heads, L, S).

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    See Also
    --------
    gradscope.nn.MultiheadAttention : holds the parameters, and calls this.
    scaled_dot_product_attention : one head, without projections.

    Examples
    --------
    >>> import gradscope as gs
    >>> heads, x = gs.nn.MultiheadAttention(4, 2), gs.ones(3, 1, 4)
    >>> output, weights = gs.nn.functional.multi_head_attention_forward(
    ...     x,
    ...     x,
    ...     x,
    ...     4,
    ...     2,
    ...     heads.in_proj_weight,
    ...     heads.in_proj_bias,
    ...     None,
    ...     None,
    ...     False,
    ...     0.0,
    ...     heads.out_proj.weight,
    ...     heads.out_proj.bias,
    ... )
    >>> output.shape, weights.shape, gs.allclose(output, heads(x, x, x)[0])
    (gradscope.Size([3, 1, 4]), gradscope.Size([1, 3, 3]), True)
    """
    batched = _is_batched(query, key, value, key_padding_mask, attn_mask, num_heads)
    if not batched:
        query, key, value = _with_batch(query, key, value)
        key_padding_mask = None if key_padding_mask is None else key_padding_mask.unsqueeze(0)
    length, batch, width = query.shape
    mask, padding, is_causal = _masks(attn_mask, key_padding_mask, query.dtype, is_causal, need_weights)
    _check_widths(key, value, width, embed_dim_to_check, num_heads, use_separate_proj_weight)
    if use_separate_proj_weight:
        weights = (q_proj_weight, k_proj_weight, v_proj_weight)
        q, k, v = _project_separately((query, key, value), weights, in_proj_bias)
    else:
        q, k, v = _project(query, key, value, in_proj_weight, in_proj_bias)
    mask = _fitting_mask(mask, length, key.shape[0], batch * num_heads)
    if _both(bias_k, bias_v):
        _refuse_static(static_k, static_v)
        k, v = (_joined(t, b.expand(1, batch, width), 0) for t, b in ((k, bias_k), (v, bias_v)))
        mask, padding = _one_more_key(mask), _one_more_key(padding)
    heads, size = batch * num_heads, width // num_heads
    q = _heads(q, heads, size)
    k = _heads(k, heads, size) if static_k is None else _fitting_static("static_k", static_k, heads, size)
    v = _heads(v, heads, size) if static_v is None else _fitting_static("static_v", static_v, heads, size)
    if add_zero_attn:
        zero = zeros(heads, 1, size, dtype=k.dtype, device=k.device)
        k, v = _joined(k, zero, 1), _joined(v, zero, 1)
        mask, padding = _one_more_key(mask), _one_more_key(padding)
    mask = _merged(mask, padding, batch, num_heads, k.shape[1])
    p = dropout_p if training else 0.0
    output_weights = None
    if need_weights:
        attended, output_weights = _attend_with_weights(q, k, v, mask, p)
        output = attended.transpose(0, 1).reshape(length * batch, width)
    else:
        attended = _attend(q, k, v, mask, p, is_causal, num_heads)
        output = attended.permute(2, 0, 1, 3).reshape(length * batch, width)
    output = linear(output, out_proj_weight, out_proj_bias).view(length, batch, out_proj_weight.shape[0])
    if output_weights is not None:
        output_weights = output_weights.view(batch, num_heads, length, k.shape[1])
        output_weights = output_weights.mean(dim=1) if average_attn_weights else output_weights
    if batched:
        return output, output_weights
    return output.squeeze(1), None if output_weights is None else output_weights.squeeze(0)


# --- masks ------------------------------------------------------------------------------------------------------------


def _masks(mask: Any, padding: Any, dtype: Any, is_causal: bool, need_weights: bool) -> tuple[Any, Any, bool]:
    """Return both masks as numbers, and whether the first is the causal one, which is then None."""
    if is_causal and mask is None:
        raise RuntimeError(
            "Need attn_mask if specifying the is_causal hint. You may use the Transformer module method "
            "`generate_square_subsequent_mask` to create this mask."
        )
    padding = canonical_mask(padding, "key_padding_mask", dtype, mask, "attn_mask")
    if is_causal and padding is None and not need_weights:
        return None, None, True
    return canonical_mask(mask, "attn_mask", dtype), padding, False


def canonical_mask(mask: Any, name: str, dtype: Any, other: Any = None, other_name: str = "") -> Any:
    """Return a mask as numbers to add: a bool mask hides what is True. It should have the dtype of `other`.

    Raises
    ------
    AssertionError
        If the mask holds integers.
    """
    if mask is None:
        return None
    kind = mask._dtype.kind
    if kind not in f"b{FLOATING}":
        raise AssertionError(f"only bool and floating types of {name} are supported\nIt is of {mask.dtype}.")
    if other is not None and other.dtype is not mask.dtype:
        warn(f"Support for mismatched {name} and {other_name} is deprecated. Use same type for both instead.")
    if kind in FLOATING:
        return mask
    return METHODS["masked_fill_"](zeros_like(mask, dtype=dtype), mask, -math.inf)


def _one_more_key(mask: Any) -> Any:
    return None if mask is None else OPERATORS["constant_pad_nd"].function(mask, (0, 1), 0)


def _fitting_mask(mask: Any, length: int, keys: int, heads: int) -> Any:
    """Return a mask with a dimension for the heads."""
    if mask is None:
        return None
    fitting = (length, keys) if mask.ndim == 2 else (heads, length, keys)
    if tuple(mask.shape) != fitting:
        raise RuntimeError(f"The shape of the {mask.ndim}D attn_mask is {mask.shape}, but should be {fitting}.")
    return mask.unsqueeze(0) if mask.ndim == 2 else mask


def _merged(mask: Any, padding: Any, batch: int, num_heads: int, keys: int) -> Any:
    """Return both masks in one."""
    if padding is None:
        return mask
    for dim, size in enumerate((batch, keys)):
        if padding.shape[dim] != size:
            raise AssertionError(
                f"Expected key_padded_mask.shape[{dim}] to be {size}, but got {padding.shape[dim]}\n"
                "Its shape is (batch, keys)."
            )
    spread = padding.view(batch, 1, 1, keys).expand(-1, num_heads, -1, -1).reshape(batch * num_heads, 1, keys)
    return spread if mask is None else mask + spread


# --- checks -----------------------------------------------------------------------------------------------------------


def _is_batched(query: Any, key: Any, value: Any, padding: Any, mask: Any, num_heads: int) -> bool:
    """Return whether there is a dimension for the batch; raise if the arguments do not agree on that."""
    rank = query.ndim
    if rank not in (2, 3):
        raise AssertionError(f"query should be unbatched 2D or batched 3D tensor but received {rank}-D query tensor")
    start = f"For {'' if rank == 3 else 'un'}batched ({rank}-D) `query`, expected"
    if key.ndim != rank or value.ndim != rank:
        raise AssertionError(
            f"{start} `key` and `value` to be {rank}-D but found {key.ndim}-D and {value.ndim}-D tensors respectively"
        )
    if padding is not None and padding.ndim != rank - 1:
        raise AssertionError(
            f"{start} `key_padding_mask` to be `None` or {rank - 1}-D but found {padding.ndim}-D tensor instead"
        )
    if mask is not None and mask.ndim not in (2, 3):
        raise AssertionError(f"{start} `attn_mask` to be `None`, 2-D or 3-D but found {mask.ndim}-D tensor instead")
    if rank == 2 and mask is not None and mask.ndim == 3:
        expected = (num_heads, query.shape[0], key.shape[0])
        if tuple(mask.shape) != expected:
            raise AssertionError(f"Expected `attn_mask` shape to be {expected} but got {mask.shape}")
    return rank == 3


def _check_widths(key: Any, value: Any, width: int, expected: int, num_heads: int, separate: bool) -> None:
    if width != expected:
        raise AssertionError(
            f"was expecting embedding dimension of {expected}, but got {width}\n"
            "The last dimension of the query is its features."
        )
    if width % num_heads:
        raise AssertionError(f"embed_dim {width} not divisible by num_heads {num_heads}")
    if separate and key.shape[:2] != value.shape[:2]:
        raise AssertionError(
            f"key's sequence and batch dims {Size(key.shape[:2])} do not match value's {Size(value.shape[:2])}"
        )
    if not separate and key.shape != value.shape:
        raise AssertionError(
            f"key shape {key.shape} does not match value shape {value.shape}\n"
            "Keys and values of different features need kdim and vdim, each a projection of its own."
        )


def _both(bias_k: Any, bias_v: Any) -> bool:
    if (bias_k is None) != (bias_v is None):
        given, missing = ("bias_k", "bias_v") if bias_v is None else ("bias_v", "bias_k")
        raise AssertionError(f"{given} is set but {missing} is None")
    return bias_k is not None


def _refuse_static(static_k: Any, static_v: Any) -> None:
    for name, given in (("key", static_k), ("value", static_v)):
        if given is not None:
            raise AssertionError(f"bias cannot be added to static {name}.")


def _fitting_static(name: str, given: Any, heads: int, size: int) -> Any:
    for dim, wanted in ((0, heads), (2, size)):
        if given.shape[dim] != wanted:
            raise AssertionError(f"expecting {name}.size({dim}) of {wanted}, but got {given.shape[dim]}")
    return given


# --- projections and heads --------------------------------------------------------------------------------------------


def _with_batch(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Give each a batch of one; what was the same tensor stays so."""
    q = query.unsqueeze(1)
    k = q if key is query else key.unsqueeze(1)
    return q, k, k if value is key else value.unsqueeze(1)


def _project(query: Any, key: Any, value: Any, weight: Any, bias: Any) -> Any:
    """Project with one weight; tensors that are the same share one product."""
    if weight is None:
        raise AssertionError("use_separate_proj_weight is False but in_proj_weight is None")
    if query is key and key is value:
        return _parted(linear(query, weight, bias), 3)
    width = query.shape[-1]
    if key is value:
        sizes = [width, 2 * width]
        own, shared = weight.split(sizes)
        own_bias, shared_bias = (None, None) if bias is None else bias.split(sizes)
        return linear(query, own, own_bias), *_parted(linear(key, shared, shared_bias), 2)
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    return [linear(x, w, b) for x, w, b in zip((query, key, value), weight.chunk(3), biases, strict=True)]


def _parted(projected: Any, count: int) -> Any:
    """Return `count` projections that lie side by side, each in an order of its own that view() can part into heads.

    Each is copied by itself: their gradients are then put side by side in one go.
    """
    shape = projected.shape
    sides = METHODS["unbind"](projected.view(*shape[:-1], count, shape[-1] // count), -2)
    return [side.contiguous() for side in sides]


def _project_separately(inputs: tuple[Any, ...], weights: tuple[Any, ...], bias: Any) -> list[Any]:
    width = inputs[0].shape[-1]
    biases = (None,) * 3 if bias is None else bias.chunk(3)
    for letter, name, x, w, b in zip("qkv", ("query", "key", "value"), inputs, weights, biases, strict=True):
        if w is None:
            raise AssertionError(f"use_separate_proj_weight is True but {letter}_proj_weight is None")
        if tuple(w.shape) != (width, x.shape[-1]):
            raise AssertionError(f"expecting {name} weights shape of {(width, x.shape[-1])}, but got {w.shape}")
        if b is not None and tuple(b.shape) != (width,):
            raise AssertionError(f"expecting {name} bias shape of {(width,)}, but got {b.shape}")
    return [linear(x, w, b) for x, w, b in zip(inputs, weights, biases, strict=True)]


def _joined(tensor: Any, more: Any, dim: int) -> Any:
    return OPERATORS["cat"].function([tensor, more], dim)


def _heads(projected: Any, heads: int, size: int) -> Any:
    return projected.view(projected.shape[0], heads, size).transpose(0, 1)


# --- attention --------------------------------------------------------------------------------------------------------


def _attend_with_weights(q: Any, k: Any, v: Any, mask: Any, p: float) -> tuple[Any, Any]:
    scaled, keys = q * math.sqrt(1 / q.shape[-1]), k.transpose(-2, -1)
    bmm = OPERATORS["bmm"].function
    scores = bmm(scaled, keys) if mask is None else OPERATORS["baddbmm"].function(mask, scaled, keys)
    weights = dropout(scores.softmax(-1), p)
    return bmm(weights, v), weights


def _attend(q: Any, k: Any, v: Any, mask: Any, p: float, is_causal: bool, heads: int) -> Any:
    batch = q.shape[0] // heads
    if mask is not None and mask.shape[0] == 1:
        mask = mask.unsqueeze(0)
    elif mask is not None:
        mask = mask.view(batch, heads, -1, k.shape[1])
    q, k, v = (t.view(batch, heads, *t.shape[1:]) for t in (q, k, v))
    return scaled_dot_product_attention(q, k, v, mask, p, is_causal)
