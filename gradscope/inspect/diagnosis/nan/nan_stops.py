"""The producer of the NaN or infinity at a stop, and the numbers that it was made of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy

from ...records.records import InnerOperator, NodeRecord
from ..explanation import at
from .nan_causes import backward_cause, element_of, infinity_cause
from .nan_inside import first_bad_inside
from .nan_producers import first_bad, producer_of, tainted_by

__all__ = ["bad_value_at", "inherited_from"]


def bad_value_at(
    node: NodeRecord,
    grads: Sequence[numpy.ndarray | None],
    produced: Sequence[numpy.ndarray | None],
    saved: Mapping[str, numpy.ndarray],
    source: str = "",
) -> str:
    """Return who made the NaN or infinity that a node has produced, and out of what.

    Parameters
    ----------
    grads, produced : sequence of (array or None)
        The gradients that arrived and those that it produced.
    saved : dict of str to array
        Its saved tensors, as far as they are known.
    source : str
        Where an infinity is from that has arrived; see :func:`infinity_cause`.

    Returns
    -------
    str
        Empty where there is none.

    Examples
    --------
    >>> node = NodeRecord(1, 9, "SqrtBackward0", "Sqrt", 1, "", "", None, ())
    >>> arrived, produced, root = numpy.zeros(2), numpy.array([numpy.nan, 0.0]), numpy.array([0.0, 2.0])
    >>> print(bad_value_at(node, [arrived], [produced], {"result": root}).splitlines()[1])
      0 * inf: the derivative of sqrt is infinite at 0, and the gradient that arrives is 0
    """
    arrived = [grad for grad in grads if grad is not None]
    for values in produced:
        bad = None if values is None else first_bad(values)
        if values is None or bad is None:
            continue
        worst = [grad[at] for grad in arrived if (at := first_bad(grad)) is not None]
        turned = bool(worst) and bool(numpy.isnan(values[bad])) and not numpy.isnan(worst).any()
        if worst and not turned:
            return f"{node.name} passes on what has arrived: the gradient that it got is not finite already"
        inner = first_bad_inside(node.inside)
        if inner is not None:
            return _inside(node, inner)
        elements = {name: _element(array, values.shape, bad) for name, array in saved.items()}
        grad = element_of(arrived[0], values.shape, bad) if arrived else None
        if turned:
            cause = infinity_cause(grad, elements, source)
        else:
            tainted, unseen = tainted_by(saved) or _tainted_in_record(node), _unseen(node, saved)
            cause = backward_cause(node.operator, grad, elements, float(abs(values[bad])), "", tainted, unseen)
        operands = [(name, value) for name, value in elements.items() if value is not None]
        if grad is not None:
            operands.append(("gradient", grad))
        return str(producer_of("backward", node.name, node.module, node.location, cause, values, bad, tuple(operands)))
    return ""


def inherited_from(operator: str, produced: Sequence[numpy.ndarray | None], saved: Mapping[str, numpy.ndarray]) -> str:
    """Return the saved tensor from which a node that was given nothing bad has the NaN or infinity it has produced.

    Parameters
    ----------
    operator : str
        Of the node.
    produced : sequence of (array or None)
        The gradients that it produced.
    saved : dict of str to array
        Its saved tensors.

    Returns
    -------
    str
        Empty where they were finite, and where the derivative does not exist at what was saved.

    Examples
    --------
    >>> nan = numpy.array([numpy.nan])
    >>> inherited_from("Pow", [nan], {"self": nan}), inherited_from("Sqrt", [nan], {"result": numpy.zeros(1)})
    ('self', '')
    """
    tainted = tainted_by(saved)
    for values in produced if tainted else ():
        bad = None if values is None else first_bad(values)
        if values is not None and bad is not None:
            elements = {name: _element(array, values.shape, bad) for name, array in saved.items()}
            return backward_cause(operator, None, elements, float(abs(values[bad])), "", tainted).saved or ""
    return ""


def _inside(node: NodeRecord, inner: InnerOperator) -> str:
    """Say which call inside of a compiled region has made a bad value."""
    kind = "NaN" if inner.made is None or numpy.isnan(inner.made) else "Inf"
    head = f"{kind} is produced in backward by {inner.operator}{at(inner.location)}, inside of {node.name}"
    return "\n  ".join([head, *inner.why.splitlines()])


def _tainted_in_record(node: NodeRecord) -> str:
    """Return the name of a saved tensor whose recorded statistics count a NaN or an infinity."""
    summaries = ((saved.name, saved.summary) for saved in node.saved)
    return next((name for name, summary in summaries if summary and (summary.nans or summary.infs)), "")


def _unseen(node: NodeRecord, saved: Mapping[str, numpy.ndarray]) -> bool:
    """Whether a tensor that the node saved is known neither by its values nor by statistics of them."""
    return any(one.name not in saved and one.summary is None for one in node.saved)


def _element(array: numpy.ndarray, shape: tuple[int, ...], bad: tuple[int, ...]) -> float | None:
    """Return the element of a saved tensor that belongs to a bad one; None if none does, or it is no number."""
    if array.dtype.kind not in "fiub" or not array.size:
        return None
    found = element_of(array, shape, bad)
    return float(array.reshape(-1)[0]) if found is None and array.size == 1 else found
