"""What the terminal UI asks of a debugging session, so that its tests can bring a session of their own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from gradscope.inspect.records.node_records import norms_by_place

if TYPE_CHECKING:
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
    from gradscope.inspect.debugging.stops.breakpoints import Candidate
    from gradscope.inspect.records.records import (
        DebuggerEvent,
        Index,
        NodeRecord,
        StopReason,
        TensorPage,
        TensorSubject,
        TensorSummary,
    )

__all__ = [
    "Breakpoint", "Session", "can_look_back", "has_ended", "is_over", "is_past", "is_paused", "known_norms",
    "order_of", "why_not", "without_gradients",
]  # fmt: skip


class Breakpoint(Protocol):
    """A place to stop at."""

    @property
    def id(self) -> int:
        """Its number."""

    @property
    def spec(self) -> str:
        """Where it stops: ``'op:Mul*'``, ``'param:fc1.weight'``, ``'line:train.py:31'``, ..."""

    @property
    def condition(self) -> str | None:
        """On what condition it stops."""

    @property
    def temporary(self) -> bool:
        """Whether it goes away once it has stopped the program."""

    @property
    def hits(self) -> int:
        """How often it has stopped the program."""

    @property
    def enabled(self) -> bool:
        """Whether it stops the program at all."""

    @property
    def ignore(self) -> int:
        """How many more times it passes by."""

    @property
    def log(self) -> str | None:
        """What it prints instead of stopping the program."""

    def command(self) -> str:
        """Return the command of line mode that makes it."""

    def matches(self, candidate: Candidate, /) -> bool:
        """Say whether it lies on a node."""


class Session(Protocol):
    """A program under the debugger, as `gradscope.inspect.Debugger` offers it, or a recording of one.

    The verbs that let the program go on return at once; what they bring about is told to the listeners, on other
    threads. In the past, where the state is ``'replaying'``, they and those that go there (`back`, `goto`, ...) block
    until the program has answered. All that is read is immutable.
    """

    @property
    def state(self) -> str:
        """A `gradscope.inspect.SessionState`."""

    @property
    def reason(self) -> StopReason | None:
        """Why the program has stopped."""

    @property
    def task_index(self) -> int:
        """Which backward is shown, from 1; 0 before the first."""

    @property
    def task_count(self) -> int:
        """How many backwards there have been, also while the program runs free."""

    @property
    def nodes(self) -> Sequence[NodeRecord]:
        """The nodes of the backward, in execution order."""

    @property
    def current(self) -> int:
        """Index of the node where the program stands."""

    @property
    def output(self) -> Sequence[str]:
        """What the program has printed so far, line by line."""

    @property
    def breakpoints(self) -> Sequence[Breakpoint]:
        """The breakpoints."""

    @property
    def catching(self) -> Mapping[str, bool]:
        """At which kinds of trouble it stops: ``'nan'``, ``'inf'``, ``'violation'``, ``'exception'``."""

    @property
    def limits(self) -> Mapping[str, float]:
        """The numbers beyond which there is a finding."""

    @property
    def watches(self) -> Sequence[WatchRecord]:
        """The watch expressions, with their values at the last stop."""

    @property
    def threads(self) -> Sequence[ThreadRecord]:
        """The threads that have called backward()."""

    @property
    def tasks(self) -> Sequence[TaskRecord]:
        """The backwards in progress, the outermost first."""

    def start(self) -> None:
        """Start the program, and stop at the first node of its first backward."""

    def step(self, n: int = 1) -> None:
        """Run `n` nodes."""

    def into(self) -> None:
        """Stop after the current node has run."""

    def out(self) -> None:
        """Run until the backward of the current module has ended."""

    def cont(self) -> None:
        """Run to the next breakpoint."""

    def run_to(self, index: int) -> None:
        """Run until a node is about to run."""

    def until(self, target: int | str) -> None:
        """Run to a node by its number, or to the next that a spec names."""

    def next_backward(self) -> None:
        """Run to the first node of the next backward."""

    def back(self, n: int = 1) -> None:
        """Go to the node that ran before."""

    def reverse_continue(self) -> None:
        """Go back to where a breakpoint would have stopped."""

    def goto(self, index: int) -> None:
        """Go to a recorded node of this backward."""

    def go_live(self) -> None:
        """Go to where the program is."""

    def restart(self) -> None:
        """End the program and start it again."""

    def pause(self) -> None:
        """Stop before the next node."""

    def abort(self) -> None:
        """End the backward and the program."""

    def leave(self) -> None:
        """End the program if the session has started it; let it run on otherwise."""

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the program stops or has ended."""

    def add_breakpoint(
        self, spec: str, *, condition: str | None = None, temporary: bool = False, log: str | None = None
    ) -> Breakpoint:
        """Set a breakpoint."""

    def enable_breakpoint(self, id: int, enabled: bool = True) -> None:
        """Let a breakpoint stop the program, or not."""

    def ignore_breakpoint(self, id: int, count: int) -> None:
        """Pass a breakpoint by the next `count` times."""

    def catch(self, kind: str, on: bool = True) -> None:
        """Stop at trouble of a kind, or do not."""

    def set_limit(self, setting: str) -> None:
        """Set a number beyond which there is a finding: ``NAME=VALUE``."""

    def add_watch(self, expression: str) -> WatchRecord:
        """Evaluate an expression at every stop. Blocks until the program has answered."""

    def remove_watch(self, id: int) -> None:
        """Remove a watch."""

    def follow_thread(self, number: int) -> None:
        """Stop in this thread only."""

    def remove_breakpoint(self, id: int) -> None:
        """Remove a breakpoint."""

    def inspect(self, index: int) -> NodeRecord:
        """Return all that is known about a node. Blocks until the program has answered."""

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace a gradient of the paused node; a string is an expression. Blocks until the program has answered."""

    def zero_grad_slot(self, slot: int) -> None:
        """Set a gradient of the paused node to zero. Blocks until the program has answered."""

    def scale_grad(self, slot: int, factor: float) -> None:
        """Multiply a gradient of the paused node. Blocks until the program has answered."""

    def skip(self) -> None:
        """Leave out the node that is about to run. Blocks until the program has answered."""

    def what_if(self, slot: int, value: Any) -> WhatIf:
        """Return what would become of the parameters. Blocks until the program has answered."""

    def evaluate(self, expression: str) -> Any:
        """Return the value of an expression on the paused thread. Blocks until the program has answered."""

    def findings(self) -> Sequence[BackwardFinding]:
        """Return what is wrong with the backward that is shown. Blocks until the program has answered."""

    def backward_records(self, number: int) -> Sequence[NodeRecord]:
        """Return the nodes of a backward that is recorded. Blocks until the program has answered."""

    def modules(self) -> Sequence[ModuleRecord]:
        """Return the modules that are known. Blocks until the program has answered."""

    def parameters(self) -> Sequence[ParameterRecord]:
        """Return every parameter, with its norms over the latest backwards. Blocks until the program has answered."""

    def losses(self) -> Sequence[float]:
        """Return the losses of the latest backwards, the oldest first. Blocks until the program has answered."""

    def frames(self) -> Sequence[FrameRecord]:
        """Return the functions of the program that wait, the innermost first. Blocks until the program has answered."""

    def explain(self) -> str:
        """Return more than the reason of why it has stopped here. Blocks until the program has answered."""

    def evaluate_text(self, expression: str) -> str:
        """Evaluate an expression on the paused thread of the program. Blocks until the program has answered."""

    def derivative(self, node_name: str) -> tuple[tuple[str, str], ...]:
        """Return, for each argument of a node's operator, the expression of its gradient. Blocks as `inspect` does."""

    def tensor_page(self, subject: TensorSubject, index: Sequence[Index]) -> TensorPage:
        """Return a part of a tensor, or of how it differs from another. Blocks until the program has answered."""

    def tensor_summary(self, subject: TensorSubject) -> TensorSummary:
        """Return a tensor, or how it differs from another, in numbers. Blocks until the program has answered."""

    def find_element(self, subject: TensorSubject, sought: str, after: int = -1) -> int | None:
        """Return the place of an element in C order. Blocks until the program has answered."""

    def save_tensor(self, subject: TensorSubject, path: str) -> str:
        """Write a tensor into a new file, and return its path. Blocks until the program has answered."""

    def where(self) -> str:
        """Return the lines of the program that led to this backward."""

    def add_listener(self, callback: Callable[[DebuggerEvent], None]) -> Callable[[], None]:
        """Call `callback`, on whatever thread it happens, when something has changed; return what ends that."""


