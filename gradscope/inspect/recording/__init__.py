"""Recording backwards to a file, and reading them back.

- :mod:`~.recorder`: making a recording while a program runs (``gi.record``)
- :mod:`~.file`: the file, its schema and its reader (``gi.open_recording``)
- :mod:`~.reports`: what is made of recordings: pages, text, exports, differences

A recording is one SQLite file.
"""

from __future__ import annotations

from .file.reader import Recording, TaskNodes, open_recording
from .file.recording_records import BackwardRecord, EventRecord, IterationRecord, RunRecord, ViolationRecord
from .file.schema import RecordingError
from .recorder.recorder import Recorder, record

__all__ = [
    "EventRecord",
    "IterationRecord",
    "Recorder",
    "Recording",
    "RecordingError",
    "RunRecord",
    "TaskNodes",
    "BackwardRecord",
    "ViolationRecord",
    "open_recording",
    "record",
]
