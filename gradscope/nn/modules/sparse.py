"""Embeddings as modules."""

from __future__ import annotations

from typing import Any

from ...runtime.modes import no_grad
from ...runtime.tensor.creation import empty
from ...runtime.tensor.tensor import Tensor
from .. import functional as F
from .. import init
from ..parameter import Parameter
from .module import Module

__all__ = ["Embedding", "EmbeddingBag"]


class _Table(Module):
    """Base of modules that look up the rows of a table, `weight`."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None

    def _make_rows(self, given: Tensor | None, requires_grad: bool, device: Any, dtype: Any) -> None:
        """Take the given rows, or draw them."""
        shape = (self.num_embeddings, self.embedding_dim)
        if given is not None and tuple(given.shape) != shape:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        rows = empty(*shape, device=device, dtype=dtype) if given is None else given
        self.weight = Parameter(rows, requires_grad=requires_grad)
        if given is None:
            self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw the rows anew."""
        init.normal_(self.weight)
        if self.padding_idx is not None:
            with no_grad():
                self.weight[self.padding_idx].fill_(0)


def _shape_of(embeddings: Tensor) -> tuple[int, int]:
    if embeddings.ndim != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")
    rows, width = embeddings.shape
    return rows, width


class Embedding(_Table):
    """A table of rows, looked up by index.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Number and width of the rows.
    padding_idx : int, optional
        A row of zeros that gets no gradient.
    max_norm : float, optional
        Scale rows that are looked up down to this `norm_type`-norm, in place.
    scale_grad_by_freq : bool
        Divide each row's gradient by how often it was looked up.
    sparse : bool
        Taken for PyTorch's sake: gradients are dense.

    See Also
    --------
    EmbeddingBag, nn.functional.embedding

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.Embedding(10, 3)(gs.tensor([[1, 2], [4, 9]])).shape
    gradscope.Size([2, 2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Tensor | None = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse
        self._make_rows(_weight, not _freeze, device, dtype)

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Embedding:
        """Return an embedding of given rows, which do not learn if `freeze`."""
        rows, width = _shape_of(embeddings)
        settings = (padding_idx, max_norm, norm_type, scale_grad_by_freq, sparse)
        return cls(rows, width, *settings, _weight=embeddings, _freeze=freeze)

    def forward(self, input: Tensor) -> Tensor:
        """Return the rows that the indices name."""
        return F.embedding(input, self.weight, self.padding_idx, self.max_norm, self.norm_type, self.scale_grad_by_freq)

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        return f"{text}, sparse=True" if self.sparse else text


class EmbeddingBag(_Table):
    """Sums, means or maxima of bags of rows of a table, see :func:`~.functional.embedding_bag`.

    Parameters
    ----------
    num_embeddings, embedding_dim : int
        Number and width of the rows.
    max_norm : float, optional
        Scale rows that are looked up down to this `norm_type`-norm, in place.
    scale_grad_by_freq : bool
        Divide each row's gradient by how often it was looked up; not for maxima.
    mode : {"mean", "sum", "max"}
    sparse : bool
        Taken for PyTorch's sake: gradients are dense.
    include_last_offset : bool
        The offsets end with where the last bag ends.
    padding_idx : int, optional
        A row of zeros that does not count.

    See Also
    --------
    Embedding, nn.functional.embedding_bag

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.EmbeddingBag(10, 3)(gs.tensor([[1, 2], [4, 9]])).shape
    gradscope.Size([2, 3])
    """

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Tensor | None = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        self._make_rows(_weight, True, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Tensor,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> EmbeddingBag:
        """Return bags of given rows, which do not learn if `freeze`."""
        rows, width = _shape_of(embeddings)
        settings = (max_norm, norm_type, scale_grad_by_freq, mode, sparse, embeddings, include_last_offset, padding_idx)
        result = cls(rows, width, *settings)
        result.weight.requires_grad = not freeze
        return result

    def forward(self, input: Tensor, offsets: Tensor | None = None, per_sample_weights: Tensor | None = None) -> Tensor:
        """Return one row for each bag of indices."""
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        """Return the settings, as the repr shows them."""
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.max_norm is not None:
            text += f", max_norm={self.max_norm}"
        if self.norm_type != 2:
            text += f", norm_type={self.norm_type}"
        if self.scale_grad_by_freq:
            text += f", scale_grad_by_freq={self.scale_grad_by_freq}"
        text += f", mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"
