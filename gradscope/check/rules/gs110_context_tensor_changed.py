"""GS110: A custom Function has kept a tensor on ctx, which has been written before backward reads it."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import later_writes, sites
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..watching.violation_facts import ContextFacts

__all__ = ["ContextTensorChanged"]


class ContextTensorChanged(Rule):
    """A custom Function has kept a tensor on ctx, which has been written before backward reads it."""

    code = "GS110"
    title = "tensor kept on ctx changed"
    severity = "silent-wrong"
    needs = (ContextFacts,)
    what = """
        The forward of a custom Function kept one of its inputs or outputs as an attribute of ctx. Of what is saved by
        ctx.save_for_backward() the version is checked, and backward() refuses what has been written since; an attribute
        is not checked, so that backward computes with the new values and returns a wrong gradient. It keeps the graph
        alive as well, where it is an output.
        """
    bad = """
        class Square(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.x = x
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad * ctx.x

        h = w * 1
        y = Square.apply(h)
        with gs.no_grad():
            h.mul_(10)
        y.sum().backward()
        """
    good = """
        class Square(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                return 2 * grad * ctx.saved_tensors[0]

        h = w * 1
        y = Square.apply(h)
        y.sum().backward()
        """

    def judge(self, facts: ContextFacts) -> Iterator[Finding]:
        """Yield the finding."""
        write = facts.writes[0] if facts.writes else None
        where = None if write is None else write.location
        name = "" if write is None else written_at(where, write.operator).name
        tensor = TensorDescription(name, facts.shape, facts.dtype, saved_as=facts.attribute)
        yield Finding(
            code=self.code,
            message=f"{tensor} changed, which {facts.node} has kept as `{facts.attribute}`, and computes with the new "
            "values",
            sites=sites(
                ("written", where, "" if write is None else f"written here by {write.operator}"),
                ("saved", facts.saved, f"kept here by {facts.node} as `{facts.attribute}`"),
                ("read", facts.read, f"needed here: {facts.node} does not fail, its gradient is wrong"),
                *later_writes(facts.writes),
            ),
            tensor=tensor,
            node=facts.node,
            help="keep it by ctx.save_for_backward(), which backward() checks, and write it after backward()",
        )
