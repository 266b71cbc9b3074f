"""A session without a program: the terminal UI is tested on it, never on the engine."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any
from unittest.mock import patch

from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from gradscope.inspect.debugging.session.session_records import (
    BackwardFinding,
    FrameRecord,
    ModuleRecord,
    ParameterChange,
    ParameterRecord,
    TaskRecord,
    ThreadRecord,
    WatchRecord,
    WhatIf,
)
from gradscope.inspect.debugging.session.tensor_queries import save_array
from gradscope.inspect.debugging.stops.breakpoints import BreakpointTable
from gradscope.inspect.debugging.stops.watches import WatchList
from gradscope.inspect.diagnosis.finding_limits import DEBUGGER, Limits, limits_from, limits_of
from gradscope.inspect.records.records import (
    DebuggerEvent,
    EdgeRecord,
    Location,
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
from gradscope_tui.app import GradscopeApp
from gradscope_tui.widgets.prompt_line import Prompt


def summary(name: str = "grad", *, nans: int = 0, numel: int = 12) -> TensorSummary:
    return TensorSummary(
        name,
        (3, 4),
        "float32",
        "cpu",
        numel,
        4 * numel,
        norm=float("nan") if nans else 0.5,
        min=-0.25,
        max=0.25,
        mean=0.01,
        std=0.1,
        zeros=3,
        nans=nans,
        infs=0,
        histogram=((-6, 1), (-4, 3), (-2, 5)),
        preview="[0.25, ...]",
    )


def chain(count: int = 13, filename: str = "train.py") -> list[NodeRecord]:
    """Return a backward: layers of two nodes in one chain, the second of which also leads to a parameter."""
    nodes = []
    for index in range(count):
        leaf = index % 3 == 2
        ahead = [i for i in ((index + 1,), (index + 1, index + 2), ())[index % 3] if i < count]
        name = "AccumulateGrad" if leaf else ("ReluBackward0", "AddmmBackward0")[index % 3]
        nodes.append(
            NodeRecord(
                index=index,
                key=1000 + index,
                name=name,
                operator=name.removesuffix("Backward0"),
                sequence_nr=count - index,
                module=f"layers.{index // 3}",
                parameter=f"layers.{index // 3}.weight" if leaf else "",
                location=None if leaf else Location(filename, index + 1, "forward", f"x = layer_{index}(x)"),
                edges=tuple(EdgeRecord(1000 + i, 0) for i in ahead),
                saved=() if leaf else (SavedRecord("mat1", (3, 4), "float32", 48, 0, 0, "ok"),),
            )
        )
    return nodes


@dataclass(frozen=True)
class Call:
    verb: str
    arguments: tuple[Any, ...] = ()


class FakeSession:
    """Keeps what it is told; a verb moves on by a thread of its own, at once or when `release` is called."""

    def __init__(self, nodes: list[NodeRecord] | None = None, *, held: bool = False, backwards: int = 2) -> None:
        self.state = SessionState.NOT_STARTED
        self.reason: StopReason | None = None
        self.task_index = self.begun = 0
        self.nodes: list[NodeRecord] = []
        self.current = -1
        self.output: list[str] = []
        self.calls: list[Call] = []
        self.tensors: dict[str, Any] = {}
        self.found: list[BackwardFinding] = []
        self._limits = Limits()
        self.kept: dict[int, list[NodeRecord]] = {}
        self.known_modules: list[ModuleRecord] = []
        self.known_parameters: list[ParameterRecord] = []
        self.waiting: list[FrameRecord] = []
        self.lost: list[float] = []
        self.held = held
        self.live = -1
        self.ended = False
        self.recorded = True
        self.record_always = False
        self.tasks: tuple[TaskRecord, ...] = ()
        self.threads = (ThreadRecord(1, "MainThread", True, 1), ThreadRecord(2, "worker", False, 0))
        self._watches = WatchList()
        self._table = BreakpointTable()
        self._graph = nodes if nodes is not None else chain()
        self._backwards = backwards
        self._listeners: list[Callable[[DebuggerEvent], None]] = []
        self.terminal_size = 0, 0
        self._writers: list[Callable[[str], None]] = []
        self._ended = threading.Event()
        self._next: Callable[[], None] | None = None

    # The test's side

    def release(self) -> None:
        """Let the verb that waits come to its stop."""
        move, self._next = self._next, None
        assert move is not None
        thread = threading.Thread(target=move)
        thread.start()
        thread.join()

    def echo_to(self, write: Callable[[str], None]) -> Callable[[], None]:
        self._writers.append(write)
        return lambda: self._writers.remove(write)

    def resize_terminal(self, columns: int, rows: int) -> None:
        self.terminal_size = columns, rows

    def write(self, text: str) -> None:
        """Write on the program's terminal."""
        for write in self._writers:
            write(text)

    def say(self, line: str, stream: str = "stdout") -> None:
        self.output.append(line)
        self._tell(DebuggerEvent("output", self.state, text=line, stream=stream))

    def stop(self, index: int, reason: StopReason, state: SessionState = SessionState.PAUSED_BEFORE) -> None:
        for i, node in enumerate(self.nodes):
            now = "done" if i < index else "current" if i == index else "pending"
            if now == "current" and state is SessionState.PAUSED_AFTER:
                now = "failed" if reason.kind == "exception" else "done"
            if now == node.state != "current":
                continue
            grads = (summary("grad_outputs[0]"),) if now != "pending" else None
            produced = tuple(summary() for _ in node.edges) if now == "done" else None
            self.nodes[i] = replace(node, state=now, grad_outputs=grads, grad_inputs=produced)
        self.current, self.state, self.reason, self.live = index, state, reason, index
        self._watches.update(self.evaluate_text)
        self._tell(DebuggerEvent("state", state, reason))

    def _tell(self, event: DebuggerEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    # The session's side

    def _go(self, verb: str, arguments: tuple[Any, ...], move: Callable[[], None]) -> None:
        if self.ended:
            raise RuntimeError("the program is finished: it cannot go on")
        if self.state is SessionState.RUNNING:
            raise RuntimeError("the program is running")
        self.calls.append(Call(verb, arguments))
        self.state = SessionState.RUNNING
        self._tell(DebuggerEvent("state", self.state))
        self._next = move
        if not self.held:
            self.release()

    def _to(self, index: int, kind: str = "step") -> None:
        for point in self._table.all():
            hit = next((i for i in range(self.current + 1, index + 1) if point.matches(self.nodes[i])), None)
            if hit is not None and hit < len(self.nodes):
                self._table.hit(point)
                self.stop(hit, StopReason("breakpoint", f"breakpoint {point.id} ({point})", point.id))
                return
        if index < len(self.nodes):
            self.stop(index, StopReason(kind, "next node" if kind == "step" else f"reached node {index}"))
        else:
            self._backward()

    def _backward(self) -> None:
        if self.begun == self._backwards:
            self.state, self.reason = SessionState.FINISHED, StopReason("finished", "the program has ended")
            self.ended = True
            self._tell(DebuggerEvent("state", self.state, self.reason))
            return
        self.task_index = self.begun = self.begun + 1
        self.nodes = list(self._graph)
        self.stop(0, StopReason("entry", f"first node of backward {self.task_index}"))

    def start(self) -> None:
        self._go("start", (), self._backward)

    def step(self, n: int = 1) -> None:
        self._go("step", (n,), lambda: self._to(self.current + n))

    def into(self) -> None:
        self._go(
            "into", (), lambda: self.stop(self.current, StopReason("step", "after the node"), SessionState.PAUSED_AFTER)
        )

    def out(self) -> None:
        self._go("out", (), lambda: self._to(self.current + 3))

    def cont(self) -> None:
        self._go("cont", (), lambda: self._to(len(self.nodes)) if self._table else self._finish())

    def _finish(self) -> None:
        self.begun = self._backwards
        self._backward()

    def run_to(self, index: int) -> None:
        if index <= self.current:
            raise ValueError(f"node {index} has already been reached")
        self._go("run_to", (index,), lambda: self._to(index, "run-to"))

    def next_backward(self) -> None:
        self._go("next_backward", (), self._backward)

    def until(self, target: Any) -> None:
        index = target if isinstance(target, int) else -1
        self._go("until", (target,), lambda: self._to(index if index >= 0 else self.current + 1, "run-to"))

    def _look(self, verb: str, index: int, text: str, *arguments: Any) -> None:
        self.calls.append(Call(verb, arguments))
        if self.ended and verb == "go_live":
            self.state, self.reason = SessionState.FINISHED, StopReason("finished", "the program has ended")
            self._tell(DebuggerEvent("state", self.state, self.reason))
            return
        self.current = index
        there = index == self.live and not self.ended
        self.state = SessionState.PAUSED_BEFORE if there else SessionState.REPLAYING
        self.reason = StopReason("live" if there else "replay", "back where the program is" if there else text)
        self._tell(DebuggerEvent("state", self.state, self.reason))

    def back(self, n: int = 1) -> None:
        if self.current < n:
            raise RuntimeError("nothing is recorded before this node")
        self._look("back", self.current - n, "one node back (recorded)", n)

    def reverse_continue(self) -> None:
        self._look("reverse_continue", 0, "the first node that was recorded (recorded)")

    def goto(self, index: int) -> None:
        self._look("goto", index, f"reached node {index} (recorded)", index)

    def go_live(self) -> None:
        self._look("go_live", self.live, "")

    def restart(self) -> None:
        self.calls.append(Call("restart"))
        self.ended = False
        self.task_index = self.begun = 0
        self._backward()

    def pause(self) -> None:
        self.calls.append(Call("pause"))
        self._next = lambda: self.stop(max(self.current, 0), StopReason("pause", "paused on request"))
        self.release()

    def leave(self) -> None:
        self.abort()

    def abort(self) -> None:
        self.calls.append(Call("abort"))
        self.state, self.reason = SessionState.FINISHED, StopReason("finished", "ended")
        self._ended.set()

    def wait(self, timeout: float | None = None) -> SessionState:
        return self.state

    @property
    def task_count(self) -> int:
        return self.begun

    @property
    def breakpoints(self) -> list[Any]:
        return self._table.all()

    @property
    def catching(self) -> dict[str, bool]:
        return dict(self._table.caught)

    @property
    def limits(self) -> dict[str, float]:
        return limits_of(DEBUGGER, self._limits)

    def set_limit(self, setting: str) -> None:
        self._limits = limits_from([setting], DEBUGGER, self._limits)
        if self.limits["faded_signal"] < 1e-5:
            self.found.clear()
        self._tell(DebuggerEvent("limits", self.state))

    def add_breakpoint(
        self, spec: str, *, condition: str | None = None, temporary: bool = False, log: str | None = None
    ) -> Any:
        point = self._table.add(spec, condition=condition, temporary=temporary, log=log)
        self._tell(DebuggerEvent("breakpoints", self.state))
        return point

    def remove_breakpoint(self, id: int) -> None:
        self._table.remove(id)
        self._tell(DebuggerEvent("breakpoints", self.state))

    def enable_breakpoint(self, id: int, enabled: bool = True) -> None:
        self._table.find(id).enabled = enabled
        self._tell(DebuggerEvent("breakpoints", self.state))

    def ignore_breakpoint(self, id: int, count: int) -> None:
        self._table.find(id).ignore = count
        self._tell(DebuggerEvent("breakpoints", self.state))

    def catch(self, kind: str, on: bool = True) -> None:
        self._table.catch(kind, on)
        self._tell(DebuggerEvent("breakpoints", self.state))

    @property
    def watches(self) -> tuple[WatchRecord, ...]:
        return self._watches.all()

    def add_watch(self, expression: str) -> WatchRecord:
        id = self._watches.add(expression).id
        self._watches.update(self.evaluate_text, id=id)
        self._tell(DebuggerEvent("watches", self.state))
        return next(watch for watch in self.watches if watch.id == id)

    def remove_watch(self, id: int) -> None:
        self._watches.remove(id)

    def follow_thread(self, number: int) -> None:
        self.calls.append(Call("follow_thread", (number,)))

    def skip(self) -> None:
        self.calls.append(Call("skip"))

    def what_if(self, slot: int, value: Any) -> WhatIf:
        self.calls.append(Call("what_if", (slot, value)))
        changes = (ParameterChange("layers.0.weight", 0.5, 0.0, 0.5), ParameterChange("layers.1.weight", 0.2, 0.2, 0.0))
        return WhatIf(self.current, slot, 0.5, 0.0, changes, complete=True, nodes_run=4)

    def records(self, start: int, stop: int) -> list[NodeRecord]:
        return self.nodes[max(0, start) : stop]

    def evaluate(self, expression: str) -> Any:
        return eval(expression, {"grad": [0.25, 0.5], "index": self.current})

    def explain(self) -> str:
        return ""

    def findings(self) -> tuple[BackwardFinding, ...]:
        return tuple(self.found)

    def backward_records(self, number: int) -> list[NodeRecord]:
        if number not in self.kept:
            raise RuntimeError(f"nothing is recorded of backward {number}")
        return self.kept[number]

    def why_no_grad(self, subject: str) -> str:
        return f"`{subject}`: reached by nothing"

    def modules(self) -> tuple[ModuleRecord, ...]:
        return tuple(self.known_modules)

    def parameters(self) -> tuple[ParameterRecord, ...]:
        return tuple(self.known_parameters)

    def losses(self) -> tuple[float, ...]:
        return tuple(self.lost)

    def frames(self) -> tuple[FrameRecord, ...]:
        return tuple(self.waiting)

    def inspect(self, index: int) -> NodeRecord:
        node = self.nodes[index]
        return replace(node, saved=tuple(replace(s, summary=summary(s.name)) for s in node.saved))

    def set_grad(self, slot: int, value: Any) -> None:
        if slot > 0:
            raise ValueError(f"there is no incoming gradient {slot}: this node has 1")
        self.calls.append(Call("set_grad", (slot, value)))

    def zero_grad_slot(self, slot: int) -> None:
        self.calls.append(Call("zero_grad_slot", (slot,)))

    def scale_grad(self, slot: int, factor: float) -> None:
        self.calls.append(Call("scale_grad", (slot, factor)))

    def derivative(self, node_name: str) -> tuple[tuple[str, str], ...]:
        return (("self", "g * mask"),) if node_name.startswith("Relu") else ()

    def _array(self, expression: str) -> Any:
        if expression and expression not in self.tensors:
            raise NameError(f"name {expression!r} is not defined")
        return self.tensors[expression] if expression else None

    def tensor_page(self, subject: TensorSubject, index: Any) -> TensorPage:
        self.calls.append(Call("tensor_page", (subject, index)))
        return page_of(self._array(subject.expression), index, self._array(subject.against), subject.measure)

    def tensor_summary(self, subject: TensorSubject) -> TensorSummary:
        array, against = self._array(subject.expression), self._array(subject.against)
        return summarize(array if against is None else compare(array, against, subject.measure))

    def find_element(self, subject: TensorSubject, sought: str, after: int = -1) -> int | None:
        array, against = self._array(subject.expression), self._array(subject.against)
        return find_element(array, sought, after, against, subject.measure)

    def save_tensor(self, subject: TensorSubject, path: str) -> str:
        return save_array(self._array(subject.expression), path)

    def evaluate_text(self, expression: str) -> str:
        return repr(self.evaluate(expression))

    def where(self) -> str:
        return '  File "train.py", line 69, in main\n    loss.backward()\n'

    def add_listener(self, callback: Callable[[DebuggerEvent], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)


Scenario = Callable[[GradscopeApp, Pilot[int]], Awaitable[None]]


def play(scenario: Scenario, session: Any = None, *, size: tuple[int, int] = (80, 24), breaks: Any = None) -> Any:
    """Play a scenario on an app without a terminal, and return the session.

    A screen is drawn where `text_of` asks for it and at the end, not for every frame in between that nobody looks at:
    those are drawn in the tests on a real terminal.
    """
    return play_with(scenario, session if session is not None else FakeSession(), size=size, breaks=breaks)


def play_with(scenario: Scenario, session: Any, *, size: tuple[int, int] = (80, 24), **options: Any) -> Any:
    """Play a scenario on an app with some options of its own."""

    async def main() -> None:
        app = GradscopeApp(session, script="train.py", **options)
        async with app.run_test(size=size, notifications=True) as pilot:
            with settling(pilot):
                await until(pilot, lambda: app.focused is app.pane)
                await pilot.pause()
                await scenario(app, pilot)
            text_of(app)

    with patch.object(Screen, "_compositor_refresh", lambda screen: screen._dirty_widgets.clear()):
        asyncio.run(main())
    return session


@contextmanager
def settling(pilot: Pilot[int]) -> Iterator[None]:
    """After a key, wait for what it has set going; Textual waits for a quiet clock instead, twice 20 ms a key."""

    async def settle(*unused: float) -> None:
        limit = time.monotonic() + 0.1  # for workers that the test itself keeps waiting
        for _ in range(2):
            await pilot._wait_for_screen()
            while any(worker.is_running for worker in pilot.app.workers) and time.monotonic() < limit:
                await asyncio.sleep(0.001)
        await pilot.pause(0)

    with patch("textual.app.wait_for_idle", settle), patch("textual.pilot.wait_for_idle", settle):
        yield


async def until(pilot: Pilot[int], predicate: Callable[[], object], seconds: float = 20) -> None:
    """Wait until the predicate holds."""
    loop = asyncio.get_running_loop()
    limit = loop.time() + seconds
    while not predicate():
        assert loop.time() < limit, f"this did not come true in {seconds} s:\n{text_of(pilot.app)}"
        await asyncio.sleep(0.005)
        pilot.app.screen._on_timer_update()


async def type_in(pilot: Pilot[int], text: str, *keys: str) -> None:
    """Press keys, the last of which asks for something, and answer; faster than a key for each letter."""
    await pilot.press(*keys)
    prompt = pilot.app.query_one(Prompt)
    await until(pilot, lambda: prompt.display and isinstance(pilot.app.focused, Input))
    pilot.app.focused.value = text  # type: ignore[union-attr]
    await pilot.press("enter")


def text_of(app: Any) -> str:
    """Return what stands on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips(app.size))
