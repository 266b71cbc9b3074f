"""The verbs that go through what has been recorded; the program stands still meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from ...records.records import DebuggerEvent, SessionState, StopReason
from ..session.session_errors import SessionError
from ..session.session_lifecycle import DebuggerCore
from ..stops.run_targets import RunCommand
from .history import HistoryPosition
from .history_replay import Replay, ReplayError

__all__ = ["TimeTravel"]

Move = Callable[[Replay, int], StopReason]


class TimeTravel(DebuggerCore):
    """Back and forth over the nodes that have run since the first stop or breakpoint, in all backwards.

    In the past the state is ``REPLAYING``; verbs that go on go through the past first, and stop where the program is.
    When the program has ended, its past can still be gone through; saved tensors are known by shape and version then.
    """

    @property
    def live(self) -> int:
        """Index of the node where the program stands, wherever the cursor is; -1 outside a backward."""
        return self._session.current

    @property
    def recorded(self) -> bool:
        """Whether there are nodes in the past to look at."""
        return bool(self._session.history.positions)

    @property
    def record_always(self) -> bool:
        """Whether nodes are recorded while the program runs free too; may be set."""
        return self._session.record_always

    @record_always.setter
    def record_always(self, on: bool) -> None:
        self._session.record_always = on

    def back(self, n: int = 1) -> None:
        """Go `n` nodes back, past the start of a backward into the one before it.

        The state is ``REPLAYING`` then: nodes can be looked at, expressions evaluated and what-ifs asked; gradients
        cannot be changed.

        Raises
        ------
        SessionError
            If the program is running or not started, or nothing is recorded before this node.
        """
        if n < 1:
            raise ValueError(f"back() takes a positive number of nodes, got {n}")
        self._travel(lambda replay, end: replay.back(n, end, self._session.live_position))

    def reverse_continue(self) -> None:
        """Go back to the node before at which a breakpoint would stop, or else to the first that was recorded."""
        self._travel(lambda replay, end: replay.seek(self._session.breakpoint_at, end, forward=False))

    def goto(self, index: int) -> None:
        """Go to node number `index` of the backward that is shown; it must have run while it was recorded.

        Raises
        ------
        SessionError
            If it was not recorded or has not run.
        """
        view, _ = self._session.shown
        if view is None:
            raise SessionError("no backward is shown here")
        if view is self._session.view and index == self._session.current and not self.ended:
            self.go_live()
            return
        self._travel(lambda replay, end: replay.to(view, index, end))

    def go_live(self) -> None:
        """Go to where the program is, or to its end; does nothing if the cursor is there."""
        if self._state is SessionState.REPLAYING:
            self._travel(lambda replay, end: replay.live(end))

    # --- the verbs that go on, in the past ---

    def _travel(self, move: Move) -> None:
        self._check_not_running()
        if self._state is SessionState.NOT_STARTED:
            raise SessionError("the program is not started")
        try:
            reason = self._there(lambda: self._session.travel(move))
        except ReplayError as error:
            raise SessionError(str(error)) from None
        with self._changed:
            if reason.kind == "replay":
                self._state, self._reason = SessionState.REPLAYING, reason
            else:
                self._state, self._reason = self._live[0], self._live_reason(reason)
        self._broadcast.tell(DebuggerEvent("state", self._state, self._reason))

    def _live_reason(self, reason: StopReason) -> StopReason | None:
        """Return why the program stands where it is, with what a step out of the past has passed over."""
        ended, gap = self._live[1], self._session.replay.gap
        if not self.ended or ended is None:
            return reason
        return replace(ended, text=f"{ended.text}; {gap}") if gap else ended

    def _go_or_travel(self, command: RunCommand) -> None:
        """Carry out a command: in the past if the cursor is there, and with the program otherwise."""
        if self._state is not SessionState.REPLAYING:
            self._go(command)
            return
        wanted = self._wanted(command)
        if command.kind in ("step", "into"):
            self._travel(lambda replay, end: replay.forward(command.count, end, self._session.live_position))
        else:
            self._travel(lambda replay, end: replay.seek(wanted, end, forward=True))

    def _wanted(self, command: RunCommand) -> Callable[[HistoryPosition], str | None]:
        """Return what tells why a command would stop at a node of the past."""
        view, index = self._session.shown
        module = view.module_at(index) if view is not None else ""

        def elsewhere(position: HistoryPosition) -> str | None:
            if position.view is not view:
                return "another backward"
            inside = (view.module_at(position.place) + ".").startswith(module + ".")
            return None if not module or inside else f"the backward of {module} has ended"

        def another(position: HistoryPosition) -> str | None:
            first = position.place == 0 and position.view is not view
            return f"first node of backward {position.view.number}" if first else None

        def matching(position: HistoryPosition) -> str | None:
            found = command.matches is not None and command.matches(position.view.record(position.place))
            return f"reached {command.text}" if found else None

        places = {"out": elsewhere, "entry": another, "until": matching}
        return places.get(command.kind, self._session.breakpoint_at)
