"""Parts of a finding that several rules share: places, the writes that came later, a saved tensor that was written."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...inspect.records.records import Location
from ...inspect.records.write_facts import ASSIGNED, WriteFact
from ..watching.violation_facts import ModifiedFacts
from .finding_records import Finding, Site, TensorDescription
from .source_fixes import SourceWrite, written_at

__all__ = [
    "ModifiedTensor",
    "describe_modified",
    "later_writes",
    "modified_finding",
    "same_line",
    "sites",
    "uncounted",
]

# A finding names at most so many of the places that wrote the tensor after it was saved.
_MORE_WRITES = 2


def sites(*entries: tuple[str, Location | None, str]) -> tuple[Site, ...]:
    """Return a Site for each (role, location, text) whose place is known.

    What happened in an installed package is at the line of the program's own that called, where there is one.
    """
    return tuple(_site(role, location, text) for role, location, text in entries if location is not None)


def _site(role: str, location: Location, text: str) -> Site:
    *between, own = (*location.calls,) or (location,)
    return Site(role, own, text, (*reversed(between), location) if location.calls else ())


def same_line(one: Location | None, other: Location | None) -> bool:
    """Whether two places are the same line, or none."""
    return _line(one) == _line(other)


def _line(location: Location | None) -> tuple[str, int] | None:
    return None if location is None else (location.filename, location.lineno)


def _way(location: Location | None) -> tuple[tuple[str, int] | None, ...]:
    """Return a line, and those of the calls that led there."""
    return () if location is None else (_line(location), *map(_line, location.calls))


def later_writes(writes: Sequence[WriteFact]) -> Iterator[tuple[str, Location | None, str]]:
    """Yield the sites of later writes, one per line, that stand elsewhere than the first.

    Where a library's line wrote, so does another line of the program's own that led there.
    """
    seen = {_way(write.location) for write in writes[:1]}
    found = []
    for write in writes[1:]:
        if write.location is not None and _way(write.location) not in seen:
            seen.add(_way(write.location))
            found.append(write)
    for write in found[:_MORE_WRITES]:
        yield ("written again", write.location, f"written again by {write.operator}")


def uncounted(write: WriteFact | None) -> str:
    """Return what a site says of a write that counts no version of what was written; nothing of none."""
    if write is None:
        return ""
    if write.operator == ASSIGNED:
        return "replaced here by assigning .data, which counts no version"
    return f"written here by {write.operator}, which counts no version of it"


def _written(write: WriteFact | None, way: str) -> str:
    if write is None:
        return ""
    module = f" in {write.module}, told to work in place" if write.module else ""
    return f"written here by {write.operator}{module}{way}"


class ModifiedTensor(NamedTuple):
    """A saved tensor that has been written since, as a finding calls it.

    Attributes
    ----------
    tensor : TensorDescription
        What was saved, with its name, dtype and shape.
    write : WriteFact or None
        The first write.
    text : SourceWrite
        What its line says.
    """

    tensor: TensorDescription
    write: WriteFact | None
    text: SourceWrite


def describe_modified(facts: ModifiedFacts) -> ModifiedTensor:
    """Return what a finding says about a saved tensor that has been written."""
    write = facts.writes[0] if facts.writes else None
    text = written_at(write.location, write.operator) if write is not None else SourceWrite()
    step, leaf = write is not None and write.step, facts.leaf is not None
    name = facts.leaf or facts.buffer or ("" if step else text.name)
    tensor = TensorDescription(name, facts.shape, facts.dtype, facts.producer, facts.saved_name, leaf)
    return ModifiedTensor(tensor, write, text)


def modified_finding(
    code: str, facts: ModifiedFacts, told: ModifiedTensor, message: str, way_out: str, *, way: str = ""
) -> Finding:
    """Return the finding of a rule about a saved tensor that has been written.

    Parameters
    ----------
    way : str
        By which way the write came to the memory, where that says why nothing has kept it away: the end of its site.
    """
    write = told.write
    return Finding(
        code=code,
        message=message,
        sites=sites(
            ("written", None if write is None else write.location, _written(write, way)),
            ("saved", facts.saved, f"saved here by {facts.node} as `{facts.saved_name}`"),
            ("read", facts.read, f"needed here: {facts.node} {'fails' if facts.reached else 'would fail'}"),
            *later_writes(facts.writes),
        ),
        tensor=told.tensor,
        node=facts.node,
        saved_version=facts.saved_version,
        current_version=facts.current_version,
        spared=facts.spared,
        help=way_out,
        fix=told.text.fix if told.text.replacement and told.text.replacement in way_out else None,
    )
