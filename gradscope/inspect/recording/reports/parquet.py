"""A recording's nodes as an Arrow table, and as a Parquet file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy

from ...records.records import operator_name
from ..file.reader import Recording
from ..file.recording_columns import Columns, columns
from ..file.schema import RecordingError, for_its_owner

__all__ = ["arrow_table", "encoded_texts", "load_arrow", "node_table", "write_parquet"]

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
    arrow = load_arrow()
    data = columns(recording)
    runs = {task.id: task.run for task in recording.tasks()}
    return node_table(data).add_column(
        0, "run", arrow.array([runs[task] for task in data.task.tolist()], arrow.int64())
    )


def node_table(data: Columns) -> Any:
    """Return columns of nodes as an Arrow table; texts, which repeat from iteration to iteration, as dictionaries.

    Parameters
    ----------
    data : Columns
        From :func:`.recording_columns.columns`.

    Raises
    ------
    RecordingError
        If pyarrow is not installed.
    """
    arrow = load_arrow()
    numbers = list(data.static)
    place_of = numpy.zeros(max(numbers, default=0) + 1, numpy.int32)
    place_of[numbers] = numpy.arange(len(numbers))
    places, static = place_of[data.node], [data.static[number] for number in numbers]
    locations = [node.location for node in static]
    lines = arrow.array([None if place is None else place.lineno for place in locations], arrow.int64())
    named: dict[str, Any] = {
        "iteration": data.iteration,
        "task": data.task,
        "index": data.index,
        "name": encoded_texts([node.name for node in static], places),
        "operator": encoded_texts([operator_name(node.name) for node in static], places),
        "module": encoded_texts([node.module for node in static], places),
        "parameter": encoded_texts([node.parameter for node in static], places),
        "filename": encoded_texts([None if place is None else place.filename for place in locations], places),
        "lineno": lines.take(arrow.array(places)),
        "started_ns": data.started,
        "duration_ns": data.duration,
    }
    for group, title in ((data.incoming, "grad_outputs"), (data.produced, "grad_inputs")):
        named.update({f"{title}_{name}": group[name] for name in _SHOWN})
    return arrow.table(named)


def encoded_texts(texts: Sequence[str | None], places: Any) -> Any:
    """Return a dictionary-encoded column of texts.

    Parameters
    ----------
    places : ndarray of int
        For each row, which of the texts.
    """
    arrow = load_arrow()
    known: dict[str, int] = {}
    codes = [None if text is None else known.setdefault(text, len(known)) for text in texts]
    indices = arrow.array(codes, arrow.int32()).take(arrow.array(places))
    return arrow.DictionaryArray.from_arrays(indices, arrow.array(list(known), arrow.string()))


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


def load_arrow() -> Any:
    """Return pyarrow.

    Raises
    ------
    RecordingError
        If it is not installed.
    """
    try:
        import pyarrow  # optional dependency
    except ImportError:
        raise RecordingError(
            "Parquet and Arrow need pyarrow, which is not installed\n"
            "Install it with `pip install 'gradscope-debugger[parquet]'`."
        ) from None
    return pyarrow
