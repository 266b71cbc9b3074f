"""The derivatives of the operators that one meets most, as a person would write them down, for real numbers.

What runs is declared with each operator, for complex numbers too, and in the functions of an array module; here is the
same as mathematics. ``tests/runtime/ops/test_plain_derivatives.py`` computes the formulas and compares.
"""

from __future__ import annotations

import functools
import re

from .derivative_text import derivative_text

__all__ = ["FORMULAS", "WORDS", "plain_derivative"]

_CONJUGATE = re.compile(r"\bconj\(")

FORMULAS: dict[str, dict[str, str]] = {
    "Addmm": {"self": "g", "mat1": "g @ mat2.T", "mat2": "mat1.T @ g"},
    "BinaryCrossEntropyWithLogits": {"self": "g * (sigmoid(self) - target) / n"},
    "Bmm": {"self": "g @ mat2.mT", "mat2": "self.mT @ g"},
    "Div": {"self": "g / other", "other": "-g * self / other**2"},
    "Gelu": {"self": "g * (Phi(self) + self * phi(self))"},
    "LogSoftmax": {"self": "g - exp(result) * sum(g, dim)"},
    "Mean": {"self": "g / n"},
    "Mm": {"self": "g @ mat2.T", "mat2": "self.T @ g"},
    "MseLoss": {"self": "g * 2 * (self - target) / n", "target": "g * 2 * (target - self) / n"},
    "NativeLayerNorm": {
        "input": "(g * weight - mean(g * weight) - xhat * mean(g * weight * xhat)) / std",
        "weight": "sum(g * xhat)",
        "bias": "sum(g)",
    },
    "Pow": {"self": "g * exponent * self**(exponent - 1)"},
    "Relu": {"self": "g * (result > 0)"},
    "Rsub": {"self": "-g", "other": "g"},
    "Sigmoid": {"self": "g * result * (1 - result)"},
    "Silu": {"self": "g * sigmoid(self) * (1 + self * (1 - sigmoid(self)))"},
    "Softmax": {"self": "result * (g - sum(g * result, dim))"},
    "Sqrt": {"self": "g / (2 * result)"},
    "T": {"self": "g.T"},
    "Tanh": {"self": "g * (1 - result**2)"},
}
"""By operator and argument. `n` is the number of elements that a mean is taken of (1 where they are summed), `xhat` the
normalised input, `Phi` and `phi` are the normal distribution and its density; `dim`, `exponent` and the like are the
operator's own arguments."""

WORDS: dict[str, dict[str, str]] = {
    "Cat": {"tensors": "to each the part of g that is its own"},
    "Convolution": {
        "input": "g convolved with the turned weight",
        "weight": "input correlated with g",
        "bias": "sum(g) of each channel",
    },
    "Embedding": {"weight": "to row i the sum of g where indices == i"},
    "NativeBatchNorm": {
        "input": "weight / std * (g - mean(g) - xhat * mean(g * xhat)) in each channel",
        "weight": "sum(g * xhat) of each channel",
        "bias": "sum(g) of each channel",
    },
    "NllLoss": {"self": "-g / n at the target of each row, 0 elsewhere"},
    "Sum": {"self": "g, the same for each element"},
    "View": {"self": "g in its former shape"},
}
"""The same in words, where a formula says less."""


@functools.cache
def plain_derivative(node_name: str) -> tuple[tuple[str, str], ...]:
    """Return the derivative of the operator that a node belongs to, by argument, for reading.

    Parameters
    ----------
    node_name : str
        Such as ``'MulBackward0'``.

    Returns
    -------
    tuple of (str, str)
        As of :func:`~.derivative_text.derivative_text`, which gives what is declared; without conjugates, which real
        numbers do not have, and in plain mathematics where that is written down.

    Examples
    --------
    >>> plain_derivative("MulBackward0")
    (('self', 'g * other'), ('other', 'g * self'))
    >>> plain_derivative("SigmoidBackward0")
    (('self', 'g * result * (1 - result)'),)
    """
    declared = derivative_text(node_name)
    operator = node_name.partition("Backward")[0]
    plain = FORMULAS.get(operator) or WORDS.get(operator)
    if plain and declared:
        return tuple(plain.items())
    return tuple((name, _without_conjugates(formula)) for name, formula in declared)


def _without_conjugates(formula: str) -> str:
    """Return a formula with what stands inside of ``conj(...)`` in its place.

    Examples
    --------
    >>> _without_conjugates("-g * conj((self / other) / other)"), _without_conjugates("g * conj(F.exp(self))")
    ('-g * ((self / other) / other)', 'g * F.exp(self)')
    """
    while (found := _CONJUGATE.search(formula)) is not None:
        depth, end = 1, found.end()
        while depth and end < len(formula):
            depth += {"(": 1, ")": -1}.get(formula[end], 0)
            end += 1
        inside = formula[found.end() : end - 1]
        inside = inside if re.fullmatch(r"[\w.]+(\(.*\))?", inside) else f"({inside})"
        formula = formula[: found.start()] + inside + formula[end:]
    return formula
