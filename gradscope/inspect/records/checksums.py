"""A 64-bit checksum of a tensor's bits that can be taken apart: those of its shards add up to that of the whole."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

import numpy

from ...runtime.kernels import loading

__all__ = ["BLOCK", "checksum", "checksums_in_memory", "factor"]

_WORD = 8  # bytes
_MODULUS = 1 << 64

BLOCK = 1 << 13
"""Words, whose factors stay in the processor's cache; files hold checksums, which are others with another size."""


def checksum(array: Any, start: int = 0) -> int:
    """Return the checksum of the bits of an array.

    It is the sum, modulo 2**64, of all words of 8 bytes, each times an odd number that depends on where it stands
    (multilinear hashing; Lemire and Kaser, "Strongly universal string hashing is fast", 2014). So one word that differs
    always changes it, and several cancel out only by chance, once in 2**40 times or less often. In which order words
    are added makes no difference, so that shards can be summed apart.

    Parameters
    ----------
    array : ndarray
        Of any dtype and shape. Bits are compared: -0.0 is not 0.0, and NaN is what it is.
    start : int
        Where its first element stands in the whole, whose elements are in the order of C; the array is a run of them.

    Examples
    --------
    >>> import numpy
    >>> whole = numpy.arange(10, dtype=numpy.float32)
    >>> hex(checksum(whole))
    '0x327f9eee9c00000'
    >>> (checksum(whole[:3]) + checksum(whole[3:], 3)) % 2**64 == checksum(whole)
    True
    """
    flat = array.ravel()
    if not start and not flat.nbytes % _WORD:  # as it nearly always is
        words = flat.view(numpy.uint64)
        return _sum(words, 0) if words.size > BLOCK else _sum_in_block(words, 0, 0)
    offset = start * flat.itemsize
    first, before = divmod(offset, _WORD)
    return _sum(_words(flat, before), first)


def checksums_in_memory(
    addresses: Sequence[int], sizes: Sequence[int], *, norms: bool
) -> tuple[list[int], list[float]]:
    """Return the checksums of runs of float32 in the host's memory, and their 2-norms, where those are wanted, or 0.0.

    It takes one pass over them and one call, of a loop that Numba compiles: the caller asks whether it is there.

    Parameters
    ----------
    addresses, sizes : sequence of int
        Where each run begins, at a multiple of 8, and how many elements it has.
    """
    blocks = max(sizes) // (2 * BLOCK) + 1
    sums = numpy.empty(len(sizes), numpy.uint64)
    squares = numpy.zeros(len(sizes) if norms else 0)
    loading.compiled("recording.checksum_loops").checksums_and_squares(
        numpy.array(addresses), numpy.array(sizes), _inside(), _factors(BLOCK, blocks), sums, squares
    )
    return sums.tolist(), numpy.sqrt(squares).tolist() if norms else [0.0] * len(sizes)


def _words(flat: Any, before: int) -> Any:
    """Return the words of an array's bytes, of which the first begins so many bytes before them; zeros fill it up."""
    if not before and not flat.nbytes % _WORD:
        return flat.view(numpy.uint64)
    size = before + flat.nbytes
    padded = numpy.zeros(-(-size // _WORD) * _WORD, numpy.uint8)
    padded[before:size] = flat.view(numpy.uint8)
    return padded.view(numpy.uint64)


def _sum(words: Any, first: int) -> int:
    """Return the sum of words, each times its factor; `first` is the place of the first of them."""
    block, inside = divmod(first, BLOCK)
    if inside + words.size <= BLOCK:  # as most parameters of a model are
        return _sum_in_block(words, block, inside)
    begun, count = -inside % BLOCK, (inside + words.size) // BLOCK - bool(inside)
    total = _sum_in_block(words[:begun], block, inside) if begun else 0
    whole = words[begun : begun + count * BLOCK].reshape(count, BLOCK)
    block += bool(begun)
    # For 64-bit numbers einsum() is quicker than dot(): it unrolls its loop.
    sums = numpy.einsum("ij,j->i", whole, _inside())
    total += int(sums.dot(_factors(BLOCK + block, count)))
    rest = words[begun + whole.size :]
    return (total + _sum_in_block(rest, block + count, 0)) % _MODULUS if rest.size else total % _MODULUS


def _sum_in_block(words: Any, block: int, inside: int) -> int:
    return int(words.dot(_inside()[inside : inside + words.size])) * factor(BLOCK + block) % _MODULUS


@functools.cache
def _inside() -> Any:
    """Return the factors inside of a block."""
    return _factors(0, BLOCK)


@functools.lru_cache(maxsize=256)
def _factors(first: int, count: int) -> Any:
    """Return :func:`factor` of so many indices."""
    return numpy.array([factor(index) for index in range(first, first + count)], numpy.uint64)


@functools.lru_cache(maxsize=256)
def factor(index: int) -> int:
    """Return an odd number of 64 bits (SplitMix64; Steele, Lea and Flood, "Fast splittable generators", 2014).

    The word at place `i` is multiplied by ``factor(i % BLOCK) * factor(BLOCK + i // BLOCK)``.
    """
    mixed = (index + 1) * 0x9E3779B97F4A7C15 % _MODULUS
    mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % _MODULUS
    mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % _MODULUS
    return mixed ^ mixed >> 31 | 1
