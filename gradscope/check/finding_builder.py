"""From what a framework tells of a misuse to the finding: the same sentences, places and help for all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..inspect.records.records import Location
from ..inspect.records.write_account import ASSIGNED, ShareFact, WriteFact
from .findings import Finding, Site, TensorDescription
from .source_fixes import Write, written_at

__all__ = [
    "Bystander",
    "ChangedFacts",
    "FreedFacts",
    "ModifiedFacts",
    "RefusedFacts",
    "changed",
    "changed_gradient",
    "changed_input",
    "freed",
    "modified",
    "refused",
]

# More places than this that wrote the same tensor since it was saved say nothing new.
_MORE_WRITES = 2


@dataclass(frozen=True, slots=True)
class ModifiedFacts:
    """A saved tensor that has been written since.

    Attributes
    ----------
    node, saved_name, dtype, producer : str
        `producer` is empty for a leaf, or where it is not known.
    writes : sequence of WriteFact
        Those since it was saved, the first one first, as far as they are known.
    leaf : str or None
        The name of the leaf whose memory it is (empty where it has none); None where it is no leaf's.
    reached : bool
        Whether backward came to the node, or would have.
    spared : bool
        Whether none of the writes touched a byte that was saved, as far as that is known.
    """

    node: str
    saved_name: str
    shape: tuple[int, ...]
    dtype: str
    producer: str
    saved_version: int
    current_version: int
    saved: Location | None
    read: Location | None
    writes: Sequence[WriteFact]
    leaf: str | None
    reached: bool
    spared: bool = False


@dataclass(frozen=True, slots=True)
class ChangedFacts:
    """A saved tensor that has other values than were saved, at the same version.

    Attributes
    ----------
    node, saved_name, dtype, producer : str
        `producer` is empty for a leaf, or where it is not known.
    writes : sequence of WriteFact
        Those into its memory since it was saved, as far as an operator did them.
    shares : sequence of ShareFact
        Who had been handed the memory, the last one last.
    leaf : str or None
        As in :class:`ModifiedFacts`.
    """

    node: str
    saved_name: str
    shape: tuple[int, ...]
    dtype: str
    producer: str
    version: int
    saved: Location | None
    read: Location | None
    writes: Sequence[WriteFact]
    shares: Sequence[ShareFact]
    leaf: str | None


@dataclass(frozen=True, slots=True)
class RefusedFacts:
    """A write that was refused.

    Attributes
    ----------
    reason : str
        As of :class:`gradscope.InplaceError`.
    location, viewed : Location or None
        Where it was refused, and where the view was made.
    write : WriteFact or None
        For a stale view: the write through another alias that made it so.
    """

    reason: str
    shape: tuple[int, ...]
    dtype: str
    view_operator: str
    location: Location | None
    viewed: Location | None
    write: WriteFact | None = None


@dataclass(frozen=True, slots=True)
class FreedFacts:
    """A backward that came to a node which an earlier one had freed.

    Attributes
    ----------
    saved, read, first : Location or None
        Where the node was recorded, and where the two backwards were called.
    """

    node: str
    saved: Location | None
    read: Location | None
    first: Location | None


def modified(facts: ModifiedFacts) -> Finding:
    """Return the finding for a saved tensor that was written: GS101, or GS102 for a parameter."""
    write = facts.writes[0] if facts.writes else None
    step = write is not None and write.step
    where = write.location if write is not None else None
    text = written_at(where, write.operator) if write is not None else Write()
    name = facts.leaf or ("" if step else text.name)
    tensor = TensorDescription(name, facts.shape, facts.dtype, facts.producer, facts.saved_name, facts.leaf is not None)
    is_parameter = step or facts.leaf is not None
    if is_parameter:
        by = "an optimizer step" if step else f"{write.operator}()" if write is not None else "a write"
        message = f"parameter {tensor} was modified by {by} between forward and backward".replace(" a tensor", "")
    else:
        message = f"{tensor} was modified in place, and {facts.node} still needs it"
    return Finding(
        code="GS102" if is_parameter else "GS101",
        message=message,
        sites=_sites(
            ("written", where, f"written here by {write.operator}" if write is not None else ""),
            ("saved", facts.saved, f"saved here by {facts.node} as `{facts.saved_name}`"),
            ("read", facts.read, f"needed here: {facts.node} {'fails' if facts.reached else 'would fail'}"),
            *(("written again", w.location, f"written again by {w.operator}") for w in _further(facts.writes)),
        ),
        tensor=tensor,
        node=facts.node,
        saved_version=facts.saved_version,
        current_version=facts.current_version,
        spared=facts.spared,
        help=_help_for_write(facts, write, text, is_parameter),
    )


def _sites(*entries: tuple[str, Location | None, str]) -> tuple[Site, ...]:
    """Return a Site for each (role, location, text) whose place is known."""
    return tuple(Site(role, location, text) for role, location, text in entries if location is not None)


def _further(writes: Sequence[WriteFact]) -> list[WriteFact]:
    """Return the later writes, one per line, that stand elsewhere than the first."""
    seen = {_line(write.location) for write in writes[:1]}
    found = []
    for write in writes[1:]:
        if write.location is not None and _line(write.location) not in seen:
            seen.add(_line(write.location))
            found.append(write)
    return found[:_MORE_WRITES]


def _line(location: Location | None) -> tuple[str, int] | None:
    return None if location is None else (location.filename, location.lineno)


def _help_for_write(facts: ModifiedFacts, write: WriteFact | None, text: Write, is_parameter: bool) -> str:
    if write is not None and write.step:
        return "call backward() before step(), or run the forward pass again after it"
    if is_parameter:
        return "update the parameter after backward(), or run the forward pass again after the update"
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
    operator = write.operator.removesuffix("_") if write is not None else "the operator"
    return f"{prefix}use the out-of-place {operator}(), or write into a clone() of {name}"


def changed(facts: ChangedFacts) -> Finding:
    """Return the finding for a saved tensor whose values changed though its version did not: GS106."""
    write = facts.writes[0] if facts.writes else None
    share = facts.shares[-1] if facts.shares else None
    where = write.location if write is not None else None
    name = facts.leaf or (written_at(where, write.operator).name if write is not None else "")
    tensor = TensorDescription(name, facts.shape, facts.dtype, facts.producer, facts.saved_name, facts.leaf is not None)
    what = f"{'parameter ' if facts.leaf is not None else ''}{tensor}".replace("parameter a tensor", "a parameter")
    # Beside a write it says something only if it stands elsewhere.
    handed = share.location if share is not None and _line(share.location) != _line(where) else None
    return Finding(
        code="GS106",
        message=f"{what} changed unnoticed, and {facts.node} computes with the new values",
        sites=_sites(
            ("written", where, _how_written(write)),
            ("shared", handed, f"its memory was handed out here by {share.how}" if share is not None else ""),
            ("saved", facts.saved, f"saved here by {facts.node} as `{facts.saved_name}`"),
            ("read", facts.read, f"needed here: {facts.node} does not fail, its gradient is wrong"),
            *(("written again", w.location, f"written again by {w.operator}") for w in _further(facts.writes)),
        ),
        tensor=tensor,
        node=facts.node,
        saved_version=facts.version,
        current_version=facts.version,
        help=_help_for_change(write, share, facts.leaf is not None),
    )


def _how_written(write: WriteFact | None) -> str:
    if write is None:
        return ""
    if write.operator == ASSIGNED:
        return "replaced here by assigning .data, which counts no version"
    return f"written here by {write.operator}, which counts no version of it"


def _help_for_change(write: WriteFact | None, share: ShareFact | None, is_parameter: bool) -> str:
    if write is not None:
        later = "write it after backward()" if is_parameter else "write into a clone(), or after backward()"
        return f"{later}; under no_grad() and without .data, backward() would have refused"
    if share is not None and share.how == "from_numpy()":
        return "the array is written between these lines: give the tensor a copy, from_numpy(array.copy())"
    if share is not None:
        return f"who got the memory writes it between these lines: give a copy, clone() before {share.how}"
    return (
        "no operator wrote it: look between these lines for a write through NumPy (numpy(), from_numpy()), DLPack, a "
        "C extension, or a layer's running statistics"
    )


def refused(facts: RefusedFacts) -> Finding:
    """Return the finding for an in-place write that was refused: GS103 for leaves, GS105 for views."""
    leaf = facts.reason in ("leaf", "view of leaf")
    text = written_at(facts.location, "")
    tensor = TensorDescription(text.name, facts.shape, facts.dtype, parameter=leaf)
    if leaf:
        kind = "a view of a leaf" if facts.reason == "view of leaf" else "a leaf"
        viewed = facts.viewed if _line(facts.viewed) != _line(facts.location) else None
        return Finding(
            code="GS103",
            message=f"{tensor}, {kind} that requires grad, was written in place",
            sites=_sites(
                ("written", facts.location, "written here, while recording"),
                ("viewed", viewed, "the view was made here"),
            ),
            tensor=tensor,
            help="write it under `with no_grad():`, or use the out-of-place form",
        )
    what, way_out = _VIEWS[facts.reason]
    source = f" ({facts.view_operator})" if facts.view_operator else ""
    write = facts.write
    written = (
        []
        if write is None
        else [("written", write.location, f"written here by {write.operator}, through another alias")]
    )
    use = ("read", "needed here, with a stale history") if written else ("written", "written here")
    return Finding(
        code="GS105",
        message=f"{tensor}, {what}{source}, was written in place",
        sites=_sites(*written, (use[0], facts.location, use[1]), ("viewed", facts.viewed, "the view was made here")),
        tensor=tensor,
        help=f"write `{text.replacement}`" if text.replacement else way_out,
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


def freed(facts: FreedFacts) -> Finding:
    """Return the finding for a backward pass through a freed graph: GS104."""
    same = facts.first is not None and _line(facts.first) == _line(facts.read)
    return Finding(
        code="GS104",
        message=f"backward went through {facts.node} a second time, after the first one had freed what it saved",
        sites=_sites(
            ("read", facts.read, "second backward here"),
            ("freed", facts.first, "first backward, in an earlier iteration" if same else "first backward here"),
            ("saved", facts.saved, f"{facts.node} was recorded here"),
        ),
        node=facts.node,
        help=(
            "detach() what is carried from one iteration to the next, or pass retain_graph=True if both are wanted"
            if same
            else "add the losses and call backward() once, or pass retain_graph=True to the first"
        ),
    )


@dataclass(frozen=True, slots=True)
class Bystander:
    """A tensor that a module was given, and wrote.

    Attributes
    ----------
    name : str
        The variable of the caller; empty where it has none.
    module : str
        What the caller calls the module that it gave the tensor to.
    writer : str
        The class of the module, inside that one, which wrote it.
    written, made : Location or None
        Where it was written, and where the writer was made to work in place, if that stands in the source.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    module: str
    writer: str
    operator: str
    written: Location | None
    made: Location | None = None


