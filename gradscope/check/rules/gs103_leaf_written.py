"""GS103: A leaf that requires grad has been written in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ..findings.finding_parts import same_line, sites
from ..findings.finding_records import Finding, TensorDescription
from ..findings.source_fixes import written_at
from ..static.source_rule import SourceRule
from ..static.statements import SourceText, attribute_call, mentions, stored_names
from ..watching.violation_facts import RefusedFacts

__all__ = ["LeafWritten"]


class LeafWritten(SourceRule):
    """A leaf that requires grad has been written in place."""

    code = "GS103"
    title = "leaf that requires grad written in place"
    needs = (RefusedFacts,)
    words = ("requires_grad=True", "Parameter(")
    patterns = (re.compile(r"requires_grad=True|^[ \t]*\w+ = [\w.]*Parameter\(", re.MULTILINE),)
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
            help=_HELP,
        )

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield writes into what the same statements have made as a leaf."""
        if "set_grad_enabled" in source.text and mentions(source.tree, "set_grad_enabled"):
            return
        for block in source.blocks:
            made: dict[str, ast.stmt] = {}
            for statement in block.statements if block.plain else ():
                name = _written(statement)
                if name in made:
                    yield Finding(
                        code=self.code,
                        message=f"`{name}`, a leaf that requires grad, is written in place",
                        sites=sites(
                            ("written", source.at(statement, block), "written here, while recording"),
                            ("made", source.at(made[name], block), "made a leaf here"),
                        ),
                        help=_HELP,
                    )
                _note(source, statement, made)


_HELP = "write it under `with no_grad():`, or use the out-of-place form"

_FACTORIES = {
    "arange", "as_tensor", "empty", "eye", "full", "linspace", "ones", "rand", "randn", "tensor", "zeros",
}  # fmt: skip
_CHANGES = ("requires_grad", "requires_grad_", "detach_", "data", "set_", "exec", "eval")  # after which it may be none
_WRITES = ("add_", "clamp_", "copy_", "div_", "fill_", "mul_", "normal_", "sub_", "uniform_", "zero_")


def _written(statement: ast.stmt) -> str:
    """Return the name whose tensor a statement writes; empty for none."""
    target: ast.expr | None = None
    if isinstance(statement, ast.AugAssign):
        target = statement.target
    elif isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Subscript):
        target = statement.targets[0]
    elif isinstance(statement, ast.Expr):
        target = attribute_call(statement.value, *_WRITES)
    if isinstance(target, ast.Subscript):
        target = target.value
    return target.id if isinstance(target, ast.Name) else ""


def _note(source: SourceText, statement: ast.stmt, made: dict[str, ast.stmt]) -> None:
    """Note the leaf that a statement makes, and which are leaves, or require grad, no more."""
    for name in stored_names(statement) if made else ():
        made.pop(name, None)
    target = statement.targets[0] if isinstance(statement, ast.Assign) and len(statement.targets) == 1 else None
    if isinstance(target, ast.Name) and _makes_a_leaf(source, statement.value):  # type: ignore[attr-defined]
        made[target.id] = statement
    elif made and mentions(statement, *_CHANGES):
        made.clear()


def _makes_a_leaf(source: SourceText, value: ast.expr) -> bool:
    if not isinstance(value, ast.Call):
        return False
    name = source.library_name(value.func)
    said = {keyword.arg: keyword.value for keyword in value.keywords}
    asked = said.get("requires_grad")
    if name in _FACTORIES:
        return isinstance(asked, ast.Constant) and asked.value is True and "dtype" not in said
    return name in ("nn.Parameter", "nn.parameter.Parameter") and len(value.args) == 1 and not said
