"""GS111: A part of an expanded tensor has been written, and all of it has changed."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from ..findings.finding_parts import sites
from ..findings.finding_records import Finding, TensorDescription
from ..static.source_rule import SourceRule
from ..static.statements import SourceText, attribute_call, mentions, stored_names
from ..watching.violation_facts import PartFacts

__all__ = ["ExpandedPartWritten"]


class ExpandedPartWritten(SourceRule):
    """A part of an expanded tensor has been written, and all of it has changed."""

    code = "GS111"
    title = "a part of an expanded tensor written"
    severity = "silent-wrong"
    needs = (PartFacts,)
    words = ("expand(", "broadcast_to(")
    what = """
        expand() and broadcast_to() give a dimension more places without more memory: all of them lie at one address.
        An assignment to some of them changes them all. One to a row is carried out without a word, since the row by
        itself does not overlap, and values and gradients are then those of another program than the one that stands
        there. clone() gives each place an address of its own.
        """
    bad = """
        rows = gs.zeros(3).expand(4, 3)
        rows[0] = gs.ones(3)       # all four rows are ones now
        """
    good = """
        rows = gs.zeros(3).expand(4, 3).clone()
        rows[0] = gs.ones(3)
        """

    def judge(self, facts: PartFacts) -> Iterator[Finding]:
        """Yield the finding."""
        tensor = TensorDescription(facts.name, facts.shape, facts.dtype)
        size = facts.shape[facts.dim]
        yield Finding(
            code=self.code,
            message=f"{tensor} was expanded along dimension {facts.dim}: {facts.count} of its {size} places were to be "
            "written, and all have changed",
            sites=sites(("written", facts.location, f"written here, in all {size} places")),
            tensor=tensor,
            help=f"clone() {facts.name or 'it'} before this line",
        )

    def look(self, source: SourceText) -> Iterator[Finding]:
        """Yield assignments to a part of what the same statements have expanded."""
        for block in source.blocks:
            made: dict[str, _Expanded] = {}
            for statement in block.statements:
                for name in stored_names(statement) if made else ():
                    made.pop(name, None)
                for write in _writes_in(statement) if made else ():
                    expanded = made.get(write.name)
                    dim = None if expanded is None else expanded.part(write)
                    if expanded is not None and dim is not None:
                        yield Finding(
                            code=self.code,
                            message=f"`{write.name}` was expanded along dimension {dim}: an assignment to some of its "
                            "places changes all",
                            sites=sites(
                                ("written", source.at(write.statement, block), "written here, in all places"),
                                ("made", source.at(expanded.statement, block), "expanded here"),
                            ),
                            help=f"clone() {write.name} before this line",
                        )
                if made and mentions(statement, *_CHANGES):
                    made.clear()
                _note(source, statement, made)


_CHANGES = ("data", "set_", "resize_", "as_strided_", "exec", "eval")  # after which a name is no more what it was
_FACTORIES = ("zeros", "ones", "empty", "rand", "randn")
_COMPOUND = (ast.For, ast.While, ast.If, ast.With, ast.Try)


class _Write(NamedTuple):
    """An assignment to an item of a variable, and the variables around it that run over a range."""

    name: str
    statement: ast.stmt
    items: Sequence[ast.expr]
    counters: frozenset[str]

    def chosen(self, place: int) -> int | None:
        """Return how many places a dimension has at least, of which one is chosen; None where that is not sure."""
        item = self.items[place]
        if isinstance(item, ast.Name):
            return 1 if item.id in self.counters else None
        number = _number(item)
        return None if number is None else number + 1 if number >= 0 else -number


class _Expanded(NamedTuple):
    """A statement that expands, and the dimensions it does so along, with their sizes: None where one is not known."""

    statement: ast.stmt
    dims: Mapping[int, int | None]

    def part(self, write: _Write) -> int | None:
        """Return the dimension of which an assignment is sure to leave places out; None for none."""
        for place, item in enumerate(write.items):
            least = write.chosen(place)
            if place in self.dims and least is not None and max(self.dims[place] or 0, least) > 1:
                return place
            if least is None and not isinstance(item, ast.Slice):  # it may stand for several dimensions, or for none
                return None
        return None


def _writes_in(statement: ast.stmt, counters: frozenset[str] = frozenset()) -> Iterator[_Write]:
    """Yield the assignments to items in a statement, not those in a function that it defines."""
    target: ast.expr | None = None
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        target = statement.targets[0]
    elif isinstance(statement, ast.AugAssign):
        target = statement.target
    if isinstance(target, ast.Subscript) and isinstance(target.value, ast.Name):
        items = target.slice.elts if isinstance(target.slice, ast.Tuple) else [target.slice]
        yield _Write(target.value.id, statement, items, counters)
    if isinstance(statement, _COMPOUND):
        counters |= _counters(statement)
        for name in ("body", "orelse", "finalbody"):
            for inner in getattr(statement, name, ()):
                yield from _writes_in(inner, counters)


def _counters(statement: ast.stmt) -> frozenset[str]:
    """Return the variable of a loop over a range."""
    if isinstance(statement, ast.For) and isinstance(statement.target, ast.Name):
        over = statement.iter
        if isinstance(over, ast.Call) and isinstance(over.func, ast.Name) and over.func.id == "range":
            return frozenset([statement.target.id])
    return frozenset()


def _note(source: SourceText, statement: ast.stmt, made: dict[str, _Expanded]) -> None:
    """Note what a statement expands."""
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1:
        return
    target, value = statement.targets[0], statement.value
    if not isinstance(target, ast.Name) or not isinstance(value, ast.Call) or value.keywords:
        return
    base, given = attribute_call(value, "expand", "broadcast_to"), value.args
    if source.library_name(value.func) == "broadcast_to":
        base, given = (value.args[0], value.args[1:]) if value.args else (None, [])
    sizes = _listed(given)
    if base is not None and sizes:
        dims = {dim: _number(sizes[dim]) for dim in _of_size_one(source, base, len(sizes))}
        made[target.id] = _Expanded(statement, {dim: size for dim, size in dims.items() if size not in (1, -1)})


def _of_size_one(source: SourceText, base: ast.expr, rank: int) -> list[int]:
    """Return the dimensions of `rank` that are sure to have one place, or to be new, where a tensor is expanded."""
    if isinstance(base, ast.Subscript):
        first = base.slice.elts[0] if isinstance(base.slice, ast.Tuple) and base.slice.elts else base.slice
        return [0] if isinstance(first, ast.Constant) and first.value is None else []
    if not isinstance(base, ast.Call):
        return []
    if attribute_call(base, "unsqueeze") is not None and len(base.args) == 1:
        place = _number(base.args[0])
        return [0] if place == 0 else [rank - 1] if place == -1 else []
    if source.library_name(base.func) not in _FACTORIES:
        return []
    shape = [_number(size) for size in _listed(base.args)]
    if not shape or None in shape or len(shape) > rank:
        return []
    new = rank - len(shape)
    return [*range(new), *(new + place for place, size in enumerate(shape) if size == 1)]


def _listed(sizes: Sequence[ast.expr]) -> Sequence[ast.expr]:
    """Return sizes that are given one by one, or as one tuple; none where a star stands for some."""
    if len(sizes) == 1 and isinstance(sizes[0], (ast.Tuple, ast.List)):
        sizes = sizes[0].elts
    return [] if any(isinstance(size, ast.Starred) for size in sizes) else sizes


def _number(node: ast.expr) -> int | None:
    """Return the whole number that is written there."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub):
        inner = _number(node.operand)
        return None if inner is None else -inner
    value = node.value if isinstance(node, ast.Constant) else None
    return value if type(value) is int else None
