"""Whether ranks agree, while they train: each compares what it is about to use with what rank 0 is about to use.

Rank 0 puts its checksums into the process group's own store; the others read them there. So agreement costs no
collective call, and a rank that stops to train blocks nobody. Where DistributedDataParallel keeps some ranks equal
(those of one stage of a pipeline), or some hold the same parts of spread parameters, the first of them does what rank 0
does otherwise.
"""

from __future__ import annotations

import itertools
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from typing import Any, ClassVar

import msgspec

from ..adapters import Adapter, AnyAdapter, Observation
from ..adapters.event_guards import OWN_ERROR, own_error
from ..adapters.guarded_observer import AdapterGuard, GuardedObserver, guarded
from ..recording import RecordingError
from ..recording.file.step_rows import StepRecord, layout_text, read_layout, read_step, step_row
from ..records.before_step.forward_log import ForwardAccount
from ..records.before_step.step_looks import StepLook, StepLooker
from ..records.module_tracking import Tracker
from ..records.optimizer_steps import OptimizerHooks, held_by
from ..records.own_rank import OwnRank
from .agreement import Agreement, Comparison, Disagreement, Steps
from .agreement_report import agreement_text
from .live_hangs import HangWatcher
from .replicas import first_of
from .uneven_loops import skipped_apart

__all__ = ["LiveAgreement", "RanksDisagreeError"]

_PATIENCE = 10.0  # seconds that others wait for rank 0's step, once: it may have no batch left
_AFTERTHOUGHT = 3.0  # seconds in which parameters that differ may turn out to be those of a later step (join)
_POLLS = 0.0002, 0.002  # seconds between two looks, at first and at most
_NONE = "none"  # no step is stored as this
_OF_THE_STORE = "DistNetworkError", "DistStoreError"  # raised where the rank that held it has gone
_KEPT = 128  # steps of a rank that the store keeps

_next_session = itertools.count().__next__  # the numbers agree, as all ranks open sessions in the same order


class RanksDisagreeError(RuntimeError):
    """Ranks that should hold the same do not: its text says what, where, and the likely cause."""


