"""GS102: A parameter has been written between forward and backward."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import describe_modified, modified_finding
from ..findings.finding_records import Finding
from ..watching.violation_facts import ModifiedFacts

__all__ = ["ParameterModified"]


class ParameterModified(Rule):
    """A parameter has been written between forward and backward."""

    code = "GS102"
    title = "parameter modified between forward and backward"
    needs = (ModifiedFacts,)
    what = """
        The forward pass saved a parameter (or a view of it, such as the transposed weight of a linear layer). An
        optimizer step, or another write under no_grad(), changed it before backward() used it. The gradient
        belongs to the old values, so the step has to wait, or the forward pass has to run again after it. Typical
        where two models train against each other: the first one's step comes before the backward pass of a loss
        that also went through it.
        """
    bad = """
        loss = criterion(model(x), y)
        optimizer.step()       # writes the weights that forward saved
        loss.backward()
        """
    good = """
        loss = criterion(model(x), y)
        loss.backward()
        optimizer.step()
        """

    def judge(self, facts: ModifiedFacts) -> Iterator[Finding]:
        """Yield the finding, where it is a parameter's memory."""
        if not facts.of_parameter:
            return
        told = describe_modified(facts)
        write, step = told.write, told.write is not None and told.write.step
        by = "an optimizer step" if step else f"{write.operator}()" if write is not None else "a write"
        forward = "the forward of an iteration before and this backward" if facts.ran_before else "forward and backward"
        message = f"parameter {told.tensor} was modified by {by} between {forward}".replace(" a tensor", "")
        yield modified_finding(self.code, facts, told, message, _help(step, facts.ran_before))


def _help(step: bool, ran_before: bool) -> str:
    if ran_before:
        return "detach() what one iteration hands to the next (`h = h.detach()`), and leave retain_graph=True out"
    if step:
        return "call backward() before step(), or run the forward pass again after it"
    return "update the parameter after backward(), or run the forward pass again after the update"
