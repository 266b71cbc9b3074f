"""What a recorder hears, turned into rows: on the program's thread, so as little as possible of it."""

from __future__ import annotations

import functools
import itertools
import threading
import time
import traceback
from collections.abc import Callable
from typing import Any

from ..adapters import Adapter, Observer
from ..records import Location, NodeRecord, operator_name
from ..snapshots import saved_records
from ..tracking import MODULE, Tracker, module_of_parameter
from .iterations import IterationCounter
from .pages import HEAD, NodeItem
from .policy import Policy
from .store import Change, Move
from .taking import Flow, Known, Taker
from .writer import Writer

__all__ = ["Capture"]

_INSERT = {
    name: f"INSERT INTO {name} VALUES ({', '.join('?' * count)})"
    for name, count in {"modules": 2, "locations": 5, "specs": 5, "events": 8}.items()
}

_KEPT = 200_000  # nodes


class _Task:
    """A backward that runs."""

    __slots__ = ("adapter", "clock", "flow", "id", "iteration", "names", "places", "ran", "started", "taker", "task")

    def __init__(
        self, task: Any, number: int, iteration: int, names: dict[int, str], adapter: Adapter, taker: Taker
    ) -> None:
        self.adapter = adapter
        self.taker = taker
        self.task = task  # kept, so that its id is nobody else's
        self.id = number
        self.iteration = iteration
        self.names = names
        self.places: dict[Any, int] = {}  # from a node to when it was first met in this backward
        self.started = time.perf_counter_ns()
        self.clock: dict[int, int] = {}  # by thread, when the last node that ran on it was done with
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
        self._rows: dict[tuple[Any, ...], int] = {}
        # By what is quick to compare, the id of a call site among it, which the entry keeps alive.
        self._known_nodes: dict[tuple[Any, ...], Known] = {}
        self._latest: dict[int, Known] = {}
        self._takers: dict[str, Taker] = {}

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
                view = _Task(task, number, iteration, names, adapter, self._taker_of(adapter))
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
                    started=view.started - self.origin,
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
        self._end(task, "failed", error)

    def _end(self, task: Any, state: str, error: BaseException | None) -> None:
        view = self._tasks.pop(id(task), None)
        if view is None:
            return
        stack = self._stack()
        if view in stack:
            del stack[stack.index(view) :]
        try:
            text = None
            if error is not None:
                text = f"{type(error).__name__}: {_first_line(error)}"
                self._note_failure(view, error, text)
            self._writer.put(Change("tasks", view.id, ended=self._now(), state=state, error=text))
        except Exception as problem:
            self._failed(problem)

    def _note_failure(self, view: _Task, error: BaseException, text: str) -> None:
        """Add the node at which a backward has failed, as far as that can be known."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        call = view.adapter.failed_call(error, frames[::-1])
        if call is None or call.in_hook or (call.task is not None and call.task is not view.task):
            return
        started = view.clock.get(threading.get_ident(), view.started)
        look = self._policy.summaries and call.grad_outputs is not None
        self._put_node(view, call, started, self._now() + self.origin, look, failed=1)
        self._event("error", text, view, view.ran - 1)

    # --- a node ---

    def node_exited(self, call: Any) -> None:
        """Take what there is to say of its gradients, and hand the node over.

        Its time is that since the node before it on the same thread, so that nothing has to be put before each.
        """
        ended = time.perf_counter_ns()
        view = self._tasks.get(id(call.task))
        if view is None or self._writer.failure:
            return
        try:
            thread = threading.get_ident()
            self._put_node(view, call, view.clock.get(thread, view.started), ended, self._policy.summaries)
            view.clock[thread] = time.perf_counter_ns()
        except Exception as error:
            self._failed(error)

    def _put_node(self, view: _Task, call: Any, started: int, ended: int, look: bool, failed: int = 0) -> None:
        node = call.node
        name, sequence_nr, site, leaf, notes, edges = view.adapter.traits(node)
        places = view.places
        place = places.setdefault(node, len(places))
        leads = []
        for edge in edges:
            target, input_nr = edge if type(edge) is tuple else (edge, 0)
            leads.append((None if target is None else places.setdefault(target, len(places)), input_nr))
        module = notes.get(MODULE, "") if notes else ""
        parameter = view.names.get(id(leaf), "") if leaf is not None else ""
        # As a rule the same node stood there the last time; to compare takes half as long as to look up.
        known = self._latest.get(place)
        if (
            known is None
            or known.site is not site
            or known.name != name
            or known.leads != leads
            or known.module != module
            or known.parameter != parameter
        ):
            known = self._find_node(view, node, site, (name, place, module, parameter, id(site), tuple(leads)))
        item = NodeItem((view.id, known.row, sequence_nr, started - self.origin, ended - started, failed, -1, -1))
        nbytes = 0
        if look:
            taker = view.taker
            item[HEAD - 2], item[HEAD - 1] = taker.take(item, view.flow, known, call)
            nbytes, taker.nbytes = taker.nbytes, 0
        if failed:
            item[HEAD - 1] = -1
        view.ran += 1
        self._writer.put(item, nbytes)

    def _taker_of(self, adapter: Adapter) -> Taker:
        taker = self._takers.get(adapter.name)
        if taker is None:
            intern = functools.partial(self._intern, "specs")
            taker = self._takers[adapter.name] = Taker(adapter, intern, self._next["tensor_values"])
        return taker

    # --- what nodes of all iterations share ---

    def _find_node(self, view: _Task, node: Any, site: Any, identity: tuple[Any, ...]) -> Known:
        """Return what is known of a node that is not the one which stood in its place the last time."""
        known = self._known_nodes.get(identity)
        if known is None:
            if len(self._known_nodes) >= _KEPT:  # a program whose every backward is another
                self._known_nodes.clear()
                self._latest.clear()
            known = self._known_nodes[identity] = self._new_node(view, node, site, identity)
        self._latest[known.place] = known
        return known

    def _new_node(self, view: _Task, node: Any, site: Any, identity: tuple[Any, ...]) -> Known:
        name, place, module, parameter, _, leads = identity
        adapter = view.adapter
        location = adapter.location(node)
        text = name, place, module, parameter, location, leads
        told = module or module_of_parameter(parameter)
        outputs = adapter.outputs(node)
        saved = saved_records(adapter, node, summaries=False)
        record = NodeRecord(view.ran, place, name, operator_name(name), 0, told, parameter, location, ())
        with self._lock:
            number = self._rows.get(text)  # the same line can have several call sites
            if number is None:
                number = self._rows[text] = self._next["nodes"]()
                self._writer.put([
                    number, name, self._module(told), parameter, self._location(location), place, leads,
                    [(spec.shape, spec.dtype, spec.device) for spec in outputs],
                    [(s.name, s.shape, s.dtype, s.nbytes) for s in saved],
                ])  # fmt: skip
                if len(self._rows) >= _KEPT:
                    self._rows.clear()
        return Known(number, place, leads, self._policy.wants(record), (name, site, module, parameter))

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
                self._writer.execute(_INSERT[table], (number, *facts))
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
        self._writer.execute(
            "DELETE FROM iterations WHERE run = ? AND number > ? AND id <= ?", (self._run, number, gone)
        )
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
        self._writer.execute(_INSERT["events"], facts)

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
            self._writer.execute(
                "INSERT INTO violations (run, iteration, task, node, time, operator, saved_name, saved_version,"
                f" current_version, message) VALUES ({', '.join('?' * 10)})",
                facts,
            )
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
