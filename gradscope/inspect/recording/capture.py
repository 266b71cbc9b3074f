"""What a recorder hears, turned into rows: on the program's thread, so as little as possible of it."""

from __future__ import annotations

import functools
import itertools
import threading
import time
from collections.abc import Callable
from typing import Any

from ..adapters import Adapter, Observer
from ..records import Location, NodeRecord, operator_name
from ..snapshots import saved_records
from ..tracking import Tracker, module_of_parameter
from .copies import Copier, Flow, Group, Known
from .iterations import IterationCounter
from .pages import NodeItem
from .policy import Policy
from .store import Change, Move
from .writer import Writer

__all__ = ["Capture"]

_INSERT = {
    name: f"INSERT INTO {name} VALUES ({', '.join('?' * count)})"
    for name, count in {"modules": 2, "locations": 5, "specs": 5, "events": 8}.items()
}

_KEPT = 200_000  # nodes


class _Task:
    """A backward that runs."""

    __slots__ = ("adapter", "copier", "entered", "flow", "id", "iteration", "names", "places", "ran", "task")

    def __init__(
        self, task: Any, number: int, iteration: int, names: dict[int, str], adapter: Adapter, copier: Copier
    ) -> None:
        self.adapter = adapter
        self.copier = copier
        self.task = task  # kept, so that its id is nobody else's
        self.id = number
        self.iteration = iteration
        self.names = names
        self.places: dict[Any, int] = {}  # from a node to when it was first met in this backward
        self.entered: dict[int, tuple[Any, ...]] = {}  # by thread
        self.flow: Flow = {}
        self.ran = 0


