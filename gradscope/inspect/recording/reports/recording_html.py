"""A recording in a notebook: what it holds, its latest iterations, and their gradients as a heat map."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...output.notebook_html import note, page, table
from ..file.recording_columns import columns
from .heatmap import heat_map
from .text_view import ITERATION_COLUMNS, iteration_rows, overview_text

if TYPE_CHECKING:
    from ..file.reader import Recording

__all__ = ["recording_html"]

_ITERATIONS = 20
_BACKWARDS = 200


def recording_html(recording: Recording) -> str:
    """Return what a recording holds.

    Raises
    ------
    RecordingError
        If the file is damaged.

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> with gi.record(path):
    ...     gs.ones(3, requires_grad=True).exp().sum().backward()
    >>> with gi.open_recording(path) as recording:
    ...     "1 iteration, 1 backward, 3 nodes" in recording_html(recording)
    True
    """
    rows = iteration_rows(recording)
    latest = rows[-_ITERATIONS:]
    caption = f"the latest {len(latest)} of {len(rows):,} iterations" if len(latest) < len(rows) else ""
    headings = [f"#{name}" if name else name for name in ITERATION_COLUMNS]
    shown = table(headings, latest, caption=caption) if rows else ""
    picture = heat_map(columns(recording, recording.tasks()[-_BACKWARDS:]))
    return page(note(overview_text(recording)), shown, picture)
