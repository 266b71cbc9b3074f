"""``gi.record``: a recording of every backward in a block, a function, or between start and stop."""

from __future__ import annotations

import atexit
import functools
import os
import socket
import threading
import time
from collections.abc import Callable
from types import TracebackType
from typing import Any, TypeVar

from ...adapters import Adapter, AnyAdapter
from ...adapters.event_guards import own_error
from ...adapters.guarded_observer import AdapterGuard
from ...output.terminal_text import report
from ...records.optimizer_steps import OptimizerHooks
from ...records.own_rank import OwnRank, own_rank, rank_of_process_group
from ...source.source_paths import program_name
from ..file.batch_writer import Statement
from ..file.schema import BusyRecordingError, RecordingError
from .keep_policy import Policy
from .recorded_events import EventRecorder
from .recording_names import one_at_a_time, path_beside, recording_path
from .writer_thread import Writer

__all__ = ["Recorder", "record"]

F = TypeVar("F", bound=Callable[..., Any])


class Recorder:
    """Writes what happens in every backward, of all threads, to a file: see :func:`record`.

    Attributes
    ----------
    path : str
        Where the file is: as given, or where it has gone since.
    nodes : int
        How many nodes are in the file by now.
    lost : int
        How many could not be written.
    failure : str
        Why; empty while all is well.
    fault : str
        The error of gradscope's own, and its line, by which recording has stopped; empty for other reasons.

    See Also
    --------
    record, open_recording

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> with gi.record(os.path.join(tempfile.mkdtemp(), "run.gscope")) as recorder:
    ...     gs.ones(3, requires_grad=True).exp().sum().backward()
    >>> recorder.nodes, recorder.lost, recorder.failure
    (3, 0, '')
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        policy: Policy,
        *,
        adapter: Adapter | None = None,
        append: bool = False,
        title: str = "",
        **limits: Any,
    ) -> None:
        self._path = os.fspath(path)
        self._policy = policy
        self._adapter = adapter
        self._append = append
        self._title = title
        self._limits = limits
        self._writer: Writer | None = None
        self._events: EventRecorder | None = None
        self._observation: Any = None
        self._hooks: OptimizerHooks | None = None
        self._run = 0
        self._fault = ""
        self._ranked = False
        self._calls = _Calls(self)

    @property
    def path(self) -> str:
        """Where the file is: as given, or where it has gone since."""
        return self._writer.path if self._writer is not None else self._path

    @property
    def nodes(self) -> int:
        """How many nodes are in the file by now."""
        return self._writer.committed if self._writer is not None else 0

    @property
    def lost(self) -> int:
        """How many nodes could not be written."""
        return self._writer.lost if self._writer is not None else 0

    @property
    def failure(self) -> str:
        """Why nothing is written any more; empty while all is well."""
        own = own_error(self.fault) if self.fault else ""
        return own or (self._writer.failure if self._writer is not None else "")

    @property
    def fault(self) -> str:
        """The error of gradscope's own by which recording has stopped; empty for other reasons."""
        return self._fault or (self._writer.fault if self._writer is not None else "")

    @property
    def running(self) -> bool:
        """Whether it records, and this process is the one that started it."""
        return self._events is not None and not self.forked

    @property
    def started(self) -> bool:
        """Whether start() has been called and stop() has not, in this process or in the one that forked it."""
        return self._events is not None

    @property
    def forked(self) -> bool:
        """Whether this process is a child of the one that records: it writes nothing."""
        return self._writer is not None and self._writer.forked

    def start(self) -> Recorder:
        """Begin to record.

        Raises
        ------
        RecordingError
            If the file cannot be written, or this recorder runs already.
        """
        if self._events is not None:
            raise RecordingError(f"{self.path} is being recorded to already\nCall stop() first.")
        adapter = self._adapter or default_adapter()
        place = own_rank()
        path = recording_path(self._path, place)
        with one_at_a_time(path):
            writer = self._writer = self._open(path, place)
            self._run = writer.counter("runs")()
            facts = (
                self._run, self._title or program_name(), adapter.name, self._policy.keep,
                os.getpid(), socket.gethostname(), *place, os.getcwd(), time.time_ns(), None, "running",
            )  # fmt: skip
            writer.execute(f"INSERT INTO runs VALUES ({', '.join('?' * len(facts))})", facts)
            writer.flush()
        self._ranked = place.world > 1
        hooks = OptimizerHooks(
            before=lambda optimizer: events.about_to_step(optimizer), after=lambda optimizer: events.stepped(optimizer)
        )
        events = EventRecorder(
            adapter, self._policy, writer, self._run, before_task=self._before_task, stopped=self._stopped,
            refused=self._refused, one_of_many=place.world > 1,
        )  # fmt: skip
        writer.gather, writer.stop_of = events.gather, events.stop_of
        self._events, self._hooks = events, hooks
        with AdapterGuard([events]):
            hooks.look()
            self._observation = adapter.observe(events, forward=True, backward=True)
        atexit.register(self.stop)
        return self

    def _open(self, path: str, place: OwnRank) -> Writer:
        """Return the writer of a file; of one beside it, where another process is writing that one."""
        # The ranks that torchrun starts anew add to what those before them have recorded.
        append = self._append or place.restart > 0
        try:
            return Writer(path, self._policy, append=append, **self._limits)
        except BusyRecordingError as busy:
            if append or place.world > 1:
                raise
            beside = path_beside(path)
            report(f"gradscope: {str(busy).splitlines()[0]}: this process records to {beside}")
            return Writer(beside, self._policy, **self._limits)

    def _before_task(self) -> None:
        """Look for optimizers that have been imported, and for the rank that a process group has given meanwhile."""
        if self._hooks is not None:
            self._hooks.look()
        if self._ranked or self._writer is None or self._events is None:
            return
        place = rank_of_process_group()
        if place.world > 1:
            self._ranked = True
            facts = (*place, self._run)
            self._writer.execute("UPDATE runs SET rank = ?, world = ?, job = ?, restart = ? WHERE id = ?", facts)
            self._events.become_rank()
            if not self._append:
                self._writer.rename(recording_path(self._path, place))

    def stop(self, error: BaseException | None = None) -> None:
        """End the recording, with all that was handed over on the disk; doing so twice is harmless.

        Parameters
        ----------
        error : BaseException, optional
            What has ended the program: of one of many ranks it is kept, for the others may wait for it.
        """
        events, self._events = self._events, None
        if events is None or self._writer is None:
            return
        atexit.unregister(self.stop)
        for listening in (self._observation, self._hooks):
            if listening is not None:
                with AdapterGuard([events]):
                    listening.close()
        if self._writer.forked:
            return
        if error is not None:
            events.raised(error)
        events.close()
        self._writer.close(
            Statement("UPDATE runs SET ended = ?, state = 'finished' WHERE id = ?", (time.time_ns(), self._run))
        )

    def iteration(self, label: str = "") -> int:
        """Begin an iteration; from now on only this does. Return its number, from 1."""
        return self._running().iteration(label)

    def mark(self, text: str) -> None:
        """Write a note into the recording, at this moment."""
        self._running().mark(text)

    def flush(self) -> None:
        """Wait until all that has happened so far is in the file."""
        self._running().flush()
        assert self._writer is not None
        self._writer.flush()

    def _running(self) -> EventRecorder:
        if self._events is None:
            raise RecordingError(f"{self.path} is not being recorded to\nCall start(), or use a `with` block.")
        return self._events

    def _refused(self, error: Exception) -> None:
        """Let the program go on where the file, or a device, cannot."""
        if self._writer is not None and not self._writer.failure:
            self._writer.failure = f"{type(error).__name__}: {error}"
            self._say_stopped()

    def _stopped(self, fault: str) -> None:
        """Let the program go on where the recorder itself cannot, with all in the file that was recorded."""
        self._fault = fault
        self._say_stopped()

    def _say_stopped(self) -> None:
        report(
            f"gradscope: {self.path}: recording has stopped: {self.failure}\n"
            "The program goes on; what it does from here is not recorded."
        )

    def __enter__(self) -> Recorder:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop(error)

    def __call__(self, function: F) -> F:
        """Record each call of `function`, the last one replacing the file.

        Calls that begin while it records already (recursion, another thread, a ``with`` block around them) are part of
        that recording; one that calls have begun ends with the last of them.
        """

        @functools.wraps(function)
        def recorded(*args: Any, **kwargs: Any) -> Any:
            with self._calls:
                return function(*args, **kwargs)

        return recorded  # type: ignore[return-value]

    def __repr__(self) -> str:
        state = "running" if self.running else "stopped"
        return f"<Recorder {self.path} {state}, {self.nodes} nodes>"


