"""What the calls inside of a region that torch.compile has compiled do to the size of a gradient."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from ...adapters import Adapter
from ...records.records import InnerOperator, Location
from ...records.tensor_statistics import quick_norm
from .zero_gradients import ZeroCause, cause_inside

__all__ = ["CallGain", "CompiledFlow", "flow_inside"]


class CallGain(NamedTuple):
    """By how much the backward of a call inside multiplies a gradient: the logarithm."""

    operator: str
    location: Location | None
    factor: float


class CompiledFlow(NamedTuple):
    """What becomes of a gradient inside of a compiled region.

    Attributes
    ----------
    zero : ZeroCause or None
        The first call that makes a gradient zero.
    gains : tuple of CallGain
        Those of the calls on the way, in the order of the backward.
    """

    zero: ZeroCause | None
    gains: tuple[CallGain, ...]


def flow_inside(adapter: Adapter, run: Any, given: Sequence[Any], ratio: float) -> CompiledFlow | None:
    """Return what becomes of a gradient inside of a compiled region; None where nothing is wrong with that.

    Parameters
    ----------
    run : CompiledRun
        See :class:`gradscope.inspect.adapters.protocol.CompiledRun`.
    given : sequence of (Tensor or None)
        The gradients that came into the region.
    ratio : float
        By how many times a gradient that leaves it differs from those, to look inside.
    """
    arrived = max(_sizes(adapter, given), default=0.0)
    left = list(_sizes(adapter, run.made))
    if not left or not 0.0 < arrived < math.inf or all(arrived / ratio < size < arrived * ratio for size in left):
        return None
    zero, gains = None, []
    with adapter.quiet():
        for step in run.steps():
            before = max(_sizes(adapter, step.given), default=0.0)
            after = max(_sizes(adapter, step.made), default=0.0)
            if before and after:
                gains.append(CallGain(_called(step.operator), step.operator.location, math.log(after / before)))
            elif before and zero is None:
                saved = {str(nr): value for nr, value in enumerate(step.saved) if adapter.is_tensor(value)}
                zero = cause_inside(adapter, step.operator, saved)
    return CompiledFlow(zero, tuple(gains))


def _called(operator: InnerOperator) -> str:
    return f"{operator.operator} inside of what is compiled"


def _sizes(adapter: Adapter, gradients: Sequence[Any]) -> Iterator[float]:
    """Yield the root mean square of each gradient."""
    for gradient in gradients:
        values = adapter.to_host(gradient) if adapter.is_tensor(gradient) else None
        if values is not None and values.dtype.kind == "f" and values.size:
            yield quick_norm(values) / math.sqrt(values.size)
