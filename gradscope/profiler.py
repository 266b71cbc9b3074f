"""Measures how long operators, backward nodes and labelled blocks take, through the runtime's events.

An operator tells that it has run, not that it begins: its time is counted from the end of what came before it on its
thread, so that what Python does between two operators is in it. Nodes of a backward pass and the blocks of
:class:`record_function` are timed from their begin to their end.

Examples
--------
>>> import gradscope as gs
>>> x = gs.ones(3, 3, requires_grad=True)
>>> with gs.profiler.profile() as prof:
...     with gs.profiler.record_function("forward"):
...         y = (x @ x).sum()
...     y.backward()
>>> sorted(row.key for row in prof.key_averages())
['AccumulateGrad', 'MmBackward0', 'SumBackward0', 'aten::mm', 'aten::sum', 'forward']
"""

from __future__ import annotations

import enum
import json
import os
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import ContextDecorator
from dataclasses import dataclass, field
from typing import Any

from .runtime import events

__all__ = [
    "EventList",
    "FunctionEvent",
    "ProfilerAction",
    "ProfilerActivity",
    "profile",
    "record_function",
    "schedule",
    "tensorboard_trace_handler",
]


class ProfilerActivity(enum.Enum):
    """The device that is timed; only the CPU is."""

    CPU = 0
    CUDA = 2


class ProfilerAction(enum.Enum):
    """The action of a profiler in a step."""

    NONE = 0
    WARMUP = 1
    RECORD = 2
    RECORD_AND_SAVE = 3


_RECORDING = (ProfilerAction.RECORD, ProfilerAction.RECORD_AND_SAVE)


def schedule(
    *, wait: int, warmup: int, active: int, repeat: int = 0, skip_first: int = 0
) -> Callable[[int], ProfilerAction]:
    """Return the function that says of each step what is done in it: wait, warm up, record, and so on again.

    Parameters
    ----------
    wait, warmup, active : int
        Steps of a cycle.
    repeat : int
        How many cycles; 0 for as many as there are steps.
    skip_first : int
        Steps before the first cycle.

    Examples
    --------
    >>> action = schedule(wait=1, warmup=1, active=2, repeat=1)
    >>> [action(step).name for step in range(5)]
    ['NONE', 'WARMUP', 'RECORD', 'RECORD_AND_SAVE', 'NONE']
    """
    if min(wait, warmup, repeat, skip_first) < 0 or active <= 0:
        raise AssertionError("Invalid profiler schedule arguments\nactive is at least 1, the others are not negative.")
    cycle = wait + warmup + active

    def action(step: int) -> ProfilerAction:
        if step < 0:
            raise AssertionError(f"Step must be non-negative. Got {step}.\nThe first one is 0.")
        step -= skip_first
        if step < 0 or (repeat and step >= repeat * cycle) or step % cycle < wait:
            return ProfilerAction.NONE
        if step % cycle < wait + warmup:
            return ProfilerAction.WARMUP
        return ProfilerAction.RECORD if step % cycle < cycle - 1 else ProfilerAction.RECORD_AND_SAVE

    return action


@dataclass(slots=True)
class FunctionEvent:
    """One call, or with a `count` above 1 all calls of a name, in microseconds."""

    key: str
    start: float
    cpu_time_total: float
    thread: int
    inner: float = 0.0
    count: int = 1
    input_shapes: list[list[int]] = field(default_factory=list)

    @property
    def name(self) -> str:
        """The same as `key`."""
        return self.key

    @property
    def self_cpu_time_total(self) -> float:
        """The time without that of the calls inside."""
        return max(self.cpu_time_total - self.inner, 0.0)

    @property
    def cpu_time(self) -> float:
        """The time of a call, on the average."""
        return self.cpu_time_total / self.count


