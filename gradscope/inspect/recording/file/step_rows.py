"""Steps of optimizers as rows: what each rank held, so that recordings can tell whether ranks agree."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ...output.terminal_text import one_line
from ...records.before_step.step_looks import HeldTensor, StepLook

__all__ = ["STEP_COLUMNS", "StepRecord", "layout_text", "read_layout", "read_step", "step_row"]

STEP_COLUMNS = (
    "id", "run", "iteration", "task", "time", "optimizer", "number", "layout", "facts", "parameter_values", "gradients",
    "present", "norms",
)  # fmt: skip
"""The columns of the table `steps`."""

_ARRAYS = (
    ("values", numpy.dtype("<u8")), ("gradients", numpy.dtype("<u8")), ("present", numpy.dtype("?")),
    ("norms", numpy.dtype("<f8")),
)  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class StepRecord:
    """An optimizer's step on one rank.

    Attributes
    ----------
    id : int
        Of its row, which grow.
    iteration : int or None
        The number of its iteration; None where that has been left out.
    task : int or None
        The last backward before it.
    time : int
        Nanoseconds since the run began.
    look : StepLook
        What the optimizer was about to use.
    """

    id: int
    iteration: int | None
    task: int | None
    time: int
    look: StepLook


def layout_text(tensors: Sequence[HeldTensor]) -> str:
    """Return what does not change from step to step, as it is stored."""
    return json.dumps(tensors)


def step_row(look: StepLook) -> tuple[Any, ...]:
    """Return the last columns of a step's row, from `facts` on."""
    arrays = [numpy.ascontiguousarray(getattr(look, name), dtype).tobytes() for name, dtype in _ARRAYS]
    return (json.dumps(look.facts), *arrays)


def read_layout(text: Any) -> tuple[HeldTensor, ...]:
    """Return the tensors that a stored layout lists.

    Raises
    ------
    ValueError, TypeError
        If it is damaged.
    """
    return tuple(
        HeldTensor(
            one_line(name),
            tuple(map(int, shape)),
            one_line(dtype),
            one_line(part),
            one_line(kind),
            bool(stepped),
            *map(one_line, later),
        )
        for name, shape, dtype, part, kind, stepped, *later in json.loads(text)
    )


def read_step(
    row: Sequence[Any], layouts: Mapping[int, tuple[HeldTensor, ...]], iterations: Mapping[int, int]
) -> StepRecord:
    """Return the step that stands in a row of `STEP_COLUMNS`.

    Parameters
    ----------
    layouts : mapping
        By their ids.
    iterations : mapping
        Numbers of iterations by their ids.

    Raises
    ------
    ValueError, KeyError, TypeError
        If the row is damaged.
    """
    id, _, iteration, task, time, optimizer, number, layout, facts, *blobs = row
    tensors = layouts[layout]
    arrays = {}
    for (name, dtype), blob in zip(_ARRAYS, blobs):
        arrays[name] = numpy.frombuffer(blob, dtype)
        if len(arrays[name]) != len(tensors):
            raise ValueError(f"step {number} has {len(arrays[name])} {name} of {len(tensors)} tensors")
    told = json.loads(facts)
    if not isinstance(told, dict) or not all(isinstance(value, int) for value in (id, time, optimizer, number)):
        raise ValueError(f"step {number!r} is none")
    _check_facts(told, len(tensors))
    look = StepLook(optimizer, number, tensors, facts=told, **arrays)
    return StepRecord(id, iterations.get(iteration), task, time, look)


def _check_facts(facts: Mapping[str, Any], tensors: int) -> None:
    """Raise ValueError or TypeError unless what is said of the time before a step can be."""
    if not isinstance(facts.get("backwards", 0), int):
        raise ValueError(f"{facts['backwards']!r} is no number of backwards")
    for checkpointed, unreached, *lines in facts.get("passes", ()):
        if not isinstance(checkpointed, bool) or not all(0 <= place < tensors for place in unreached):
            raise ValueError("a backward before a step has no way to a tensor that there is not")
        if len(lines) > 2 or not all(isinstance(line, str) for line in lines):
            raise ValueError(f"{lines!r} are no lines of a backward")
    written = facts.get("written", ((), ()))
    if len(written) != 2 or not all(0 <= place < tensors for places in written for place in places):
        raise ValueError(f"{written!r} are no tensors that were written")
    if not all(0 <= place < tensors for place in facts.get("checkpointed", ())):
        raise ValueError("a checkpoint calls the module of a tensor that there is not")
    for step, *lines in facts.get("skipped", ()):
        if not isinstance(step, int) or len(lines) != 3 or not all(isinstance(line, str) for line in lines):
            raise ValueError(f"{lines!r} are no lines of an iteration that was skipped")
    if not all(version is None or isinstance(version, int) for version in facts.get("versions", ())):
        raise ValueError("a version is no number")
