"""Recording backwards to a file, and reading them back.

:mod:`.recorder` writes (``gi.record``), :mod:`.reader` reads (``gi.open_recording``). A recording is one SQLite file;
:mod:`.schema` says what stands in it.
"""

from __future__ import annotations

from .facts import EventRecord, IterationRecord, RunRecord, TaskRecord, ViolationRecord
from .reader import Recording, TaskNodes, open_recording
from .recorder import Recorder, record
from .schema import RecordingError

__all__ = [
    "EventRecord",
    "IterationRecord",
    "Recorder",
    "Recording",
    "RecordingError",
    "RunRecord",
    "TaskNodes",
    "TaskRecord",
    "ViolationRecord",
    "open_recording",
    "record",
]