class EventList(list[FunctionEvent]):
    """Calls, or their averages by name."""

    def total_average(self) -> FunctionEvent:
        """Return one row, "Total", of the time and the number of all calls."""
        total = FunctionEvent("Total", 0.0, 0.0, 0, count=0)
        for event in self:
            total.cpu_time_total += event.self_cpu_time_total
            total.count += event.count
        return total

    @property
    def self_cpu_time_total(self) -> float:
        """The time of all, each part of it counted once."""
        return sum(event.self_cpu_time_total for event in self)

    def table(self, sort_by: str | None = None, row_limit: int = 100, **options: Any) -> str:
        """Return the calls as text.

        Parameters
        ----------
        sort_by : str, optional
            ``"cpu_time_total"``, ``"self_cpu_time_total"``, ``"cpu_time"`` or ``"count"``.
        row_limit : int
            -1 for all rows.
        **options
            Taken for PyTorch's sake.
        """
        key = None if sort_by is None else sort_by.replace("cuda_", "cpu_").replace("device_", "cpu_")
        rows = list(self) if key is None else sorted(self, key=lambda event: -getattr(event, key))
        rows = rows if row_limit < 0 else rows[:row_limit]
        whole = self.self_cpu_time_total
        heads = ("Name", "Self CPU %", "Self CPU", "CPU total", "CPU time avg", "# of Calls")
        texts = [
            (
                row.key,
                f"{row.self_cpu_time_total / whole:.2%}" if whole else "0.00%",
                *map(_duration, (row.self_cpu_time_total, row.cpu_time_total, row.cpu_time)),
                str(row.count),
            )
            for row in rows
        ]
        widths = [max(map(len, column)) for column in zip(heads, *texts, strict=True)]
        line = "  ".join("-" * width for width in widths)
        shown = [
            "  ".join(text.ljust(width) if at == 0 else text.rjust(width) for at, (text, width) in enumerate(pairs))
            for pairs in (zip(row, widths, strict=True) for row in (heads, *texts))
        ]
        return "\n".join([line, shown[0], line, *shown[1:], line, f"Self CPU time total: {_duration(whole)}", ""])


def _duration(microseconds: float) -> str:
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.3f}s"
    return f"{microseconds / 1e3:.3f}ms" if microseconds >= 1e3 else f"{microseconds:.3f}us"


class _Thread(threading.local):
    """When the last call ended on a thread, and the calls that have begun and not ended."""

    def __init__(self) -> None:
        self.ended: float | None = None
        self.open: list[FunctionEvent] = []


def _now() -> float:
    return time.perf_counter_ns() / 1e3


_running: list[profile] = []