class Capture(Observer):
    """Hands what happens to a writer.

    Parameters
    ----------
    adapter : Adapter
    policy : Policy
    writer : Writer
    run : int
        The row of the table `runs`.
    before_task : callable
        Called before each backward.
    failed : callable
        Called with an exception of the recorder's own.
    """

    def __init__(
        self,
        adapter: Adapter,
        policy: Policy,
        writer: Writer,
        run: int,
        *,
        before_task: Callable[[], None],
        failed: Callable[[Exception], None],
    ) -> None:
        self.counter = IterationCounter()
        self.origin = time.perf_counter_ns()
        self._adapter = adapter
        self._policy = policy
        self._writer = writer
        self._run = run
        self._before_task = before_task
        self._failed = failed
        self._tracker = Tracker(adapter)
        # These are the recorder's own on every node: no look-up between the program and its gradients.
        self.module_entered = self._tracker.module_entered  # type: ignore[method-assign]
        self.module_left = self._tracker.module_left  # type: ignore[method-assign]
        self.operator_recorded = self._tracker.operator_recorded  # type: ignore[method-assign]
        self._lock = threading.RLock()
        self._tasks: dict[int, _Task] = {}
        self._stacks = threading.local()
        self._numbers = itertools.count().__next__
        self._next = {
            table: writer.counter(table)
            for table in ("tasks", "iterations", "nodes", "modules", "locations", "specs", "tensor_values", "events")
        }
        self._iterations: dict[int, tuple[int, dict[str, Any]]] = {}
        self._last_task = 0
        self._iteration_now: tuple[int, dict[str, Any]] | None = None
        self._known: dict[str, dict[Any, int]] = {"modules": {}, "locations": {}, "specs": {}}
        self._nodes: dict[tuple[Any, ...], Known] = {}
        # By the identity of the location, which the entry keeps alive, where `_nodes` has its text.
        self._quick: dict[tuple[Any, ...], tuple[Known, Location | None]] = {}
        self._copiers: dict[str, Copier] = {}

    # --- a backward ---

    def task_started(self, task: Any) -> None:
        """Begin a row of `tasks`."""
        if self._writer.failure:
            return
        try:
            self._before_task()
            stack = self._stack()
            with self._lock:
                number = self._last_task = self._next["tasks"]()
                parent = stack[-1].id if stack else None
                iteration = stack[-1].iteration if stack else self._iteration(self.counter.task_started(number))
                adapter = self._adapter.of(task)
                names = self._tracker.parameter_paths()
                view = _Task(task, number, iteration, names, adapter, self._copier_of(adapter))
                self._tasks[id(task)] = view
                stack.append(view)
            self._writer.put(
                Change(
                    "tasks",
                    number,
                    run=self._run,
                    iteration=iteration,
                    number=self._numbers(),
                    parent=parent,
                    thread=threading.current_thread().name,
                    started=self._now(),
                    state="running",
                    nodes=0,
                )
            )
        except Exception as error:
            self._failed(error)

    def task_finished(self, task: Any) -> None:
        """Note the end of a backward."""
        self._end(task, "finished", None)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Note which node failed, and the error."""
        self._end(task, "failed", f"{type(error).__name__}: {_first_line(error)}")

    def _end(self, task: Any, state: str, error: str | None) -> None:
        view = self._tasks.pop(id(task), None)
        if view is None:
            return
        stack = self._stack()
        if view in stack:
            del stack[stack.index(view) :]
        try:
            for (node, *_), sequence_nr, started, incoming, nbytes, _ in view.entered.values():
                self._writer.put(
                    NodeItem(
                        view.id, node, sequence_nr, started - self.origin, self._now() - started + self.origin,
                        incoming, None, state=1,
                    ), nbytes,
                )  # fmt: skip
                if error is not None:
                    self._event("error", error, view, view.ran)
            self._writer.put(Change("tasks", view.id, ended=self._now(), state=state, error=error))
        except Exception as problem:
            self._failed(problem)

    # --- a node ---

    def node_entered(self, call: Any) -> None:
        """Take a copy of the incoming gradients."""
        view = self._tasks.get(id(call.task))
        if view is None or self._writer.failure:
            return
        try:
            node = call.node
            known = self._node(view, node)
            incoming: Group = None, 0
            large: Any = ()
            if self._policy.summaries:
                incoming, large = view.copier.arrived(view.flow, known, call.grad_outputs)
            number = view.adapter.sequence_nr(node)
            view.entered[threading.get_ident()] = known, number, time.perf_counter_ns(), *incoming, large
        except Exception as error:
            self._failed(error)

    def node_exited(self, call: Any) -> None:
        """Take a copy of the produced gradients, and hand the node over."""
        ended = time.perf_counter_ns()
        view = self._tasks.get(id(call.task))
        if view is None:
            return
        try:
            entered = view.entered.pop(threading.get_ident(), None)
            if entered is None:
                return
            known, number, started, incoming, nbytes, large = entered
            produced: Any = None
            if self._policy.summaries:
                produced, more = view.copier.produced(view.flow, known, call.grad_inputs, large)
                nbytes += more
            view.ran += 1
            item = NodeItem(view.id, known[0], number, started - self.origin, ended - started, incoming, produced)
            self._writer.put(item, nbytes)
        except Exception as error:
            self._failed(error)

    def _copier_of(self, adapter: Adapter) -> Copier:
        copier = self._copiers.get(adapter.name)
        if copier is None:
            intern = functools.partial(self._intern, "specs")
            copier = Copier(adapter, intern, self._next["tensor_values"], self._writer.buffers)
            self._copiers[adapter.name] = copier
        return copier

    # --- what nodes of all iterations share ---

    def _node(self, view: _Task, node: Any) -> Known:
        """Return the row of a node in the table `nodes`, its place, its edges, and whether its values are kept."""
        adapter, places = view.adapter, view.places
        place = places.setdefault(node, len(places))
        edges = tuple([
            (None, 0) if target is None else (places.setdefault(target, len(places)), input_nr)
            for target, input_nr in adapter.edges(node)
        ])  # fmt: skip
        leaf = adapter.variable(node)
        parameter = "" if leaf is None else view.names.get(id(leaf), "")
        location = adapter.location(node)
        name, module = adapter.node_name(node), self._tracker.module_of(node)
        found = self._quick.get((name, place, module, parameter, id(location), edges))
        if found is not None:
            return found[0]
        identity = name, place, module, parameter, location, edges
        known = self._nodes.get(identity) or self._new_node(node, identity, view.ran)
        if len(self._quick) >= _KEPT:
            self._quick.clear()
        self._quick[name, place, module, parameter, id(location), edges] = known, location
        return known

    def _new_node(self, node: Any, identity: tuple[Any, ...], index: int) -> Known:
        name, place, module, parameter, location, edges = identity
        module = module or module_of_parameter(parameter)
        outputs = self._adapter.outputs(node)
        saved = saved_records(self._adapter, node, summaries=False)
        record = NodeRecord(index, place, name, operator_name(name), 0, module, parameter, location, ())
        with self._lock:
            found = self._nodes.get(identity)
            if found is not None:
                return found
            number = self._next["nodes"]()
            self._writer.put([
                number, name, self._module(module), parameter, self._location(location), place, edges,
                [(spec.shape, spec.dtype, spec.device) for spec in outputs],
                [(s.name, s.shape, s.dtype, s.nbytes) for s in saved],
            ])  # fmt: skip
            if len(self._nodes) >= _KEPT:  # a program whose every backward is another
                self._nodes.clear()
            found = self._nodes[identity] = number, place, edges, self._policy.wants(record)
        return found

    def _module(self, path: str) -> int:
        known = self._known["modules"].get(path)
        return self._intern("modules", path, (path,)) if known is None else known

    def _location(self, location: Location | None) -> int | None:
        if location is None:
            return None
        known = self._known["locations"].get(location)
        if known is not None:
            return known
        facts = location.filename, location.lineno, location.function, location.source
        return self._intern("locations", location, facts)

    def _intern(self, table: str, key: Any, facts: tuple[Any, ...]) -> int:
        with self._lock:
            known = self._known[table]
            number = known.get(key)
            if number is None:
                number = self._next[table]()
                self._writer.put((_INSERT[table], (number, *facts)))
                known[key] = number
        return number

    # --- iterations and events ---

    def stepped(self, optimizer: int) -> None:
        """Note an optimizer's step."""
        if self._writer.failure:
            return
        try:
            with self._lock:
                moved = self.counter.stepped(optimizer)
                if moved is not None:
                    self._move(*moved)
        except Exception as error:
            self._failed(error)

    def _move(self, task: int, number: int) -> None:
        """Put the backwards from `task` on into iteration `number`; the iterations after it never were."""
        row, _ = now = self._iterations[number]
        gone = max(later for later, _ in self._iterations.values())
        self._writer.put(Move(task, self._last_task, self._run, row))
        self._writer.put((
            "DELETE FROM iterations WHERE run = ? AND number > ? AND id <= ?", (self._run, number, gone),
        ))  # fmt: skip
        self._iterations = {n: known for n, known in self._iterations.items() if n <= number}
        self._iteration_now = now

    def iteration(self, label: str) -> int:
        """Begin an iteration by hand; return its number."""
        with self._lock:
            number = self.counter.begin()
            self._iteration(number, label)
        return number

    def _iteration(self, number: int, label: str = "") -> int:
        """Return the row of an iteration of this run."""
        if number not in self._iterations:
            self._end_iteration()
            facts = {"run": self._run, "number": number, "started": self._now(), "label": label}
            row = self._next["iterations"]()
            self._iteration_now = self._iterations[number] = row, facts
            self._writer.put(Change("iterations", row, **facts))
            # Backwards are moved to the first iteration or to the one before.
            self._iterations.pop(number - 2 if number > 2 else -1, None)
        return self._iterations[number][0]

    def _end_iteration(self) -> None:
        if self._iteration_now is not None:
            row, facts = self._iteration_now
            self._writer.put(Change("iterations", row, **facts, ended=self._now()))

    def close(self) -> None:
        """Note the end of the last iteration."""
        self._end_iteration()

    def mark(self, text: str, kind: str = "mark") -> None:
        """Write an event."""
        stack = self._stack()
        self._event(kind, text, stack[-1] if stack else None, None)

    def _event(self, kind: str, text: str, view: _Task | None, node: int | None) -> None:
        if view is not None:
            iteration: int | None = view.iteration
        else:
            iteration = self._iteration_now[0] if self._iteration_now is not None else None
        task = view.id if view is not None else None
        facts = self._next["events"](), self._run, iteration, task, node, self._now(), kind, text
        self._writer.put((_INSERT["events"], facts))

    def violation(self, error: Any) -> None:
        """Note a saved tensor that has been written since."""
        if self._writer.failure:
            return
        try:
            stack = self._stack()
            view = stack[-1] if stack else None
            facts = (
                self._run,
                view.iteration if view else None,
                view.id if view else None,
                view.ran if view else None,
                self._now(),
                *(getattr(error, name, None) for name in ("operator", "saved_name", "saved_version")),
                getattr(error, "current_version", None),
                str(error),
            )
            self._writer.put((
                "INSERT INTO violations (run, iteration, task, node, time, operator, saved_name, saved_version,"
                f" current_version, message) VALUES ({', '.join('?' * 10)})", facts,
            ))  # fmt: skip
        except Exception as problem:
            self._failed(problem)

    def _stack(self) -> list[_Task]:
        try:
            return self._stacks.tasks
        except AttributeError:
            self._stacks.tasks = []
            return self._stacks.tasks

    def _now(self) -> int:
        return time.perf_counter_ns() - self.origin


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
