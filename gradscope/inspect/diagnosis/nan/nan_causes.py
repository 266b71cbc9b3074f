"""The arithmetic that makes NaN and Inf: from an operator and the elements it was given to a sentence."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...output.number_format import count

__all__ = [
    "Cause",
    "backward_cause",
    "element_of",
    "forward_cause",
    "infinity_cause",
    "is_elementwise",
    "masked_rows",
    "singular_at",
]


@dataclass(frozen=True, slots=True)
class Cause:
    """Why an element is NaN or Inf.

    Attributes
    ----------
    help : str
        What to do; may be empty.
    saved : str or None
        The saved tensor that has had a NaN or an infinity since the forward pass, where that is why; empty where none
        has, None where what was saved is not known.
    """

    text: str
    help: str = ""
    saved: str | None = ""


_SAFE_SQRT = "Add a small eps under the root, sqrt(x + eps), or keep x away from 0 with clamp(min=eps)."
_SAFE_LOG = "Keep the argument above 0: clamp(min=eps), log1p(), or log_softmax() instead of softmax().log()."
_SAFE_DIV = "Keep the divisor away from 0: add eps, or clamp(min=eps)."
_SAFE_EXP = "Subtract the maximum first (logsumexp and softmax do), or clamp(max=...)."
_WIDER = (
    "Compute it in a wider dtype, or scale the values down first; where they have grown from step to step, "
    "lower the learning rate."
)
_MASKED = "Leave one entry of each row unmasked, or use a large negative number in place of -inf."
DOUBLE_WHERE = (
    "Make the argument safe before the function: where(ok, f(where(ok, x, 1)), 0). "
    "where() on the result alone does not keep the other branch's derivative from being computed."
)

_NOT_TAKEN = "did not take"


# --- elements ---------------------------------------------------------------------------------------------------------


def element_of(values: Any, shape: tuple[int, ...], index: tuple[int, ...]) -> float | None:
    """Return the element of an operand that an element of the result was computed from.

    Parameters
    ----------
    values : array
        The operand, which may have been broadcast.
    shape : tuple of int
        Of the result.
    index : tuple of int
        Into the result.

    Returns
    -------
    float or None
        None where the operand does not belong to the result element by element.
    """
    if values.shape != shape:
        try:
            values = numpy.broadcast_to(values, shape)
        except ValueError:
            return None
    value = values[index]
    return float(abs(value)) if numpy.iscomplexobj(value) else float(value)


# --- forward ----------------------------------------------------------------------------------------------------------


def forward_cause(operator: str, inputs: Sequence[Any], output: Any, index: tuple[int, ...]) -> Cause:
    """Say why an operator that was given finite numbers (or infinities) gave NaN or Inf.

    Parameters
    ----------
    operator : str
        Its bare name, e.g. ``'log'``.
    index : tuple of int
        The bad element of `output`.

    Examples
    --------
    >>> forward_cause("log", [numpy.array([0.0])], numpy.array([-numpy.inf]), (0,)).text
    'log of 0'
    >>> forward_cause("div", [numpy.array([0.0]), numpy.array([0.0])], numpy.array([numpy.nan]), (0,)).text
    '0 / 0'
    """
    values = [element_of(i, output.shape, index) for i in inputs]
    bad = float(abs(output[index]))
    rule = _FORWARD.get(operator)
    found = None
    if rule is not None and values and values[0] is not None:
        found = rule(values[0], values[1] if len(values) > 1 else None, bad)
    if found is None and operator in ("softmax", "log_softmax", "_softmax", "_log_softmax", "logsumexp"):
        found = _softmax(inputs[0], index)
    return found or _general(operator, inputs, output, bad)


_Rule = Callable[[float, float | None, float], Cause | None]


def _log(name: str, zero: float) -> _Rule:
    def rule(a: float, b: float | None, bad: float) -> Cause | None:
        if a == zero:
            return Cause(f"{name} of {zero:g}", _SAFE_LOG)
        return Cause(f"{name} of a negative number" if zero == 0 else f"{name} below -1", _SAFE_LOG)

    return rule


def _sqrt(a: float, b: float | None, bad: float) -> Cause | None:
    if a < 0:
        return Cause("square root of a negative number", "Rounding can leave a sum of squares below 0: clamp(min=0).")
    return Cause("1 / sqrt(0)", _SAFE_SQRT) if a == 0 else None


def _div(a: float, b: float | None, bad: float) -> Cause | None:
    if a == 0 and math.isnan(bad):
        return Cause("0 / 0", _SAFE_DIV)
    if b == 0:
        return Cause("division by 0", _SAFE_DIV)
    if math.isinf(a):
        return Cause("inf / inf") if b is None or math.isinf(b) else None
    if b is None:
        return Cause("division by 0", _SAFE_DIV)
    return Cause(f"division by a tiny value overflows ({a:.4g} / {b:.4g})", _SAFE_DIV)


def _mul(a: float, b: float | None, bad: float) -> Cause | None:
    if math.isnan(bad):
        return Cause("0 * inf", "Replace the infinity before the product, or use where() instead of a 0/1 mask.")
    return None if math.isinf(a) or (b is not None and math.isinf(b)) else _overflow()


def _add(a: float, b: float | None, bad: float) -> Cause | None:
    if math.isnan(bad):
        return Cause("inf - inf")
    return None if math.isinf(a) or (b is not None and math.isinf(b)) else _overflow()


def _pow(a: float, b: float | None, bad: float) -> Cause | None:
    if a == 0:
        return Cause("0 to a negative power", _SAFE_DIV)
    if a < 0 and math.isnan(bad):
        return Cause("a negative number to a fractional power", "Take abs() or clamp(min=0) first.")
    return _overflow()


def _exp(a: float, b: float | None, bad: float) -> Cause | None:
    return Cause(f"overflow: exp of {a:.4g} is too large for its dtype", _SAFE_EXP) if a > 0 else None


def _arc(a: float, b: float | None, bad: float) -> Cause | None:
    return Cause("its argument is outside of [-1, 1]", "Rounding can leave a cosine above 1: clamp(-1, 1).")


def _reciprocal(a: float, b: float | None, bad: float) -> Cause | None:
    return Cause("1 / 0", _SAFE_DIV) if a == 0 else Cause(f"1 / {a:.4g} overflows", _SAFE_DIV)


def _overflow() -> Cause:
    return Cause("overflow: the result is too large for its dtype", _WIDER)


_FORWARD: dict[str, _Rule] = {
    "log": _log("log", 0.0),
    "log2": _log("log2", 0.0),
    "log10": _log("log10", 0.0),
    "log1p": _log("log1p", -1.0),
    "sqrt": _sqrt,
    "rsqrt": _sqrt,
    "div": _div,
    "true_divide": _div,
    "divide": _div,
    "mul": _mul,
    "multiply": _mul,
    "add": _add,
    "sub": _add,
    "rsub": _add,
    "pow": _pow,
    "float_power": _pow,
    "exp": _exp,
    "exp2": _exp,
    "expm1": _exp,
    "cosh": _exp,
    "acos": _arc,
    "asin": _arc,
    "atanh": _arc,
    "reciprocal": _reciprocal,
}


# Nodes whose gradient at an element depends only on the gradient that arrives at that element.
_ELEMENTWISE_NODES = {
    "Abs", "Acos", "Add", "Asin", "Atan2", "Atanh", "Clamp", "Cos", "Div", "Exp", "Log", "Log10", "Log1P", "Log2",
    "MaskedFill", "Mul", "NanToNum", "Neg", "Pow", "Reciprocal", "Relu", "Rsqrt", "Sigmoid", "Sin", "Sqrt", "Sub",
    "Tanh", "Where",
}  # fmt: skip


def is_elementwise(operator: str) -> bool:
    """Whether an operator (``'log'``) or node (``'Log'``) makes each element out of the same element of its operands.

    Examples
    --------
    >>> is_elementwise("log"), is_elementwise("Log"), is_elementwise("softmax")
    (True, True, False)
    """
    return operator in _FORWARD or operator in _ELEMENTWISE_NODES


def _softmax(values: Any, index: tuple[int, ...]) -> Cause | None:
    for axis in range(values.ndim):
        at: list[Any] = list(index)
        if len(at) == values.ndim:
            at[axis] = slice(None)
            row = values[tuple(at)]
        else:
            row = values
        if row.size and bool(numpy.all(numpy.isneginf(row))):
            return Cause("every entry of the row is -inf (all of it is masked)", _MASKED)
    if bool(numpy.any(numpy.isposinf(values))):
        return Cause("a row has an entry of +inf: inf - inf", _SAFE_EXP)
    return None


def masked_rows(result: Any) -> Cause | None:
    """Say of what a softmax has made rows that are NaN throughout beside others that are not; None where none are.

    Parameters
    ----------
    result : array
        Of a softmax that was given no NaN; what else it was given is not known.

    Examples
    --------
    >>> masked_rows(numpy.array([[0.5, 0.5], [numpy.nan, numpy.nan]])).text
    'of 1 of 2 rows every entry was -inf (all of it is masked), or one was +inf'
    """
    bad = numpy.isnan(result)
    for axis in reversed(range(bad.ndim)):
        rows = bad.all(axis)
        if rows.any() and not rows.all() and bool((rows == bad.any(axis)).all()):
            of = f"of {rows.sum():,} of {count(rows.size, 'row')}"
            return Cause(f"{of} every entry was -inf (all of it is masked), or one was +inf", _MASKED)
    return None


def _general(operator: str, inputs: Sequence[Any], output: Any, bad: float) -> Cause:
    floating = [i for i in inputs if i.dtype.kind in "fc" and i.size]
    has_inf = any(bool(numpy.isinf(i).any()) for i in floating)
    if operator in ("var", "std", "var_mean", "std_mean") and math.isnan(bad):
        return Cause("the unbiased variance of a single value: 0 / 0", "Pass correction=0, or more than one value.")
    if operator == "mean" and math.isnan(bad) and not has_inf:
        return Cause("the mean of no elements: 0 / 0", "Check that the selection is not empty.")
    if math.isnan(bad) and has_inf:
        return Cause("an infinity among its inputs: inf - inf, or 0 * inf")
    if math.isinf(bad) and not has_inf and floating:
        return _overflow()
    largest = sorted((float(numpy.abs(i).max()) for i in floating), reverse=True)
    if len(largest) > 1 and not has_inf and _overflows(largest[0] * largest[1], floating[0], output):
        return Cause(f"overflow inside: products of values as large as {largest[0]:.3g}, and inf - inf is NaN", _WIDER)
    return Cause("its inputs are finite, its result is not")


def _overflows(product: float, operand: Any, output: Any) -> bool:
    """Whether a sum of such products, over the last dimension of an operand, may be too large for a dtype."""
    terms = operand.shape[-1] if operand.ndim else 1
    return bool(product * terms > float(numpy.finfo(output.dtype).max))


# --- backward ---------------------------------------------------------------------------------------------------------


_PRODUCTS = {"Mul", "Mm", "Bmm", "Mv", "Addmm", "Addbmm", "Baddbmm", "Dot", "Convolution", "MseLoss"}


def backward_cause(
    operator: str,
    grad: float | None,
    saved: Mapping[str, float | None],
    bad: float,
    zeroed: str,
    tainted: str = "",
    unseen: bool = False,
) -> Cause:
    """Say why a derivative is NaN or Inf where the gradient that arrived was finite.

    Parameters
    ----------
    operator : str
        Of the node, e.g. ``'Sqrt'``.
    grad : float or None
        The element of the gradient that arrived; None where it does not belong to the bad element alone.
    saved : mapping of str to (float or None)
        The elements of the saved tensors.
    bad : float
        The produced element.
    zeroed : str
        What made the gradient 0, if that is known: ``'WhereBackward0 did not take this branch'``.
    tainted : str
        The saved tensor that has a NaN or an infinity anywhere, if one has.
    unseen : bool
        Whether there are saved tensors of which nothing is known.

    Examples
    --------
    >>> backward_cause("Sqrt", 0.0, {"result": 0.0}, numpy.nan, "").text
    '0 * inf: the derivative of sqrt is infinite at 0, and the gradient that arrives is 0'
    """
    place = singular_at(operator, saved)
    known = {name: value for name, value in saved.items() if value is not None}
    forward = next((name for name, value in known.items() if not math.isfinite(value)), "")
    what, advice = place or (f"the saved `{forward}` is {known.get(forward, 0.0):g} since the forward pass", "")
    if place is not None or forward:
        infinite = place is not None or math.isinf(known[forward])
        inherited = "" if place is not None else forward
        if not (grad == 0 and math.isnan(bad) and infinite):
            return Cause(what, advice, inherited)
        text = f"0 * inf: {what}, and the gradient that arrives is 0"
        advice = DOUBLE_WHERE if _NOT_TAKEN in zeroed else advice
        return Cause(f"{text} ({zeroed})" if zeroed else text, advice, inherited)
    if tainted:
        return Cause(f"the saved `{tainted}` has had a NaN or an infinity in it since the forward pass", "", tainted)
    steep = _steep(operator, saved) if math.isinf(bad) else None
    if steep is not None:
        return Cause(*steep)
    # A product of finite numbers overflows, also where the elements of gradient and result do not correspond.
    if math.isinf(bad) and (grad is not None or operator in _PRODUCTS):
        return Cause("overflow: the gradient is too large for its dtype", "Scale the loss down, or use a wider dtype.")
    if unseen:
        return Cause(
            "the gradient that arrives is finite; what the node saved was not kept, and may have been not finite",
            "`gradscope debug` with `catch nan` stops here while the saved tensors are there.",
            None,
        )
    return Cause("its saved tensors and the gradient that arrives are finite, the derivative is not")


def infinity_cause(grad: float | None, saved: Mapping[str, float | None], source: str = "") -> Cause:
    """Say why a derivative is NaN where an infinity arrived, and no NaN.

    Parameters
    ----------
    grad : float or None
        The element of the gradient that arrived; None where it does not belong to the bad element alone.
    saved : mapping of str to (float or None)
        The elements of the saved tensors.
    source : str
        Where the infinity is from, if that is known: ``'SqrtBackward0 (#9) at net.py:18'``.

    Examples
    --------
    >>> infinity_cause(math.inf, {"other": 0.0}).text
    '0 * inf: the gradient that arrives is infinite, and the saved `other` is 0'
    """
    zero = next((name for name, value in saved.items() if value == 0), "")
    if grad is None or not math.isinf(grad):
        text = "the gradient that arrives has an infinity: inf - inf, or 0 * inf"
    elif zero:
        text = f"0 * inf: the gradient that arrives is infinite, and the saved `{zero}` is 0"
    else:
        text = "the gradient that arrives is infinite"
    whence = f"it came out of {source}, before the NaN" if source else "it was there before the NaN"
    return Cause(text, f"The infinity is what to mend: {whence}.")


def singular_at(operator: str, saved: Mapping[str, float | None]) -> tuple[str, str] | None:
    """Return where the derivative of an operator does not exist, if the saved elements are there."""
    x, y, other = saved.get("self"), saved.get("result"), saved.get("other")
    if operator in ("Sqrt", "Pow") and (y == 0 or x == 0):
        name = "sqrt" if operator == "Sqrt" else "x**p, p < 1,"
        return f"the derivative of {name} is infinite at 0", _SAFE_SQRT
    if operator == "Pow" and x is not None and x < 0:
        return "a negative number was taken to a fractional power", "Take abs() or clamp(min=0) first."
    if operator in ("Log", "Log2", "Log10") and x == 0:
        return "the derivative of log is infinite at 0", _SAFE_LOG
    if operator == "Div" and other == 0:
        return "the divisor is 0", _SAFE_DIV
    if operator in ("Reciprocal", "Rsqrt") and y is not None and math.isinf(y):
        return f"{operator.lower()} was taken at 0", _SAFE_DIV
    if operator in ("LinalgVectorNorm", "Norm") and y == 0:
        return "the norm is 0, where it has no derivative (0 / 0)", "Add eps inside: (x * x).sum().add(eps).sqrt()."
    if operator == "Std" and y == 0:
        return "the standard deviation is 0, where it has no derivative (0 / 0)", "Use sqrt(var + eps)."
    if operator in ("Acos", "Asin", "Atanh") and x is not None and abs(x) == 1:
        return f"the derivative of {operator.lower()} is infinite at {x:g}", "Keep it inside: clamp(-1 + eps, 1 - eps)."
    if operator == "Atan2" and x == 0 and other == 0:
        return "atan2(0, 0) has no derivative", "Keep one of the two away from 0."
    return None


# Below this a derivative that grows towards 0 without bound may be too large for a float32.
_TINY = 1e-30


def _steep(operator: str, saved: Mapping[str, float | None]) -> tuple[str, str] | None:
    """Return where the derivative of an operator is too large for its dtype, so close is it to where it is infinite."""
    name = {"Div": "other", "Reciprocal": "result"}.get(operator, "self")
    x = saved.get(name)
    if operator in ("Log", "Log2", "Log10") and x is not None and 0 < x < _TINY:
        return f"overflow: the derivative of log at {x:.3g} is too large for its dtype", _SAFE_LOG
    if operator == "Div" and x is not None and 0 < abs(x) < _TINY:
        return f"overflow: division by {x:.3g}", _SAFE_DIV
    return None
