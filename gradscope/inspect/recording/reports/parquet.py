"""A recording's nodes as an Arrow table, and as a Parquet file."""

from __future__ import annotations

import os
from typing import Any

from ...records.records import operator_name
from ..file.reader import Recording
from ..file.recording_columns import columns
from ..file.schema import RecordingError, for_its_owner

__all__ = ["arrow_table", "write_parquet"]

_SHOWN = ("norm", "min", "max", "mean", "std", "zeros", "nans", "infs")


def arrow_table(recording: Recording) -> Any:
    """Return the nodes of all backwards, a row each, with the statistics of their gradients.

    Returns
    -------
    pyarrow.Table
        Columns ``run``, ``iteration``, ``task``, ``index``, ``name``, ``operator``, ``module``, ``parameter``,
        ``filename``, ``lineno``, ``started_ns``, ``duration_ns``, and the statistics of the incoming
        (``grad_outputs_norm``) and produced (``grad_inputs_norm``) gradients.

    Raises
    ------
    RecordingError
        If pyarrow is not installed.
    """
    arrow = _arrow()
    data = columns(recording)
    runs = {task.id: task.run for task in recording.tasks()}
    static = [data.static[number] for number in data.node.tolist()]
    named: dict[str, Any] = {
        "run": [runs[task] for task in data.task.tolist()],
        "iteration": data.iteration,
        "task": data.task,
        "index": data.index,
        "name": arrow.array([node.name for node in static], arrow.string()),
        "operator": arrow.array([operator_name(node.name) for node in static], arrow.string()),
        "module": arrow.array([node.module for node in static], arrow.string()),
        "parameter": arrow.array([node.parameter for node in static], arrow.string()),
        "filename": arrow.array([node.location and node.location.filename for node in static], arrow.string()),
        "lineno": arrow.array([node.location and node.location.lineno for node in static], arrow.int64()),
        "started_ns": data.started,
        "duration_ns": data.duration,
    }
    for group, title in ((data.incoming, "grad_outputs"), (data.produced, "grad_inputs")):
        named.update({f"{title}_{name}": group[name] for name in _SHOWN})
    return arrow.table(named)


def write_parquet(recording: Recording, path: str | os.PathLike[str]) -> int:
    """Write the nodes of a recording to a Parquet file; return how many.

    Parameters
    ----------
    path : path-like
        The file to write; one that is there is replaced.

    Raises
    ------
    RecordingError
        If pyarrow is not installed.
    OSError
        If the file cannot be written.
    """
    table = arrow_table(recording)
    import pyarrow.parquet  # optional dependency

    with open(path, "wb", opener=for_its_owner) as file:
        pyarrow.parquet.write_table(table, file)
    rows: int = table.num_rows
    return rows


def _arrow() -> Any:
    try:
        import pyarrow  # optional dependency
    except ImportError:
        raise RecordingError(
            "Parquet and Arrow need pyarrow, which is not installed\n"
            "Install it with `pip install 'gradscope-debugger[parquet]'`."
        ) from None
    return pyarrow
