"""Scaled dot-product attention and its derivative, a block of scores at a time.

The scores of all queries and keys are never in memory together: those of a block of heads and queries stay in the
cache, and backward computes them anew, as in T. Dao and others, "FlashAttention: fast and memory-efficient exact
attention with IO-awareness", NeurIPS 2022. Products are BLAS's, of heads as they lie in memory; a causal block leaves
out the keys that come after all of its queries.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy

from . import forms, loading
from .row_sums import row_maxima, sums

if TYPE_CHECKING:
    from ..ops.declaration.annotations import Array

__all__ = ["attend", "attend_backward"]

_SCORES = 1 << 16  # scores of a block
_CAUSAL_QUERIES = 128  # queries of a block, which are few so that it can leave out keys

Block = tuple[tuple[slice, slice, slice], tuple[slice, slice, slice]]


def attend(
    query: Array, key: Array, value: Array, mask: Array | None, causal: bool, scale: float
) -> tuple[Array, Array]:
    """Return attended values, and the logarithms of the sums of the scores' exponentials.

    Parameters
    ----------
    query, key, value : ndarray
        Of shapes (B, H, L, E), (B, H, S, E) and (B, H, S, V), float32 or float64.
    mask : ndarray, optional
        Numbers of the same dtype that are added to the scores, of a shape that broadcasts to (B, H, L, S).
    causal : bool
        A query sees the keys up to its own place.
    scale : float
        Factor of the products.

    Returns
    -------
    output : ndarray
        Of shape (B, H, L, V); its dimensions lie in memory in the order of those of `query`.
    logsumexp : ndarray
        Of shape (B, H, L). A query that sees no key has 0 here, and its output is 0.

    Examples
    --------
    >>> q = numpy.zeros((1, 1, 2, 3), "f")
    >>> attend(q, q, numpy.array([[[[1.0], [3.0]]]], "f"), None, True, 1.0)[0].ravel().tolist()
    [1.0, 2.0]
    """
    query, key, value = (_for_blas(a) for a in (query, key, value))
    scores = _Scores(query, key, mask, causal, scale)
    output = numpy.empty_like(query, shape=(*query.shape[:3], value.shape[3]))
    logsumexp = numpy.empty(query.shape[:3], query.dtype)
    for queries, keys in scores.blocks():
        weights = scores.products(queries, keys)
        logsumexp[queries] = scores.to_weights(weights, queries)
        numpy.matmul(weights, value[keys], out=output[queries])
    return output, logsumexp


def attend_backward(
    g: Array,
    query: Array,
    key: Array,
    value: Array,
    output: Array,
    logsumexp: Array,
    mask: Array | None,
    causal: bool,
    scale: float,
) -> tuple[Array, Array, Array]:
    """Return the gradients of query, key and value; `g` is that of the output.

    Arrays are those of :func:`attend`, and what it has returned.
    """
    g, query, key, value = (_for_blas(a) for a in (g, query, key, value))
    scores = _Scores(query, key, mask, causal, scale)
    slopes = numpy.vecdot(g, output)
    g_query, g_key, g_value = (numpy.empty_like(a) for a in (query, key, value))
    for queries, keys in scores.blocks():
        weights = scores.products(queries, keys)
        g_scores = scores.room(1, weights.shape)
        numpy.matmul(g[queries], value[keys].swapaxes(2, 3), out=g_scores)
        scores.to_gradients(weights, g_scores, logsumexp[queries], slopes[queries], queries)
        numpy.matmul(g_scores, key[keys], out=g_query[queries])
        last = queries[2].stop == query.shape[2]
        _accumulate(g_key, keys, g_scores, query[queries], last)
        _accumulate(g_value, keys, weights, g[queries], last)
    return g_query, g_key, g_value


def _accumulate(total: Array, keys: Any, weights: Array, rows: Array, first: bool) -> None:
    """Add to the gradients of keys what a block of queries gives; the first block of a head is the one of all keys."""
    weights = weights.swapaxes(2, 3)
    if not first:
        total[keys] += numpy.matmul(weights, rows)
        return
    numpy.matmul(weights, rows, out=total[keys])
    total[keys[0], keys[1], keys[2].stop :] = 0


def _for_blas(array: Array) -> Array:
    """Return matrices whose rows BLAS can read: an expanded gradient, for one, has none in memory."""
    rows, elements = array.strides[-2:]
    if elements == array.itemsize and rows >= elements * array.shape[-1]:
        return array
    return numpy.ascontiguousarray(array)


class _Scores:
    """The scores of queries and keys, and what is computed of them, a block at a time."""

    def __init__(self, query: Array, key: Array, mask: Array | None, causal: bool, scale: float) -> None:
        shape = (*query.shape[:3], key.shape[2])
        self.query, self.key, self.causal, self.scale = query, key, causal, query.dtype.type(scale)
        self.mask = None if mask is None else numpy.broadcast_to(mask, shape)
        large = math.prod(shape) >= forms.LEAST and query.dtype.char == "f" and scale > 0
        self.loops = loading.compiled("softmax_loops") if large else None
        self._rooms: dict[int, Array] = {}

    def blocks(self) -> Iterator[Block]:
        """Yield queries and the keys that one of them sees; of each head the last queries first."""
        (batch, heads, queries), keys = self.query.shape[:3], self.key.shape[2]
        length = min(queries, max(_SCORES // keys, 1), _CAUSAL_QUERIES if self.causal else queries)
        together = max(_SCORES // (length * keys), 1)
        rows, beside = max(together // heads, 1), min(together, heads)
        starts = range(0, queries, length)[::-1]
        for row in range(0, batch, rows):
            for head in range(0, heads, beside):
                of = slice(row, min(row + rows, batch)), slice(head, min(head + beside, heads))
                for start in starts:
                    stop = min(start + length, queries)
                    yield (*of, slice(start, stop)), (*of, slice(0, min(stop, keys) if self.causal else keys))

    def room(self, number: int, shape: tuple[int, ...]) -> Array:
        """Return memory for the scores of a block, the same for each block."""
        size = math.prod(shape)
        kept = self._rooms.get(number)
        if kept is None or kept.size < size:
            kept = self._rooms[number] = numpy.empty(size, self.query.dtype)
        return kept[:size].reshape(shape)

    def products(self, queries: Any, keys: Any) -> Array:
        """Return the products of a block: its scores, but for the scale and what masks them."""
        query, key = self.query[queries], self.key[keys]
        return numpy.matmul(query, key.swapaxes(2, 3), out=self.room(0, (*query.shape[:3], key.shape[2])))

    def to_weights(self, scores: Array, queries: Any) -> Array:
        """Turn the products of a block into the weights of its values; return the logsumexp."""
        if self.loops is None:
            return _to_weights(self._masked(scores, queries))
        logsumexp = numpy.empty(scores.shape[:3], scores.dtype)
        self.loops.attention_weights(*self._rows(scores, queries), logsumexp.reshape(-1))
        return logsumexp

    def to_gradients(self, scores: Array, g: Array, logsumexp: Array, slopes: Array, queries: Any) -> None:
        """Turn the products of a block into weights, and the gradient of these into that of the products."""
        if self.loops is None:
            weights = self._masked(scores, queries)
            weights -= logsumexp[..., None]
            numpy.exp(weights, out=weights)
            g -= slopes[..., None]
            g *= weights
            g *= self.scale
            return
        sums = [numpy.ascontiguousarray(a).reshape(-1) for a in (logsumexp, slopes)]
        self.loops.attention_gradients(*self._rows(scores, queries), g.reshape(-1, g.shape[3]), *sums)

    def _rows(self, scores: Array, queries: Any) -> tuple[Any, ...]:
        """Return what the loops take: rows, their scale, the place of the first query, and after how many it is again.

        What is added to scores is added here; after it they have their scale.
        """
        rows, keys, length = scores.reshape(-1, scores.shape[3]), scores.shape[3], scores.shape[2]
        first = queries[2].start if self.causal else keys
        if self.mask is None:
            return rows, self.scale, self.scale, first, length
        scores *= self.scale
        scores += self.mask[(*queries, slice(0, keys))]
        return rows, _ONE, self.scale, first, length

    def _masked(self, scores: Array, queries: Any) -> Array:
        scores *= self.scale
        if self.mask is not None:
            scores += self.mask[(*queries, slice(0, scores.shape[3]))]
        first = queries[2].start
        if self.causal and first < scores.shape[3]:
            after = scores[..., first:]
            numpy.copyto(after, -math.inf, where=numpy.tri(*after.shape[2:]) == 0)
        return scores


_ONE = numpy.float32(1)


def _to_weights(scores: Array) -> Array:
    """Turn scores into their softmax, in place; return the logsumexp, 0 where all are -inf."""
    most = row_maxima(scores, 3)
    most[most == -math.inf] = 0
    scores -= most
    numpy.exp(scores, out=scores)
    total = sums(scores, (3,))
    total[total == 0] = 1
    scores /= total
    return (most + numpy.log(total))[..., 0]
