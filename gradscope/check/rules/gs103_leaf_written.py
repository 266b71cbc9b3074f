"""GS103: A leaf that requires grad has been written in place."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..finding_parts import same_line, sites
from ..findings import Finding, TensorDescription
from ..source_fixes import written_at
from ..violation_facts import RefusedFacts

__all__ = ["LeafWritten"]


class LeafWritten(Rule):
    """A leaf that requires grad has been written in place."""

    code = "GS103"
    title = "leaf that requires grad written in place"
    needs = (RefusedFacts,)
    what = """
        A leaf (a parameter, or a tensor made with requires_grad=True) or a view of one was written in place while
        operators were being recorded. The leaf's value would then depend on an earlier value of itself, and its
        gradient would belong to neither, so the write is refused where it stands.
        """
    bad = """
        w -= lr * w.grad
        """
    good = """
        with gs.no_grad():
            w -= lr * w.grad
        """

    def judge(self, facts: RefusedFacts) -> Iterator[Finding]:
        """Yield the finding, where a leaf or a view of one was written."""
        if not facts.of_leaf:
            return
        text = written_at(facts.location, "")
        tensor = TensorDescription(text.name, facts.shape, facts.dtype, parameter=True)
        kind = "a view of a leaf" if facts.reason == "view of leaf" else "a leaf"
        viewed = None if same_line(facts.viewed, facts.location) else facts.viewed
        yield Finding(
            code=self.code,
            message=f"{tensor}, {kind} that requires grad, was written in place",
            sites=sites(
                ("written", facts.location, "written here, while recording"),
                ("viewed", viewed, "the view was made here"),
            ),
            tensor=tensor,
            help="write it under `with no_grad():`, or use the out-of-place form",
        )
