"""GS105: A view that must not be written in place has been."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import sites
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..watching.violation_facts import RefusedFacts

__all__ = ["ForbiddenViewWrite"]


class ForbiddenViewWrite(Rule):
    """A view that must not be written in place has been."""

    code = "GS105"
    title = "in-place write to a view that does not allow it"
    needs = (RefusedFacts,)
    what = """
        Writing a view also writes its base, so the base's history has to be rewritten. That is impossible for one
        of several views that one operator returned (unbind, split, chunk), for a view that was made under
        no_grad() or in inference mode and is written outside, and for a view that a custom Function returned.
        """
    bad = """
        first, second = x.unbind()
        first.mul_(2)
        """
    good = """
        first, second = x.unbind()
        first = first * 2
        """

    def judge(self, facts: RefusedFacts) -> Iterator[Finding]:
        """Yield the finding, where it is the view that forbids it."""
        if facts.of_leaf or facts.overlaps:
            return
        text = written_at(facts.location, "")
        tensor = TensorDescription(text.name, facts.shape, facts.dtype)
        what, way_out = _VIEWS[facts.reason]
        source = f" ({facts.view_operator})" if facts.view_operator else ""
        write = facts.write
        written = (
            []
            if write is None
            else [("written", write.location, f"written here by {write.operator}, through another alias")]
        )
        use = ("read", "needed here, with a stale history") if written else ("written", "written here")
        yield Finding(
            code=self.code,
            message=f"{tensor}, {what}{source}, was written in place",
            sites=sites(*written, (use[0], facts.location, use[1]), ("viewed", facts.viewed, "the view was made here")),
            tensor=tensor,
            help=f"write `{text.replacement}`" if text.replacement else way_out,
            fix=text.fix,
        )


_VIEWS = {
    "multi": (
        "one of several views returned by one operator",
        "use the out-of-place form, or take the part by indexing or narrow()",
    ),
    "no_grad": (
        "a view made under no_grad()",
        "make the view and write it on the same side of no_grad()",
    ),
    "custom": ("a view returned by a custom Function", "return a clone() from the Function's forward"),
    "inference": ("a view made in inference mode", "clone() the view outside inference mode"),
    "inference tensor": ("an inference tensor", "clone() it outside inference mode"),
}