class LiveAgreement:
    """Compares ranks while it is open: a context manager.

    In what follows rank 0 stands for the first of the ranks that hold the same.

    Parameters
    ----------
    place : OwnRank
        Which rank this process is.
    tell : callable, optional
        Called with a line where a rank skips an iteration that others run: nothing that they hold differs.

    Attributes
    ----------
    steps : int
        How many steps of this rank were the same as rank 0's.
    first : int
        The rank that this one is compared with: its own number where others are compared with it.
    note : str
        Why nothing is compared any more; empty while all is well.
    """

    def __init__(self, place: OwnRank, tell: Callable[[str], object] = str) -> None:
        self.note = ""
        self._tell = tell
        self._told_of: set[int] = set()
        self.first = 0
        self._rank, self._world = place.rank or 0, place.world
        self._adapter: Adapter = AnyAdapter()
        self._tracker = Tracker(self._adapter)
        self._looker = StepLooker(self._adapter, self._tracker)
        self._hooks = OptimizerHooks(before=self._steps, after=lambda optimizer: self._follower.stepped(optimizer))
        self._follower = _Follower(self._tracker, self._hooks, self._looker, self._about_to_step)
        self._follower.report_fault = self._failed  # type: ignore[method-assign]
        self._tracker.report_fault = self._follower.give_up  # type: ignore[method-assign]
        self._observation: Observation | None = None
        self._told_failed = False
        self._ours, self._theirs = _Arrivals(), _Arrivals()
        self._mine = Steps(self._ours)
        self._comparison = Comparison({})
        self._told: _Exchange | None = None  # what this rank says, where others are compared with it
        self._heard: _Exchange | None = None  # what the first of its group says
        self._store: Any = None
        self._patience = _PATIENCE
        self._session = _next_session()

    def watcher(
        self,
        limit: float,
        *,
        hangs: Callable[[Mapping[int, str], Mapping[int, ForwardAccount]], None],
        note: Callable[[str], None],
    ) -> HangWatcher:
        """Return what watches for ranks that wait for each other; its arguments are passed on."""
        return HangWatcher(
            self._rank, self._world, limit, name=f"{self._session}/stands", store=self._find_store,
            progress=self._looker.progress, account=self._looker.account, left=self._looker.has_left_loop,
            hangs=hangs, note=note,
        )  # fmt: skip

    def _find_store(self) -> Any:
        """Return the store, which is there still when the program has left its process group."""
        return self._store or self._adapter.rank_store()

    @property
    def tensors(self) -> int:
        """How many different tensors were compared; 0 where each is on one rank alone."""
        return len(self._comparison.seen)

    @property
    def steps(self) -> int:
        """How many steps of this rank were the same as the first's."""
        return self._comparison.steps

    def __enter__(self) -> LiveAgreement:
        with AdapterGuard([self._follower]):
            self._observation = self._adapter.observe(self._follower, forward=True, backward=True)
            self._hooks.look()
        return self

    def __exit__(self, *raised: object) -> None:
        with AdapterGuard([self._follower]):
            self._hooks.close()
            if self._observation is not None:
                self._observation.close()

    def _steps(self, optimizer: Any) -> None:
        if self._follower.fault:
            self._tell_others()
        else:
            self._follower.about_to_step(optimizer)

    def _failed(self, fault: str) -> None:
        """Say here that this rank is compared no more, and to those that wait for what it holds."""
        self.note = f"no longer compared: {own_error(fault)}"
        self._tell(f"rank {self._rank}: {self.note}")
        self._tell_others()

    def _tell_others(self) -> None:
        """Say it as soon as there is a store."""
        with suppress(Exception):
            store = None if self._told_failed else self._find_store()
            if store is not None:
                _Exchange(store, self._session, self._rank).stop()
                self._told_failed = True

    def _about_to_step(self, optimizer: Any) -> None:
        try:
            self._look_and_compare(optimizer)
        except RuntimeError as error:
            if type(error).__name__ not in _OF_THE_STORE:
                raise
            self.note = "no longer compared: the store of the process group has gone"

    def _look_and_compare(self, optimizer: Any) -> None:
        if self._store is None:
            self._store = self._adapter.rank_store()
            if self._store is None:  # there is no process group yet
                return
        look = self._looker.look(optimizer)
        if look is None or self.note:
            return
        if self._told is None and self._heard is None:
            self._begin(self._store, look, optimizer)
        if self._told is not None:
            self._told.publish(look)
        if self._heard is not None:
            self._ours.add(look)
            self._compare(self._heard)

    def _begin(self, store: Any, look: StepLook, optimizer: Any) -> None:
        """Find out which rank to compare with, and whether others compare with this one."""
        same = [self._adapter.holders_of(held) for held in held_by(optimizer) if self._adapter.is_tensor(held)]
        groups = dict.fromkeys(filter(None, (*same, *(held.group for held in look.tensors))))
        firsts = [*map(first_of, groups)]
        self.first = firsts[0] if firsts else 0
        if self._rank in (0, *firsts):
            self._told = _Exchange(store, self._session, self._rank)
        if self._rank != self.first:
            self._heard = _Exchange(store, self._session, self.first)
            self._comparison = Comparison({self.first: Steps(self._theirs), self._rank: self._mine})

    def _compare(self, exchange: _Exchange) -> None:
        """Compare what has come; wait for rank 0 where it is not here yet, but once only if it does not come."""
        started = time.monotonic()
        pause, longest = _POLLS
        parted = self._parted()
        while True:
            look = exchange.next()  # one at a time: to ask for the one after it takes as long, and it is not there
            if look is not None:
                self._theirs.add(look)
                parted = self._parted()
            waits = self._patience if parted is None else _AFTERTHOUGHT if parted.what == "parameter" else 0.0
            if parted is None and self._mine.peek() is None:
                break
            if look is None and exchange.is_stopped():
                self.note = f"no longer compared: {OWN_ERROR} in rank {self.first}"
                break
            if look is None:
                if time.monotonic() - started >= waits:
                    break
                time.sleep(pause)
                pause = min(2 * pause, longest)
        self._tell_of_differences()
        self._tell_of_skips()
        self._patience = _PATIENCE if self._mine.peek() is None else 0.0
        if parted is not None:
            found = Agreement((self.first, self._rank), self.steps, self.tensors, parted)
            raise RanksDisagreeError(agreement_text(found))

    def _tell_of_differences(self) -> None:
        """Tell once that a rank holds another model; several ranks may see that of one."""
        told, self._comparison.differences = self._comparison.differences, []
        if told and self._store.add(f"{self._session}/models", 1) == 1:
            self._tell(told[0])

    def _tell_of_skips(self) -> None:
        """Tell, once for each rank, that it has skipped an iteration; several ranks may see that of one."""
        for rank, skips in self._comparison.skipped.items():
            if skips and rank not in self._told_of:
                self._told_of.add(rank)
                if self._store.add(f"{self._session}/skipped/{rank}", 1) == 1:
                    told = {self.first: (), self._rank: (), rank: skips}
                    self._tell(next(skipped_apart(told)))

    def _parted(self) -> Disagreement | None:
        """Return the first disagreement in what has come of both."""
        try:
            return self._comparison.run()
        except RecordingError as error:
            self.note = str(error).splitlines()[0]
            self._mine.exhaust()
            return None


