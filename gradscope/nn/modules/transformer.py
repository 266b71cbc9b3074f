"""The Transformer: encoder and decoder, and their layers.

References
----------
A. Vaswani et al., "Attention is all you need", NeurIPS 2017.
R. Xiong et al., "On layer normalization in the Transformer architecture", ICML 2020 (`norm_first`).
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable
from typing import Any

from ...runtime.ops.families import OPERATORS
from ...runtime.tensor.creation import full
from .. import functional as F
from .. import init
from ..functional.attention_functions import canonical_mask
from .attention import MultiheadAttention
from .container import ModuleList
from .dropout import Dropout
from .linear import Linear
from .module import Module
from .normalization import LayerNorm

__all__ = [
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
]


def _causal_mask(size: int, device: Any, dtype: Any) -> Any:
    """Return a mask of -inf above the diagonal: a place sees those up to its own."""
    return OPERATORS["triu"].function(full((size, size), -math.inf, dtype=dtype, device=device), 1)


def _is_causal(mask: Any, said: bool | None, sequence: Any, batch_first: bool) -> bool:
    """Return whether a mask is the causal one: what was said, or else what it holds."""
    if said is not None or mask is None:
        return bool(said)
    size = sequence.shape[0 if sequence.ndim == 2 or not batch_first else 1]
    return tuple(mask.shape) == (size, size) and bool((mask == _causal_mask(size, mask.device, mask.dtype)).all())


def _activation_of(activation: Any) -> Any:
    if not isinstance(activation, str):
        return activation
    named = {"relu": F.relu, "gelu": F.gelu}
    if activation not in named:
        raise RuntimeError(f"activation should be relu/gelu, not {activation}")
    return named[activation]


def _copies(layer: Module, count: int) -> ModuleList:
    return ModuleList([copy.deepcopy(layer) for _ in range(count)])


class _Layer(Module):
    """Base of the layers of encoder and decoder: attention to themselves, and the feed-forward network."""

    _attentions: tuple[str, ...] = ()

    def __init__(
        self,
        d_model: int,
        nhead: int,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made = {"bias": bias, "device": device, "dtype": dtype}
        for name in self._attentions:
            setattr(self, name, MultiheadAttention(d_model, nhead, dropout, batch_first=batch_first, **made))
        self.linear1 = Linear(d_model, dim_feedforward, **made)
        self.dropout = Dropout(dropout)
        self.linear2 = Linear(dim_feedforward, d_model, **made)
        self.norm_first = norm_first
        blocks = range(1, len(self._attentions) + 2)
        for block in blocks:
            setattr(self, f"norm{block}", LayerNorm(d_model, layer_norm_eps, **made))
        for block in blocks:
            setattr(self, f"dropout{block}", Dropout(dropout))
        self.activation = _activation_of(activation)

    def _around(self, block: Callable[..., Any], norm: Module, x: Any, *arguments: Any) -> Any:
        """Add what a block makes of `x`, normalised before or afterwards."""
        if self.norm_first:
            return x + block(norm(x), *arguments)
        return norm(x + block(x, *arguments))

    def _sa_block(self, x: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        attended, _ = self.self_attn(
            x,
            x,
            x,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout1(attended)

    def _feed_forward(self, x: Any) -> Any:
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_Layer):
    """Attention of a sequence to itself, and a feed-forward network, each added to its input and normalised.

    Parameters
    ----------
    d_model : int
        Features of input and output.
    nhead : int
        Heads of the attention.
    dim_feedforward : int
        Features between the two linear layers.
    activation : {"relu", "gelu"} or callable
    batch_first : bool
        Tensors are (batch, length, features) instead of (length, batch, features).
    norm_first : bool
        Normalise before attention and feed-forward network, and not afterwards.
    bias : bool
        Learn biases of linear layers and normalisations.

    See Also
    --------
    TransformerEncoder, MultiheadAttention

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(gs.randn(5, 3, 8)).shape
    gradscope.Size([5, 3, 8])
    """

    _attentions = ("self_attn",)

    def forward(self, src: Any, src_mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool = False) -> Any:
        """Return the encoded sequence.

        Parameters
        ----------
        src_mask : Tensor, optional
            Which places see which, see :func:`gradscope.nn.functional.multi_head_attention_forward`.
        src_key_padding_mask : Tensor, optional
            Which places are padding.
        is_causal : bool
            Says that `src_mask` is the causal mask.
        """
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, src_mask, "src_mask")
        mask = canonical_mask(src_mask, "src_mask", src.dtype)
        x = self._around(self._sa_block, self.norm1, src, mask, padding, is_causal)
        return self._around(self._ff_block, self.norm2, x)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout2(self._feed_forward(x))


class TransformerDecoderLayer(_Layer):
    """As :class:`TransformerEncoderLayer`, with attention to the encoded sequence in between.

    The parameters are those of :class:`TransformerEncoderLayer`.

    See Also
    --------
    TransformerDecoder, MultiheadAttention

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> layer(gs.randn(5, 3, 8), gs.randn(7, 3, 8)).shape
    gradscope.Size([5, 3, 8])
    """

    _attentions = ("self_attn", "multihead_attn")

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool = False,
        memory_is_causal: bool = False,
    ) -> Any:
        """Return the decoded sequence.

        Parameters
        ----------
        memory : Tensor
            What the encoder returned.
        tgt_mask, memory_mask : Tensor, optional
            Which places of `tgt` see which of `tgt` and of `memory`.
        tgt_key_padding_mask, memory_key_padding_mask : Tensor, optional
            Which places are padding.
        tgt_is_causal, memory_is_causal : bool
            Says that the mask is the causal one.
        """
        x = self._around(self._sa_block, self.norm1, tgt, tgt_mask, tgt_key_padding_mask, tgt_is_causal)
        looking = (memory, memory_mask, memory_key_padding_mask, memory_is_causal)
        x = self._around(self._mha_block, self.norm2, x, *looking)
        return self._around(self._ff_block, self.norm3, x)

    def _mha_block(self, x: Any, mem: Any, attn_mask: Any, key_padding_mask: Any, is_causal: bool) -> Any:
        attended, _ = self.multihead_attn(
            x,
            mem,
            mem,
            attn_mask=attn_mask,
            key_padding_mask=key_padding_mask,
            need_weights=False,
            is_causal=is_causal,
        )
        return self.dropout2(attended)

    def _ff_block(self, x: Any) -> Any:
        return self.dropout3(self._feed_forward(x))


class TransformerEncoder(Module):
    """Several copies of an encoder layer, one after the other.

    Parameters
    ----------
    norm : Module, optional
        Applied at the end.
    enable_nested_tensor, mask_check : bool
        Have no effect: all places are computed, those of the padding too, which PyTorch's inference puts to zero.

    See Also
    --------
    TransformerEncoderLayer, TransformerDecoder

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, batch_first=True)
    >>> gs.nn.TransformerEncoder(layer, 2)(gs.randn(3, 5, 8)).shape
    gradscope.Size([3, 5, 8])
    """

    def __init__(
        self,
        encoder_layer: Module,
        num_layers: int,
        norm: Module | None = None,
        enable_nested_tensor: bool = True,
        mask_check: bool = True,
    ) -> None:
        super().__init__()
        self.layers = _copies(encoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm
        self.enable_nested_tensor = enable_nested_tensor
        self.mask_check = mask_check

    def forward(
        self, src: Any, mask: Any = None, src_key_padding_mask: Any = None, is_causal: bool | None = None
    ) -> Any:
        """Return the encoded sequence; whether `mask` is causal is looked up unless `is_causal` says it."""
        padding = canonical_mask(src_key_padding_mask, "src_key_padding_mask", src.dtype, mask, "mask")
        mask = canonical_mask(mask, "mask", src.dtype)
        layers: Any = list(self.layers)
        is_causal = _is_causal(mask, is_causal, src, layers[0].self_attn.batch_first)
        for layer in layers:
            src = layer(src, src_mask=mask, is_causal=is_causal, src_key_padding_mask=padding)
        return src if self.norm is None else self.norm(src)


class TransformerDecoder(Module):
    """Several copies of a decoder layer, one after the other.

    Parameters
    ----------
    norm : Module, optional
        Applied at the end.

    See Also
    --------
    TransformerDecoderLayer, TransformerEncoder

    Examples
    --------
    >>> import gradscope as gs
    >>> layer = gs.nn.TransformerDecoderLayer(8, nhead=2, dim_feedforward=16)
    >>> gs.nn.TransformerDecoder(layer, 2)(gs.randn(5, 3, 8), gs.randn(7, 3, 8)).shape
    gradscope.Size([5, 3, 8])
    """

    def __init__(self, decoder_layer: Module, num_layers: int, norm: Module | None = None) -> None:
        super().__init__()
        self.layers = _copies(decoder_layer, num_layers)
        self.num_layers = num_layers
        self.norm = norm

    def forward(
        self,
        tgt: Any,
        memory: Any,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Return the decoded sequence; the arguments are those of :meth:`TransformerDecoderLayer.forward`."""
        layers: Any = list(self.layers)
        tgt_is_causal = _is_causal(tgt_mask, tgt_is_causal, tgt, layers[0].self_attn.batch_first)
        for layer in layers:
            tgt = layer(
                tgt,
                memory,
                tgt_mask=tgt_mask,
                memory_mask=memory_mask,
                tgt_key_padding_mask=tgt_key_padding_mask,
                memory_key_padding_mask=memory_key_padding_mask,
                tgt_is_causal=tgt_is_causal,
                memory_is_causal=memory_is_causal,
            )
        return tgt if self.norm is None else self.norm(tgt)


