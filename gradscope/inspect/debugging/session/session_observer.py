"""The debuggee's side of a session: it hears of every node, decides whether to stop, and waits at the gate.

All methods but the flags run on the program's own threads. One thread is followed at a time: the first that is in a
backward, or the one chosen; backwards of other threads run through.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from time import perf_counter_ns
from types import FrameType, TracebackType
from typing import Any, TypeVar

from ...adapters import Adapter, FailedCall, Observation, SavedView, Write
from ...adapters.event_guards import own_error
from ...adapters.guarded_observer import GuardedObserver, guarded
from ...debuggee.pause_gate import Gate, NotParkedError, ProgramAborted
from ...records.module_tracking import Tracker, module_records
from ...records.records import NodeRecord, SessionState, StopReason, WriteRecord
from ...records.snapshots import any_bad, inner_operators
from ...records.write_account import WriteAccount
from ...records.write_facts import WriteFact
from ...source.call_sites import place
from ..history.history import History, HistoryPosition
from ..history.history_policy import HistoryPolicy
from ..history.history_replay import PastContext, Replay, why_stop
from ..history.loss_history import LossHistory
from ..history.norm_history import NormHistory
from ..stops import condition_names
from ..stops.breakpoints import Breakpoint, BreakpointError, BreakpointTable, WatchedMemory
from ..stops.run_targets import RunCommand, RunTarget
from ..stops.stop_decision import BadBegin, StopDecision
from ..stops.watches import WatchList
from .backward_threads import BackwardThread, BackwardThreads
from .debugged_backward import TaskView
from .looking_time import LookingTime
from .model_records import KnownParameter, known_parameters, parameter_records
from .pause_context import PauseContext
from .session_records import ModuleRecord, ParameterRecord, TaskRecord

__all__ = ["ACTIVE", "SessionObserver", "session_here"]

T = TypeVar("T")

ACTIVE: list[SessionObserver] = []
"""The sessions that listen."""

_NO_LINES = "; the lines of its nodes are not known: its forward pass ran while nobody looked"

_THREAD = threading.local()
"""Has the session whose program runs on a thread."""


def session_here() -> SessionObserver | None:
    """Return the session whose program runs on this thread; None on a thread that a program has started."""
    return getattr(_THREAD, "session", None)


class _MuteDepth(threading.local):
    """In how many open blocks what this thread does is not heard."""

    depth = 0


class _Unobserved:
    """What a thread does in the block is not heard; a class, since every backward enters it many times."""

    __slots__ = ("_quiet", "_thread")

    def __init__(self, thread: _MuteDepth, quiet: AbstractContextManager[Any]) -> None:
        self._thread = thread
        self._quiet = quiet

    def __enter__(self) -> None:
        self._thread.depth += 1
        try:
            self._quiet.__enter__()
        except BaseException:
            self._thread.depth -= 1
            raise

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._quiet.__exit__(kind, error, trace)
        finally:
            self._thread.depth -= 1


class SessionObserver(GuardedObserver):
    """The observer that stops the program; an error of its own costs a stop at most, and goes to the log.

    Parameters
    ----------
    report : callable
        Called with the state and the reason when the program stops.
    log : callable
        Called with what a logpoint prints.

    Attributes
    ----------
    task_count : int
        Backwards followed so far.
    tasks_seen : int
        Backwards started so far, on any thread.
    let_alone : int
        Of them those that have run since the last that was looked at.
    view : TaskView or None
        The backward where the program stopped, or failed, last.
    pause_requested, abort_requested : bool
        Set by the other side.
    record_always : bool
        Whether to record while the program runs free.
    restored : str
        What an abort has put back.
    faults : set of str
        The lines at which its own code has failed.
    on_backward : callable
        Called when a backward begins, on its thread.
    """

    def __init__(
        self,
        adapter: Adapter,
        gate: Gate,
        breakpoints: BreakpointTable,
        watches: WatchList,
        policy: HistoryPolicy,
        report: Callable[[SessionState, StopReason], None],
        log: Callable[[str], None],
    ) -> None:
        self.adapter = adapter
        self.task_count = 0
        self.tasks_seen = 0
        self.view: TaskView | None = None
        self.current = -1
        self._pause_requested = False
        self._abort_requested = False
        self._record_always = policy.always
        self._observation: Observation | None = None
        self.restored = ""
        self.faults: set[str] = set()
        self.on_backward: Callable[[], None] = lambda: None
        self.history = History(policy)
        self.replay = Replay(self.history)
        self.norm_history = NormHistory()
        self.loss_history = LossHistory()
        self.threads = BackwardThreads()
        self.watches = watches
        self._gate = gate
        self._breakpoints = breakpoints
        self.log = log
        self._report = report
        self._blind: set[str] = set()
        self._stops = StopDecision(adapter, breakpoints, log)
        self.tracker = Tracker(adapter)
        self.tracker.report_fault = self.give_up  # type: ignore[method-assign]
        self._writes = WriteAccount()
        self._target = RunTarget.at(RunCommand("cont"))
        self._last_free: TaskView | None = None
        self._last_closed: TaskView | None = None
        # The backward that is told of in passing, and whether nodes are.
        self._passed: TaskView | None = None
        self._passing = False
        self._listening = threading.RLock()
        self._looking = LookingTime()
        self.let_alone = 0
        # Whether nothing is heard, and whether the nodes of the next backward were made meanwhile.
        self._resting = self._forward_unseen = False
        self.modules_at_end: tuple[ModuleRecord, ...] = ()
        self._known: list[KnownParameter] = []
        self._muted = _MuteDepth()
        self._standing: PauseContext | None = None
        self._end = 0

    @property
    def command(self) -> RunCommand:
        """What the program was told last."""
        return self._target.command

    @command.setter
    def command(self, command: RunCommand) -> None:
        thread = self.threads.followed
        views = thread.views if thread is not None else []
        view = views[-1] if views else None
        number, module = 0, ""
        if view is not None:
            number = view.number
            module = view.module_at(view.index) if view.order and view.index >= 0 else ""
        self._target = RunTarget.at(command, number or self.task_count, max(1, len(views)), module)

        self.listen_as_needed()

    @property
    def pause_requested(self) -> bool:
        """Whether the program is to stop at its next node."""
        return self._pause_requested

    @pause_requested.setter
    def pause_requested(self, on: bool) -> None:
        self._pause_requested = on
        self.listen_as_needed()

    @property
    def abort_requested(self) -> bool:
        """Whether the program is to end."""
        return self._abort_requested

    @abort_requested.setter
    def abort_requested(self, on: bool) -> None:
        self._abort_requested = on
        self.listen_as_needed()

    @property
    def record_always(self) -> bool:
        """Whether to record while the program runs free."""
        return self._record_always

    @record_always.setter
    def record_always(self, on: bool) -> None:
        self._record_always = on
        self.listen_as_needed()

    def give_up(self, fault: str) -> None:
        """Say that code of its own has failed, once for each line: it leaves out what it was about to do, and goes on.

        Parameters
        ----------
        fault : str
            As :func:`.fault_of` puts it.
        """
        line = fault.rpartition(" (")[2]
        if line not in self.faults:
            self.faults.add(line)
            self.log(own_error(fault))

    def listen_as_needed(self) -> None:
        """Hear of nodes in passing while the program runs free; of each, before and after, where it may stop.

        Fronts ask for pauses and breakpoints on a thread of their own, just when the program may begin to run free.
        """
        with self._listening:
            passing = self._free() and not (self._pause_requested or self._abort_requested)
            if passing is not self._passing and self._observation is not None:
                self._passing = passing
                self._observation.pass_by(passing)
            if not passing:
                self._looking.interrupted()
            if not self._lets_alone():
                self._listen_again()

    def backward_passes(self) -> None:
        """A backward begins while nothing is heard: count it, and listen again where that is due."""
        if self.deaf():
            return
        if self._looking.passes() or not self._lets_alone():
            self.let_alone = 0
            began = perf_counter_ns()
            self._resting = True
            self._listen_again()
            self._looking.switched((perf_counter_ns() - began) * 1e-9)
            return
        self.on_backward()
        self.tasks_seen += 1
        self.task_count += 1
        self.let_alone += 1
        frame = condition_names.user_frame()
        if frame is not None:
            self._stops.iterations.count(f"{frame.f_code.co_filename}:{frame.f_lineno}")

    def _listen_again(self) -> None:
        """Hear of all again, of the forward pass from now on."""
        if self._observation is not None and self._resting:
            self._resting, self._forward_unseen = False, True
            self._observation.rest(False)

    def _lacks_lines(self, view: TaskView) -> bool:
        """Whether a backward goes through a graph that was made while nothing was heard."""
        if not self._forward_unseen:
            return False
        return all(view.adapter.location(node) is None for node, _ in view.adapter.task_roots(view.task))

    def _lets_alone(self) -> bool:
        """Whether there is nothing at which the program could stop."""
        return self._passing and not self._breakpoints.catches_values

    def _rest(self, view: TaskView) -> None:
        """Hear of nothing for a while, after a backward that has been looked at."""
        if view.task is not None and getattr(view.task, "keep_graph", False):
            with self.mute():  # its graph is not to live any longer than the program wants it
                view.prepare()
            self.view, self.current = view, len(view.order) - 1
            self._release_last_free()
        if self._observation is not None:
            self._resting = True
            self._observation.rest(True)

    @contextmanager
    def observing(self) -> Iterator[None]:
        """Listen to the program for the length of the block."""
        before = getattr(_THREAD, "session", None)
        with self.adapter.observe(self, forward=True, backward=True, own_writes=True) as self._observation:
            self.listen_as_needed()
            ACTIVE.append(self)
            _THREAD.session = self
            try:
                yield
            finally:
                _THREAD.session = before
                ACTIVE.remove(self)

    # --- forward ---

    def module_entered(self, module: Any) -> None:
        """A module is about to run forward."""
        if self.deaf():
            return
        if self._abort_requested:
            raise ProgramAborted
        self.tracker.module_entered(module)

    def module_left(self, module: Any) -> None:
        """A module has run forward."""
        if not self.deaf():
            self.tracker.module_left(module)

    def operator_recorded(self, node: Any) -> None:
        """A node has been made."""
        # Another graph is made: what follows a training may be an evaluation.
        if self._last_free is not None and not self.deaf():
            self._release_last_free()
        self.tracker.operator_recorded(node)

    def operators_recorded(self, nodes: Sequence[Any]) -> None:
        """A call has made nodes."""
        if self._last_free is not None and not self.deaf():
            self._release_last_free()
        self.tracker.operators_recorded(nodes)

    def tensor_written(self, write: Write) -> None:
        """The program has written a tensor in place."""
        if self.deaf():
            return
        self._writes.note(self.adapter, write)
        if self._breakpoints.on_writes:
            self._stop_at_write(write)

    def tensors_written(self, writes: Sequence[Write]) -> None:
        """A call of the program has written several tensors, or one."""
        if self.deaf():
            return
        self._writes.note_all(self.adapter, writes)
        if self._breakpoints.on_writes:
            for write in writes:
                self._stop_at_write(write)

    def _stop_at_write(self, write: Write) -> None:
        """Stop where the program has written a saved tensor that a breakpoint watches."""
        memory = self.adapter.memory_key(write.tensor)
        point = next((point for point in self._breakpoints.all() if point.watches(memory)), None)
        if point is None or self.stopped or point.passes_by():
            return
        self.obey_abort()
        where = f" at {place(write.location)}" if write.location is not None else ""
        text = (
            f"breakpoint {point.id} ({point}): {write.operator}{where} has written it; it is at version {write.version}"
        )
        self.stop_inside(StopReason("write", text, point.id), point)

    # --- backward ---

    def task_started(self, task: Any) -> None:
        """A backward begins."""
        if self.deaf():
            return
        self.obey_abort()
        self.on_backward()
        self._release_last_free()
        self.tasks_seen += 1
        thread = self.threads.enter()
        self._follow(thread, task)

    def blind_region(self, reason: str) -> None:
        """A backward runs that nobody can look into: say so, once."""
        if self.deaf():
            return
        self.tasks_seen += 1
        if reason not in self._blind:
            self._blind.add(reason)
            self.log(f"a backward ran unseen: {reason}")

    def _follow(self, thread: BackwardThread, task: Any) -> TaskView:
        frame = condition_names.user_frame()
        site = "" if frame is None else f"{frame.f_code.co_filename}:{frame.f_lineno}"
        count = self._stops.iterations.count(site)
        view = TaskView(
            self.adapter.of(task), self.tracker, task, self.history.store, iteration=count, site=site, frame=frame
        )
        thread.views.append(view)
        if thread is self.threads.followed:
            self.number(view)
            if frame is not None and len(thread.views) == 1:
                with view.adapter.quiet():
                    self.loss_history.note(view.number, self.adapter, frame)
            if self._breakpoints.asks_for_last:
                view.counts = {}
            if not self._free():
                view.record_from_here(keep=self.history.policy.keep_saved)
            elif self._passing and self._breakpoints.catches_values and self._enters_bad(view):
                self._look_closer()
        view.began = perf_counter_ns()
        return view

    def _enters_bad(self, view: TaskView) -> bool:
        """Whether a backward begins with a NaN or an infinity."""
        _, finite = view.norms_of((), view.adapter.entering(view.task))
        return not finite

    def number(self, view: TaskView) -> None:
        """Give a backward that is followed its number, and its place in the history."""
        self.task_count += 1
        view.number = self.task_count
        self.history.begin(view)

    def _free(self) -> bool:
        return self._target.free and not self._breakpoints and not self.record_always

    def node_reached(self, call: Any) -> None:
        """A leaf or a node of Python is about to run while nobody looks."""
        view = self._passed
        if view is None or view.task is not call.task:
            view = self._come_to(call.task)
            if view is None:
                return
        leaf = view.backup.leaf_of(call.node)
        if leaf is not None:
            self._keep_leaf(view, leaf, call)
        elif view.adapter.variable(call.node) is None:
            view.announced(call)

    def leaf_filled(self, task: Any, node: Any) -> None:
        """A leaf without a gradient has got one while nobody looks."""
        view = self._passed
        if view is None or view.task is not task:
            view = self._come_to(task)
            if view is None:
                return
        view.note_leaf(node)
        view.backup.filled(node)

    def node_passed(self, task: Any, given: Sequence[Any], made: Sequence[Any]) -> bool:
        """A node has run while nobody looks: keep the norm of what it was given, and look closer where that is due."""
        if not self._passing:
            return True
        ended = perf_counter_ns()
        view = self._passed
        if view is None or view.task is not task:
            view = self._come_to(task)
            if view is None:
                return False
        norm, finite = view.norms_of(given, made)
        if not finite and self._breakpoints.catches_values:
            self._look_closer()
            return True
        if view.call is None:
            view.index += 1
        else:
            view.call = None
        index = view.index
        view.norms[index] = norm
        view.durations[index] = ended - view.began
        view.began = perf_counter_ns()
        return False

    def _come_to(self, task: Any) -> TaskView | None:
        """Return a backward that is told of in passing, None where it is not to be looked at."""
        own = None if self.deaf() else self.threads.of(task)
        if own is None or own[0] is not self.threads.followed:
            return None
        self._passed = own[1]
        return own[1]

    def _look_closer(self) -> None:
        """Be told of this node's end, and of those that follow, until the program runs free again."""
        if self._observation is not None:
            self._passing = False
            self._observation.pass_by(False)

    def node_entered(self, call: Any) -> None:
        """A node is about to run: stop before it, or let it run."""
        if self.deaf():
            return
        self.obey_abort()
        thread, view = self.threads.of(call.task) or self.join_late(call)
        if view.call is not None and view.call.node is call.node:
            view.call = call  # the call is known since the node's hooks ran
            if view.recording:
                with self.mute():
                    view.see_entry()
            return
        leaf = view.backup.leaf_of(call.node)
        if leaf is not None:
            self._keep_leaf(view, leaf, call)
        followed = thread is self.threads.followed
        if not followed or self._runs_free(view, call):
            view.announced(call)
            self.listen_as_needed()
            return
        if not view.number:
            self.number(view)
        with self.mute():
            view.entered(call)
            if view.recording:
                self.history.entered(view)
                self._stops.remember(view, call, view.seen_now())
            found = self._stops.before(view, call)
            reason = self._target.reached(view, call, len(thread.views))
            if self.pause_requested:
                reason = StopReason("pause", "paused on request" + _NO_LINES * self._lacks_lines(view))
        if found is not None:
            self.stop(SessionState.PAUSED_BEFORE, found[0], thread, view, found[1])
        elif reason is not None:
            self.stop(SessionState.PAUSED_BEFORE, reason, thread, view)
        view.began = perf_counter_ns()

    def _keep_leaf(self, view: TaskView, leaf: Any, call: Any) -> None:
        """Note that a backward comes to a leaf, and what that had before."""
        view.note_leaf(call.node)
        view.backup.keep(leaf, self.mute)

    def _runs_free(self, view: TaskView, call: Any) -> bool:
        """Whether nothing is to be recorded at a node, and it is no reason to stop."""
        if view.recording or self.pause_requested or not self._free():
            return False
        if view.index >= 0 or not self._breakpoints.catches_values:
            return True
        with self.mute():
            return self._stops.entering(call) is None

    def join_late(self, call: Any) -> tuple[BackwardThread, TaskView]:
        """Follow a backward that had begun before anybody listened."""
        thread = self.threads.enter()
        view = self._follow(thread, call.task)
        with self.mute():
            view.adopt(call)
        return thread, view

    def compiled_ran(self, run: Any) -> None:
        """What torch.compile has compiled has run: look inside, where the node is looked at."""
        own = self._own_view(run.task)
        if own is None:
            return
        with self.mute():
            bad = self._breakpoints.catches_values and any_bad(self.adapter, run.made)
            if not own[1].recording and not bad:
                return
            inside = inner_operators(self.adapter, run)
            if any(one.bad for one in inside):
                # The diagnosis loads when it is asked for.
                from ...diagnosis.nan.nan_inside import with_cause

                inside = with_cause(self.adapter, run, inside)
            own[1].see_inside(run.node, inside)

    def node_exited(self, call: Any) -> None:
        """A node has run: stop after it, or go on."""
        ended = perf_counter_ns()
        own = self._own_view(call.task)
        if own is None:
            return
        thread, view = own
        if view.call is None:  # nobody was told that it would run
            view.announced(call, began=view.began)
        elif view.call.grad_outputs is None:  # one of its hooks has stopped, and what arrives was not known yet
            view.call = call
        view.durations[view.index] = ended - view.began
        followed = thread is self.threads.followed
        if followed and not view.recording:
            self._see_in_passing(thread, view, call)
        elif followed:
            with self.mute():
                view.exited(call)
                found = self._stops.after(view, call)
                if self._target.kind in ("step", "into") and view.order:
                    view.summarized(view.index)
            target = self._target
            if found is not None:
                self.stop(SessionState.PAUSED_AFTER, found[0], thread, view, found[1], call)
            elif target.kind == "into" and (view.number, view.index) == (target.number, target.after):
                self.stop(SessionState.PAUSED_AFTER, StopReason("step", "after the node"), thread, view, None, call)
        view.call = None

    def _see_in_passing(self, thread: BackwardThread, view: TaskView, call: Any) -> None:
        """Keep the norm of what a node was given while nobody looks, and stop where it has made a NaN or an Inf."""
        view.norms[view.index], finite = view.norms_of(*view.adapter.carried(call))
        if finite or not self._breakpoints.catches_values:
            return
        with self.mute():
            found = self._stops.after(view, call)
            if found is None:
                self.listen_as_needed()
                return
            view.record_from_here(keep=self.history.policy.keep_saved)
            self.history.entered(view)
            view.exited(call)
        self.stop(SessionState.PAUSED_AFTER, found[0], thread, view, found[1], call)

    def task_finished(self, task: Any) -> None:
        """A backward has ended."""
        own = self._own_view(task)
        if own is not None:
            thread, view = own
            self._stops.iterations.ended(view.site)
            self._leave(thread)
            self._forward_unseen = False
            if not self.threads.busy and self._lets_alone() and self._looking.ended():
                self._rest(view)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """A backward has ended by an error: stop where it happened."""
        own = self._own_view(task)
        if own is None:
            return
        thread, view = own
        followed = thread is self.threads.followed
        if isinstance(error, ProgramAborted):
            self._restore(view)
        elif isinstance(error, SystemExit):  # this is no failure: a hook or a signal handler ends the program
            pass
        elif followed and error is not thread.error:
            self._find_unannounced(view, error)
            try:
                self.stop_at_failure(thread, view, error, "exception")
            except ProgramAborted:
                self._restore(view)
                self._leave(thread)
                raise
        self._leave(thread)

    def _find_unannounced(self, view: TaskView, error: BaseException) -> None:
        """Take the node whose hook has failed: hooks run before a node is announced."""
        if view.call is not None:
            return
        with self.mute():
            try:
                found = self.adapter.failed_call(error, condition_names.frames_of(error))
            except Exception:  # the program's own error counts, which may have left its graph in any state
                return
            if found is not None:
                view.take_failed(found)

    def violation(self, error: Any) -> None:
        """A saved tensor has been written since it was saved: stop before the error is raised."""
        thread = self.threads.mine()
        if self.deaf() or thread is None or thread is not self.threads.followed or not thread.views:
            return
        view = thread.views[-1]
        if view.call is None and getattr(error, "node", None) is not None:
            call = self._call_in(condition_names.all_frames())
            grads = call.grad_outputs if call is not None and call.node is error.node else None
            with self.mute():
                view.take_failed(FailedCall(view.task, error.node, grads))
        self.stop_at_failure(thread, view, error, "violation")

    def _restore(self, view: TaskView) -> None:
        with self.mute():
            count = view.backup.restore()
        leaves = f" ({count} {'leaf' if count == 1 else 'leaves'} put back)" if count else ""
        self.restored = f".grad is as it was before backward {view.number or view.iteration}{leaves}"

    def _leave(self, thread: BackwardThread) -> None:
        view = thread.views.pop()
        self._passed = None
        if view.number:
            self._note_norms(view)
        if view.norms and not view.order and not view.failed:
            self._keep_last_free(view)
        else:
            self._close(view)
            self._last_closed = view if view.number and view.order else self._last_closed
        if not thread.views:
            self.threads.leave(thread)
        if view.number:
            self._target.lost()

    def _note_norms(self, view: TaskView) -> None:
        """Remember what a backward has brought to its leaves, and what these are as long as they live."""
        if self.norm_history.note(view.leaf_norms()):
            with self.mute():
                self._known = known_parameters(self.adapter, self.tracker, view, self.norm_history)
                self.modules_at_end = module_records(self.adapter, self.tracker.roots())

    def parameters(self) -> tuple[ParameterRecord, ...]:
        """Return what is known of the parameters; for the parked thread, or when the program has ended."""
        view = self.shown[0]
        known = self._known
        if view is None or view.live:
            known = known_parameters(self.adapter, self.tracker, view, self.norm_history)
        return parameter_records(known, view, self.norm_history)

    def losses(self) -> tuple[float, ...]:
        """Return the latest losses, up to that of the backward that is shown; at the end of the program all."""
        view = self.shown[0]
        if view is None or (self.replay.position is None and not self.stopped):
            return self.loss_history.recent()
        return self.loss_history.up_to(view.number)

    def _keep_last_free(self, view: TaskView) -> None:
        """Keep the graph of a backward that ran free until the program goes on, should that be its end."""
        self._release_last_free()
        self._last_free = view

    def _release_last_free(self) -> None:
        """Let go of the graph of the last backward that ran free."""
        view, self._last_free = self._last_free, None
        if view is not None:
            self._close(view)

    def _close(self, view: TaskView) -> None:
        if view.looked_at:
            with self.mute():
                view.close()
        else:
            view.close()
        if view.number:
            self.history.ended(view)

    def _own_view(self, task: Any) -> tuple[BackwardThread, TaskView] | None:
        """Return the thread in whose innermost backward `task` is, and that."""
        return None if self.deaf() else self.threads.of(task)

    def obey_abort(self) -> None:
        """End the program if that has been asked for."""
        if self.abort_requested:
            raise ProgramAborted

    def deaf(self) -> bool:
        """Whether what happens on this thread is not to be heard; the program of another session is that one's."""
        if self._gate.gone or self._muted.depth:
            return True
        return len(ACTIVE) > 1 and session_here() not in (None, self)

    def mute(self) -> AbstractContextManager[None]:
        """Do the debugger's own arithmetic: not recorded, and not heard."""
        return _Unobserved(self._muted, self.adapter.quiet())

    @guarded
    def end(self) -> None:
        """Note that the program has ended: from now on everything is past, and the last backward is shown."""
        last, shown = self._last_free, self.view
        if last is not None:
            with self.mute():
                last.prepare()
        elif self._last_closed is not None and (shown is None or shown.number < self._last_closed.number):
            last = self._last_closed  # it was recorded, and nothing stopped in it
        if last is not None:
            self.view, self.current = last, len(last.order) - 1
        self._release_last_free()
        self._end = len(self.history.positions)

    # --- stopping ---

    @guarded
    def stop_inside(self, reason: StopReason, point: Breakpoint | None = None) -> None:
        """Stop in the middle of what the program does on this thread: in a forward pass, or in a backward."""
        thread, view = self._here()
        frames = condition_names.user_frames() if view is None else view.user_frames()
        inside = view is not None and view.call is not None
        self.stop(SessionState.PAUSED_BEFORE, reason, thread, view, point, inside=inside, frames=frames)

    def _here(self) -> tuple[BackwardThread | None, TaskView | None]:
        """Return the backward that the calling thread is in, even one that began before anybody listened."""
        thread = self.threads.mine()
        view = thread.views[-1] if thread is not None and thread.views else None
        call = None if view is not None and view.call is not None else self._call_in(condition_names.all_frames())
        if view is None and call is not None:
            thread, view = self.join_late(call)
        if thread is not None:
            self.threads.stop_in(thread)
        if view is None:
            return thread, None
        if view.call is None:
            # A hook runs before its node is announced.
            with self.mute():
                known = call if call is not None and call.task is view.task else view.next_call()
                if known is not None:
                    view.entered(known)
        if not view.number:
            self.number(view)
        return thread, view

    def _call_in(self, frames: list[FrameType]) -> Any:
        # What a framework written in C++ is doing cannot be read from Python's frames.
        look = getattr(self.adapter, "call_in", None)
        with self.mute():
            return None if look is None else look(frames)

    def stop(
        self,
        state: SessionState,
        reason: StopReason,
        thread: BackwardThread | None,
        view: TaskView | None,
        point: Breakpoint | None = None,
        produced: Any = None,
        *,
        inside: bool = False,
        frames: list[FrameType] | None = None,
    ) -> None:
        """Stop here: make records, tell who listens, and wait at the gate until the program is to go on.

        Parameters
        ----------
        view : TaskView or None
            The backward; None outside of one.
        point : Breakpoint, optional
            What stopped it.
        produced : object, optional
            The call of a node that has run.
        inside : bool
            Whether the node is in the middle of running.
        frames : list of frame, optional
            The user's, innermost first; those of the calling thread by default.
        """
        if frames is None:
            frames = condition_names.user_frames() if view is None else view.user_frames()
        about = None if view is None else self._stops.about(view)
        if view is not None:
            self._look_at(view, before=state is SessionState.PAUSED_BEFORE)
        if point is not None:
            self._breakpoints.hit(point)
        self._passed = None
        self.view, self.current = view, -1 if view is None else view.index
        self._end = len(self.history.positions) - (state is SessionState.PAUSED_BEFORE and view is not None)
        call = None if view is None else view.call
        self._standing = PauseContext(self.adapter, view, call, produced, frames, about, inside=inside)
        try:
            self.update_watches()
            command = self._gate.park(lambda: self._report(state, reason))
        finally:
            self._standing = self.replay.cursor = None
        self.threads.switch()
        self.command = command
        if view is not None and self._free():
            view.recording = False
        if command.kind == "into" and thread is self.threads.followed:
            # From before a node the program goes on to after it, from after a node to before the next.
            self._target.after = self.current if state is SessionState.PAUSED_BEFORE else -1

    def _look_at(self, view: TaskView, *, before: bool) -> None:
        """Make records of a backward and of the node where it stands."""
        with self.mute():
            view.prepare()
            if not view.recording:
                view.record_from_here(keep=self.history.policy.keep_saved)
                self.history.entered(view)
            if view.call is not None and before:
                view.see_entry()
            if view.call is not None:
                view.summarized(view.index)

    def stop_at_failure(
        self,
        thread: BackwardThread | None,
        view: TaskView,
        error: BaseException,
        kind: str,
        *,
        frames: list[FrameType] | None = None,
    ) -> None:
        """Stop where a node has failed; where failures of this kind are passed over, stand there without a stop."""
        if not self._breakpoints.caught[kind]:
            if kind == "exception":  # a violation that has been raised is an exception too
                self._stand_at_failure(view)
            return
        if thread is not None:
            thread.error = error
        with self.mute():
            view.prepare()
            view.fail()
        where = self.adapter.node_name(view.call.node) if view.call is not None else "the backward"
        writes: tuple[WriteRecord, ...] = ()
        if kind == "violation":
            writes = self._writers_of(error)
            text = (
                f"{where} needs `{error.saved_name}`, saved at version {error.saved_version}, "  # type: ignore[attr-defined]
                f"but it has been written since and is at version {error.current_version}"  # type: ignore[attr-defined]
            )
        else:
            first = (str(error).strip() or "no message").splitlines()[0]
            text = f"{where} raised {type(error).__name__}: {first}"
        self.stop(SessionState.PAUSED_AFTER, StopReason(kind, text, writes=writes), thread, view, frames=frames)

    def _stand_at_failure(self, view: TaskView) -> None:
        """Let the node that has failed be the one to look at when the program has ended."""
        self._look_at(view, before=False)
        with self.mute():
            view.fail()
        self.view, self.current = view, view.index

    def _writers_of(self, error: Any) -> tuple[WriteRecord, ...]:
        """Return who has written the saved tensor that a violation is about."""
        with self.mute():
            named = [saved for saved in self.adapter.saved(error.node) if saved.name == error.saved_name]
            return next(filter(None, map(self.writes_into, named)), ())

    def writes_into(self, saved: SavedView) -> tuple[WriteRecord, ...]:
        """Return the writes into a saved tensor since it was saved; the same one over and over counts as one."""
        before, now = saved.saved_version, saved.current_version
        if before is None or now is None or before == now:
            return ()
        writes = self._writes.between(self.adapter.memory_key(saved.data), before, now)
        return tuple(dict.fromkeys(WriteRecord(saved.name, write.operator, write.location) for write in writes))

    def written_before(self, saved: SavedView) -> WriteFact | None:
        """Return what last wrote a tensor before it was saved; None where nothing is known."""
        if saved.saved_version is None:
            return None
        writes = self._writes.between(self.adapter.memory_key(saved.data), -1, saved.saved_version)
        return writes[-1] if writes else None

    # --- while it is stopped ---

    def saved_memory(self, index: int, name: str) -> WatchedMemory:
        """Return the memory of what a node of the backward that is shown has saved; for the parked thread.

        Raises
        ------
        BreakpointError
            If there is no such saved tensor, or the node has released it.
        """
        view = self.shown[0]
        if view is None or not 0 <= index < len(view.order):
            raise BreakpointError(f"there is no node {index} in the backward that is shown")
        record = view.record(index)
        node = view.live_node(record.key)
        with self.mute():
            saved = {} if node is None else {one.name: one for one in self.adapter.saved(node)}
            if name not in saved:
                known = ", ".join(saved) or "nothing"
                raise BreakpointError(f"node {index} {record.name} has no saved tensor {name!r}: it keeps {known}")
            if saved[name].released:
                raise BreakpointError(f"node {index} {record.name} has released `{name}`")
            data = saved[name].data
            memory, owner = self.adapter.memory(data)
            return WatchedMemory(memory, (lambda: True) if owner is None else weakref.ref(owner))

    def inspected(self, view: TaskView, index: int) -> NodeRecord:
        """Return the full record of a node, with who has written what it saved; for the parked thread."""
        record = view.full(index)
        node = view.live_node(record.key)
        if node is None or all(saved.state != "modified" for saved in record.saved):
            return record
        pairs = zip(record.saved, self.adapter.saved(node))
        return replace(record, saved=tuple(replace(saved, writes=self.writes_into(now)) for saved, now in pairs))

    @property
    def bad_begin(self) -> BadBegin | None:
        """Where a backward has made a NaN or an infinity for the first time."""
        return self._stops.bad_begin

    @property
    def stopped(self) -> bool:
        """Whether a thread of the program waits."""
        return self._standing is not None

    @property
    def shown(self) -> tuple[TaskView | None, int]:
        """The backward and the node to show: where the cursor is, or where the program stopped last."""
        position = self.replay.position
        return (self.view, self.current) if position is None else position

    @property
    def live_position(self) -> HistoryPosition | None:
        """Where the program stopped last, wherever the cursor is; behind the last node of a backward that has ended."""
        view = self.view
        return None if view is None else HistoryPosition(view, self.current if view.live else len(view.order))

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        """The nodes of the backward to show."""
        view = self.shown[0]
        return [] if view is None or not view.order else view.nodes

    def tasks(self) -> tuple[TaskRecord, ...]:
        """Return the backwards in progress on the followed thread, the outermost first."""
        thread = self.threads.followed
        found = []
        for depth, view in enumerate(thread.views if thread is not None else ()):
            node = self.adapter.node_name(view.call.node) if view.call is not None else ""
            found.append(TaskRecord(view.number, depth, view.index, len(view.order) or -1, node))
        return tuple(found)

    def at_stop(self, function: Callable[[PauseContext], T]) -> T:
        """Call `function` with the place where the program stands, or the cursor; for the parked thread."""
        with self.mute():
            return function(self._place())

    def _place(self) -> PauseContext:
        standing, position = self._standing, self.replay.position
        place = standing
        if position is not None:
            frames, about = ([], None) if standing is None else (standing.frames, standing.about)
            place = PastContext(self.adapter, position, frames, about)
        if place is None:
            raise NotParkedError
        place.elsewhere = self._elsewhere
        return place

    def _elsewhere(self, index: int, backward: int | None) -> PauseContext:
        """Return the place of a node of the backward that is shown, or of another that is recorded."""
        view = self.shown[0] if backward is None else self.history.backward(backward)
        if view is None:
            what = "no backward is shown here" if backward is None else f"nothing is recorded of backward {backward}"
            raise ValueError(what)
        if not 0 <= index < len(view.order):
            raise ValueError(f"there is no node {index} in backward {view.number}: it has {len(view.order)} nodes")
        return PastContext(self.adapter, HistoryPosition(view, index), [])

    def travel(self, move: Callable[[Replay, int], StopReason]) -> StopReason:
        """Move the cursor; `move` gets the replay and the first position that is not in the past."""
        with self.mute():
            reason = move(self.replay, self._end)
        if self.stopped or self.replay.position is not None:
            self.update_watches()
        return reason

    def breakpoint_at(self, position: Any) -> str | None:
        """Return why a breakpoint would stop at a node of the past, None if none would."""
        frames = self._standing.frames if self._standing is not None else []
        return why_stop(self._breakpoints, position, lambda: PastContext(self.adapter, position, frames))

    def update_watches(self, id: int | None = None) -> None:
        """Evaluate the watches, or one, where the program stands."""
        if self.watches:
            with self.mute():
                place = self._place()
                self.watches.update(lambda text: repr(place.value(text, ("watch", text))), id=id)

    def where(self) -> str:
        """Return the user's frames that led to the backward, as a traceback has them; the last, if it has ended."""
        standing, view = self._standing, self.shown[0]
        if view is not None and not view.live:
            return view.caller()
        return "" if standing is None else standing.where()
