"""D312: A custom Function keeps the graph that keeps it."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Rule

__all__ = ["SelfKeptGraph"]


class SelfKeptGraph(Rule):
    """A custom Function keeps the graph that keeps it."""

    code = "D312"
    title = "a custom Function that keeps its own graph"
    severity = "warning"
    needs = (EXAMINATION,)
    kind = "cycle"
    what = """
        A custom Function has put its own result on ctx as an attribute. The result keeps the node, the node keeps the
        result: neither is freed before the garbage collector runs, and in PyTorch never. save_for_backward() ties no
        such knot.
        """
    bad = """
        class Exp(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.result = x.exp()
                return ctx.result

            @staticmethod
            def backward(ctx, grad):
                return grad * ctx.result

        w = gs.nn.Parameter(gs.ones(3))
        Exp.apply(w).sum().backward()
        """
    good = """
        class Exp(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                result = x.exp()
                ctx.save_for_backward(result)
                return result

            @staticmethod
            def backward(ctx, grad):
                (result,) = ctx.saved_tensors
                return grad * result

        w = gs.nn.Parameter(gs.ones(3))
        Exp.apply(w).sum().backward()
        """
    topic = "hooks"

    def judge(self, examined: Examination) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for cycle in examined.cycles:
            yield str(cycle), cycle.location