class Transformer(Module):
    """Encoder and decoder.

    Parameters
    ----------
    dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first, bias
        As in :class:`TransformerEncoderLayer`.
    custom_encoder, custom_decoder : Module, optional
        Instead of those that would be made.

    See Also
    --------
    TransformerEncoder, TransformerDecoder

    Examples
    --------
    >>> import gradscope as gs
    >>> model = gs.nn.Transformer(d_model=8, nhead=2, num_encoder_layers=1, num_decoder_layers=1, dim_feedforward=16)
    >>> causal = model.generate_square_subsequent_mask(3)
    >>> model(gs.zeros(5, 2, 8), gs.zeros(3, 2, 8), tgt_mask=causal).shape
    gradscope.Size([3, 2, 8])
    """

    def __init__(
        self,
        d_model: int = 512,
        nhead: int = 8,
        num_encoder_layers: int = 6,
        num_decoder_layers: int = 6,
        dim_feedforward: int = 2048,
        dropout: float = 0.1,
        activation: str | Callable[[Any], Any] = F.relu,
        custom_encoder: Any = None,
        custom_decoder: Any = None,
        layer_norm_eps: float = 1e-5,
        batch_first: bool = False,
        norm_first: bool = False,
        bias: bool = True,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        made: dict[str, Any] = {"bias": bias, "device": device, "dtype": dtype}
        settings = (d_model, nhead, dim_feedforward, dropout, activation, layer_norm_eps, batch_first, norm_first)
        if custom_encoder is None:
            layer: Module = TransformerEncoderLayer(*settings, **made)
            custom_encoder = TransformerEncoder(layer, num_encoder_layers, LayerNorm(d_model, layer_norm_eps, **made))
        if custom_decoder is None:
            layer = TransformerDecoderLayer(*settings, **made)
            custom_decoder = TransformerDecoder(layer, num_decoder_layers, LayerNorm(d_model, layer_norm_eps, **made))
        self.encoder = custom_encoder
        self.decoder = custom_decoder
        self._reset_parameters()
        self.d_model = d_model
        self.nhead = nhead
        self.batch_first = batch_first

    def _reset_parameters(self) -> None:
        for parameter in self.parameters():
            if parameter.ndim > 1:
                init.xavier_uniform_(parameter)

    def forward(
        self,
        src: Any,
        tgt: Any,
        src_mask: Any = None,
        tgt_mask: Any = None,
        memory_mask: Any = None,
        src_key_padding_mask: Any = None,
        tgt_key_padding_mask: Any = None,
        memory_key_padding_mask: Any = None,
        src_is_causal: bool | None = None,
        tgt_is_causal: bool | None = None,
        memory_is_causal: bool = False,
    ) -> Any:
        """Encode `src`, and return what `tgt` is decoded to.

        The masks are those of :meth:`TransformerEncoderLayer.forward` and :meth:`TransformerDecoderLayer.forward`.
        """
        batch = 0 if self.batch_first else 1
        if src.ndim == 3 and src.shape[batch] != tgt.shape[batch]:
            raise RuntimeError("the batch number of src and tgt must be equal")
        if src.shape[-1] != self.d_model or tgt.shape[-1] != self.d_model:
            raise RuntimeError("the feature number of src and tgt must be equal to d_model")
        memory = self.encoder(src, mask=src_mask, src_key_padding_mask=src_key_padding_mask, is_causal=src_is_causal)
        return self.decoder(
            tgt,
            memory,
            tgt_mask=tgt_mask,
            memory_mask=memory_mask,
            tgt_key_padding_mask=tgt_key_padding_mask,
            memory_key_padding_mask=memory_key_padding_mask,
            tgt_is_causal=tgt_is_causal,
            memory_is_causal=memory_is_causal,
        )

    @staticmethod
    def generate_square_subsequent_mask(sz: int, device: Any = None, dtype: Any = None) -> Any:
        """Return the causal mask of a sequence: -inf above the diagonal, else 0."""
        return _causal_mask(sz, device, dtype)
