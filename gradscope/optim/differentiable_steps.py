"""Steps that are recorded, for ``differentiable=True``: out of place on tensors what an update does to arrays.

An update is written once, as operations of an array module into arrays that are there. Here each of these arrays is a
:class:`ArrayCell` that holds another tensor after each operation, and the module is :class:`RecordedOperations`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..runtime.modes import enable_grad
from ..runtime.ops.families import PUBLIC
from ..runtime.tensor.tensor import Tensor

__all__ = ["recorded_parts", "without_history"]


class ArrayCell:
    """A cell in the place of an array: in-place operations put another tensor into it."""

    __slots__ = ("before", "value")

    def __init__(self, value: Any = None) -> None:
        self.value = self.before = value

    def __iadd__(self, other: Any) -> ArrayCell:
        self.value = self.value + _value(other)
        return self

    def __isub__(self, other: Any) -> ArrayCell:
        self.value = self.value - _value(other)
        return self

    def __imul__(self, other: Any) -> ArrayCell:
        self.value = self.value * _value(other)
        return self

    def __itruediv__(self, other: Any) -> ArrayCell:
        self.value = self.value / _value(other)
        return self

    def __mul__(self, other: Any) -> Any:
        return self.value * _value(other)

    def __lt__(self, other: Any) -> Any:
        return self.value < _value(other)

    def __gt__(self, other: Any) -> Any:
        return self.value > _value(other)

    def __ne__(self, other: object) -> Any:
        return self.value != _value(other)

    __hash__ = object.__hash__

    def __setitem__(self, everything: Any, other: Any) -> None:
        self.value = _value(other)

    def fill(self, number: float) -> None:
        """Fill it with a number."""
        self.value = PUBLIC["full_like"](self.value, number)


def _value(operand: Any) -> Any:
    return operand.value if isinstance(operand, ArrayCell) else operand


def without_history(part: Any) -> Any:
    """Return an array as it is, and what a cell holds as a tensor that leads nowhere."""
    return part.value.detach() if isinstance(part, ArrayCell) else part


class RecordedOperations:
    """The operations that updates ask of an array module, each into a cell."""

    @staticmethod
    def add(a: Any, b: Any, out: ArrayCell) -> ArrayCell:
        """Put a sum into a cell."""
        out.value = _value(a) + _value(b)
        return out

    @staticmethod
    def subtract(a: Any, b: Any, out: ArrayCell) -> ArrayCell:
        """Put a difference into a cell."""
        out.value = _value(a) - _value(b)
        return out

    @staticmethod
    def multiply(a: Any, b: Any, out: ArrayCell) -> ArrayCell:
        """Put a product into a cell."""
        out.value = _value(a) * _value(b)
        return out

    @staticmethod
    def divide(a: Any, b: Any, out: ArrayCell) -> ArrayCell:
        """Put a quotient into a cell."""
        out.value = _value(a) / _value(b)
        return out

    @staticmethod
    def maximum(a: Any, b: Any, out: ArrayCell) -> ArrayCell:
        """Put the larger ones into a cell; one may be a number."""
        larger = _value(b)
        out.value = _value(a).maximum(larger) if isinstance(larger, Tensor) else _value(a).clamp(min=larger)
        return out

    @staticmethod
    def minimum(a: Any, b: float, out: ArrayCell) -> ArrayCell:
        """Put the smaller of elements and a number into a cell."""
        out.value = _value(a).clamp(max=b)
        return out

    @staticmethod
    def negative(a: Any, out: ArrayCell) -> ArrayCell:
        """Put the negative into a cell."""
        out.value = -_value(a)
        return out

    @staticmethod
    def absolute(a: Any, out: ArrayCell) -> ArrayCell:
        """Put absolute values into a cell."""
        out.value = _value(a).abs()
        return out

    @staticmethod
    def sqrt(a: Any, out: ArrayCell) -> ArrayCell:
        """Put roots into a cell."""
        out.value = _value(a).sqrt()
        return out

    @staticmethod
    def sign(a: Any, out: ArrayCell) -> ArrayCell:
        """Put signs into a cell."""
        out.value = _value(a).sign()
        return out

    @staticmethod
    def copyto(target: ArrayCell, source: float, where: Any) -> None:
        """Put a number where a mask is set."""
        target.value = target.value.masked_fill(where, source)


def recorded_parts(
    count: int, parameter: Tensor, grad: Tensor, states: tuple[Tensor, ...]
) -> Iterator[tuple[Any, ...]]:
    """Yield once what an update works on, as cells, and `count` empty ones; then write what has changed.

    What the graph keeps are copies, so that the writes at the end violate no version.
    """
    with enable_grad():
        written = (parameter, *states)
        cells = [ArrayCell(_as_real(tensor.clone())) for tensor in written]
        work = [ArrayCell(PUBLIC["zeros_like"](cells[0].value)) for _ in range(count)]
        yield (RecordedOperations, cells[0], ArrayCell(_as_real(grad)), *cells[1:], *work)
        for tensor, cell in zip(written, cells, strict=True):
            if cell.value is not cell.before:
                tensor.copy_(PUBLIC["view_as_complex"](cell.value) if tensor.is_complex() else cell.value)


def _as_real(tensor: Tensor) -> Any:
    """Return a tensor, and of complex elements the pairs, as updates work on them."""
    return PUBLIC["view_as_real"](tensor) if tensor.is_complex() else tensor
