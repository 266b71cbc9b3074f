"""Facts about a program that the doctor's rules need: each has a watch, which hears what happens.

A rule that needs something else makes a :class:`Fact` of its own, in its own file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..adapters import Adapter
from ..adapters.event_guards import fault_of, not_looked_into
from .examination import Examiner
from .finding_limits import Limits
from .functions.custom_derivatives import CheckedFunction, functions
from .functions.failed_backward import FailedBackward
from .memory.graph_growth import GrowthWatch
from .nan.nan_origin import NanWatch
from .no_gradient.dataflow_ledger import Ledger
from .optimizers.optimizer_updates import UpdateWatch
from .sampled_graphs import SampledGraphs
from .watch import Watch
from .watch_table import WatchTable

__all__ = [
    "BLIND_REGIONS",
    "EXAMINATION",
    "FAILURE",
    "FUNCTIONS",
    "GROWTH",
    "LIMITS",
    "NAN",
    "OTHERS",
    "UPDATES",
    "BlindRegions",
    "FailureWatch",
    "FunctionsWatch",
    "Fact",
    "Sighting",
    "WatchedProgram",
]


class Sighting(NamedTuple):
    """What a fact is about, and since when.

    Attributes
    ----------
    concerns : tuple of str
        The paths of the parameters.
    since : int
        The number, from 1, of the backward pass with which it was first seen.
    """

    concerns: tuple[str, ...] = ()
    since: int = 0


@dataclass(frozen=True, eq=False)
class Fact:
    """Something to know of a program.

    Attributes
    ----------
    name : str
        Its own.
    watch : callable
        Makes the :class:`~gradscope.inspect.adapters.Observer` for a :class:`WatchedProgram`. Should it have a method
        ``close``, that is called when the program has ended.
    known : callable
        Takes what has been seen so far out of the observer: what a rule's ``judge`` is given.
    forward, backward, operators, writes : bool
        What the observer is told of, as for :meth:`gradscope.inspect.adapters.Adapter.observe`.
    """

    name: str
    watch: Callable[[WatchedProgram], Any]
    known: Callable[[Any], Any]
    forward: bool = False
    backward: bool = False
    operators: bool = False
    writes: bool = False


class WatchedProgram:
    """A program, and the watches that look at it.

    Parameters
    ----------
    adapter : Adapter
        Of the framework that the program uses.
    facts : iterable of Fact
        What is to be known of it.
    limits : Limits, optional
        Beyond which there is something to say.

    Attributes
    ----------
    ledger : Ledger
        Of the dataflow.
    graphs : SampledGraphs
        Of the backward passes that are looked into.
    """

    def __init__(self, adapter: Adapter, facts: Iterable[Fact], limits: Limits | None = None) -> None:
        self.adapter = adapter
        self.limits = limits or Limits()
        self.ledger = Ledger(adapter=adapter)
        self.graphs = SampledGraphs(adapter, self.limits.sampled_backwards)
        self._watches: dict[str, tuple[Fact, Any]] = {}
        self._failed: dict[str, str] = {}
        for fact in facts:
            self.watch_of(fact)

    def watch_of(self, fact: Fact) -> Any:
        """Return the one watch of a fact, made when it is first asked for.

        Raises
        ------
        ValueError
            If another fact has that name.
        """
        known, watch = self._watches.get(fact.name, (fact, None))
        if known is not fact:
            raise ValueError(f"two facts are called {fact.name!r}")
        if fact.name not in self._watches:
            watch = fact.watch(self)
            self._watches[fact.name] = fact, watch
        return watch

    def sighting(self, tensors: Iterable[Any], *, in_forward: bool = False) -> Sighting:
        """Return that something is seen now, and is about these parameters.

        Parameters
        ----------
        in_forward : bool
            Whether it is seen in a forward pass, whose backward is the next one.
        """
        paths = self.watch_of(EXAMINATION).names.paths()
        named = dict.fromkeys(paths.get(id(tensor), "") for tensor in tensors)
        return Sighting(tuple(filter(None, named)), max(self.ledger.recorder.backwards + in_forward, 1))

    @property
    def is_open(self) -> bool:
        """Whether the watches hear what happens."""
        return self.ledger.is_open

    def open(self) -> None:
        """Let the watches hear what happens."""
        told = [(watch, _told_of(fact)) for fact, watch in self._watches.values()]
        ledger = (self.ledger.recorder, {"forward", "backward", "operators"})
        table = WatchTable(self.adapter, [ledger, (self.graphs, {"backward"}), *told])
        self.ledger.open(table, writes=any(fact.writes for fact, _ in self._watches.values()))

    def close(self) -> None:
        """Let them hear no more."""
        self.ledger.__exit__(None, None, None)
        for _, watch in self._watches.values():
            if hasattr(watch, "close"):
                try:
                    watch.close()
                except Exception as error:  # what the watch has seen is told all the same
                    watch.fault = watch.fault or fault_of(error)

    def known(self) -> dict[str, Any]:
        """Return what has been seen so far, by the facts' names; what cannot be told is left out."""
        known: dict[str, Any] = {}
        self._failed.clear()
        for name, (fact, watch) in self._watches.items():
            try:
                known[name] = fact.known(watch)
            except Exception as error:
                self._failed[name] = fault_of(error)
        return known

    def faults(self) -> tuple[str, ...]:
        """Return what is not looked into since a watch has failed by an error of its own, or cannot be told."""
        watches = [("dataflow", self.ledger.recorder), *((fact.name, watch) for fact, watch in self._watches.values())]
        failed = self._failed | {name: watch.fault for name, watch in watches if getattr(watch, "fault", "")}
        return tuple(not_looked_into(name, fault) for name, fault in failed.items())


