"""What the terminal UI asks of a debugging session, so that its tests can bring a session of their own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from gradscope.inspect.records import DebuggerEvent, NodeRecord, StopReason

__all__ = ["Breakpoint", "Session", "is_over", "is_paused"]


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

    def matches(self, candidate: NodeRecord, /) -> bool:
        """Say whether it lies on a node."""


class Session(Protocol):
    """A program under the debugger, as `gradscope.inspect.Debugger` offers it.

    The verbs return at once; what they bring about is told to the listeners, on other threads. All that is read is
    immutable.
    """

    @property
    def state(self) -> str:
        """A `gradscope.inspect.SessionState`."""

    @property
    def reason(self) -> StopReason | None:
        """Why the program has stopped."""

    @property
    def task_index(self) -> int:
        """Which backward this is, from 1; 0 before the first."""

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

    def next_backward(self) -> None:
        """Run to the first node of the next backward."""

    def pause(self) -> None:
        """Stop before the next node."""

    def abort(self) -> None:
        """End the backward and the program."""

    def wait(self, timeout: float | None = None) -> str:
        """Wait until the program stops or has ended."""

    def add_breakpoint(self, spec: str, *, condition: str | None = None, temporary: bool = False) -> Breakpoint:
        """Set a breakpoint."""

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

    def evaluate_text(self, expression: str) -> str:
        """Evaluate an expression on the paused thread of the program. Blocks until the program has answered."""

    def where(self) -> str:
        """Return the lines of the program that led to this backward."""

    def add_listener(self, callback: Callable[[DebuggerEvent], None]) -> Callable[[], None]:
        """Call `callback`, on whatever thread it happens, when something has changed; return what ends that."""


def is_paused(state: str) -> bool:
    """Say whether a session of this state waits for a verb."""
    return state.startswith("paused")


def is_over(state: str) -> bool:
    """Say whether the program of a session of this state has ended."""
    return state in ("finished", "failed")
