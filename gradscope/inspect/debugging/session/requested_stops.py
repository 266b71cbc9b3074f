"""Stops that the program asks for itself, in the middle of what it does or after it has failed."""

from __future__ import annotations

import warnings
from types import FrameType
from typing import Any

from ...records.records import SessionState, StopReason
from ...source.call_sites import location_at, place
from ..stops import condition_names
from .backward_threads import BackwardThread
from .debugged_backward import TaskView
from .program_session import Session

__all__ = ["stop_at_error", "stop_here"]


def stop_here(session: Session) -> None:
    """Stop where the program called ``set_trace()``."""
    if session.deaf():
        return
    session.obey_abort()
    if session.stopped:
        warnings.warn("set_trace() was passed by: the session is stopped elsewhere", RuntimeWarning, stacklevel=3)
        return
    frames = condition_names.user_frames()
    where = f" at {place(location_at(frames[0], frames[0].f_lineno))}" if frames else ""
    thread, view = _here(session)
    reason = StopReason("trace", f"set_trace(){where}")
    inside = view is not None and view.call is not None
    session.stop(SessionState.PAUSED_BEFORE, reason, thread, view, inside=inside, frames=frames)


def stop_at_error(session: Session, error: BaseException) -> bool:
    """Stop where a backward has failed that nobody followed.

    Returns
    -------
    bool
        False if `error` left no backward.
    """
    frames = condition_names.frames_of(error)
    with session.mute():
        call = session.adapter.failed_call(error, frames)
    if call is None:
        return False
    thread, view = session.join_late(call)
    with session.mute():
        view.entered(call)
    if not view.number:
        session.number(view)
    kind = "violation" if hasattr(error, "saved_version") else "exception"
    users = [frame for frame in frames if not condition_names.is_library_file(frame.f_code.co_filename)]
    for note in call.notes:
        session.log(note)
    session.stop_at_failure(thread, view, error, kind, frames=users)
    return True


def _here(session: Session) -> tuple[BackwardThread | None, TaskView | None]:
    """Return the backward that the calling thread is in, even one that began before anybody listened."""
    thread = session.threads.mine()
    view = thread.views[-1] if thread is not None and thread.views else None
    call = None if view is not None and view.call is not None else _call_in(session, condition_names.all_frames())
    if view is None and call is not None:
        thread, view = session.join_late(call)
    if thread is not None:
        session.threads.stop_in(thread)
    if view is None:
        return thread, None
    if view.call is None:
        # A hook runs before its node is announced.
        with session.mute():
            known = call if call is not None and call.task is view.task else view.next_call()
            if known is not None:
                view.entered(known)
    if not view.number:
        session.number(view)
    return thread, view


def _call_in(session: Session, frames: list[FrameType]) -> Any:
    # What a framework written in C++ is doing cannot be read from Python's frames.
    look = getattr(session.adapter, "call_in", None)
    with session.mute():
        return None if look is None else look(frames)
