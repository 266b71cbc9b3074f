"""D304: The backward of a custom Function is not the derivative of its forward."""

from __future__ import annotations

from collections.abc import Iterator

from ....records.records import Location
from ...functions.custom_derivatives import CheckedFunction
from ...program_facts import FUNCTIONS
from ...rule_registry import Rule

__all__ = ["WrongDerivative"]


class WrongDerivative(Rule):
    """The backward of a custom Function is not the derivative of its forward."""

    code = "D304"
    title = "a custom Function with a wrong derivative"
    severity = "silent-wrong"
    needs = (FUNCTIONS,)
    certainty = "likely"
    kind = "wrong gradient"
    what = """
        The backward of a custom Function disagrees with finite differences of its forward, at the inputs that the
        program gave it first. Nothing checks the formula while a program runs, so the gradient is wrong without an
        error. When the program has ended, each Function runs again on copies, along one direction in which all of its
        inputs move; with `gradscope doctor --functions`, one input at a time.
        """
    bad = """
        class Square(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * x                # half of it

        Square.apply(gs.ones(3, requires_grad=True)).sum().backward()
        """
    good = """
        class Square(gs.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * x

            @staticmethod
            def backward(ctx, grad):
                (x,) = ctx.saved_tensors
                return grad * 2 * x

        Square.apply(gs.ones(3, requires_grad=True)).sum().backward()
        """
    topic = "custom-function"

    def judge(self, functions: tuple[CheckedFunction, ...]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for function in functions:
            yield str(function), function.location
