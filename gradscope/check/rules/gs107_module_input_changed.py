"""GS107: A module has written the tensor that it was given, and its caller reads it again."""

from __future__ import annotations

from collections.abc import Iterator

from ...inspect.diagnosis.rule_registry import Rule
from ..findings.finding_parts import sites
from ..findings.finding_records import Finding, TensorDescription
from ..watching.violation_facts import InputFacts

__all__ = ["ModuleInputChanged"]


class ModuleInputChanged(Rule):
    """A module has written the tensor that it was given, and its caller reads it again."""

    code = "GS107"
    title = "a module's input changed in place"
    severity = "silent-wrong"
    needs = (InputFacts,)
    what = """
        A module was called with a tensor, wrote it in place and returned another one; the caller went on with its
        own tensor, which now has other values. Nothing raises, and the gradient is that of a function which is not
        the one that stands there. Typical is ReLU(inplace=True) at the beginning of a residual branch: the skip
        connection then carries relu(x) in place of x.
        """
    bad = """
        branch = gs.nn.Sequential(gs.nn.ReLU(inplace=True), gs.nn.Linear(3, 3))
        out = branch(x) + x        # the ReLU has written x
        """
    good = """
        branch = gs.nn.Sequential(gs.nn.ReLU(), gs.nn.Linear(3, 3))
        out = branch(x) + x
        """

    def judge(self, facts: InputFacts) -> Iterator[Finding]:
        """Yield the finding."""
        given, reader = facts.written_input, facts.reader
        tensor = TensorDescription(given.name, given.shape, given.dtype)
        name = given.name or "x"
        cure = (
            f"make that {given.writer} without inplace=True"
            if given.by_flag
            else f"write a new tensor in {given.writer}"
        )
        yield Finding(
            code=self.code,
            message=f"{tensor} was given to `{given.module}`, whose {given.writer} changed it in place, "
            "and is read again",
            sites=sites(
                ("made", given.made, f"this {given.writer} works in place"),
                ("written", given.written, f"written here by {given.operator}, inside `{given.module}`"),
                ("read", facts.read, f"read here by {reader}, with the new values"),
            ),
            tensor=tensor,
            node=reader,
            help=f"{cure}, or call {given.module}({name}.clone())",
        )