class _Calls:
    """The calls of functions that a recorder decorates: the first one starts it, the last one to return stops it."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder = recorder
        self._lock = threading.Lock()
        self._inside = 0
        self._started = False

    def __enter__(self) -> None:
        with self._lock:
            if not self._inside:
                self._started = not self._recorder.started
                if self._started:
                    self._recorder.start()
            self._inside += 1

    def __exit__(self, *raised: object) -> None:
        with self._lock:
            self._inside -= 1
            if self._started and not self._inside:
                self._recorder.stop()


def record(
    path: str | os.PathLike[str],
    keep: str = "summaries",
    *,
    last: int | None = None,
    budget: int | str | None = None,
    rows: int | None = None,
    age: float | str | None = None,
    append: bool = False,
    title: str = "",
    adapter: Adapter | None = None,
) -> Recorder:
    """Record every backward to a file: as a ``with`` block, a decorator, or by ``start()`` and ``stop()``.

    As a decorator it makes one recording of a call and of all that begin meanwhile, by recursion or in other threads.

    The file is written as the program goes, by a thread of its own: after a crash, or ``kill -9``, it opens up to the
    last commit, a fraction of a second before, and it can be read while it is written. What the program computes does
    not change.

    Parameters
    ----------
    path : path-like
        A recording that is there is replaced; any other file is not. ``{rank}``, ``{pid}`` and ``{time}`` in it stand
        for the rank, the process and the moment of the start. A path that ends in ``/``, or that is a directory, gets a
        file for each rank, and so does a name that would be the same in each (``run.gscope`` is ``run-rank1.gscope``).
    keep : str
        ``'none'`` keeps the structure of each backward and its times, ``'summaries'`` the statistics of every gradient
        too, ``'all'`` also its values. Nodes as a breakpoint names them (``'param:*'``, ``'mod:layers.3.*,op:Addmm'``)
        keep all statistics, and the values of those nodes.
    last : int, optional
        Keep values of the last so many iterations only.
    budget : int or str, optional
        How many bytes the file may take (``'200MB'``), 1 MiB at least. Beyond, the oldest values go, and then
        iterations: the first and the newest are all there, those around a NaN, an error, a violation or a mark stay
        longest, and the others stand evenly over all that has run. What only left-out iterations had of nodes goes with
        them. The first event of the recording says how many have been left out.
    rows : int, optional
        How many nodes the file may have. Beyond, iterations go as for `budget`.
    age : float or str, optional
        After how many seconds iterations of the run go (``'12h'``, ``'7d'``): all but the first, and those around a
        NaN, an error, a violation or a mark.
    append : bool
        Add a run to the recording that is there.
    title : str
        What to call the run; the script's name by default.
    adapter : Adapter, optional
        The framework; all that are loaded by default.

    Raises
    ------
    ValueError
        If `keep`, or a limit, cannot be understood, or, when it starts, the braces in `path`.
    RecordingError
        When it starts: the file cannot be written, is no recording, or is being recorded to.

    See Also
    --------
    open_recording : Read the file.
    difference : Compare two of them.

    Examples
    --------
    >>> import os, tempfile
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> path = os.path.join(tempfile.mkdtemp(), "run.gscope")
    >>> x = gs.tensor([3.0, 4.0], requires_grad=True)
    >>> with gi.record(path) as recorder:
    ...     (x * x).sum().backward()
    >>> with gi.open_recording(path) as recording:
    ...     [(node.name, node.grad_outputs[0].norm) for node in recording.tasks()[0].nodes]
    [('SumBackward0', 1.0), ('MulBackward0', 1.4142135623730951), ('AccumulateGrad', 10.0)]
    """
    policy = Policy.parse(keep, last=last, budget=budget, rows=rows, age=age)
    return Recorder(path, policy, adapter=adapter, append=append, title=title)


def default_adapter() -> Adapter:
    """Return the adapter for all frameworks that a program may use."""
    return AnyAdapter()
