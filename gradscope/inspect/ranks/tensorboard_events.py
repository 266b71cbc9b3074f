"""Recordings as event files of TensorBoard: norms of gradients as scalars, what went wrong as text."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import Any

from ..output.terminal_text import one_line
from ..recording import BackwardRecord, RecordingError
from .recorded_ranks import RankRecording, open_ranks

__all__ = ["write_tensorboard"]


def write_tensorboard(paths: Sequence[str], folder: str) -> int:
    """Write the recordings of a run to event files, a directory for each rank; return how many scalars.

    Under ``gradient`` stands the norm of what the last backward of an iteration brought each parameter, under
    ``reduced`` what its optimizer was about to use, under ``health`` how many elements of gradients were NaN or Inf;
    errors and notes are text.

    Parameters
    ----------
    paths : sequence of str
        A directory with the recordings of all ranks, or recordings.
    folder : str
        TensorBoard's log directory.

    Raises
    ------
    RecordingError
        If the recordings cannot be read, TensorBoard is not installed, or the directory has event files of a rank.
    OSError
        If it cannot be written.
    """
    writer_class, events = _tensorboard()
    count = 0
    with open_ranks(*paths) as ranks:
        for member in ranks.members:
            place = os.path.join(folder, f"rank-{member.rank}")
            if os.path.isdir(place) and os.listdir(place):
                raise RecordingError(f"{place} is there already\nName another directory, or delete that one.")
            os.makedirs(place, exist_ok=True)
            writer = writer_class(place)
            try:
                for tag, iteration, at, value in _scalars(member):
                    writer.add_event(events.scalar(tag, iteration, member.run.started + at, value))
                    count += 1
                for iteration, at, text in _texts(member):
                    writer.add_event(events.text(iteration, member.run.started + at, text))
            finally:
                writer.close()
    return count


Scalar = tuple[str, int, int, float]
"""Tag, iteration, nanoseconds since the run began, value."""


def _scalars(member: RankRecording) -> Iterator[Scalar]:
    latest: dict[str, tuple[int, float]] = {}
    tasks = member.tasks()
    for place, task in enumerate(tasks):
        latest.update({n.parameter: (task.started, n.norm) for n in task.nodes if n.parameter and n.norm is not None})
        if place + 1 == len(tasks) or tasks[place + 1].iteration != task.iteration:
            yield from ((f"gradient/{name}", task.iteration, *known) for name, known in latest.items())
            latest = {}
        if task.loss is not None:
            yield "loss", task.iteration, task.started, task.loss
        yield "health/nan_or_inf", task.iteration, task.started, float(_bad_elements(task))
    for step in member.recording.steps(member.run.id):
        for held, norm, present in zip(step.look.tensors, step.look.norms.tolist(), step.look.present.tolist()):
            if present and step.iteration is not None:
                yield f"reduced/{held.name}", step.iteration, step.time, norm


def _bad_elements(task: BackwardRecord) -> int:
    if task.bad is None:
        return 0
    return sum(
        summary.nans + summary.infs for node in task.nodes for summary in node.grad_outputs or () if summary is not None
    )


def _texts(member: RankRecording) -> Iterator[tuple[int, int, str]]:
    for event in member.recording.events():
        if event.run == member.run.id:
            yield event.iteration or 0, event.time, f"{event.kind}: {one_line(event.text)}"
    for violation in member.recording.violations():
        if violation.run == member.run.id:
            yield violation.iteration or 0, violation.time, f"violation: {one_line(violation.message)}"


class _Events:
    """Makes TensorBoard's events.

    Parameters
    ----------
    protocol : module
        With its modules `event_pb2`, `summary_pb2` and `tensor_pb2`.
    """

    def __init__(self, protocol: Any) -> None:
        self._event = protocol.event_pb2.Event
        self._summary = protocol.summary_pb2
        self._tensor = protocol.tensor_pb2.TensorProto

    def scalar(self, tag: str, step: int, at: int, value: float) -> Any:
        """Return the event of a number; `at` is in nanoseconds since 1970."""
        return self._of(step, at, tag=tag, simple_value=value)

    def text(self, step: int, at: int, text: str) -> Any:
        """Return the event of a text."""
        data = self._summary.SummaryMetadata(plugin_data={"plugin_name": "text"})
        tensor = self._tensor(dtype="DT_STRING", string_val=[text.encode()], tensor_shape={"dim": [{"size": 1}]})
        return self._of(step, at, tag="events", metadata=data, tensor=tensor)

    def _of(self, step: int, at: int, **value: Any) -> Any:
        shown = self._summary.Summary(value=[self._summary.Summary.Value(**value)])
        return self._event(step=step, wall_time=at / 1e9, summary=shown)


def _tensorboard() -> tuple[Any, _Events]:
    try:
        import tensorboard.compat.proto as protocol  # optional dependency
        from tensorboard.compat.proto import event_pb2, summary_pb2, tensor_pb2  # noqa: F401 - part of it
        from tensorboard.summary.writer.event_file_writer import EventFileWriter  # part of it
    except ImportError:
        raise RecordingError(
            "event files need TensorBoard, which is not installed\n"
            "Install it with `pip install 'gradscope-debugger[tensorboard]'`."
        ) from None
    return EventFileWriter, _Events(protocol)
