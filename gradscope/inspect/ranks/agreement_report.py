"""What a comparison of ranks has found, as text and as JSON."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from ..debugging.prompt.plain_text import number
from ..output.number_format import numbered, numbered_rows
from ..output.terminal_text import one_line
from ..source.source_paths import shown_line
from .agreement import Agreement, Disagreement, Held
from .disagreement_causes import Site, likely_cause

__all__ = ["agreement_json", "agreement_text", "held_text"]

_NAMED = 3
_VERSION = 1


def agreement_text(found: Agreement) -> str:
    """Return whether the ranks agree, or where they part, what each holds, and the likely cause, in a few lines."""
    if found.parted is None and not found.tensors:
        lines = [f"{len(found.ranks)} ranks hold nothing twice that could disagree, in {_count(found.steps, 'step')}"]
    elif found.parted is None:
        what = _count(found.tensors, "parameter or buffer", "parameters and buffers")
        end = ", and hang then" if found.hang else ""
        lines = [f"{len(found.ranks)} ranks agree: {what} and their gradients in {_count(found.steps, 'step')}{end}"]
    else:
        lines = [*_parted_lines(found), *_cause_lines(found.parted)]
        if found.steps:
            lines.append(f"before that they agreed in {_count(found.steps, 'step')}")
    return "\n".join([*lines, *(f"note: {note}" for note in map(one_line, found.notes))])


def _parted_lines(found: Agreement) -> Iterator[str]:
    parted = found.parted
    assert parted is not None
    first = min(parted.steps)
    if parted.what == "steps":
        yield f"{len(found.ranks)} ranks disagree in how many steps they take"
        yield from (f"  rank {rank}  {_count(count, 'step')}" for rank, count in parted.taken.items())
        return
    where = "" if parted.iteration is None else f"iteration {parted.iteration}, "
    step = parted.steps[first].look.number
    yield f"{len(found.ranks)} ranks disagree: {where}before step {step}, {parted.what} {parted.name}"
    yield from _held_lines(parted)
    if parted.others:
        named = ", ".join(parted.others[:_NAMED]) + (", ..." if len(parted.others) > _NAMED else "")
        yield f"  and of {_count(len(parted.others), 'more')}: {named}"


def _held_lines(parted: Disagreement) -> Iterator[str]:
    """Yield a line for each group of ranks that hold the same."""
    groups: dict[int | None, list[int]] = defaultdict(list)
    for rank, held in parted.held.items():
        groups[held.checksum].append(rank)
    yield from numbered_rows("rank", [(group, held_text(parted.held[group[0]])) for group in groups.values()])


def held_text(held: Held) -> str:
    """Return the norm and the checksum of what a rank holds."""
    if held.checksum is None:
        return "no gradient"
    norm = "" if held.norm is None else f"norm {number(held.norm):<10} "
    return f"{norm}checksum {held.checksum:016x}"


def _cause_lines(parted: Disagreement) -> Iterator[str]:
    cause = likely_cause(parted)
    if cause.text:
        yield f"likely cause: {one_line(cause.text)}"
        yield from (f"  {_site_text(site)}" for site in cause.sites)
        yield one_line(cause.remedy)


def _site_text(site: Site) -> str:
    """Return a line of the program, what it does, and on which ranks."""
    return f"{shown_line(one_line(site.place))}  {one_line(site.what)}, on {numbered('rank', site.ranks)}"


def agreement_json(found: Agreement) -> dict[str, Any]:
    """Return what was found as JSON has it."""
    data: dict[str, Any] = {
        "version": _VERSION,
        "agree": found.parted is None,
        "hang": found.hang,
        "ranks": list(found.ranks),
        "steps": found.steps,
        "tensors": found.tensors,
        "notes": list(found.notes),
    }
    parted = found.parted
    if parted is None:
        return data
    cause = likely_cause(parted)
    data["first"] = {
        "what": parted.what,
        "name": parted.name,
        "iteration": parted.iteration,
        "steps": {str(rank): step.look.number for rank, step in parted.steps.items()},
        "held": {str(rank): _held_json(held) for rank, held in parted.held.items()},
        "taken": {str(rank): count for rank, count in parted.taken.items()},
        "others": list(parted.others),
        "cause": cause.text,
        "remedy": cause.remedy,
        "sites": [_site_json(site) for site in cause.sites],
    }
    return data


def _site_json(site: Site) -> dict[str, Any]:
    file, _, line = site.place.rpartition(":")
    return {"file": file, "line": int(line) if line.isdecimal() else None, "what": site.what, "ranks": list(site.ranks)}


def _held_json(held: Held) -> dict[str, Any]:
    norm = held.norm if held.norm is None or math.isfinite(held.norm) else str(held.norm)
    return {"checksum": None if held.checksum is None else f"{held.checksum:016x}", "norm": norm}


def _count(number: int, what: str, several: str = "") -> str:
    return f"{number} {what}" if number == 1 or what == "more" else f"{number} {several or what + 's'}"
