"""Programs that record, killed at any moment."""

from __future__ import annotations

import json
import os
import signal
import time
from pathlib import Path

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.recording.file.recording_columns import columns
from gradscope.inspect.recording.reports.html_report import html_report
from gradscope.inspect.recording.reports.perfetto import trace_events
from gradscope.inspect.recording.reports.text_view import overview_text

NODES = 42  # of each backward below


def record_endlessly(path: Path) -> None:
    """Record backward after backward."""
    x = gs.ones(50, requires_grad=True)
    with gi.record(path, keep="all"):
        while True:
            y = x
            for _ in range(20):
                y = y.sin() * 2
            y.sum().backward()
            x.grad = None


def read_all(recording: gi.Recording) -> None:
    """Read everything that can be read."""
    overview_text(recording)
    for task in recording.tasks():
        for node in task.nodes:
            recording.value(task.id, node.index)
    recording.events(), recording.violations(), recording.iterations()
    columns(recording)
    html_report(recording)
    for event in trace_events(recording):
        json.dumps(event, allow_nan=False)


def committed(path: Path) -> int:
    """Return how many nodes another process has committed to a file by now."""
    try:
        with gi.open_recording(path) as recording:
            return sum(task.count for task in recording.tasks())
    except gi.RecordingError:
        return 0


def kill_one(path: Path, delay: float, least: int) -> int:
    """Start an endless recording, kill it a while after it has committed at least so many nodes; return how many."""
    child = os.fork()
    if not child:
        try:
            record_endlessly(path)
        finally:
            os._exit(1)
    while committed(path) < least:
        time.sleep(0.02)
    time.sleep(delay)
    os.kill(child, signal.SIGKILL)
    _, status = os.waitpid(child, 0)
    assert os.WIFSIGNALED(status), f"the recording ended by itself, with status {status}"
    try:
        recording = gi.open_recording(path)
    except gi.RecordingError as error:
        if "no recording" not in str(error):
            raise
        return 0  # killed before there was a file
    with recording:
        read_all(recording)
        for task in recording.tasks():
            assert [node.index for node in task.nodes] == list(range(task.count))
            assert task.state == "running" or (task.state, task.count) == ("finished", NODES)
        return sum(task.count for task in recording.tasks())
