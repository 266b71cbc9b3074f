"""The producer of a NaN or an infinity inside of what torch.compile has compiled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from ...adapters import Adapter
from ...records.records import InnerOperator
from ...source.call_sites import place
from .nan_causes import Cause, backward_cause, element_of, forward_cause, singular_at
from .nan_producers import all_finite, first_bad, producer_of
from .nan_records import Producer

__all__ = ["first_bad_inside", "producer_inside", "with_cause"]

_IN_FORWARD = "its result is not finite in the forward pass already"


def producer_inside(adapter: Adapter, run: Any) -> Producer | None:
    """Return out of which call inside of a compiled region a bad value came; None if that cannot be told.

    Parameters
    ----------
    run : CompiledRun
        See :class:`gradscope.inspect.adapters.protocol.CompiledRun`.
    """
    made = [value for value in run.made if adapter.is_tensor(value)]
    if all_finite(map(adapter.to_host, made)):
        return None
    with adapter.quiet():
        # What was bad when it came in has been looked at where it came from.
        if not all_finite(adapter.to_host(value) for value in run.inputs() if adapter.is_tensor(value)):
            return None
        return _in_forward(adapter, run) or _in_backward(adapter, run)


def with_cause(adapter: Adapter, run: Any, inside: tuple[InnerOperator, ...]) -> tuple[InnerOperator, ...]:
    """Return what is inside of a compiled region that has run, the call that has made the first bad value with why."""
    first, found = first_bad_inside(inside), producer_inside(adapter, run)
    if first is None or found is None:
        return inside
    why = found.text
    if (found.name, found.location) != (first.operator, first.location):
        why = f"{found.name} at {place(found.location)}: {why}"
    told = replace(first, why=f"{why}\n{found.help}" if found.help else why)
    return tuple(told if one is first else one for one in inside)


def first_bad_inside(inside: Sequence[InnerOperator]) -> InnerOperator | None:
    """Return the call out of whose backward the first NaN or infinity has come; None where none has."""
    return next((one for one in inside if one.bad), None)


def _in_forward(adapter: Adapter, run: Any) -> Producer | None:
    for operator, value in run.saved():
        values = adapter.to_host(value) if adapter.is_tensor(value) else None
        bad = None if values is None else first_bad(values)
        if bad is not None:
            cause = Cause(_IN_FORWARD)
            return producer_of("forward", operator.operator, operator.module, operator.location, cause, values, bad, ())
    return None


def _in_backward(adapter: Adapter, run: Any) -> Producer | None:
    for step in run.steps():
        found = next((kernel for kernel in step.kernels if _is_bad(adapter, kernel.output)), None)
        if found is None:
            continue
        if any(_is_bad(adapter, grad) for grad in step.given):
            return None
        operator, values = step.operator, adapter.to_host(found.output)
        bad = first_bad(values)
        assert bad is not None
        inputs = [adapter.to_host(value) for value in found.inputs]
        grads = [adapter.to_host(grad) for grad in step.given if adapter.is_tensor(grad)]
        grad = next((element_of(each, values.shape, bad) for each in grads), None)
        saved = [adapter.to_host(value) for value in step.saved if adapter.is_tensor(value)]
        cause = _derivative_cause(operator.operator, grad, [*inputs, *saved], values, bad)
        cause = cause or _kernel_cause(operator.operator, found.name, inputs, values, bad)
        operands = () if grad is None else (("gradient", grad),)
        return producer_of(
            "backward", operator.operator, operator.module, operator.location, cause, values, bad, operands
        )
    return None


def _is_bad(adapter: Adapter, value: Any) -> bool:
    return adapter.is_tensor(value) and first_bad(adapter.to_host(value)) is not None


def _derivative_cause(
    function: str, grad: float | None, operands: Sequence[Any], values: Any, bad: tuple[int, ...]
) -> Cause | None:
    """Return where the derivative of the function is infinite, if an operand is there."""
    name = function.capitalize()
    for operand in operands:
        element = element_of(operand, values.shape, bad) if operand.dtype.kind in "fiu" else None
        elements = dict.fromkeys(("self", "result", "other"), element)
        if element is not None and singular_at(name, elements):
            return backward_cause(name, grad, elements, float(abs(values[bad])), "")
    return None


def _kernel_cause(function: str, kernel: str, inputs: Sequence[Any], values: Any, bad: tuple[int, ...]) -> Cause:
    """Return the arithmetic of a kernel in the derivative of a function."""
    cause = forward_cause(kernel, inputs, values, bad)
    return replace(cause, text=f"{cause.text}, in the derivative of {function}")
