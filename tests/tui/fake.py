"""A session without a program: the terminal UI is tested on it, never on the engine."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from textual.pilot import Pilot

from gradscope.inspect.breakpoints import BreakpointTable
from gradscope.inspect.records import (
    DebuggerEvent,
    EdgeRecord,
    Location,
    NodeRecord,
    SavedRecord,
    SessionState,
    StopReason,
    TensorSummary,
)
from gradscope_tui.app import GradscopeApp


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
        self.task_index = 0
        self.nodes: list[NodeRecord] = []
        self.current = -1
        self.output: list[str] = []
        self.calls: list[Call] = []
        self.held = held
        self._table = BreakpointTable()
        self._graph = nodes if nodes is not None else chain()
        self._backwards = backwards
        self._listeners: list[Callable[[DebuggerEvent], None]] = []
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

    def say(self, line: str, stream: str = "stdout") -> None:
        self.output.append(line)
        self._tell(DebuggerEvent("output", self.state, text=line, stream=stream))

    def stop(self, index: int, reason: StopReason, state: SessionState = SessionState.PAUSED_BEFORE) -> None:
        for i, node in enumerate(self.nodes):
            now = "done" if i < index else "current" if i == index else "pending"
            if now == "current" and state is SessionState.PAUSED_AFTER:
                now = "failed" if reason.kind == "exception" else "done"
            grads = (summary("grad_outputs[0]"),) if now != "pending" else None
            produced = tuple(summary() for _ in node.edges) if now == "done" else None
            self.nodes[i] = replace(node, state=now, grad_outputs=grads, grad_inputs=produced)
        self.current, self.state, self.reason = index, state, reason
        self._tell(DebuggerEvent("state", state, reason))

    def _tell(self, event: DebuggerEvent) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    # The session's side

    def _go(self, verb: str, arguments: tuple[Any, ...], move: Callable[[], None]) -> None:
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
        if self.task_index == self._backwards:
            self.state, self.reason = SessionState.FINISHED, StopReason("finished", "the program has ended")
            self._tell(DebuggerEvent("state", self.state, self.reason))
            return
        self.task_index += 1
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
        self.task_index = self._backwards
        self._backward()

    def run_to(self, index: int) -> None:
        if index <= self.current:
            raise ValueError(f"node {index} has already been reached")
        self._go("run_to", (index,), lambda: self._to(index, "run-to"))

    def next_backward(self) -> None:
        self._go("next_backward", (), self._backward)

    def pause(self) -> None:
        self.calls.append(Call("pause"))
        self._next = lambda: self.stop(max(self.current, 0), StopReason("pause", "paused on request"))
        self.release()

    def abort(self) -> None:
        self.calls.append(Call("abort"))
        self.state, self.reason = SessionState.FINISHED, StopReason("finished", "ended")
        self._ended.set()

    def wait(self, timeout: float | None = None) -> SessionState:
        return self.state

    @property
    def breakpoints(self) -> list[Any]:
        return self._table.all()

    def add_breakpoint(self, spec: str, *, condition: str | None = None, temporary: bool = False) -> Any:
        point = self._table.add(spec, condition=condition, temporary=temporary)
        self._tell(DebuggerEvent("breakpoints", self.state))
        return point

    def remove_breakpoint(self, id: int) -> None:
        self._table.remove(id)
        self._tell(DebuggerEvent("breakpoints", self.state))

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

    def evaluate_text(self, expression: str) -> str:
        return repr(eval(expression, {"grad": [0.25, 0.5]}))

    def where(self) -> str:
        return '  File "train.py", line 69, in main\n    loss.backward()\n'

    def add_listener(self, callback: Callable[[DebuggerEvent], None]) -> Callable[[], None]:
        self._listeners.append(callback)
        return lambda: self._listeners.remove(callback)


Scenario = Callable[[GradscopeApp, Pilot[int]], Awaitable[None]]


def play(scenario: Scenario, session: Any = None, *, size: tuple[int, int] = (80, 24)) -> Any:
    """Play a scenario on an app without a terminal, and return the session."""
    session = session if session is not None else FakeSession()

    async def main() -> None:
        app = GradscopeApp(session, script="train.py")
        async with app.run_test(size=size, notifications=True) as pilot:
            await pilot.pause()
            await scenario(app, pilot)

    asyncio.run(main())
    return session


async def until(pilot: Pilot[int], predicate: Callable[[], object], seconds: float = 20) -> None:
    """Wait until the predicate holds."""
    loop = asyncio.get_running_loop()
    limit = loop.time() + seconds
    while not predicate():
        assert loop.time() < limit, f"this did not come true in {seconds} s:\n{text_of(pilot.app)}"
        await pilot.pause(0.005)


def text_of(app: Any) -> str:
    """Return what stands on the screen."""
    return "\n".join(strip.text.rstrip() for strip in app.screen._compositor.render_strips(app.size))
