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
        """Where it stops: ``'op:Mul*'``, ``'node:12'``, ``'param:fc1.weight'``, ``'mod:layers.*'``, ``'line:train.py:31'``."""

    @property
    def condition(self) -> str | None:
        """On what condition it stops."""

    @property
    def temporary(self) -> bool:
        """Whether it goes away once it has stopped the program."""

    @property
    def hits(self) -> int:
        """How often it has stopped the program."""

    def matches(self, node: NodeRecord) -> bool:
        """Say whether it lies on a node."""


class Session(Protocol):
    """A program under the debugger, as `gradscope.inspect.Debugger` offers it.

    The verbs return at once; what they bring about is told to the listeners, on other threads. All that is read is immutable.
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
        """What the program has printed, line by line."""

    @property
    def breakpoints(self) -> Sequence[Breakpoint]:
        """The breakpoints."""

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
        """Return all that is known about a node."""

    def set_grad(self, slot: int, value: Any) -> None:
        """Replace an incoming gradient of the paused node."""

    def zero_grad_slot(self, slot: int) -> None:
        """Set an incoming gradient of the paused node to zero."""

    def evaluate(self, expression: str) -> Any:
        """Evaluate an expression on the paused thread of the program."""

    def add_listener(self, listener: Callable[[DebuggerEvent], None]) -> Any:
        """Call `listener`, on whatever thread it happens, when something has changed."""


def is_paused(state: str) -> bool:
    """Say whether a session of this state waits for a verb."""
    return state.startswith("paused")


def is_over(state: str) -> bool:
    """Say whether the program of a session of this state has ended."""
    return state in ("finished", "failed")
