"""What a recording shows to be wrong with its gradients, and since which backward: without running anything."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...diagnosis.explanation import Explanation, at
from ...diagnosis.finding_limits import Limits
from ...diagnosis.flow.trend_findings import trend_findings
from ...diagnosis.sampled_graphs import is_sampled
from ...output.number_format import count
from ...records.records import Location
from ...source.call_sites import place

if TYPE_CHECKING:
    from ..file.reader import Recording
    from ..file.recording_records import BackwardRecord

__all__ = ["RecordedDiagnosis", "RecordedFinding", "diagnose_recording"]


@dataclass(frozen=True)
class RecordedFinding:
    """Something that is wrong with the gradients of a recording.

    Attributes
    ----------
    kind : str
        ``'nan'``, ``'inf'``, ``'zero'``, ``'vanishing'`` or ``'exploding'``.
    title, text : str
        One line, and more, of the first backward that shows it.
    since : int
        The number of that backward.
    times : int
        How many of those that were looked into show it.
    """

    kind: str
    title: str
    text: str
    location: Location | None
    since: int
    times: int


@dataclass(frozen=True, repr=False)
class RecordedDiagnosis(Explanation):
    """What a recording shows to be wrong.

    Attributes
    ----------
    backwards : int
        How many it has.
    looked_into : int
        How many of them were looked into: the first of each run, later ones at growing distances, the last, and those
        with a NaN or Inf.
    """

    findings: tuple[RecordedFinding, ...]
    backwards: int
    looked_into: int

    def __bool__(self) -> bool:
        return bool(self.findings)

    def __str__(self) -> str:
        told = [
            f"{one.kind}: {one.title}{at(one.location)}, first in backward {one.since}, in {one.times} of "
            f"{self.looked_into}\n" + "".join(f"  {line}\n" for line in one.text.splitlines())
            for one in self.findings
        ]
        found = count(len(told), "finding") if told else "Nothing found"
        looked = count(self.looked_into, "backward pass", "backward passes")
        return "\n".join([*told, f"{found} in {looked} of the {self.backwards} that are recorded."])

    def _title(self) -> str:
        return f"{count(len(self.findings), 'finding')} in a recording of {self.backwards} backward passes"

    def _columns(self) -> Sequence[str]:
        return ("kind", "line", "what", "#since", "#times")

    def _rows(self) -> Iterable[Sequence[str]]:
        for one in self.findings:
            yield (one.kind, place(one.location), one.title, str(one.since), str(one.times))


def diagnose_recording(recording: Recording, limits: Limits | None = None) -> RecordedDiagnosis:
    """Say what a recording shows to be wrong with its gradients.

    Parameters
    ----------
    limits : Limits, optional
        The numbers beyond which something is said; those of the debugger's findings matter.

    See Also
    --------
    gradscope.inspect.Doctor : knows more, of a program that runs.

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> with gi.record(path):
    ...     (gs.zeros(3, requires_grad=True).sqrt() * 0).sum().backward()
    >>> with gi.open_recording(path) as recording:
    ...     [finding.kind for finding in diagnose_recording(recording).findings]
    ['nan']
    """
    tasks = recording.tasks()
    chosen = [task for task in tasks if _is_due(task) or task is tasks[-1]]
    seen: dict[tuple[str, Any], RecordedFinding] = {}
    for task in chosen:
        for found in trend_findings(task.nodes, limits or Limits()):
            known = seen.get((found.kind, found.location))
            seen[found.kind, found.location] = RecordedFinding(
                found.kind,
                found.title if known is None else known.title,
                found.text if known is None else known.text,
                found.location,
                task.number if known is None else known.since,
                1 if known is None else known.times + 1,
            )
    return RecordedDiagnosis(tuple(seen.values()), len(tasks), len(chosen))


def _is_due(task: BackwardRecord) -> bool:
    return is_sampled(task.number) or task.bad is not None
