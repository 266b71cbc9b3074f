"""D305: A loss contains a gradient that is a constant in it."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Rule

__all__ = ["ConstantGradient"]


class ConstantGradient(Rule):
    """A loss contains a gradient that is a constant in it."""

    code = "D305"
    title = "a gradient in the loss that is a constant"
    severity = "silent-wrong"
    needs = (EXAMINATION,)
    kind = "constant gradient"
    what = """
        A loss contains a gradient that autograd.grad() gave without a graph. It is a constant there: a penalty on it
        changes the loss and no parameter. create_graph=True records the gradient's own computation.
        """
    bad = """
        w, x = gs.nn.Parameter(gs.ones(3)), gs.ones(3, requires_grad=True)
        (slope,) = gs.autograd.grad((w * x).exp().sum(), x)
        ((w * w).sum() + (slope.norm() - 1) ** 2).backward()   # the penalty changes nothing
        """
    good = """
        w, x = gs.nn.Parameter(gs.ones(3)), gs.ones(3, requires_grad=True)
        (slope,) = gs.autograd.grad((w * x).exp().sum(), x, create_graph=True)
        ((w * w).sum() + (slope.norm() - 1) ** 2).backward()
        """
    topic = "create-graph"

    def judge(self, examined: Examination) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for term in examined.terms:
            if term.kind == self.kind:
                yield str(term), term.location
