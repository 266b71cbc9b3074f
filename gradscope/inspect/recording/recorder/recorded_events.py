"""Turns events into rows of a recording, on the program's thread; the writer's thread does what can wait."""

from __future__ import annotations

import functools
import itertools
import threading
import time
import traceback
from collections.abc import Callable
from contextlib import suppress
from math import isnan
from types import FrameType
from typing import Any

import numpy

from ...adapters import Adapter
from ...adapters.event_guards import own_error
from ...adapters.guarded_observer import GuardedObserver, guarded, guards_itself
from ...debuggee.whereabouts import main_thread_frame
from ...output.terminal_text import printable
from ...records.before_step.step_looks import StepLook, StepLooker
from ...records.loss_value import loss_value
from ...records.module_tracking import Tracker, module_of_parameter, module_records
from ...records.records import Location, NodeRecord, dtype_name, operator_name
from ...records.snapshots import any_bad, inner_operators
from ...source.call_sites import user_frame
from ..file.batch_writer import IterationChange, RowUpdate, Statement
from ..file.compiled_calls import INSIDE, inside_text
from ..file.node_pages import Batch
from ..file.recording_records import STOPPED
from ..file.schema import RecordingError
from ..file.step_rows import STEP_COLUMNS, layout_text, step_row
from .gradient_capture import ROW_LENGTH, Flow, GradientCapture, RowBuffer
from .hang_watch import BEHIND, RAISED, SILENT, SKIPPED, HangWatch, raised_frame, raised_text
from .iteration_marks import IterationCounter
from .keep_policy import Policy
from .plan_cache import MOST_NODES, CachedPlan, NodePlan, PlanCache
from .writer_thread import Writer

__all__ = ["EventRecorder"]

_INSERT = {
    name: f"INSERT INTO {name} VALUES ({', '.join('?' * count)})"
    for name, count in {
        "modules": 2,
        "locations": 5,
        "specs": 5,
        "events": 8,
        "layouts": 2,
        "steps": len(STEP_COLUMNS),
        "module_types": 5,
    }.items()
}

_MOST = 512 * ROW_LENGTH  # entries that a buffer's rows may have
_HEAVY = 4 << 20  # bytes of copies that a buffer may hold
_PATIENCE = 1.0  # seconds for which it waits for a backward of another thread, to hand over the last of it
_OF_A_DEVICE = "CUDA error", "HIP error"  # where the program's own kernels have failed before
_MOST_MODULES = 100_000  # modules of a run whose types are kept

_clock = time.perf_counter_ns
_thread = threading.get_ident


class _Task:
    """A backward that runs."""

    __slots__ = (
        "adapter", "plan", "flow", "handing", "id", "iteration", "lock", "places", "ran", "sequence_nrs", "started",
        "capture", "task", "buffer", "buffers",
    )  # fmt: skip

    def __init__(self, task: Any, number: int, iteration: int, adapter: Adapter, capture: GradientCapture) -> None:
        self.adapter = adapter
        self.capture = capture
        self.task = task
        self.id = number
        self.iteration = iteration
        self.flow: Flow = {}
        self.ran = 0  # number of nodes that have been handed over
        self.lock = threading.RLock()  # held by whoever hands rows over
        self.handing = False

    def begin(self, plan: CachedPlan, places: dict[Any, Any], sequence_nrs: Any) -> None:
        """Start the clock, with all that is known of the nodes that may run."""
        self.plan, self.places, self.sequence_nrs = plan, places, sequence_nrs
        self.started = _clock()
        self.buffer = RowBuffer(self.started)  # the buffer of the thread on which the last node ran
        self.buffers = {self.buffer.thread: self.buffer}

    def buffer_here(self) -> RowBuffer:
        """Return this thread's buffer."""
        thread = _thread()
        buffer = self.buffers.get(thread)
        if buffer is None:
            buffer = self.buffers[thread] = RowBuffer(self.started)
        self.buffer = buffer
        return buffer


