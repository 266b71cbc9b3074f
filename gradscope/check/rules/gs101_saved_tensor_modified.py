"""GS101: A tensor that backward needs has been written in place."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ...inspect.records.write_account import WriteFact
from ..finding_parts import describe_modified, modified_finding
from ..findings import Finding
from ..source_fixes import SourceWrite
from ..violation_facts import ModifiedFacts

__all__ = ["SavedTensorModified"]


class SavedTensorModified(Rule):
    """A tensor that backward needs has been written in place."""

    code = "GS101"
    title = "saved tensor modified in place"
    needs = (ModifiedFacts,)
    what = """
        A node of the backward graph keeps the tensors its derivative needs: some operators save an input (mul,
        pow, matmul), some their own result (exp, sigmoid, tanh, softmax). A later in-place write changed the
        values in that memory, so the derivative can no longer be computed; backward() notices by the version
        number of the memory and raises. Views and detach() share the memory, and no_grad() hides a write from the
        graph, not from the memory.
        """
    bad = """
        out = x.sigmoid()      # saves its result
        out += skip            # overwrites it
        out.sum().backward()   # needs it
        """
    good = """
        out = x.sigmoid()
        out = out + skip       # a new tensor; the saved one stays as it was
        out.sum().backward()
        """

    def judge(self, facts: ModifiedFacts) -> Iterator[Finding]:
        """Yield the finding, where it is no parameter's memory."""
        if facts.of_parameter:
            return
        told = describe_modified(facts)
        message = f"{told.tensor} was modified in place, and {facts.node} still needs it"
        if facts.spared:
            message = (
                f"{told.tensor} was modified in place beside the part that {facts.node} needs: harmless, and refused "
                "all the same"
            )
        yield modified_finding(self.code, facts, told, message, _help(facts, told.write, told.text))


def _help(facts: ModifiedFacts, write: WriteFact | None, text: SourceWrite) -> str:
    name = text.name or "the tensor"
    if facts.spared:
        return (
            "clone() the part where it is saved, so that it has memory and a version of its own, or collect the parts "
            "in a list and stack() them"
        )
    if write is not None and not write.requires_grad and facts.producer and write.grad_enabled:
        return f"the write went through detach(), which shares the memory: write into `{name}.detach().clone()`"
    hidden = write is not None and not write.grad_enabled
    prefix = "no_grad() hides the write from the graph, not from the memory: " if hidden else ""
    if text.replacement:
        return f"{prefix}write `{text.replacement}`"
    if text.into_part:
        return (
            f"{prefix}write into a copy (`{name} = {name}.clone()` before this line), or collect the parts in a list "
            "and stack() them"
        )
    if write is None:
        return (
            "the write came before the watch began, or from what it cannot hear: look between the line that saved and "
            "backward() for one in place, and write into a clone()"
        )
    operator = write.operator.removesuffix("_")
    return f"{prefix}use the out-of-place {operator}(), or write into a clone() of {name}"
