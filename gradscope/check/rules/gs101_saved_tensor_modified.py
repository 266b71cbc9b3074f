"""GS101: A tensor that backward needs has been written in place."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from ...inspect.records.write_facts import WriteFact
from ..findings.finding_parts import describe_modified, modified_finding, sites
from ..findings.finding_records import Finding
from ..findings.source_fixes import SourceWrite
from ..static.source_rule import SourceRule
from ..static.statements import Block, SourceText
from ..watching.violation_facts import ModifiedFacts

__all__ = ["SavedTensorModified"]


class SavedTensorModified(SourceRule):
    """A tensor that backward needs has been written in place."""

    code = "GS101"
    title = "saved tensor modified in place"
    needs = (ModifiedFacts,)
    words = ("Sequential(",)
    patterns = (re.compile(r"inplace|(?:CELU|ELU|LeakyReLU|SELU|ReLU|SiLU|Dropout)\(.*True"),)
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
        unheard = "" if told.write is not None else " before the watch began, or by what it cannot hear"
        message = f"{told.tensor} was modified in place{unheard}, and {facts.node} still needs it"
        if facts.spared:
            message = (
                f"{told.tensor} was modified in place beside the part that {facts.node} needs: harmless, and refused "
                "all the same"
            )
        way_out = _help(facts, told.write, told.text)
        yield modified_finding(self.code, facts, told, message, way_out, way=_way(facts, told.write))

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield layers of a Sequential that write in place what the layer before them has saved."""
        for block in source.blocks:
            for statement in block.statements:
                for call in _sequentials(source, statement):
                    for layer, following in zip(call.args, call.args[1:]):
                        if _saves_its_result(source, layer) and _works_in_place(source, following):
                            yield self._of_layers(source, block, layer, following)

    def _of_layers(self, source: SourceText, block: Block, layer: ast.expr, following: ast.expr) -> Finding:
        names = source.library_name(layer.func), source.library_name(following.func)  # type: ignore[attr-defined]
        first, second = (name.rpartition(".")[2] for name in names)
        return Finding(
            code=self.code,
            message=f"{second} writes in place what {first} has saved for backward: its own result",
            sites=sites(
                ("made", source.at(following, block), "told to work in place"),
                ("saved", source.at(layer, block), "saves its result"),
            ),
            help=f"make that {second} without inplace=True",
        )


# Modules whose derivative is computed from their result, and modules whose forward writes its input when it is told to.
_SAVING = {"LogSoftmax", "ReLU", "Sigmoid", "Softmax", "Tanh"}
_IN_PLACE = {"CELU": 1, "Dropout": 1, "ELU": 1, "LeakyReLU": 1, "SELU": 0, "ReLU": 0, "SiLU": 0}
_SIMPLE = (ast.Assign, ast.AnnAssign, ast.Return, ast.Expr)


def _sequentials(source: SourceText, statement: ast.stmt) -> Iterator[ast.Call]:
    for node in ast.walk(statement) if isinstance(statement, _SIMPLE) else ():
        if isinstance(node, ast.Call) and source.library_name(node.func) == "nn.Sequential":
            yield node


def _class_of(source: SourceText, layer: ast.expr) -> str:
    """Return the class of the library that a layer is made of; empty for another."""
    name = source.library_name(layer.func) if isinstance(layer, ast.Call) else ""
    return name.removeprefix("nn.") if name.startswith("nn.") else ""


def _saves_its_result(source: SourceText, layer: ast.expr) -> bool:
    return _class_of(source, layer) in _SAVING


def _works_in_place(source: SourceText, layer: ast.expr) -> bool:
    place = _IN_PLACE.get(_class_of(source, layer))
    if place is None or not isinstance(layer, ast.Call):
        return False
    given = layer.args[place : place + 1] + [word.value for word in layer.keywords if word.arg == "inplace"]
    return any(isinstance(value, ast.Constant) and value.value is True for value in given)


def _detached(facts: ModifiedFacts, write: WriteFact | None) -> bool:
    """Whether what was written is the memory of a result, and not known to the graph."""
    return write is not None and not write.requires_grad and bool(facts.producer) and write.grad_enabled


def _way(facts: ModifiedFacts, write: WriteFact | None) -> str:
    if facts.spared:
        return ""
    if _detached(facts, write):
        return " through detach(), which shares the memory"
    hidden = write is not None and not write.grad_enabled
    return " under no_grad(), which hides it from the graph and not from the memory" if hidden else ""


def _help(facts: ModifiedFacts, write: WriteFact | None, text: SourceWrite) -> str:
    name = text.name or "the tensor"
    if facts.spared:
        return (
            "clone() the part where it is saved, so that it has memory and a version of its own, or collect the parts "
            "in a list and stack() them"
        )
    if _detached(facts, write):
        return f"write into `{name}.detach().clone()`"
    if text.replacement:
        return f"write `{text.replacement}`"
    if text.into_part:
        return (
            f"write into a copy (`{name} = {name}.clone()` before this line), or collect the parts in a list and "
            "stack() them"
        )
    if write is not None and write.module:
        return f"make that {write.module} without inplace=True"
    if write is None:
        return "look between the line that saved and backward() for a write in place, and write into a clone()"
    operator = write.operator.removesuffix("_")
    return f"use the out-of-place {operator}(), or write into a clone() of {name}"