class EventRecorder(GuardedObserver):
    """Hands what happens to a writer, until an error of its own.

    Parameters
    ----------
    run : int
        The row of the table `runs`.
    before_task : callable
        Called before each backward.
    stopped : callable
        Called with the :attr:`fault`, once all that was recorded before has been handed over.
    refused : callable
        Called with an error of the file's, or of a device.
    one_of_many : bool
        Whether this process is a rank beside others: then what optimizers are about to use is recorded.
    """

    nodes_of_modules_alone = True  # what is noted of a new node is the module that runs

    def __init__(
        self,
        adapter: Adapter,
        policy: Policy,
        writer: Writer,
        run: int,
        *,
        before_task: Callable[[], None],
        stopped: Callable[[str], None],
        refused: Callable[[Exception], None],
        one_of_many: bool = False,
    ) -> None:
        self.counter = IterationCounter()
        self.origin = time.perf_counter_ns()
        self._adapter = adapter
        self._policy = policy
        self._writer = writer
        self._run = run
        self._before_task = before_task
        self._stopped, self._refused = stopped, refused
        self._looks = policy.summaries
        self._tracker = Tracker(adapter)
        self._tracker.report_fault = self.give_up  # type: ignore[method-assign]
        # The tracker's methods are the recorder's own, which spares every node a look-up.
        self.module_entered = self._tracker.module_entered  # type: ignore[method-assign]
        self.module_left = self._tracker.module_left  # type: ignore[method-assign]
        self.operator_recorded = self._tracker.operator_recorded  # type: ignore[method-assign]
        self.operators_recorded = self._tracker.operators_recorded  # type: ignore[method-assign]
        self._looker: StepLooker | None = None
        self._looked: dict[int, StepLook] = {}
        self._lock = threading.RLock()
        self._tasks: dict[Any, _Task] = {}
        self._stacks = threading.local()
        self._numbers = itertools.count(1).__next__
        self._next = {
            table: writer.counter(table)
            for table in (
                "tasks",
                "iterations",
                "nodes",
                "modules",
                "locations",
                "specs",
                "tensor_values",
                "events",
                "layouts",
                "steps",
                "module_types",
            )
        }
        self._iterations: dict[int, tuple[int, dict[str, Any]]] = {}
        self._last_task = 0
        self._iteration_now: tuple[int, dict[str, Any]] | None = None
        self._known: dict[str, dict[Any, int]] = {
            table: {} for table in ("modules", "locations", "specs", "layouts", "module_types")
        }
        self._rows: dict[tuple[Any, ...], int] = {}
        self._plans = PlanCache()
        self._captures: dict[str, GradientCapture] = {}
        self._one_of_many = False
        self._left: FrameType | None = None  # what the exception that has ended the program has left
        if one_of_many:
            self.become_rank()

    def become_rank(self) -> None:
        """Record what optimizers are about to use from now on: it is known that this is one of many ranks."""
        self._one_of_many = True
        if self._looks:
            self._looker = StepLooker(self._adapter, self._tracker)
            self.module_entered = self._module_entered  # type: ignore[method-assign]
        silent, self._skip_row = self._next["events"](), self._next["events"]()

        def note(place: str) -> None:
            frame = main_thread_frame()
            left = self._looker is not None and self._looker.has_left_loop(frame)
            self._replace_event(silent, SILENT, f"{place}{BEHIND}" if left else place)
            self._note_skipped(frame)

        self._hangs = HangWatch(note)
        self._writer.quiet = self._quiet

    @guarded
    def _module_entered(self, module: Any) -> None:
        """Note that a module runs, for ranks to be compared by too."""
        assert self._looker is not None
        self._looker.module_entered(module)

    @guarded
    def _quiet(self, taken: int) -> None:
        """Look where the main thread is; the writer's thread asks when there was nothing to write."""
        self._hangs.quiet(taken)

    # --- an error of its own ---

    def fail(self, error: Exception) -> None:
        """Stop by an error of its own; one of the file's, or of a device, is told as such."""
        if isinstance(error, RecordingError) or str(error).startswith(_OF_A_DEVICE):
            self._refused(error)
        else:
            super().fail(error)

    def report_fault(self, fault: str) -> None:
        """Hand over what has been recorded until now, and say in the file where that ends, and why."""
        self._stopped(fault)
        stack = self._stack()
        for view in list(self._tasks.values()):
            if view.lock.acquire(timeout=_PATIENCE):  # the holder may wait for the writer's thread, which this may be
                try:
                    with suppress(Exception):  # it may be what has failed
                        self._hand_over(view)
                finally:
                    view.lock.release()
        self._tasks.clear()
        self._writer.put(self.stop_of(fault, stack[-1] if stack else None))
        self._end_iteration()

    def stop_of(self, fault: str, view: _Task | None = None) -> Statement:
        """Return what says in the file that recording has stopped; in no iteration, with which it would go."""
        where = "" if self._iteration_now is None else f" in iteration {self._iteration_now[1]['number']}"
        where += "" if view is None else f", backward {view.id}, at node {view.ran}"
        text = f"recording has stopped{where}: {own_error(fault)}"
        facts = self._next["events"](), self._run, None, None, None, self._now(), STOPPED, text
        return Statement(_INSERT["events"], facts)

    # --- a backward ---

    def task_started(self, task: Any) -> None:
        """Begin a row of `tasks`."""
        if self._writer.failure:
            return
        self._before_task()
        stack = self._stack()
        with self._lock:
            number = self._last_task = self._next["tasks"]()
            parent = stack[-1].id if stack else None
            iteration = stack[-1].iteration if stack else self._iteration(self.counter.task_started(number))
            adapter = self._adapter.of(task)
            view = _Task(task, number, iteration, adapter, self._capture_of(adapter))
        if self._looker is not None:
            self._looker.backward_started(task, inside=bool(stack))
        if self._tracker.has_new_roots:
            self._note_module_types()
        view.begin(*self._plans.find(adapter.plan(task), self._tracker.parameter_paths()))
        self._tasks[task] = view
        stack.append(view)
        self._writer.put(
            RowUpdate(
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
                loss=self._loss(adapter),
            )
        )

    def _loss(self, adapter: Adapter) -> float | str | None:
        """Return the loss of the backward that begins, where it is known; SQLite has no NaN, which stands as text."""
        frame = user_frame() if self._looks else None
        value = None if frame is None else loss_value(adapter, frame)
        return "nan" if value is not None and isnan(value) else value

    def task_finished(self, task: Any) -> None:
        """Note the end of a backward."""
        self._end(task, "finished", None)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Note which node failed, and the error."""
        self._end(task, "failed", error)

    def _end(self, task: Any, state: str, error: BaseException | None) -> None:
        view = self._tasks.pop(task, None)
        if view is None:
            return
        stack = self._stack()
        if view in stack:
            del stack[stack.index(view) :]
        self._hand_over(view)
        text = None if error is None else f"{type(error).__name__}: {_first_line(error)}"
        try:
            if error is not None and text is not None:
                self._note_failure(view, error, text)
        finally:
            self._writer.put(RowUpdate("tasks", view.id, ended=self._now(), state=state, error=text))

    def _note_failure(self, view: _Task, error: BaseException, text: str) -> None:
        """Add the node at which a backward has failed, as far as that can be known."""
        frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
        call = view.adapter.failed_call(error, frames[::-1])
        if call is None or call.in_hook or (call.task is not None and call.task is not view.task):
            return
        place = view.places.get(call.node)
        if place is None:
            return
        buffer, ended, incoming = view.buffer_here(), _clock(), -1
        node = view.plan.nodes[place]
        if node.row < 0:
            self._describe(view, place, node, call.node)
        if self._looks and call.grad_outputs is not None:
            incoming, _ = view.capture.take(buffer.gradients, view.flow, place, node, call)
        buffer.rows += place, ended, incoming, -1, _clock()
        self._hand_over(view, failed=True)
        self._event("error", text, view, view.ran - 1)

    # --- a node ---

    @guards_itself
    def node_exited(self, call: Any) -> None:
        """Take what there is to say of its gradients.

        Its time is that since the node before it on the same thread, so that nothing has to be put before each.
        """
        ended = _clock()
        try:
            view = self._tasks.get(call.task)
            if view is None or self._writer.failure:
                return
            buffer = view.buffer
            if buffer.thread != _thread():
                self._hand_over(view)
                buffer = view.buffer_here()
            place = view.places[call.node]
            node = view.plan.nodes[place]
            if node.row < 0:
                self._describe(view, place, node, call.node)
            incoming, produced = (
                view.capture.take(buffer.gradients, view.flow, place, node, call) if self._looks else (-1, -1)
            )
            # The row is added in one step, so that the writer's thread finds it whole.
            buffer.rows += place, ended, incoming, produced, _clock()
            if len(buffer.rows) >= _MOST or view.capture.nbytes > _HEAVY:
                self._hand_over(view)
                buffer.begun = _clock()
        except Exception as error:
            self.fail(error)

    def compiled_ran(self, run: Any) -> None:
        """Keep what has run inside of a compiled node, the first time and where something bad comes out of it."""
        view = self._tasks.get(run.task)
        if view is None or not self._looks or self._writer.failure:
            return
        node = view.plan.nodes[view.places[run.node]]
        if node.row >= 0 and not self._policy.values and not any_bad(view.adapter, run.made):
            return
        inside = inner_operators(view.adapter, run)
        if view.buffer.thread != _thread():
            self._hand_over(view)
            view.buffer_here()
        with view.lock:
            index = view.ran + len(view.buffer.rows) // ROW_LENGTH
        self._event(INSIDE, inside_text(inside), view, index)

    def gather(self) -> bool:
        """Hand over what waits of all backwards; return whether one runs. The writer's thread asks now and then."""
        views = list(self._tasks.values())
        for view in views:
            # Blocking could deadlock: the holder may wait for the writer's thread.
            if view.lock.acquire(blocking=False):
                try:
                    self._hand_over(view)
                except Exception as error:
                    self.fail(error)
                finally:
                    view.lock.release()
        return bool(views)

    def _hand_over(self, view: _Task, failed: bool = False) -> None:
        """Give the writer what waits of a backward; where that has `failed`, its last node."""
        if self._writer.failure:
            return
        with view.lock:
            if view.handing:  # a signal has interrupted this thread while it handed over
                return
            view.handing = True
            try:
                for buffer in list(view.buffers.values()):
                    self._empty(view, buffer, failed)
            except Exception:
                view.buffers = {}  # what follows a gap is not to be had
                raise
            finally:
                view.handing = False

    def _empty(self, view: _Task, buffer: RowBuffer, failed: bool) -> None:
        taken = buffer.take_out()
        if taken is not None:
            (started, ended), gradients, template_key = taken
            cached = view.plan.template_of(template_key, view.capture.forms)
            view.capture.unpack(cached.to_unpack, gradients)
            times = numpy.array(started, numpy.int64) - self.origin, numpy.array(ended, numpy.int64) - self.origin
            numbers = view.sequence_nrs[cached.template.places]
            batch = Batch(view.id, cached.template, numbers, times, gradients, failed)
            view.ran += len(batch)
            nbytes, view.capture.nbytes = view.capture.nbytes, 0
            self._writer.put(batch, nbytes)
        if buffer.thread == _thread() and buffer.empty:
            buffer.clear()

    def _capture_of(self, adapter: Adapter) -> GradientCapture:
        capture = self._captures.get(adapter.name)
        if capture is None:
            intern = functools.partial(self._intern, "specs")
            capture = self._captures[adapter.name] = GradientCapture(adapter, intern, self._next["tensor_values"])
        return capture

    # --- what nodes of all iterations share ---

    def _describe(self, view: _Task, place: int, planned: NodePlan, node: Any) -> None:
        """Give a node its row in the table `nodes`, when it runs for the first time."""
        name, module, parameter = view.plan.facts(place)
        adapter = view.adapter
        location = adapter.location(node)
        text = name, place, module, parameter, location, planned.edges
        told = module or module_of_parameter(parameter)
        planned.wanted = self._policy.everything or (
            self._policy.values
            and self._policy.wants(NodeRecord(-1, place, name, operator_name(name), 0, told, parameter, location, ()))
        )
        with self._lock:
            number = self._rows.get(text)  # several call sites can have the same line
            if number is None:
                number = self._rows[text] = self._next["nodes"]()
                self._writer.put([
                    number, name, self._module(told), printable(parameter), self._location(location), place,
                    planned.edges,
                    [(spec.shape, spec.dtype, spec.device) for spec in adapter.outputs(node)],
                    [(printable(s.name), s.shape, dtype_name(s.dtype), s.nbytes) for s in adapter.saved(node)],
                ])  # fmt: skip
                if len(self._rows) >= MOST_NODES:
                    self._rows.clear()
        planned.row = number

    def _module(self, path: str) -> int:
        known = self._known["modules"].get(path)
        return self._intern("modules", path, (path,)) if known is None else known

    def _note_module_types(self) -> None:
        """Keep what the modules are that have been seen since the last backward: those that only hold others too."""
        known = self._known["module_types"]
        for record in module_records(self._adapter, self._tracker.take_new_roots(), ask_program=False):
            key = record.path, record.kind
            if key in known or len(known) < _MOST_MODULES:
                texts = printable(record.path), printable(record.kind), printable(record.arguments)
                self._intern("module_types", key, (self._run, *texts))

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

    @guarded
    def about_to_step(self, optimizer: Any) -> None:
        """Look at what an optimizer is about to use, for ranks to be compared by."""
        if self._looker is None or self._writer.failure:
            return
        look = self._looker.look(optimizer)
        if look is not None:
            self._looked[id(optimizer)] = look

    @guarded
    def stepped(self, optimizer: Any) -> None:
        """Note an optimizer's step."""
        if self._writer.failure:
            return
        with self._lock:
            moved = self.counter.stepped(id(optimizer))
            if moved is not None:
                self._move(*moved)
            look = self._looked.pop(id(optimizer), None)
            if look is not None:  # the step says to which iteration the look belongs
                self._step(look)
        if self._looker is not None:
            self._looker.stepped(optimizer)

    def _step(self, look: StepLook) -> None:
        iteration = self._iteration_now[0] if self._iteration_now is not None else None
        layout = self._intern("layouts", look.tensors, (layout_text(look.tensors),))
        where = self._next["steps"](), self._run, iteration, self._last_task or None, self._now()
        self._writer.execute(_INSERT["steps"], (*where, look.optimizer, look.number, layout, *step_row(look)))

    def _move(self, task: int, number: int) -> None:
        """Put the backwards from `task` on into iteration `number`; the iterations after it never were."""
        row, _ = now = self._iterations[number]
        gone = max(later for later, _ in self._iterations.values())
        self._writer.put(IterationChange(task, self._last_task, self._run, row))
        self._writer.execute(
            "DELETE FROM iterations WHERE run = ? AND number > ? AND id <= ?", (self._run, number, gone)
        )
        self._iterations = {n: known for n, known in self._iterations.items() if n <= number}
        self._iteration_now = now

    def iteration(self, label: str) -> int:
        """Begin an iteration by hand; return its number."""
        with self._lock:
            number = self.counter.begin()
            self._begin_iteration(number, label)
        return number

    @guarded
    def _begin_iteration(self, number: int, label: str) -> None:
        self._iteration(number, label)

    def _iteration(self, number: int, label: str = "") -> int:
        """Return the row of an iteration of this run."""
        if number not in self._iterations:
            self._end_iteration()
            facts = {"run": self._run, "number": number, "started": self._now(), "label": label}
            row = self._next["iterations"]()
            self._iteration_now = self._iterations[number] = row, facts
            self._writer.put(RowUpdate("iterations", row, **facts))
            # Backwards are only ever moved to the first iteration or to the one before: other numbers can go.
            self._iterations.pop(number - 2 if number > 3 else 0, None)
        return self._iterations[number][0]

    def _end_iteration(self) -> None:
        if self._iteration_now is not None:
            row, facts = self._iteration_now
            self._writer.put(RowUpdate("iterations", row, **facts, ended=self._now()))

    @guarded
    def flush(self) -> None:
        """Hand over what waits of all backwards."""
        for view in list(self._tasks.values()):
            self._hand_over(view)

    @guarded
    def close(self) -> None:
        """Hand over what is left, and note the end of the last iteration."""
        self.flush()
        self._note_skipped(self._left)
        self._left = None
        self._end_iteration()

    @guarded
    def mark(self, text: str, kind: str = "mark") -> None:
        """Write an event."""
        stack = self._stack()
        self._event(kind, text, stack[-1] if stack else None, None)

    @guarded
    def raised(self, error: BaseException) -> None:
        """Note what the program did not catch, where other ranks may wait for this one."""
        if self._one_of_many and isinstance(error, Exception | KeyboardInterrupt):
            self._event(RAISED, raised_text(error), None, None)
            self._left = raised_frame(error)

    def _note_skipped(self, frame: FrameType | None) -> None:
        """Note that no backward has followed the last forward, at which the program stands, or has ended."""
        skipped = [] if self._looker is None else self._looker.skipped(frame)
        if skipped:
            self._replace_event(self._skip_row, SKIPPED, skipped[-1].text())

    def _replace_event(self, row: int, kind: str, text: str) -> None:
        """Write an event of which the last alone is kept; it belongs to no iteration, with which it would go."""
        facts = row, self._run, None, None, None, self._now(), kind, text
        self._writer.execute(_INSERT["events"].replace("INSERT", "INSERT OR REPLACE", 1), facts)

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
        stack = self._stack()
        view = stack[-1] if stack else None
        if view is not None:
            self._hand_over(view)
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

    def _stack(self) -> list[_Task]:
        tasks: list[_Task]
        try:
            tasks = self._stacks.tasks
        except AttributeError:
            tasks = self._stacks.tasks = []
        return tasks

    def _now(self) -> int:
        return time.perf_counter_ns() - self.origin


def _first_line(error: BaseException) -> str:
    return (str(error).strip() or "no message").splitlines()[0]
