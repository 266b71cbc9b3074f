"""Multi-head attention as a module."""

from __future__ import annotations

from typing import Any

from ...runtime.tensor.creation import empty
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .linear import Linear
from .module import Module

__all__ = ["MultiheadAttention"]


class NonDynamicallyQuantizableLinear(Linear):
    """The linear layer after attention, which PyTorch shows under this name."""


class MultiheadAttention(Module):
    """Attention of several heads, each over a projection of queries, keys and values.

    Parameters
    ----------
    embed_dim : int
        Features of the queries and of the output.
    num_heads : int
        A divisor of `embed_dim`.
    dropout : float
        Probability with which, in training, a weight is put to zero.
    bias : bool
        Learn biases of the projections.
    add_bias_kv : bool
        Learn one more key and value.
    add_zero_attn : bool
        Add one more key and value, of zeros.
    kdim, vdim : int, optional
        Features of the keys and values; `embed_dim` unless given.
    batch_first : bool
        Tensors are (batch, length, features) instead of (length, batch, features).

    References
    ----------
    A. Vaswani et al., "Attention is all you need", NeurIPS 2017.

    See Also
    --------
    TransformerEncoderLayer, nn.functional.scaled_dot_product_attention

    Examples
    --------
    >>> import gradscope as gs
    >>> attention = gs.nn.MultiheadAttention(8, 2, batch_first=True)
    >>> x = gs.zeros(3, 5, 8)
    >>> output, weights = attention(x, x, x)
    >>> output.shape, weights.shape
    (gradscope.Size([3, 5, 8]), gradscope.Size([3, 5, 5]))
    """

    def __init__(
        self,
        embed_dim: int,
        num_heads: int,
        dropout: float = 0.0,
        bias: bool = True,
        add_bias_kv: bool = False,
        add_zero_attn: bool = False,
        kdim: int | None = None,
        vdim: int | None = None,
        batch_first: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        if embed_dim <= 0 or num_heads <= 0:
            raise ValueError(
                f"embed_dim and num_heads must be greater than 0, got embed_dim={embed_dim} and num_heads={num_heads} "
                "instead"
            )
        super().__init__()
        self.embed_dim = embed_dim
        self.kdim = embed_dim if kdim is None else kdim
        self.vdim = embed_dim if vdim is None else vdim
        self._qkv_same_embed_dim = self.kdim == embed_dim and self.vdim == embed_dim
        self.num_heads = num_heads
        self.dropout = dropout
        self.batch_first = batch_first
        self.head_dim = embed_dim // num_heads
        if self.head_dim * num_heads != embed_dim:
            raise AssertionError("embed_dim must be divisible by num_heads")
        self.add_zero_attn = add_zero_attn
        made = {"device": device, "dtype": dtype}
        for name, shape in self._shapes(bias, add_bias_kv).items():
            self.register_parameter(name, None if shape is None else Parameter(empty(*shape, **made)))
        self.out_proj = NonDynamicallyQuantizableLinear(embed_dim, embed_dim, bias=bias, **made)
        self._reset_parameters()

    def _shapes(self, bias: bool, add_bias_kv: bool) -> dict[str, tuple[int, ...] | None]:
        """Return the shapes of the parameters, None for those that are not there."""
        width, shared = self.embed_dim, self._qkv_same_embed_dim
        return {
            "in_proj_weight": (3 * width, width) if shared else None,
            "q_proj_weight": None if shared else (width, width),
            "k_proj_weight": None if shared else (width, self.kdim),
            "v_proj_weight": None if shared else (width, self.vdim),
            "in_proj_bias": (3 * width,) if bias else None,
            "bias_k": (1, 1, width) if add_bias_kv else None,
            "bias_v": (1, 1, width) if add_bias_kv else None,
        }

    def _reset_parameters(self) -> None:
        for name in ("in_proj_weight", "q_proj_weight", "k_proj_weight", "v_proj_weight"):
            if getattr(self, name) is not None:
                init.xavier_uniform_(getattr(self, name))
        if self.in_proj_bias is not None:
            init.constant_(self.in_proj_bias, 0.0)
            init.constant_(self.out_proj.bias, 0.0)
        for extra in (self.bias_k, self.bias_v):
            if extra is not None:
                init.xavier_normal_(extra)

    def forward(
        self,
        query: Any,
        key: Any,
        value: Any,
        key_padding_mask: Any = None,
        need_weights: bool = True,
        attn_mask: Any = None,
        average_attn_weights: bool = True,
        is_causal: bool = False,
    ) -> tuple[Any, Any]:
        """Return the output, and the weights or None.

        :func:`gradscope.nn.functional.multi_head_attention_forward` says what the arguments are.
        """
        swap = self.batch_first and query.ndim == 3
        if swap:
            query, key, value = _transposed(query, key, value)
        output, weights = F.multi_head_attention_forward(
            query,
            key,
            value,
            self.embed_dim,
            self.num_heads,
            self.in_proj_weight,
            self.in_proj_bias,
            self.bias_k,
            self.bias_v,
            self.add_zero_attn,
            self.dropout,
            self.out_proj.weight,
            self.out_proj.bias,
            training=self.training,
            key_padding_mask=key_padding_mask,
            need_weights=need_weights,
            attn_mask=attn_mask,
            use_separate_proj_weight=not self._qkv_same_embed_dim,
            q_proj_weight=self.q_proj_weight,
            k_proj_weight=self.k_proj_weight,
            v_proj_weight=self.v_proj_weight,
            average_attn_weights=average_attn_weights,
            is_causal=is_causal,
        )
        return (output.transpose(1, 0) if swap else output), weights


def _transposed(query: Any, key: Any, value: Any) -> tuple[Any, Any, Any]:
    """Exchange batch and length; what was the same tensor stays so, and is projected once."""
    q = query.transpose(1, 0)
    k = q if key is query else key.transpose(1, 0)
    return q, k, k if value is key else value.transpose(1, 0)