class _Follower(GuardedObserver):
    """What is heard of the program: which modules run, that optimizers step, that a framework may have been imported.

    Parameters
    ----------
    compare : callable
        Called with an optimizer that is about to step.
    """

    places_of_nodes = False
    meant: ClassVar[tuple[type[Exception], ...]] = (RanksDisagreeError,)

    def __init__(
        self, tracker: Tracker, hooks: OptimizerHooks, looker: StepLooker, compare: Callable[[Any], None]
    ) -> None:
        self.module_left = tracker.module_left  # type: ignore[method-assign]
        self._compare = compare
        self._hooks = hooks
        self._looker = looker
        self._running: set[Any] = set()

    def module_entered(self, module: Any) -> None:
        """Note that a module runs, and from where."""
        self._looker.module_entered(module)

    @guarded
    def about_to_step(self, optimizer: Any) -> None:
        """Compare what an optimizer is about to use."""
        self._compare(optimizer)

    @guarded
    def stepped(self, optimizer: Any) -> None:
        """Note that it has stepped."""
        self._looker.stepped(optimizer)

    def task_started(self, task: Any) -> None:
        """Listen to optimizers that have been imported meanwhile, and note what the backward may reach."""
        self._hooks.look()
        self._looker.backward_started(task, inside=bool(self._running))
        self._running.add(task)

    def task_finished(self, task: Any) -> None:
        """Note its end."""
        self._running.discard(task)

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Note its end."""
        self._running.discard(task)


class _Arrivals(Iterator[StepRecord]):
    """Steps in the order in which they came, of which there may be more later."""

    def __init__(self) -> None:
        self._waiting: deque[StepRecord] = deque()
        self._count = 0

    def add(self, look: StepLook) -> None:
        """Add a step."""
        self._count += 1
        self._waiting.append(StepRecord(self._count, None, None, 0, look))

    def __next__(self) -> StepRecord:
        if not self._waiting:
            raise StopIteration
        return self._waiting.popleft()


class _Exchange:
    """A rank's steps in a store: the newest under as many keys, and one key for each layout."""

    def __init__(self, store: Any, session: int, rank: int) -> None:
        self._store = store
        self._prefix = f"{session}/{rank}"
        self._steps = 0
        self._layouts: dict[int, tuple[Any, int]] = {}  # by the ids of the tuples: to hash one takes long
        self._known: dict[int, Any] = {}

    def publish(self, look: StepLook) -> None:
        """Put a step into the store, in the place of an old one."""
        _, layout = self._layouts.get(id(look.tensors), (None, -1))
        if layout < 0:
            layout = len(self._layouts)
            self._layouts[id(look.tensors)] = look.tensors, layout
            self._store.set(self._key("layout", layout), layout_text(look.tensors).encode())
        row = (self._steps, look.optimizer, look.number, layout, *step_row(look))
        self._store.set(self._key("step", self._steps % _KEPT), msgspec.msgpack.encode(row))
        self._steps += 1

    def next(self) -> StepLook | None:
        """Return the next step that has been put in; None while it has not."""
        # What this asks, and gets, in one round trip takes check() and get() three.
        stored = self._store.compare_set(self._key("step", self._steps % _KEPT), _NONE, _NONE)
        if stored == _NONE.encode():
            return None
        step, optimizer, number, layout, *rest = msgspec.msgpack.decode(stored)
        if step != self._steps:
            return None
        if layout not in self._known:
            self._known[layout] = read_layout(self._store.get(self._key("layout", layout)))
        self._steps += 1
        return read_step((0, 0, None, None, 0, optimizer, number, layout, *rest), self._known, {}).look

    def stop(self) -> None:
        """Say that no more steps come from this rank, though it may take more."""
        self._store.set(self._key("stopped", 0), "stopped")

    def is_stopped(self) -> bool:
        """Whether that has been said."""
        return bool(self._store.compare_set(self._key("stopped", 0), _NONE, _NONE) != _NONE.encode())

    def _key(self, what: str, number: int) -> str:
        return f"{self._prefix}/{what}/{number}"
