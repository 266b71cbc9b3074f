"""Records of the answer to "why has it no gradient?"."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum

from ...output.number_format import count, format_shape
from ...records.records import Location
from ...source.call_sites import place
from ..explanation import Explanation, describe

__all__ = ["GradientReport", "NoGradient", "Reason", "Suspect"]


class Reason(StrEnum):
    """Why there is no gradient; the value is the word to show."""

    HAS_GRADIENT = "has a gradient"
    ZERO = "zero"
    NOT_RUN = "backward not called"
    CLEARED = "cleared"
    AUTOGRAD_GRAD = "autograd.grad"
    WITHHELD = "backward gave None"
    COMPILED = "cut where it is compiled"
    NON_LEAF = "not a leaf"
    REBOUND = "replaced"
    FROZEN = "frozen"
    NO_GRAPH = "loss without a graph"
    DETACHED = "detached"
    NO_GRAD = "no_grad"
    NOT_DIFFERENTIABLE = "not differentiable"
    OUTSIDE = "left the graph"
    UNUSED_MODULE = "unused module"
    UNUSED = "unused"
    NOT_IN_LOSS = "not in the loss"
    NOT_REACHED = "not reached"


@dataclass(frozen=True, slots=True)
class Suspect:
    """A line that would explain a missing gradient: read in the source, not seen running.

    Attributes
    ----------
    reason : Reason
        What it would be.
    text : str
        What the line does.
    """

    reason: Reason
    text: str
    location: Location

    def __str__(self) -> str:
        source = f" ({self.location.source})" if self.location.source else ""
        return f"{place(self.location)}{source}: {self.text}"


@dataclass(frozen=True, repr=False)
class NoGradient(Explanation):
    """Why one tensor has no gradient.

    Attributes
    ----------
    name : str
        Path of the parameter, or the variable; empty when not known.
    message : str
        One sentence.
    locations : tuple of Location
        The lines to look at, the one to change first.
    help : str
        What to do; empty where nothing is wrong.
    suspects : tuple of Suspect
        Without a ledger: lines that would explain it, the most plausible first.

    See Also
    --------
    why_no_grad

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.Linear(2, 1)
    >>> report = gi.why_no_grad(model, model(gs.ones(4, 2)).detach().sum())
    >>> type(report).__name__
    'GradientReport'
    """

    name: str
    shape: tuple[int, ...]
    reason: Reason
    message: str
    locations: tuple[Location, ...] = ()
    help: str = ""
    suspects: tuple[Suspect, ...] = ()

    @property
    def location(self) -> Location | None:
        """The line to change."""
        return self.locations[0] if self.locations else None

    def __str__(self) -> str:
        lines = [f"{describe(self.name, self.shape)}: {self.message}", *_suspicion(self.suspects)]
        return "\n  ".join([*lines, self.help] if self.help else lines)

    def _title(self) -> str:
        return "Why no gradient"

    def _columns(self) -> Sequence[str]:
        return ("parameter", "shape", "reason", "line", "what happened")

    def _rows(self) -> Iterable[Sequence[str]]:
        yield (self.name or "-", format_shape(self.shape), self.reason.value, place(self.location), self.message)
        for suspect in self.suspects[:_SHOWN_SUSPECTS]:
            yield ("", "", f"perhaps {suspect.reason.value}", place(suspect.location), suspect.text)


@dataclass(frozen=True, repr=False)
class GradientReport(Explanation):
    """Why parameters have no gradient.

    Attributes
    ----------
    parameters : tuple of NoGradient
        Those that were asked about, also such as have one.
    total : int
        How many parameters there are; 0 stands for as many as were asked about.

    See Also
    --------
    why_no_grad : returns it for a model.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> model = gs.nn.ModuleList([gs.nn.Linear(2, 1, bias=False), gs.nn.Linear(2, 1, bias=False)])
    >>> with gi.ledger():
    ...     loss = model[0](gs.ones(1, 2)).sum()
    >>> loss.backward()
    >>> report = gi.why_no_grad(model, loss)
    >>> [(entry.name, entry.reason.value) for entry in report.parameters]
    [('0.weight', 'has a gradient'), ('1.weight', 'unused module')]
    """

    parameters: tuple[NoGradient, ...]
    total: int = 0

    @property
    def missing(self) -> tuple[NoGradient, ...]:
        """The parameters without a gradient, or with one that is zero."""
        return tuple(p for p in self.parameters if p.reason is not Reason.HAS_GRADIENT)

    def __str__(self) -> str:
        if not self.parameters:
            return "There are no parameters."
        if not self.missing:
            return f"All {count(len(self.parameters), 'parameter')} have a gradient."
        groups: dict[tuple[str, tuple[Suspect, ...], str], list[NoGradient]] = {}
        for entry in self.missing:
            groups.setdefault((entry.message, entry.suspects, entry.help), []).append(entry)
        total = count(self.total or len(self.parameters), "parameter")
        lines = [f"{len(self.missing)} of {total} without a gradient:"]
        for (message, suspects, help_text), entries in groups.items():
            lines.append(f"  {_names(entries)}: {message}")
            lines += [f"    {line}" for line in _suspicion(suspects)]
            if help_text:
                lines.append(f"    {help_text}")
        return "\n".join(lines)

    def _title(self) -> str:
        return "Why no gradient"

    def _columns(self) -> Sequence[str]:
        return ("parameter", "shape", "reason", "line", "what happened")

    def _rows(self) -> Iterable[Sequence[str]]:
        for entry in self.missing:
            yield from entry._rows()


_SHOWN_NAMES = 4
_SHOWN_SUSPECTS = 5


def _suspicion(suspects: Sequence[Suspect]) -> list[str]:
    """Return lines that say what was read, and that it was read only."""
    if not suspects:
        return []
    lines = ["Suspects, read in the source and not seen running:"]
    lines += [f"  {suspect}" for suspect in suspects[:_SHOWN_SUSPECTS]]
    if len(suspects) > _SHOWN_SUSPECTS:
        lines.append(f"  and {len(suspects) - _SHOWN_SUSPECTS} more")
    return lines


def _names(entries: Sequence[NoGradient]) -> str:
    shown = [f"`{e.name}`" if e.name else format_shape(e.shape) for e in entries[:_SHOWN_NAMES]]
    more = len(entries) - len(shown)
    return ", ".join(shown) + (f" and {more} more" if more else "")
