"""Stops that the program asks for itself, in the middle of what it does or after it has failed."""

from __future__ import annotations

import warnings

from ...records.records import StopReason
from ...source.call_sites import location_at, place
from ..stops import condition_names
from .session_observer import SessionObserver

__all__ = ["stop_at_error", "stop_here"]


def stop_here(session: SessionObserver) -> None:
    """Stop where the program called ``set_trace()``."""
    if session.deaf():
        return
    session.obey_abort()
    if session.stopped:
        warnings.warn("set_trace() was passed by: the session is stopped elsewhere", RuntimeWarning, stacklevel=3)
        return
    frames = condition_names.user_frames()
    where = f" at {place(location_at(frames[0], frames[0].f_lineno))}" if frames else ""
    session.stop_inside(StopReason("trace", f"set_trace(){where}"))


def stop_at_error(session: SessionObserver, error: BaseException) -> bool:
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
