"""A recording as a session: the terminal UI goes through it as through the past of a program."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy

from gradscope.inspect.debugging.history.loss_history import KEPT
from gradscope.inspect.debugging.session.node_sequence import MOST_RECORDS
from gradscope.inspect.debugging.session.session_errors import SessionError
from gradscope.inspect.debugging.session.session_records import (
    BackwardFinding,
    FrameRecord,
    ModuleRecord,
    ParameterRecord,
    TaskRecord,
    ThreadRecord,
    WatchRecord,
    WhatIf,
)
from gradscope.inspect.debugging.session.tensor_queries import save_array
from gradscope.inspect.debugging.stops.breakpoints import Breakpoint, BreakpointTable
from gradscope.inspect.debugging.stops.condition_names import NodeNames
from gradscope.inspect.debugging.stops.stop_verbs import StopVerbs
from gradscope.inspect.debugging.stops.watches import WatchList
from gradscope.inspect.diagnosis.finding_limits import DEBUGGER, Limits, limits_from, limits_of
from gradscope.inspect.diagnosis.flow.trend_findings import trend_findings
from gradscope.inspect.diagnosis.nan.bad_values import bad_value_text, inherited_in
from gradscope.inspect.recording import BackwardRecord, Recording, RecordingError
from gradscope.inspect.recording.reports.text_view import overview_text, violations_text
from gradscope.inspect.records.records import (
    DebuggerEvent,
    Index,
    NodeRecord,
    SavedRecord,
    SessionState,
    StopReason,
    TensorPage,
    TensorSubject,
    TensorSummary,
)
from gradscope.inspect.records.tensor_pages import compare, find_element, page_of
from gradscope.inspect.records.tensor_statistics import summarize
from gradscope_tui.sessions.recorded_nodes import RecordedNodes
from gradscope_tui.sessions.recorded_parameters import recorded_parameters

if TYPE_CHECKING:
    from gradscope.inspect.diagnosis.flow.gradient_flow import GradientFlow

__all__ = ["RecordedSession"]

_SHORT = 2_000
"""Nodes of a backward up to which all its gradients are read for its findings."""

_NO_PROGRAM = "this is a recording: there is no program to "
_UNAVAILABLE = {
    "edit": "change a gradient of",
    "set": "change a gradient of",
    "zero": "change a gradient of",
    "scale": "change a gradient of",
    "skip": "skip a node of",
    "what_if": "run again with another gradient",
    "pause": "pause",
    "live": "go to",
    "threads": "follow a thread of",
    "thread": "follow a thread of",
    "tasks": "be in a backward of",
    "python": "run a statement in",
    "abort": "end",
    "record": "record",
    "memory": "ask",
    "why": "ask",
}


def _why(point: Breakpoint, node: NodeRecord) -> tuple[str, str]:
    """Return why a breakpoint, or a kind of trouble that is caught, stops at a node, and the kind of that stop."""
    if point.on_value is None:
        return f"breakpoint {point.id} ({point})", "replay"
    if _has(node.grad_outputs, point):
        return f"{'a NaN' if point.spec == 'nan' else 'an infinity'} enters this backward", point.spec
    return bad_value_text(node.name, point.spec, inherited_in(node)), point.spec


def _has(gradients: Sequence[TensorSummary | None] | None, point: Breakpoint) -> bool:
    """Whether there is one of the values for which a breakpoint stops among some gradients."""
    count = ("nans", "infs")[point.on_value or 0]
    return any(one is not None and getattr(one, count) for one in gradients or ())


class RecordedSession(StopVerbs):
    """Nodes that were recorded, under the verbs of a debugger.

    Its state is always ``REPLAYING``: no program waits anywhere. Breakpoints say where `cont` and `reverse_continue`
    stop; conditions and watches know ``grad``, ``grads``, ``produced``, ``norm``, ``node``, ``index`` and ``np``,
    gradients as far as the recording has kept their values.

    Parameters
    ----------
    recording : Recording
        Open, and left open.

    Attributes
    ----------
    program : bool
        False: none is behind it.
    damage : tuple of type
        What is raised where the file cannot be read.
    unavailable : dict of str to str
        Actions and verbs that need a program, each with the reason to show.
    """

    program = False
    damage: tuple[type[Exception], ...] = (RecordingError,)

    def __init__(self, recording: Recording) -> None:
        self.unavailable: Mapping[str, str] = {verb: _NO_PROGRAM + what for verb, what in _UNAVAILABLE.items()}
        self.reason: StopReason | None = None
        self.log: list[str] = []
        self._recording = recording
        self._tasks: list[BackwardRecord] = recording.tasks()
        self._nodes: RecordedNodes | None = None
        self._place = 0  # the position of the backward among the tasks
        self._current = 0
        self._found: tuple[int, tuple[BackwardFinding, ...]] | None = None
        self._limits = Limits()
        self._table = BreakpointTable()
        self._watches = WatchList()
        self._listeners: list[Callable[[DebuggerEvent], None]] = []
        self._lock = threading.RLock()

    # --- where it stands ---

    @property
    def _task(self) -> BackwardRecord | None:
        return self._tasks[self._place] if self._place < len(self._tasks) else None

    @property
    def state(self) -> SessionState:
        """``REPLAYING``; ``FINISHED`` where nothing is recorded."""
        return SessionState.REPLAYING if self._tasks else SessionState.FINISHED

    @property
    def task_index(self) -> int:
        """Which backward of the recording is shown, from 1."""
        return self._place + 1 if self._tasks else 0

    @property
    def task_count(self) -> int:
        """How many backwards the recording has."""
        return len(self._tasks)

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        """The nodes of the backward that is shown."""
        task = self._task
        if task is None:
            return ()
        if self._nodes is None or self._nodes.task is not task:
            self._nodes = RecordedNodes(self._recording, task)
        return self._nodes

    @property
    def current(self) -> int:
        """Index of the node that is shown, -1 for none."""
        return self._current if self.nodes else -1

    @property
    def output(self) -> Sequence[str]:
        """What stands in the log at first: what the recording holds."""
        lines = overview_text(self._recording).split("\n")
        if self._recording.violations():
            lines += violations_text(self._recording).split("\n")
        return lines

    @property
    def threads(self) -> Sequence[ThreadRecord]:
        """None: no thread runs."""
        return ()

    @property
    def tasks(self) -> Sequence[TaskRecord]:
        """The backward that is shown, and those inside which it ran, the outermost first."""
        places = {task.id: place for place, task in enumerate(self._tasks)}
        chain, task = [], self._task
        while task is not None:
            chain.append(task)
            task = self._tasks[places[task.parent]] if task.parent in places else None
        return tuple(
            TaskRecord(places[task.id] + 1, depth, self.current if task is self._task else -1, task.count, "")
            for depth, task in enumerate(reversed(chain))
        )

    def where(self) -> str:
        """Return which backward this is."""
        task = self._task
        return "" if task is None else f"iteration {task.iteration}, backward {task.id}, thread {task.thread}"

    # --- going through it ---

    def start(self) -> None:
        """Go to the first node of the first backward."""
        self._show(0, 0)

    def step(self, n: int = 1) -> None:
        """Go `n` nodes on, into the next backward after the last node of this one."""
        place, index = self._place, self._current + n
        while place < len(self._tasks) and index >= self._tasks[place].count:
            index -= self._tasks[place].count
            place += 1
        if place == len(self._tasks):
            raise SessionError("this is the end of the recording; R reads what has been recorded since")
        self._show(place, index, "next node")

    def into(self) -> None:
        """The same as a step: what a node has produced is seen at the node."""
        self.step()

    def back(self, n: int = 1) -> None:
        """Go `n` nodes back, into the backward before it before the first node of this one."""
        place, index = self._place, self._current - n
        while index < 0 and place > 0:
            place -= 1
            index += self._tasks[place].count
        if index < 0:
            raise SessionError("this is the beginning of the recording")
        self._show(place, index, "one node back" if n == 1 else f"{n} nodes back")

    def out(self) -> None:
        """Go to where the backward of the current module has ended."""
        nodes, here = self.nodes, self._current
        module = nodes[here].module if nodes else ""
        for index in range(here + 1, len(nodes)):
            if not (nodes[index].module + ".").startswith(module + "."):
                self._show(self._place, index, f"the backward of {module} has ended")
                return
        self.next_backward()

    def cont(self) -> None:
        """Go to the next node at which a breakpoint lies, or else to the last one of the recording."""
        if not self._seek(forward=True):
            last = len(self._tasks) - 1
            self._show(last, max(0, self._tasks[last].count - 1), "the last node that was recorded")

    def reverse_continue(self) -> None:
        """Go back to the node before at which a breakpoint lies, or else to the first one of the recording."""
        if not self._seek(forward=False):
            self._show(0, 0, "the first node that was recorded")

    def run_to(self, index: int) -> None:
        """Go to a node of this backward."""
        self.goto(index)

    def goto(self, index: int) -> None:
        """Go to a node of this backward."""
        if not 0 <= index < len(self.nodes):
            raise ValueError(f"there is no node {index} in this backward: it has {len(self.nodes)} nodes")
        self._show(self._place, index, f"reached node {index}")

    def until(self, target: int | str) -> None:
        """Go to a node of this backward by its number, or to the next that a spec names."""
        if isinstance(target, int):
            self.goto(target)
            return
        wanted = BreakpointTable()
        wanted.add(target)
        if not self._seek(forward=True, points=wanted.all()):
            raise SessionError(f"no later node of the recording is {target}")

    def next_backward(self) -> None:
        """Go to the first node of the next backward."""
        self._go_to_backward(self._place + 1, "this is the last backward of the recording")

    def previous_backward(self) -> None:
        """Go to the first node of the backward before; first to that of this one."""
        here = self._place if self._current else self._place - 1
        self._go_to_backward(here, "this is the first backward of the recording")

    def next_iteration(self) -> None:
        """Go to the first backward of the next iteration."""
        self._go_to_iteration(1)

    def previous_iteration(self) -> None:
        """Go to the first backward of the iteration before."""
        self._go_to_iteration(-1)

    def _go_to_backward(self, place: int, otherwise: str) -> None:
        if not 0 <= place < len(self._tasks):
            raise SessionError(otherwise)
        self._show(place, 0)

    def _go_to_iteration(self, step: int) -> None:
        def iteration(task: BackwardRecord) -> tuple[int, int]:
            return task.run, task.iteration

        groups = list(dict.fromkeys(map(iteration, self._tasks)))
        at = groups.index(iteration(self._tasks[self._place])) + step if self._tasks else -1
        if not 0 <= at < len(groups):
            raise SessionError(f"this is the {'last' if step > 0 else 'first'} iteration of the recording")
        self._show(next(p for p, task in enumerate(self._tasks) if iteration(task) == groups[at]), 0)

    def go_live(self) -> None:
        """Refuse: there is no program."""
        raise SessionError(self.unavailable["live"])

    def restart(self) -> None:
        """Read what has been recorded since."""
        before = len(self._tasks)
        self._recording.refresh()
        self._tasks = self._recording.tasks()
        more = len(self._tasks) - before
        self._show(self._place, self._current, f"{more} more backward{'s' if more != 1 else ''} read")

    def _show(self, place: int, index: int, why: str = "", kind: str = "replay") -> None:
        self._place, self._current = place, index
        task = self._task
        if task is not None:
            where = f"iteration {task.iteration}, backward {task.id}"
            failed = f", failed: {task.error}" if task.error else ""
            self.reason = StopReason(kind, f"{why} ({where}{failed})" if why else f"{where}{failed}")
            self._watches.update(lambda text: repr(self.evaluate(text)))
        self._tell("state")

    def _seek(self, *, forward: bool, points: list[Breakpoint] | None = None) -> bool:
        points = [p for p in (self._all_stops() if points is None else points) if p.enabled and p.log is None]
        places = range(self._place, len(self._tasks)) if forward else range(self._place, -1, -1)
        for place in places if points else ():
            nodes = RecordedNodes(self._recording, self._tasks[place])
            first, end = 0, len(nodes)
            if place == self._place:
                first, end = (self._current + 1, end) if forward else (0, self._current)
            for node in self._candidates(nodes, points, range(first, end)[:: 1 if forward else -1]):
                found = next((p for p in points if self._stops(p, place, node)), None)
                if found is not None:
                    self._table.hit(found)
                    self._show(place, node.index, *_why(found, node))
                    return True
        return False

    def _all_stops(self) -> list[Breakpoint]:
        """Return the breakpoints, and what stands for the kinds of trouble that are caught."""
        return [*(Breakpoint.told(0, kind) for kind, on in self.catching.items() if on), *self._table.all()]

    def _candidates(self, nodes: RecordedNodes, points: list[Breakpoint], among: range) -> Iterator[NodeRecord]:
        """Yield, of some nodes, those at which one of the breakpoints may stop; gradients of no others are read."""
        named = [point for point in points if point.on_value is None]
        found = {n.index for n in nodes.bare() if any(p.matches(n) for p in named)} if named else set()
        bad = nodes.first_bad if len(named) < len(points) else None
        return nodes.some(among, lambda index: (bad is not None and index >= bad) or index in found)

    def _stops(self, point: Breakpoint, place: int, node: NodeRecord) -> bool:
        if point.on_value is not None:
            if _has(node.grad_outputs, point):
                return node.index == 0
            return _has(node.grad_inputs, point)
        if not point.matches(node):
            return False
        try:
            return point.holds(self._namespace(place, node))
        except Exception:
            # What the condition asks for may not have been kept: show the node rather than pass over it.
            return True

    # --- looking ---

    def inspect(self, index: int) -> NodeRecord:
        """Return all that was recorded of a node."""
        return self.nodes[index]

    def records(self, start: int, stop: int) -> list[NodeRecord]:
        """Return some of the nodes."""
        return list(self.nodes[max(0, start) : max(0, stop)])

    def findings(self) -> tuple[BackwardFinding, ...]:
        """Return what the gradients of the backward show, of a short one: they are read for it."""
        if self._found is None or self._found[0] != self.task_index:
            self._found = self.task_index, tuple(trend_findings(self.nodes, self._limits, _SHORT))
        return self._found[1]

    def backward_records(self, number: int) -> list[NodeRecord]:
        """Return the nodes of a backward of the recording, from 1."""
        if not 0 < number <= len(self._tasks):
            raise SessionError(f"the recording has no backward {number}: it has {len(self._tasks)}")
        task = self._tasks[number - 1]
        if task.count > MOST_RECORDS:
            raise SessionError(f"backward {number} has {task.count:,} nodes: more than {MOST_RECORDS:,}")
        return list(RecordedNodes(self._recording, task))

    def modules(self) -> tuple[ModuleRecord, ...]:
        """Return what is recorded of the modules of the run that is shown; none before layout 6."""
        task = self._task
        return () if task is None else tuple(self._recording.modules(task.run))

    def parameters(self) -> tuple[ParameterRecord, ...]:
        """Return the parameters that the backward which is shown, or those before it in its run, have reached."""
        task = self._task
        if task is None:
            return ()
        return recorded_parameters(
            self._recording, [one for one in self._tasks[: self._place + 1] if one.run == task.run]
        )

    def gradient_flow(self, model: str = "") -> GradientFlow:
        """Return how gradients have flowed in the backward that is shown, by what is recorded of its parameters."""
        if model:
            raise SessionError(
                f"this is a recording: there is no program that has {model!r}; `flow` alone asks for all"
            )
        from gradscope.inspect.diagnosis.flow.gradient_flow import flow_of_nodes  # as in explain()

        return flow_of_nodes(self.nodes)

    def losses(self) -> tuple[float, ...]:
        """Return the losses of the latest backwards of the run, up to that which is shown."""
        task = self._task
        shown = self._tasks[: self._place + 1]
        found = [one.loss for one in shown if task is not None and one.run == task.run and one.loss is not None]
        return tuple(found[-KEPT:])

    why_no_frames = (
        "a recording keeps no functions and variables: in `gradscope debug SCRIPT` they are here, at each stop"
    )
    """What the pane of functions says."""

    def frames(self) -> tuple[FrameRecord, ...]:
        """Return no function: none of a program waits."""
        return ()

    def parameter_names(self) -> list[str]:
        """Return the paths of those parameters."""
        return [parameter.path for parameter in self.parameters()]

    def explain(self) -> str:
        """Return who made the NaN or infinity that the node has produced; values it was made of are not recorded."""
        node = self.nodes[self._current]
        if not any(s is not None and (s.nans or s.infs) for s in node.grad_inputs or ()):
            return ""
        from gradscope.inspect.diagnosis.nan.nan_stops import bad_value_at  # the first paint does without the diagnosis

        try:
            return bad_value_at(node, self.evaluate("grads"), self.evaluate("produced"), {})
        except ValueError as error:
            return str(error)

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression at the node that is shown."""
        return eval(expression.strip(), self._namespace(self._place, self.nodes[self._current]))

    def evaluate_text(self, expression: str) -> str:
        """Return the ``repr`` of an expression's value."""
        return repr(self.evaluate(expression))

    def derivative(self, node_name: str) -> tuple[tuple[str, str], ...]:
        """Return, for each argument of the operator of a node, the expression of its gradient."""
        # The operators load when the first node is inspected.
        from gradscope.inspect.debugging.session.session_queries import derivative_of

        return derivative_of(node_name)

    def tensor_page(self, subject: TensorSubject, index: Sequence[Index]) -> TensorPage:
        """Return a part of a tensor, or of how it differs from another."""
        return page_of(self._array(subject.expression), index, self._array(subject.against), subject.measure)

    def tensor_summary(self, subject: TensorSubject) -> TensorSummary:
        """Return a tensor, or how it differs from another, in numbers."""
        return summarize(self._compared(subject), subject.expression)

    def find_element(self, subject: TensorSubject, sought: str, after: int = -1) -> int | None:
        """Return the place of an element in C order, None if there is none."""
        array, against = self._array(subject.expression), self._array(subject.against)
        return find_element(array, sought, after, against, subject.measure)

    def save_tensor(self, subject: TensorSubject, path: str) -> str:
        """Write a tensor into a new file as ``numpy.save`` does; return its path."""
        return save_array(self._compared(subject), path)

    def _compared(self, subject: TensorSubject) -> Any:
        array, against = self._array(subject.expression), self._array(subject.against)
        return array if against is None else compare(array, against, subject.measure)

    def _array(self, expression: str) -> Any:
        value = self.evaluate(expression) if expression else None
        if value is not None and not isinstance(value, numpy.ndarray | numpy.generic | int | float | complex):
            raise TypeError(f"`{expression}` is a {type(value).__name__}, and no tensor")
        return value if value is None else numpy.asarray(value)

    def _namespace(self, place: int, node: NodeRecord) -> dict[str, Any]:
        names = _Names(self._recording, self._tasks[place], node)
        names["at_node"] = lambda index, backward=None: self._at_node(place, index, backward)
        return names

    def _at_node(self, place: int, index: int, backward: int | None) -> NodeNames:
        """Return what is kept of the tensors of a node; `backward` counts from 1, as :attr:`task_index` does."""
        if backward is not None and not 1 <= backward <= len(self._tasks):
            raise ValueError(f"there is no backward {backward} in this recording: it has {len(self._tasks)}")
        task = self._tasks[place if backward is None else backward - 1]
        nodes = RecordedNodes(self._recording, task)
        if not 0 <= index < len(nodes):
            raise ValueError(
                f"there is no node {index} in backward {self._tasks.index(task) + 1}: it has {len(nodes)} nodes"
            )
        names = _Names(self._recording, task, nodes[index])
        return NodeNames(index, {name: partial(names.__getitem__, name) for name in NodeNames.KNOWN})

    # --- breakpoints and watches ---

    @property
    def catching(self) -> Mapping[str, bool]:
        """Whether they stop where a NaN or an infinity first appears."""
        return {kind: self._table.caught[kind] for kind in ("nan", "inf")}

    def add_breakpoint(
        self, spec: str, *, condition: str | None = None, temporary: bool = False, log: str | None = None
    ) -> Breakpoint:
        """Set a breakpoint."""
        point = self._table.add(spec, condition=condition, temporary=temporary, log=log)
        self._tell("breakpoints")
        return point

    def ignore_breakpoint(self, id: int, count: int) -> None:
        """Refuse: going through a recording passes nothing by."""
        raise SessionError("in a recording every breakpoint stops; disable it to pass it by")

    def catch(self, kind: str, on: bool = True) -> None:
        """Stop where a NaN or an infinity first appears, or do not."""
        if kind not in self.catching:
            raise SessionError(f"a recording knows nan and inf, not {kind}; violations stand in the log")
        self._table.catch(kind, on)
        self._tell("breakpoints")

    @property
    def limits(self) -> Mapping[str, float]:
        """The numbers beyond which there is a finding."""
        return limits_of(DEBUGGER, self._limits)

    def set_limit(self, setting: str) -> None:
        """Set a number beyond which there is a finding."""
        self._limits, self._found = limits_from([setting], DEBUGGER, self._limits), None
        self._tell("limits")

    def add_watch(self, expression: str) -> WatchRecord:
        """Evaluate an expression at every node that is shown."""
        id = self._watches.add(expression).id
        if self.nodes:
            self._watches.update(lambda text: repr(self.evaluate(text)), id=id)
        return self._added(id)

    # --- what needs a program ---

    def _refuse(self, verb: str) -> SessionError:
        return SessionError(self.unavailable[verb])

    def set_grad(self, slot: int, value: Any) -> None:
        """Refuse: there is no program."""
        raise self._refuse("edit")

    def zero_grad_slot(self, slot: int) -> None:
        """Refuse: there is no program."""
        raise self._refuse("edit")

    def scale_grad(self, slot: int, factor: float) -> None:
        """Refuse: there is no program."""
        raise self._refuse("edit")

    def skip(self) -> None:
        """Refuse: there is no program."""
        raise self._refuse("skip")

    def what_if(self, slot: int, value: Any) -> WhatIf:
        """Refuse: there is no program."""
        raise self._refuse("what_if")

    def follow_thread(self, number: int) -> None:
        """Refuse: there is no program."""
        raise self._refuse("threads")

    def pause(self) -> None:
        """Refuse: there is no program."""
        raise self._refuse("pause")

    def abort(self) -> None:
        """Do nothing: there is nothing to end."""

    def leave(self) -> None:
        """Do nothing: there is nothing to end."""

    def wait(self, timeout: float | None = None) -> SessionState:
        """Return the state at once: nothing runs."""
        return self.state

    # --- listening ---

    def add_listener(self, callback: Callable[[DebuggerEvent], None]) -> Callable[[], None]:
        """Call `callback` when another node is shown; return what ends that."""
        with self._lock:
            self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)

    def _tell(self, kind: str) -> None:
        for listener in tuple(self._listeners):
            listener(DebuggerEvent(kind, self.state, self.reason))