def _told_of(fact: Fact) -> set[str]:
    """Return of what the watch of a fact is told."""
    return {name for name in ("forward", "backward", "operators", "writes") if getattr(fact, name)}


class BlindRegions(Watch):
    """Collects why parts of the program cannot be looked into."""

    def __init__(self) -> None:
        self.reasons: dict[str, None] = {}

    def blind_region(self, reason: str) -> None:
        """Keep the reason."""
        self.reasons[reason] = None

    blind_call = blind_region


class FunctionsWatch(functions):
    """Compares custom Functions with finite differences once the program has ended.

    Attributes
    ----------
    each_input : bool
        Whether each of their inputs is looked at, and as soon as somebody asks.
    """

    each_input = False

    def __init__(self, program: WatchedProgram) -> None:
        super().__init__(adapter=program.adapter)
        self.limits = program.limits
        self._program = program

    @property
    def wrong(self) -> tuple[CheckedFunction, ...]:
        """Those whose backward is wrong."""
        if self.each_input:
            return self.result.wrong
        # While others listen they would hear the Functions run.
        return () if self._program.is_open else self.result_unnoticed.wrong


class FailureWatch(Watch):
    """Holds, when the program has ended, where its backward failed."""

    failed: FailedBackward | None = None


def _update_watch(program: WatchedProgram) -> UpdateWatch:
    return UpdateWatch(program.ledger.recorder, program.watch_of(EXAMINATION).names.paths, program.limits.cleared)


EXAMINATION = Fact(
    "examination",
    lambda program: Examiner(program.adapter, program.ledger, program.limits),
    lambda watch: watch.examination,
    backward=True,
)
"""What was seen of the backward passes: an :class:`~.examination.Examination`."""

UPDATES = Fact("updates", _update_watch, lambda watch: watch.updates, backward=True, operators=True)
"""What optimizers did with gradients: an :class:`~.optimizer_updates.Updates`."""

NAN = Fact(
    "nan",
    lambda program: NanWatch(program.adapter, program.ledger.recorder),
    lambda watch: watch.origin,
    forward=True,
    backward=True,
    operators=True,
)
"""Where NaN and Inf come from: a :class:`~.nan_origin.NanOrigin`."""

GROWTH = Fact(
    "growth",
    lambda program: GrowthWatch(program.adapter, program.limits.growing_graphs),
    lambda watch: watch.growth,
    forward=True,
    backward=True,
)
"""How graphs grow from one iteration to the next: a :class:`~.graph_growth.Growth`."""

BLIND_REGIONS = Fact(
    "blind regions", lambda _: BlindRegions(), lambda watch: tuple(watch.reasons), forward=True, backward=True
)
"""Why parts of the program cannot be looked into: a tuple of str."""

FUNCTIONS = Fact(
    "functions",
    FunctionsWatch,
    lambda watch: watch.wrong,
    forward=True,
)
"""Custom Functions whose backward is wrong: a tuple of :class:`~.custom_derivatives.CheckedFunction`."""

FAILURE = Fact("failure", lambda _: FailureWatch(), lambda watch: watch.failed)
"""Where the backward failed that ended the program: a :class:`~.failed_backward.FailedBackward` or None."""

LIMITS = Fact("limits", lambda program: program.limits, lambda limits: limits)
"""Beyond which numbers there is something to say: :class:`~.finding_limits.Limits`."""

OTHERS = Fact("others", lambda _: None, lambda _: ())
"""What other instruments have found: a tuple of :class:`~.doctor.Symptom`, known to the diagnosis alone."""
