"""Two Jacobians that differ, and the error that shows where."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy

__all__ = ["GradcheckError", "Mismatch"]

WORST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Mismatch:
    """Two Jacobians that differ, of one output with respect to one input.

    Attributes
    ----------
    analytical, numerical : numpy.ndarray
        One row per input element, one column per output element, as PyTorch lays them out. In fast mode they are
        the full Jacobians all the same: they are computed once the projections have differed.
    input_index, output_index : int
        Which argument and which result.
    part : {"", "real", "imaginary"}
        Which part of a complex output, in forward mode of a complex input, was considered.
    forward : bool
        Whether the analytical one was computed in forward mode.
    """

    analytical: numpy.ndarray
    numerical: numpy.ndarray
    input_index: int
    output_index: int
    input_shape: tuple[int, ...]
    output_shape: tuple[int, ...]
    part: str
    atol: float
    rtol: float
    forward: bool = False

    def wrong(self) -> numpy.ndarray:
        """Return which elements differ by more than the tolerances; two NaN are equal."""
        return ~close(self.analytical, self.numerical, self.atol, self.rtol)

    def message(self) -> str:
        """Return PyTorch's sentence, then a table of the worst elements."""
        ends = "inputs" if self.forward else "outputs"
        prefix = f"While considering the {self.part} part of complex {ends} only, " if self.part else ""
        mode = "computed with forward mode " if self.forward else ""
        return (
            f"{prefix}Jacobian {mode}mismatch for output {self.output_index} with respect to input "
            f"{self.input_index},\n"
            f"{self.table()}"
        )

    def table(self, limit: int = WORST_SHOWN) -> str:
        """Return the worst elements: where they stand, both values, absolute and relative error."""
        wrong = self.wrong()
        count = int(wrong.sum())
        absolute = numpy.where(wrong, numpy.abs(self.analytical - self.numerical), -1.0)
        absolute = numpy.where(numpy.isnan(absolute), numpy.inf, absolute)
        order = numpy.argsort(-absolute, axis=None, kind="stable")[: min(count, limit)]
        rows = [("output", "input", "analytical", "numerical", "absolute", "relative")]
        for flat in order.tolist():
            i, j = divmod(flat, self.numerical.shape[1])
            found, expected = self.analytical[i, j], self.numerical[i, j]
            error = abs(found - expected)
            relative = error / abs(expected) if expected else numpy.inf
            where = (place(j, self.output_shape), place(i, self.input_shape))
            rows.append((*where, number(found), number(expected), f"{error:.3g}", f"{relative:.3g}"))
        widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
        lines = ["  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        more = f"\n  ... and {count - len(order)} more" if count > len(order) else ""
        return (
            f"{count} of {wrong.size} elements differ by more than {self.atol:g} + {self.rtol:g} * |numerical|; input "
            f"of shape {list(self.input_shape)}, output of shape {list(self.output_shape)}; the worst:\n  "
            + "\n  ".join(lines)
            + more
        )


class GradcheckError(RuntimeError):
    """A derivative is wrong; :func:`gradcheck` and :func:`gradgradcheck` raise this.

    Attributes
    ----------
    mismatch : Mismatch or None
        The Jacobians, when it is they that differ.

    See Also
    --------
    gradcheck : with ``raise_exception=False`` it returns False instead.

    Examples
    --------
    >>> import gradscope as gs
    >>> class Wrong(gs.autograd.Function):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 3
    >>> try:
    ...     gs.autograd.gradcheck(Wrong.apply, gs.ones(1, dtype=gs.float64, requires_grad=True))
    ... except gs.autograd.GradcheckError as error:
    ...     print(str(error).splitlines()[0])
    Jacobian mismatch for output 0 with respect to input 0,
    """

    def __init__(self, message: str, mismatch: Mismatch | None = None) -> None:
        super().__init__(message)
        self.mismatch = mismatch


# --- numbers ----------------------------------------------------------------------------------------------------------


def close(found: Any, expected: Any, atol: float, rtol: float) -> numpy.ndarray:
    """Return where two arrays agree; two NaN do."""
    return numpy.isclose(found, expected, rtol=rtol, atol=atol, equal_nan=True)


def place(flat: int, shape: tuple[int, ...]) -> str:
    """Return a flat position as an index, e.g. ``[0, 2]``."""
    return str([int(i) for i in numpy.unravel_index(flat, shape)]) if shape else "[]"


def number(value: Any) -> str:
    """Return a number in the table's form."""
    return f"{value:.6g}"