def is_paused(state: str) -> bool:
    """Say whether a session of this state waits for a verb."""
    return state.startswith("paused") or is_past(state)


def is_past(state: str) -> bool:
    """Say whether a session of this state shows an earlier node than the one where the program waits."""
    return state == "replaying"


def is_over(state: str) -> bool:
    """Say whether the program of a session of this state has ended."""
    return state in ("finished", "failed")


def has_ended(session: Session) -> bool:
    """Say whether the program has ended, be it that the session shows its past at the moment."""
    return bool(getattr(session, "ended", False)) or is_over(str(session.state))


def can_look_back(session: Session) -> bool:
    """Say whether verbs that look back work: where a program waits, and after its end if anything was recorded."""
    state = str(session.state)
    return is_paused(state) or (is_over(state) and bool(getattr(session, "recorded", False)))


def can_run_again(session: Session) -> bool:
    """Say whether there is a program that can be started again: none is behind a recording."""
    return bool(getattr(session, "program", True)) and bool(getattr(session, "owned", True))


def why_not(session: Session, action: str) -> str:
    """Return why a session can never do an action, such as one that needs a program in a recording; mostly empty."""
    unavailable: Mapping[str, str] = getattr(session, "unavailable", {})
    return unavailable.get(action, "")


def order_of(nodes: Sequence[NodeRecord]) -> Hashable:
    """Return what is another one as soon as the nodes stand in another order, if possible without reading each."""
    order: Hashable = getattr(nodes, "order", None)
    return hash(tuple(node.key for node in nodes)) if order is None else order


def without_gradients(nodes: Sequence[NodeRecord]) -> Iterable[NodeRecord]:
    """Return the nodes for somebody who does not look at their gradients: of a recording, those take long to read."""
    bare: Callable[[], Iterable[NodeRecord]] | None = getattr(nodes, "bare", None)
    return nodes if bare is None else bare()


def known_norms(nodes: Sequence[NodeRecord]) -> Mapping[int, float]:
    """Return the norms of the gradients that have come to nodes, by their places, if possible without reading each."""
    tell: Callable[[], Mapping[int, float]] | None = getattr(nodes, "known_norms", None)
    return norms_by_place(nodes) if tell is None else tell()
