"""The nodes of a backward in the file of a recording, for `:compare FILE`."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from gradscope.inspect.records.records import NodeRecord

__all__ = ["recorded_nodes"]


def recorded_nodes(path: str, number: int) -> list[NodeRecord]:
    """Return the nodes of a backward of a recording.

    Parameters
    ----------
    number : int
        Which one, from 1.

    Raises
    ------
    SessionError
        If the recording has no such backward, or it has more than 20,000 nodes.
    RecordingError
        If the file is no recording.
    """
    # A recording is read by SQLite and NumPy, which a front does not load before.
    from gradscope.inspect.recording import open_recording
    from gradscope_tui.sessions.recorded_session import RecordedSession

    with open_recording(path) as recording:
        return RecordedSession(recording).backward_records(number)
