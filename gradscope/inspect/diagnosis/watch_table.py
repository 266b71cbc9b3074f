"""The doctor's forty watches as one observer: each event is handed to those that hear of it, in their order.

An event comes for every operator and node: who hears of it is settled beforehand, and what each is told by is bound.
The table guards all watches against their own errors, which spares a call around each.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from enum import IntEnum
from typing import Any, NamedTuple

from ..adapters import Adapter, Observer
from ..adapters.guarded_observer import GuardedObserver, guards_itself
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

_OF_SEVERAL_ARGUMENTS = {"module_returned", "function_applied", "task_failed", "item_assigned"}
_NODE_EVENTS = ("node_entered", "node_exited")
_KINDS = 1_000  # a program may make classes in a loop

_Teller = Callable[..., None]


class _NodeKind(IntEnum):
    """The kinds of nodes that a watch may hear of alone."""

    OPERATOR = 0
    LEAF = 1
    FUNCTION = 2


class _NodeTellers(NamedTuple):
    """What tells of the nodes of one backward, by their kind; None where nobody hears of it."""

    entered: Sequence[_Teller | None]
    exited: Sequence[_Teller | None]


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
        self._tellers = {event: _teller(event, [(w, w) for w in hearing]) for event, hearing in self._hearing.items()}
        self._hearing_of_kind = {
            event: [[w for w in self._hearing[event] if _hears_kind(w, event, kind)] for kind in _NodeKind]
            for event in _NODE_EVENTS
        }
        self._tellers_of_operators: dict[str, _Teller | None] = {}
        self._tellers_of_nodes: dict[int, _NodeTellers] = {}
        self._kinds: dict[type, _NodeKind] = {}
        self.operators_of_steps = any(  # type: ignore[misc]
            watch.operators_of_steps for watch in self._hearing["operator_ran"]
        )
        for event, teller in self._tellers.items():
            if teller is not None and event not in vars(WatchTable):
                setattr(self, event, teller)

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

    @guards_itself
    def operator_ran(self, call: Any) -> None:
        """Tell those that hear of an operator of this name."""
        try:
            if not self.fault:
                known, name = self._tellers_of_operators, call.name
                tell = known[name] if name in known else self._settle_operator(name)
                if tell is not None:
                    tell(call)
        except Exception as error:
            self.fail(error)

    def task_started(self, task: Any) -> None:
        """Tell that a backward starts, and settle who hears of its nodes."""
        self._tell("task_started", task)
        self._settle(task)

    @guards_itself
    def node_entered(self, call: Any) -> None:
        """Tell of a node that is about to run."""
        try:
            if not self.fault:
                tellers = self._tellers_of_nodes.get(id(call.task)) or self._settle(call.task)
                kind = self._kinds.get(type(call.node))
                tell = tellers.entered[self._settle_kind(call.node) if kind is None else kind]
                if tell is not None:
                    tell(call)
        except Exception as error:
            self.fail(error)

    @guards_itself
    def node_exited(self, call: Any) -> None:
        """Tell of a node that has run."""
        try:
            if not self.fault:
                tellers = self._tellers_of_nodes.get(id(call.task)) or self._settle(call.task)
                kind = self._kinds.get(type(call.node))
                tell = tellers.exited[self._settle_kind(call.node) if kind is None else kind]
                if tell is not None:
                    tell(call)
        except Exception as error:
            self.fail(error)

    def task_finished(self, task: Any) -> None:
        """Tell that a backward has ended."""
        self._tellers_of_nodes.pop(id(task), None)
        self._tell("task_finished", task)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Tell that a backward has ended by `error`."""
        self._tellers_of_nodes.pop(id(task), None)
        self._tell("task_failed", task, error)

    def _tell(self, event: str, *told: Any) -> None:
        tell = self._tellers[event]
        if tell is not None:
            tell(*told)

    def _settle_operator(self, name: str) -> _Teller | None:
        """Return what tells of operators of a name from now on."""
        hearing = [(watch, watch) for watch in self._hearing["operator_ran"] if hears_operator(watch, name)]
        tell = self._tellers_of_operators[name] = _teller("operator_ran", hearing)
        return tell

    def _settle(self, task: Any) -> _NodeTellers:
        """Return what tells of the nodes of a backward that has started."""
        hearing = {watch for event in _NODE_EVENTS for watch in self._hearing[event]}
        looking = {watch for watch in hearing if not isinstance(watch, Watch) or watch.looks_into(task)}
        listeners = {watch: watch.in_backward(task) if isinstance(watch, Watch) else watch for watch in hearing}

        def tellers_of(event: str) -> list[_Teller | None]:
            operators, leaves, functions = self._hearing_of_kind[event]
            return [
                _teller(event, [(watch, listeners[watch]) for watch in heard])
                for heard in (
                    [watch for watch in operators if watch in looking],
                    leaves,
                    [watch for watch in functions if watch in looking],
                )
            ]

        tellers = self._tellers_of_nodes[id(task)] = _NodeTellers(*map(tellers_of, _NODE_EVENTS))
        return tellers

    def _settle_kind(self, node: Any) -> _NodeKind:
        """Return of which kind nodes of a class are."""
        if self._adapter.variable(node) is not None:
            kind = _NodeKind.LEAF
        else:
            kind = _NodeKind.FUNCTION if hasattr(type(node), "_forward_cls") else _NodeKind.OPERATOR
        if len(self._kinds) >= _KINDS:
            self._kinds.clear()
        self._kinds[type(node)] = kind
        return kind


def _hears_kind(watch: Observer, event: str, kind: _NodeKind) -> bool:
    """Whether a watch does something at an event of nodes of a kind."""
    if not isinstance(watch, Watch):
        return True
    leaves, functions = event in watch.at_leaves_alone, event in watch.at_functions_alone
    return (
        not (leaves or functions) or (leaves and kind is _NodeKind.LEAF) or (functions and kind is _NodeKind.FUNCTION)
    )


class _NoGuard:
    """Stands for an observer that guards nothing: its errors are not its own."""

    fault = ""

    def fail(self, error: Exception) -> None:
        raise error


_NO_GUARD = _NoGuard()


def _teller(event: str, hearing: Sequence[tuple[Observer, Any]]) -> _Teller | None:
    """Return what tells watches of an event, one after the other, and guards them; None where there are none.

    Parameters
    ----------
    hearing : sequence of (Observer, object)
        Each with what hears the event for it, unless that is None: a watch that has failed has nothing.
    """
    bound = [
        (watch if isinstance(watch, GuardedObserver) else _NO_GUARD, _unguarded(listener, event))
        for watch, listener in hearing
        if listener is not None
    ]
    if not bound:
        return None

    def tell(told: Any) -> None:
        for watch, hear in bound:
            try:
                if not watch.fault:
                    hear(told)
            except Exception as error:
                watch.fail(error)

    def tell_several(*told: Any) -> None:
        for watch, hear in bound:
            try:
                if not watch.fault:
                    hear(*told)
            except Exception as error:
                watch.fail(error)

    return tell_several if event in _OF_SEVERAL_ARGUMENTS else tell


def _unguarded(listener: Any, event: str) -> _Teller:
    """Return the method that hears an event, without its guard."""
    method = getattr(listener, event)
    inside = getattr(method, "guards", None)
    bound: _Teller = method if inside is None else inside.__get__(listener)
    return bound
