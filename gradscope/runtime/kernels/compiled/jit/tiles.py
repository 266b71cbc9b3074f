"""Tiles of a matrix product whose sums stay in the processor's registers, written for LLVM: no Python loop says so.

A tile is a few rows of one factor with a few vectors, or a few rows, of the other. Rows of images begin anywhere in
memory, at the distances that a table has. Both functions return one that a kernel may call, with addresses.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import ir
from numba import types
from numba.core.registry import cpu_target
from numba.extending import intrinsic

__all__ = ["LANES", "product_tile", "sums_tile"]

LANES = 16 if "+avx512f" in cpu_target.target_context.codegen().magic_tuple()[2] else 8
"""How many numbers a vector has: what a register holds, or two where they are small."""

_F4, _I4, _I8 = ir.FloatType(), ir.IntType(32), ir.IntType(64)
_VECTOR = ir.VectorType(_F4, LANES)
_CONTRACT = ("contract",)  # a product and a sum are one instruction, where there is one


def product_tile(rows: int, vectors: int) -> Any:
    """Return ``tile(x, distances, count, weights, result, pitch)``.

    It writes, of `rows` rows of weights that lie side by side, the sums over `count` products of each with the
    `vectors` vectors that begin at `x` plus a distance. Rows of the result lie `pitch` elements apart.
    """

    def body(code: _Code, x: Any, distances: Any, count: Any, weights: Any, result: Any, pitch: Any) -> None:
        def products(k: Any) -> list[Any]:
            source = code.at(x, code.load(code.at(distances, k, 8), _I8))
            pixels = [code.load(code.at(source, v * LANES), _VECTOR) for v in range(vectors)]
            row = code.at(weights, code.builder.mul(k, code.number(rows)))
            spread = [code.spread(code.load(code.at(row, m), _F4)) for m in range(rows)]
            return [(weight, pixel) for weight in spread for pixel in pixels]

        sums = code.summed(rows * vectors, count, 1, products)
        for m in range(rows):
            line = code.at(result, code.builder.mul(pitch, code.number(m)))
            for v in range(vectors):
                code.store(sums[m * vectors + v], code.at(line, v * LANES))

    return _function(body)


def sums_tile(rows: int, taps: int) -> Any:
    """Return ``tile(x, distances, count, gradient, result, pitch)``.

    It adds to a matrix of `rows` by `taps` the sums over `count` pixels of the products of rows of a gradient, which
    lie `pitch` elements apart, with those that begin at `x` plus a distance. Beyond `count` there are zeros in the
    gradient, as far as a vector reaches.
    """

    def body(code: _Code, x: Any, distances: Any, count: Any, gradient: Any, result: Any, pitch: Any) -> None:
        lines = [code.at(gradient, code.builder.mul(pitch, code.number(m))) for m in range(rows)]
        sources = [code.at(x, code.load(code.at(distances, t, 8), _I8)) for t in range(taps)]

        def products(k: Any) -> list[Any]:
            pixels = [code.load(code.at(source, k), _VECTOR) for source in sources]
            found = []
            for line in lines:
                given = code.load(code.at(line, k), _VECTOR)
                found += [(given, pixel) for pixel in pixels]
            return found

        for place, lanes in enumerate(code.summed(rows * taps, count, LANES, products)):
            cell = code.at(result, place)
            code.store(code.builder.fadd(code.load(cell, _F4), code.total(lanes)), cell)

    return _function(body)


class _Code:
    """Writes instructions; addresses are integers."""

    def __init__(self, builder: Any) -> None:
        self.builder = builder

    def number(self, value: int) -> Any:
        return ir.Constant(_I8, value)

    def at(self, base: Any, index: Any, size: int = 4) -> Any:
        """Return the address of an element."""
        index = self.number(index) if isinstance(index, int) else index
        return self.builder.add(base, self.builder.mul(index, self.number(size)))

    def load(self, address: Any, kind: Any) -> Any:
        return self.builder.load(self.builder.inttoptr(address, kind.as_pointer()), align=4)

    def store(self, value: Any, address: Any) -> None:
        self.builder.store(value, self.builder.inttoptr(address, value.type.as_pointer()), align=4)

    def spread(self, number: Any) -> Any:
        """Return a vector of one number."""
        nothing = ir.Constant(_VECTOR, ir.Undefined)
        first = self.builder.insert_element(nothing, number, ir.Constant(_I4, 0))
        return self._chosen(first, [0] * LANES)

    def total(self, vector: Any) -> Any:
        """Return the sum of a vector's numbers, of one half and the other."""
        count = LANES
        while count > 1:
            count //= 2
            low, high = (self._chosen(vector, list(range(begin, begin + count))) for begin in (0, count))
            vector = self.builder.fadd(low, high)
        return self.builder.extract_element(vector, ir.Constant(_I4, 0))

    def _chosen(self, vector: Any, places: list[int]) -> Any:
        mask = ir.Constant(ir.VectorType(_I4, len(places)), places)
        return self.builder.shuffle_vector(vector, ir.Constant(vector.type, ir.Undefined), mask)

    def summed(self, sums: int, count: Any, step: int, products: Callable[[Any], list[Any]]) -> list[Any]:
        """Return as many vectors, each the sum of its product at 0, `step`, ... below `count`, which is 1 at least."""
        builder, before = self.builder, self.builder.block
        loop, after = builder.append_basic_block("loop"), builder.append_basic_block("after")
        builder.branch(loop)
        builder.position_at_end(loop)
        k = builder.phi(_I8)
        k.add_incoming(self.number(0), before)
        totals = [builder.phi(_VECTOR) for _ in range(sums)]
        for total, (one, other) in zip(totals, products(k), strict=True):
            total.add_incoming(ir.Constant(_VECTOR, None), before)
            more = builder.fadd(total, builder.fmul(one, other, flags=_CONTRACT), flags=_CONTRACT)
            total.add_incoming(more, loop)
        following = builder.add(k, self.number(step))
        k.add_incoming(following, loop)
        builder.cbranch(builder.icmp_signed("<", following, count), loop, after)
        builder.position_at_end(after)
        return [total.incomings[1][0] for total in totals]


def _function(body: Callable[..., None]) -> Any:
    """Return what kernels call: a function of six integers that is these instructions."""

    @intrinsic
    def tile(context, x, distances, count, other, result, pitch):
        def code(context, builder, signature, arguments):
            body(_Code(builder), *arguments)
            return context.get_dummy_value()

        return types.void(*[types.int64] * 6), code

    return tile
