"""The doctor's forty watches as one observer: each event is handed to those that hear of it, in their order."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any, NamedTuple

from ..adapters import Adapter, Observer
from ..adapters.guarded_observer import GuardedObserver
from ..adapters.protocol import hears, hears_operator
from .watch import Watch

__all__ = ["WatchTable"]

# What is told for each keyword of Adapter.observe(); several nodes or writes are told one by one.
_EVENTS = {
    "forward": (
        "module_entered", "module_left", "module_returned", "function_applied", "operator_recorded", "blind_call",
    ),
    "backward": (
        "task_started", "node_entered", "node_exited", "compiled_ran", "task_finished", "task_failed", "violation",
        "blind_region",
    ),
    "operators": ("operator_ran",),
    "writes": ("write_started", "tensor_written", "memory_shared", "item_assigned", "write_refused"),
}  # fmt: skip

_NODE_EVENTS = ("node_entered", "node_exited")

_Teller = Callable[..., None]


class _NodeTellers(NamedTuple):
    """What tells of the nodes of one backward: of its leaves, and of the others."""

    leaf_entered: Sequence[_Teller]
    leaf_exited: Sequence[_Teller]
    entered: Sequence[_Teller]
    exited: Sequence[_Teller]


class WatchTable(GuardedObserver):
    """Tells watches what happens, as if each observed the program by itself.

    Who hears of an operator is looked up by its name, who hears of nodes is settled once a backward; other events of
    which no watch hears are not heard.

    Parameters
    ----------
    watches : sequence of (Observer, collection of str)
        Each with what it is told of, by the keywords of :meth:`gradscope.inspect.adapters.Adapter.observe`.
    """

    def __init__(self, adapter: Adapter, watches: Sequence[tuple[Observer, Collection[str]]]) -> None:
        self._adapter = adapter
        self._watches = [watch for watch, _ in watches]
        self._hearing = {
            event: [watch for watch, wanted in watches if told in wanted and hears(watch, event)]
            for told, events in _EVENTS.items()
            for event in events
        }
        self._tellers: dict[str, list[_Teller]] = {
            event: [getattr(watch, event) for watch in hearing] for event, hearing in self._hearing.items()
        }
        self._tellers_of_operators: dict[str, list[_Teller]] = {}
        self._tellers_of_nodes: dict[int, _NodeTellers] = {}
        self.operators_of_steps = any(  # type: ignore[misc]
            watch.operators_of_steps for watch in self._hearing["operator_ran"]
        )
        for event, tellers in self._tellers.items():
            if tellers and event not in vars(WatchTable):
                setattr(self, event, _each(tellers))

    def fail(self, error: Exception) -> None:
        """Raise what a watch means to; an error of the table's own costs all of them what follows."""
        if any(isinstance(error, watch.meant) for watch in self._watches if isinstance(watch, Watch)):
            raise error
        super().fail(error)

    def report_fault(self, fault: str) -> None:
        """Have the watches tell it in the report."""
        for watch in self._watches:
            if isinstance(watch, Watch):
                watch.give_up(fault)

    def operator_ran(self, call: Any) -> None:
        """Tell those that hear of an operator of this name."""
        tellers = self._tellers_of_operators.get(call.name)
        if tellers is None:
            hearing = self._hearing["operator_ran"]
            tellers = [watch.operator_ran for watch in hearing if hears_operator(watch, call.name)]
            self._tellers_of_operators[call.name] = tellers
        for tell in tellers:
            tell(call)

    def task_started(self, task: Any) -> None:
        """Tell that a backward starts, and settle who hears of its nodes."""
        for tell in self._tellers["task_started"]:
            tell(task)
        self._settle(task)

    def node_entered(self, call: Any) -> None:
        """Tell of a node that is about to run."""
        tellers = self._tellers_of_nodes.get(id(call.task)) or self._settle(call.task)
        for tell in tellers.entered if self._adapter.variable(call.node) is None else tellers.leaf_entered:
            tell(call)

    def node_exited(self, call: Any) -> None:
        """Tell of a node that has run."""
        tellers = self._tellers_of_nodes.get(id(call.task)) or self._settle(call.task)
        for tell in tellers.exited if self._adapter.variable(call.node) is None else tellers.leaf_exited:
            tell(call)

    def task_finished(self, task: Any) -> None:
        """Tell that a backward has ended."""
        self._tellers_of_nodes.pop(id(task), None)
        for tell in self._tellers["task_finished"]:
            tell(task)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Tell that a backward has ended by `error`."""
        self._tellers_of_nodes.pop(id(task), None)
        for tell in self._tellers["task_failed"]:
            tell(task, error)

    def _settle(self, task: Any) -> _NodeTellers:
        """Return who hears of the nodes of a backward that has started."""
        hearing = {id(watch): watch for event in _NODE_EVENTS for watch in self._hearing[event]}
        looking = {key for key, watch in hearing.items() if not isinstance(watch, Watch) or watch.looks_into(task)}
        entered, exited = (
            [
                getattr(watch, event)
                for watch in self._hearing[event]
                if id(watch) in looking and not _at_leaves(watch, event)
            ]
            for event in _NODE_EVENTS
        )
        tellers = _NodeTellers(self._tellers["node_entered"], self._tellers["node_exited"], entered, exited)
        self._tellers_of_nodes[id(task)] = tellers
        return tellers


def _at_leaves(watch: Observer, event: str) -> bool:
    """Whether what a watch does at an event of a node is done at leaves alone."""
    return isinstance(watch, Watch) and event in watch.at_leaves_alone


def _each(tellers: Sequence[_Teller]) -> _Teller:
    """Return what tells all of some, one after the other."""

    def tell(*told: Any) -> None:
        for each in tellers:
            each(*told)

    return tellers[0] if len(tellers) == 1 else tell
