"""D301: A backward has failed for another reason than a write."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...functions.failed_backward import FailedBackward
from ...program_facts import FAILURE, OTHERS
from ...rule_registry import Rule

__all__ = ["BackwardFails"]


class BackwardFails(Rule):
    """A backward has failed for another reason than a write."""

    code = "D301"
    title = "a backward that raises"
    severity = "error"
    needs = (FAILURE, OTHERS)
    kind = "failed"
    what = """
        A node's derivative raised, or returned what cannot be a gradient: too many or too few, of another shape or
        dtype. The traceback shows backward() and not the operator; the finding names the line that called it, and
        what the node was given. Writes in place, which make backward() raise too, have codes of their own.
        """
    bad = """
        class Half(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x[:2]

            @staticmethod
            def backward(ctx, grad):
                return grad                    # of shape (2,), for an input of shape (4,)

        Half.apply(gs.ones(4, requires_grad=True)).sum().backward()
        """
    good = """
        class Half(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                return x[:2]

            @staticmethod
            def backward(ctx, grad):
                return gs.cat([grad, gs.zeros(2)])

        Half.apply(gs.ones(4, requires_grad=True)).sum().backward()
        """
    topic = "custom-function"

    def judge(self, failed: FailedBackward | None, others: tuple[object, ...]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        if failed is not None and not others:
            yield str(failed), failed.location