class _Names(dict[str, Any]):
    """What expressions know at a recorded node; values are read from the file when they are asked for."""

    def __init__(self, recording: Recording, task: BackwardRecord, node: NodeRecord) -> None:
        super().__init__(np=numpy, index=node.index, node=node, iteration=task.iteration, backward=task.id)
        self._recording, self._task, self._node = recording, task.id, node

    def __missing__(self, name: str) -> Any:
        first = next(iter(self._node.grad_outputs or ()), None)
        makers: dict[str, Callable[[], Any]] = {
            "grad": lambda: self._value("grad_outputs", 0),
            "grads": lambda: self._values("grad_outputs", self._node.grad_outputs),
            "produced": lambda: self._values("grad_inputs", self._node.grad_inputs),
            "norm": lambda: first.norm if first is not None else 0.0,
            "saved": lambda: _Saved(self._node.saved),
            "isnan": lambda: numpy.isnan,
            "isinf": lambda: numpy.isinf,
        }
        if name not in makers:
            raise KeyError(name)
        self[name] = value = makers[name]()
        return value

    def _values(self, side: str, summaries: Sequence[object] | None) -> list[Any]:
        return [None if s is None else self._value(side, nr) for nr, s in enumerate(summaries or ())]

    def _value(self, side: str, nr: int) -> Any:
        value = self._recording.value(self._task, self._node.index, side, nr)
        if value is None:
            raise ValueError(f"{side}[{nr}] of node {self._node.index} was not kept; record with --keep all")
        return value


class _Saved:
    """The saved tensors of a recorded node, of which only numbers are kept: ``saved.mat1``, ``saved["self"]``."""

    def __init__(self, records: Sequence[SavedRecord]) -> None:
        self._records = records

    def __getitem__(self, name: str | int) -> SavedRecord:
        if isinstance(name, int):
            return self._records[name]
        found = next((saved for saved in self._records if saved.name == name), None)
        if found is None:
            raise KeyError(f"this node saved {', '.join(s.name for s in self._records) or 'nothing'}, and no {name!r}")
        return found

    def __getattr__(self, name: str) -> SavedRecord:
        try:
            return self[name]
        except KeyError as error:
            raise AttributeError(error.args[0]) from None