class profile(ContextDecorator):  # noqa: N801 - PyTorch's name
    """Time what runs inside of a block.

    Parameters
    ----------
    activities : iterable of ProfilerActivity, optional
        Taken for PyTorch's sake: the CPU is timed.
    schedule : callable, optional
        What is done in each step, which :meth:`step` ends; see :func:`schedule`.
    on_trace_ready : callable, optional
        ``function(profile)``, called at the end of each cycle of the schedule, or of the block.
    record_shapes : bool
        Keep the shapes of what operators were given.
    profile_memory, with_stack, with_flops, with_modules : bool
        Taken for PyTorch's sake.
    """

    def __init__(
        self,
        *,
        activities: Iterable[ProfilerActivity] | None = None,
        schedule: Callable[[int], ProfilerAction] | None = None,
        on_trace_ready: Callable[[profile], Any] | None = None,
        record_shapes: bool = False,
        profile_memory: bool = False,
        with_stack: bool = False,
        with_flops: bool = False,
        with_modules: bool = False,
    ) -> None:
        self.step_num = 0
        self.on_trace_ready = on_trace_ready
        self._schedule = schedule or (lambda step: ProfilerAction.RECORD)
        self._record_shapes = record_shapes
        self._calls: list[FunctionEvent] = []
        self._threads = _Thread()
        self._subscription: Any = None
        self._action = ProfilerAction.NONE

    # --- begin and end ---

    def __enter__(self) -> profile:
        self.start()
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.stop()

    def start(self) -> None:
        """Begin, with what the schedule says of the first step."""
        self._enter(self._schedule(self.step_num))

    def stop(self) -> None:
        """End; `on_trace_ready` gets what has been recorded since it was called last."""
        recorded = self._action in _RECORDING
        self._enter(ProfilerAction.NONE)
        if recorded and self.on_trace_ready is not None:
            self.on_trace_ready(self)

    def step(self) -> None:
        """End a step of the schedule."""
        self.step_num += 1
        if self._action is ProfilerAction.RECORD_AND_SAVE:
            self._enter(ProfilerAction.NONE)
            if self.on_trace_ready is not None:
                self.on_trace_ready(self)
        self._enter(self._schedule(self.step_num))

    def _enter(self, action: ProfilerAction) -> None:
        before, self._action = self._action in _RECORDING, action
        if action in _RECORDING and not before:
            self._calls = []
            self._threads = _Thread()
            self._threads.ended = _now()
            listeners: dict[Any, Any] = {
                events.OperatorRecorded: self._operator_ran,
                events.NodeEntered: self._node_entered,
                events.NodeExited: self._node_exited,
            }
            self._subscription = events.subscribe_each(listeners)
            _running.append(self)
        elif before and action not in _RECORDING:
            _running.remove(self)
            self._subscription.unsubscribe()

    # --- what is told ---

    def _begin(self, key: str) -> None:
        """A node or a labelled block begins on this thread."""
        self._threads.open.append(FunctionEvent(key, _now(), 0.0, threading.get_ident()))

    def _end(self) -> None:
        """Note that the call which began last on this thread has ended."""
        if not self._threads.open:  # it began before the profile
            return
        call = self._threads.open.pop()
        self._finish(call)

    def _finish(self, call: FunctionEvent) -> None:
        """Keep a call that ends now; its time is not that of the call around it."""
        thread = self._threads
        thread.ended = _now()
        call.cpu_time_total = thread.ended - call.start
        if thread.open:
            thread.open[-1].inner += call.cpu_time_total
        self._calls.append(call)

    def _operator_ran(self, event: events.OperatorRecorded) -> None:
        thread, now = self._threads, _now()
        outer = thread.open[-1].start if thread.open else 0.0
        start = now if thread.ended is None else thread.ended
        call = FunctionEvent(f"aten::{event.name.partition('.')[0]}", max(start, outer), 0.0, threading.get_ident())
        if self._record_shapes:
            call.input_shapes = [list(tensor.shape) for tensor in event.inputs]
        self._finish(call)

    def _node_entered(self, event: events.NodeEntered) -> None:
        self._begin(event.node.name())

    def _node_exited(self, event: events.NodeExited) -> None:
        self._end()

    # --- what has been recorded ---

    def events(self) -> EventList:
        """Return the calls, in the order in which they ended."""
        return EventList(self._calls)

    def key_averages(self, group_by_input_shape: bool = False, group_by_stack_n: int = 0) -> EventList:
        """Return one row for each name (and shapes), which sums its calls."""
        rows: dict[Any, FunctionEvent] = {}
        for call in self._calls:
            shapes = call.input_shapes if group_by_input_shape else []
            row = rows.setdefault(
                (call.key, str(shapes)), FunctionEvent(call.key, call.start, 0.0, call.thread, count=0)
            )
            row.cpu_time_total += call.cpu_time_total
            row.inner += call.inner
            row.count += 1
            row.input_shapes = shapes
        return EventList(rows.values())

    def export_chrome_trace(self, path: str | os.PathLike[str]) -> None:
        """Write the calls as a file that chrome://tracing and Perfetto show."""
        calls = [
            {"ph": "X", "name": c.key, "ts": c.start, "dur": c.cpu_time_total, "pid": os.getpid(), "tid": c.thread}
            for c in self._calls
        ]
        with open(path, "w", encoding="utf-8") as file:
            json.dump({"traceEvents": calls}, file)


class record_function(ContextDecorator):  # noqa: N801 - PyTorch's name
    """Time a block under a name, while a :class:`profile` runs; otherwise do nothing.

    Parameters
    ----------
    args : str, optional
        Taken for PyTorch's sake.
    """

    def __init__(self, name: str, args: str | None = None) -> None:
        self.name = name
        self._told: Sequence[profile] = ()

    def __enter__(self) -> record_function:
        self._told = tuple(_running)
        for running in self._told:
            running._begin(self.name)
        return self

    def __exit__(self, *exc_info: object) -> None:
        for running in self._told:
            running._end()


def tensorboard_trace_handler(
    dir_name: str, worker_name: str | None = None, use_gzip: bool = False
) -> Callable[[profile], None]:
    """Return the ``on_trace_ready`` that writes a file for TensorBoard, or chrome://tracing, into a folder."""

    def write(prof: profile) -> None:
        os.makedirs(dir_name, exist_ok=True)
        name = f"{worker_name or os.getpid()}.{time.time_ns()}.pt.trace.json"
        prof.export_chrome_trace(os.path.join(dir_name, name))

    return write