def changed_input(facts: Bystander, reader: str, read: Location | None) -> Finding:
    """Return the finding for a tensor that a module has written and its caller reads: GS107."""
    tensor = TensorDescription(facts.name, facts.shape, facts.dtype)
    name = facts.name or "x"
    return Finding(
        code="GS107",
        message=f"{tensor} was given to `{facts.module}`, whose {facts.writer} changed it in place, and is read again",
        sites=_sites(
            ("made", facts.made, f"this {facts.writer} works in place"),
            ("written", facts.written, f"written here by {facts.operator}, inside `{facts.module}`"),
            ("read", read, f"read here by {reader}, with the new values"),
        ),
        tensor=tensor,
        node=reader,
        help=f"make that {facts.writer} without inplace=True, or call {facts.module}({name}.clone())",
    )


def changed_gradient(operator: str, written: Location, other: str, recorded: Location | None) -> Finding:
    """Return the finding for a gradient that was written, and that another node gets too: GS108."""
    text = written_at(written, operator)
    way_out = f"compute a new gradient, and leave this one as it is: `return {text.name} * ...`"
    return Finding(
        code="GS108",
        message=f"a gradient was changed in place, and {other} gets the same tensor",
        sites=_sites(
            ("written", written, f"written here by {operator}, while backward runs"),
            ("read", recorded, f"{other}, recorded here, computes with the new values"),
        ),
        node=other,
        help=way_out if text.name else "compute a new gradient, and leave the one that is given as it is",
    )
