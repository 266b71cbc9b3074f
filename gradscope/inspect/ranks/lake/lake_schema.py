"""The tables of a dataset that recordings are exported to: what each column means, and the version of all of it."""

from __future__ import annotations

import glob
import json
import os
from typing import NamedTuple

from ...recording import RecordingError
from ...recording.recorder.recording_names import ENDING

__all__ = ["BLOCK", "MARKER", "TABLES", "VERSION", "Column", "check_lake", "schema_table"]

VERSION = 1
"""Grows when a column changes its meaning or goes; a column that is added does not count."""

MARKER = "gradscope-lake.json"
"""The file that says that a directory is such a dataset, and of which version."""

BLOCK = 1000
"""Iterations in a partition: one directory for each would be too many of a long run."""


class Column(NamedTuple):
    """A column of a table.

    Attributes
    ----------
    type : str
        Arrow's name of it; ``'text'`` is a dictionary of strings.
    """

    name: str
    type: str
    meaning: str


def _statistics(group: str, which: str) -> tuple[Column, ...]:
    told = (
        ("norm", "double", f"2-norm over all elements of the {which} gradients; NaN where there is none"),
        ("min", "double", "least finite element"),
        ("max", "double", "largest finite element"),
        ("mean", "double", "mean of the finite elements of the first"),
        ("std", "double", "their standard deviation"),
        ("zeros", "int64", "elements that are zero"),
        ("nans", "int64", "elements that are NaN"),
        ("infs", "int64", "elements that are infinite"),
    )
    return tuple(Column(f"{group}_{name}", kind, meaning) for name, kind, meaning in told)


_PARTITIONS = (
    Column("run", "text", "the run's name (partition)"),
    Column("rank", "int64", "which rank; 0 in a program of one process (partition)"),
)
_BLOCK_COLUMN = Column("from_iteration", "int64", f"the first of the {BLOCK} iterations of the partition")

TABLES: dict[str, tuple[Column, ...]] = {
    "nodes": (
        *_PARTITIONS,
        _BLOCK_COLUMN,
        Column("iteration", "int64", "the training step, from 1"),
        Column("task", "int64", "the backward, from 1"),
        Column("index", "int64", "the node's place in the order in which the backward ran"),
        Column("name", "text", "the node, such as AddmmBackward0"),
        Column("operator", "text", "the operator that made it, such as Addmm"),
        Column("module", "text", "path of the module in which it was made"),
        Column("parameter", "text", "of an AccumulateGrad, the parameter; empty for others"),
        Column("filename", "text", "the user's line that made it; null where it is not known"),
        Column("lineno", "int64", "the same"),
        Column("started_ns", "int64", "nanoseconds since the run began, on that rank's clock"),
        Column("duration_ns", "int64", "nanoseconds"),
        *_statistics("grad_outputs", "incoming"),
        *_statistics("grad_inputs", "produced"),
    ),
    "steps": (
        *_PARTITIONS,
        _BLOCK_COLUMN,
        Column("iteration", "int64", "the training step; null where it has been left out of the recording"),
        Column("step", "int64", "which step of its optimizer, from 1"),
        Column("optimizer", "int64", "which optimizer, numbered as they stepped first"),
        Column("time_ns", "int64", "nanoseconds since the run began"),
        Column("name", "text", "the parameter or buffer"),
        Column("part", "text", "which part of the whole this rank holds; empty where that is all of it"),
        Column("kind", "text", "reduced, frozen, outside, ignored, buffer or broadcast: what makes ranks agree on it"),
        Column("present", "bool", "whether it has a gradient"),
        Column("norm", "double", "2-norm of the reduced gradient, or of the part that is here"),
        Column("gradient", "uint64", "checksum of the gradient"),
        Column("value", "uint64", "checksum of the parameter before the step"),
    ),
    "series": (
        *_PARTITIONS,
        Column("kind", "text", "gradient or loss"),
        Column("name", "text", "the parameter; empty for the loss"),
        Column("first_iteration", "int64", "the first iteration of the bucket"),
        Column("last_iteration", "int64", "its last"),
        Column("samples", "int64", "backwards that brought one"),
        Column("bad", "int64", "of these, NaN or infinite"),
        Column("zeros", "int64", "of these, zero"),
        Column(
            "mean",
            "double",
            "mean of the finite ones: norms of the parameter's gradient, or losses; null where none is",
        ),
        Column("least", "double", "the smallest of them"),
        Column("most", "double", "the largest"),
    ),
    "runs": (
        *_PARTITIONS,
        Column("title", "string", "the script"),
        Column("framework", "string", "gradscope, torch, or any: all that the program loads"),
        Column("host", "string", "the machine"),
        Column("pid", "int64", "the process"),
        Column("world", "int64", "how many ranks there are"),
        Column("restart", "int64", "how many times torchrun had started the ranks anew"),
        Column("started_ns", "int64", "nanoseconds since 1970"),
        Column("ended_ns", "int64", "the same; null while it runs, and where it was killed"),
        Column("state", "string", "running or finished"),
    ),
}


def schema_table(table: str) -> str:
    """Return the columns of a table as Markdown.

    Examples
    --------
    >>> schema_table("runs").splitlines()[2]
    "| `run` | text | the run's name (partition) |"
    """
    lines = [f"| `{column.name}` | {column.type} | {column.meaning} |" for column in TABLES[table]]
    return "\n".join(["| column | type | |", "|---|---|---|", *lines])


def check_lake(path: str) -> None:
    """Raise unless a directory is a dataset that this version reads and adds to.

    Raises
    ------
    RecordingError
        If it is none, or a newer version has written it.
    """
    try:
        with open(os.path.join(path, MARKER), encoding="utf-8") as file:
            version = json.load(file)["version"]
    except (FileNotFoundError, NotADirectoryError):
        raise RecordingError(_what_else(path)) from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RecordingError(f"{os.path.join(path, MARKER)} cannot be read: {error}") from None
    if version != VERSION:
        raise RecordingError(
            f"{path} has version {version!r} of the dataset, this gradscope reads and writes {VERSION}\n"
            "Use the gradscope that wrote it, or export into another directory."
        )


def _what_else(path: str) -> str:
    """Return what there is in place of a dataset, and how to come to one."""
    if os.path.isfile(path) or glob.glob(os.path.join(glob.escape(path), f"*{ENDING}")):
        kind = "a file" if os.path.isfile(path) else "a directory of recordings"
        told = f"{path} is {kind}, and no dataset of recordings: SQL is asked of one that they were exported to"
        return f"{told}\n`gradscope export {path} -o lake/` makes it, and `gradscope query lake/ SQL` asks."
    return (
        f"{path} is no dataset of recordings: there is no {MARKER} in it\n"
        f"Make one with `gradscope export run/ -o {path}`."
    )
