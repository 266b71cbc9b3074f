"""D313: Gradients share memory."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...examination import Examination
from ...explanation import at
from ...program_facts import EXAMINATION
from ...rule_registry import Rule

__all__ = ["SharedGradients"]

_SHOWN = 3


class SharedGradients(Rule):
    """Gradients share memory."""

    code = "D313"
    title = "gradients in one memory"
    severity = "silent-wrong"
    needs = (EXAMINATION,)
    kind = "aliasing"
    what = """
        The gradients of two parameters, or a gradient and a parameter, lie in the same bytes. What is added to one
        changes the other; clipping, scaling and zero_grad(set_to_none=False) reach both at once.
        """
    bad = """
        model = gs.nn.Linear(2, 2)
        model.weight.grad = shared = gs.zeros(2, 2)
        model.bias.grad = shared[0]
        model(gs.ones(4, 2)).sum().backward()
        """
    good = """
        model = gs.nn.Linear(2, 2)
        model.weight.grad, model.bias.grad = gs.zeros(2, 2), gs.zeros(2)
        model(gs.ones(4, 2)).sum().backward()
        """

    def judge(self, examined: Examination) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        dangerous = () if examined.sharing is None else examined.sharing.dangerous
        if dangerous:
            lines = examined.assigned
            assigned = f"\n  A .grad is assigned{' and'.join(map(at, lines))}." if 0 < len(lines) <= _SHOWN else ""
            text = "\n  ".join(entry.text for entry in dangerous)
            yield f"{text}{assigned}\n  Give each a tensor of its own: clone() it.", lines[0] if lines else None
