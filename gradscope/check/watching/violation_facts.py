"""Facts about a misuse, whichever framework it is in: the watches state them and the rules of ``check`` judge them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...inspect.records.records import Location
from ...inspect.records.write_facts import ShareFact, WriteFact

__all__ = [
    "ChangedFacts",
    "ContextFacts",
    "FreedFacts",
    "GradientFacts",
    "InputFacts",
    "ModifiedFacts",
    "PartFacts",
    "RefusedFacts",
    "ResultFacts",
    "Violation",
    "WrittenInput",
]


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
    buffer : str
        The path of the module's buffer whose memory it is; empty where it is none's.
    ran_before : bool
        Whether a backward that was called on the same line has run the node, and kept what it saved: the node is of an
        iteration before.
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
    ran_before: bool = False
    buffer: str = ""

    @property
    def of_parameter(self) -> bool:
        """Whether it is a leaf's memory, or an optimizer wrote it."""
        return self.leaf is not None or any(write.step for write in self.writes[:1])


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
    kept : bool
        Whether the node computes with what was saved all the same, of which there is a copy.
    framework : str
        The adapter's name.
    number : int
        The sequence number of the node.
    buffer : str
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
    kept: bool = False
    framework: str = ""
    number: int = -1
    buffer: str = ""


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

    @property
    def overlaps(self) -> bool:
        """Whether several elements lie at one address."""
        return self.reason == "overlap"

    @property
    def of_leaf(self) -> bool:
        """Whether a leaf was to be written, or a view of one."""
        return self.reason in ("leaf", "view of leaf")


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


@dataclass(frozen=True, slots=True)
class WrittenInput:
    """A tensor that a module was given, and wrote.

    Attributes
    ----------
    name : str
        The variable of the caller; empty where it has none.
    module : str
        What the caller calls the module that it gave the tensor to.
    writer : str
        The class of the module, inside that one, which wrote it.
    by_flag : bool
        Whether the writer was told to work in place, by ``inplace=True``.
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
    by_flag: bool = False
    made: Location | None = None


@dataclass(frozen=True, slots=True)
class InputFacts:
    """A tensor that a module was given and has written, and that its caller reads again.

    Attributes
    ----------
    written_input : WrittenInput
        The tensor, and who wrote it.
    reader : str
        The node that reads it.
    read : Location or None
        Where the caller reads it.
    """

    written_input: WrittenInput
    reader: str
    read: Location | None


@dataclass(frozen=True, slots=True)
class GradientFacts:
    """A gradient that was written while backward runs, and that another node gets too.

    Attributes
    ----------
    operator : str
        Who wrote it.
    written : Location
        The line of the write.
    other : str
        The node that gets it too.
    recorded : Location or None
        Where that was recorded.
    """

    shape: tuple[int, ...]
    dtype: str
    operator: str
    written: Location
    other: str
    recorded: Location | None


@dataclass(frozen=True, slots=True)
class ContextFacts:
    """A tensor that a custom Function has kept on ``ctx``, and that has other values when its backward runs.

    Attributes
    ----------
    attribute : str
        ``'ctx.x'``.
    writes : sequence of WriteFact
        Those into its memory since forward, as far as an operator did them.
    saved, read : Location or None
        Where the Function was called, and the backward.
    """

    node: str
    attribute: str
    shape: tuple[int, ...]
    dtype: str
    saved: Location | None
    read: Location | None
    writes: Sequence[WriteFact]


@dataclass(frozen=True, slots=True)
class PartFacts:
    """A part of an expanded tensor that has been written, and with it all that lies at the same addresses.

    Attributes
    ----------
    name : str
        The variable; empty where there is none.
    dim, count : int
        The dimension that was expanded, and how many places of it were meant, of all that it has.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    dim: int
    count: int
    location: Location | None


@dataclass(frozen=True, slots=True)
class ResultFacts:
    """The result of an operator that has other values, at the same version, when another operator reads it.

    Attributes
    ----------
    producer : str
        The node that computed it; empty where it is not known.
    made : Location or None
        Where it was computed.
    writes : sequence of WriteFact
        Those into its memory since it was computed, as far as an operator did them.
    shares : sequence of ShareFact
        Who had been handed the memory, the last one last.
    reader : str
        The node that reads it.
    read : Location or None
        Where it is read.
    """

    shape: tuple[int, ...]
    dtype: str
    producer: str
    made: Location | None
    writes: Sequence[WriteFact]
    shares: Sequence[ShareFact]
    reader: str = ""
    read: Location | None = None


Violation = (
    ContextFacts
    | ModifiedFacts
    | ChangedFacts
    | RefusedFacts
    | FreedFacts
    | InputFacts
    | GradientFacts
    | PartFacts
    | ResultFacts
)
"""What a rule of ``check`` may need."""
