"""D333: A hidden state is detached at every step."""

from __future__ import annotations

import weakref
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

from ....records.records import Location
from ....source.call_sites import caller
from ...explanation import at
from ...no_gradient.lost_history import DETACHING
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.module_modes import tensors_in
from ...watch import Watch

__all__ = ["DetachedHiddenState"]


@dataclass(frozen=True)
class CutChain:
    """A module that is called again and again on its own results, which are detached on the way.

    Attributes
    ----------
    module : str
        Its path, or its class.
    calls, reached : int
        How many calls there were since the backward before, and how many the loss depends on.
    cut : Location or None
        Where its result is detached.
    """

    module: str
    calls: int
    reached: int
    cut: Location | None


@dataclass(eq=False)
class _Calls:
    """The calls of a module since the last backward: their last nodes, and where what they take was detached."""

    name: str
    reference: weakref.ref[Any]
    nodes: list[int] = field(default_factory=list)
    entries: list[Any] = field(default_factory=list)
    cuts: list[Location | None] = field(default_factory=list)


class RecurrenceWatch(Watch):
    """Follows modules that are called on their own results."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._least = program.limits.recurrent_calls
        self._recorder = program.ledger.recorder
        self._calls: dict[int, _Calls] = {}
        # For each place, the last chain that was cut at all its steps; None once a backward has reached several calls.
        self._chains: dict[tuple[str, Location | None], CutChain | None] = {}

    @property
    def found(self) -> tuple[CutChain, ...]:
        """The chains that no backward has passed."""
        return tuple(chain for chain in self._chains.values() if chain is not None)

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note a call, and whether what it is given is its own result, detached."""
        kinds = self._adapter.tensor_classes()
        made = next(tensors_in(output, kinds), None)
        root = None if made is None else self._adapter.root(made)
        if root is None:
            return
        calls = self._calls.get(id(module))
        if calls is None or calls.reference() is not module:
            name = self._recorder.path_of(module) or type(module).__name__
            calls = self._calls[id(module)] = _Calls(name, weakref.ref(module))
        if calls.entries:
            calls.cuts += self._cut(calls, [tensor for tensor in tensors_in(inputs, kinds) if not tensor.requires_grad])
        calls.nodes.append(self._adapter.key(root[0]))
        calls.entries = [self._recorder.entry_of(tensor) for tensor in tensors_in(output, kinds)]

    def task_started(self, task: Any) -> None:
        """Count the calls that the loss depends on."""
        links = self._graphs.of(task)
        for calls in self._calls.values() if links else ():
            cuts = set(calls.cuts)
            if len(calls.nodes) < self._least or not cuts:
                continue
            cut = next(iter(cuts))
            reached = sum(node in links for node in calls.nodes)
            whole = len(calls.cuts) == len(calls.nodes) - 1 and reached == 1
            chain = CutChain(calls.name, len(calls.nodes), reached, cut)
            self._chains[calls.name, cut] = chain if whole and self._chains.get((calls.name, cut), chain) else None
        self._calls.clear()

    def _cut(self, calls: _Calls, inputs: Iterable[Any]) -> list[Location | None]:
        """Return where the last result was detached of which an input is; at most one place."""
        for tensor in inputs:
            entry = self._recorder.entry_of(tensor)
            if entry.name in DETACHING and any(source in calls.entries for source in entry.inputs):
                return [entry.location or caller()]
        return []


CUT_CHAINS = Fact("cut chains", RecurrenceWatch, lambda watch: watch.found, forward=True, backward=True)


class DetachedHiddenState(Rule):
    """A hidden state is detached at every step."""

    code = "D333"
    title = "a hidden state that is detached at every step"
    severity = "silent-wrong"
    needs = (CUT_CHAINS,)
    certainty = "likely"
    kind = "recurrence"
    what = """
        A recurrent module is called on its own result, which was detached: the loss depends on the last call alone, and
        nothing is learned about what happened before. The hidden state is to be detached once a backward, between two
        sequences or parts of one.
        """
    bad = """
        cell, head = gs.nn.GRUCell(3, 4), gs.nn.Linear(4, 1)
        for _ in range(2):
            hidden = gs.zeros(2, 4)
            for step in range(5):
                hidden = cell(gs.randn(2, 3), hidden.detach())
            head(hidden).square().mean().backward()
        """
    good = """
        cell, head = gs.nn.GRUCell(3, 4), gs.nn.Linear(4, 1)
        hidden = gs.zeros(2, 4)
        for _ in range(2):
            hidden = hidden.detach()
            for step in range(5):
                hidden = cell(gs.randn(2, 3), hidden)
            head(hidden).square().mean().backward()
        """

    def judge(self, found: Iterable[CutChain]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for chain in found:
            text = (
                f"the result of `{chain.module}` is detached{at(chain.cut)} before it is used again: of its "
                f"{chain.calls} calls before a backward the loss depends on {chain.reached}\n"
                "  Detach once a backward, outside of the loop over time."
            )
            yield text, chain.cut
