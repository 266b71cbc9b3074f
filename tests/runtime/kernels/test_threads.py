"""Work that is shared by threads: every index once, what was raised raised again."""

import gc
import itertools
import os
import signal
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest

import gradscope as gs
from gradscope.runtime.kernels import elementwise, threads
from gradscope.runtime.kernels.threads.spin_waits import Signal


@pytest.fixture
def three(monkeypatch):
    """Have three threads with parts of one size."""
    monkeypatch.setattr(threads, "_LEAD", 0)
    monkeypatch.setattr(threads, "_LEAD_OF_AWAKE", 0)
    before = threads.count()
    threads.set_count(3)
    yield
    threads.set_count(before)


def at_once():
    """Return what each of three parts waits with for the others: then each is on a thread of its own."""
    return threading.Barrier(3, timeout=60).wait


@pytest.mark.parametrize("size", [0, 1, threads.WORTH, 2 * threads.WORTH, 3 * threads.WORTH + 1, 10 * threads.WORTH])
def test_each_index_is_worked_on_once(three, size):
    done = []
    threads.over(size, done.append)
    indices = sorted((part.start, part.stop) for part in done)
    assert [begin for begin, _ in indices] == [0, *(end for _, end in indices[:-1])]
    assert indices[-1][1] == size
    assert len(done) == max(1, min(3, size // threads.WORTH))


@pytest.mark.parametrize("step", [1, 7, threads.WORTH - 1, threads.WORTH, 2 * threads.WORTH, 9 * threads.WORTH])
def test_slices_begin_at_multiples_of_a_step(three, step):
    done, size = [], 4 * threads.WORTH + 3
    threads.over(size, done.append, step=step)
    indices = sorted((part.start, part.stop) for part in done)
    assert [begin for begin, _ in indices] == [0, *(end for _, end in indices[:-1])]
    assert indices[-1][1] == size
    assert not any(begin % step for begin, _ in indices)


def test_large_rows_are_worth_a_thread_each(three):
    done = []
    threads.over(2, done.append, each=threads.WORTH)
    assert len(done) == 2


@pytest.mark.parametrize("lead", [0, threads._LEAD_OF_AWAKE, threads._LEAD])
def test_the_caller_has_more_to_do_than_a_thread_that_begins_later(lead):
    *others, first = threads._parts(16 * threads.WORTH, 4, 1, 1 << 10, lead)
    sizes = [part.stop - part.start for part in others]
    assert len(sizes) == 3
    assert max(sizes) - min(sizes) <= 1 << 10
    assert abs(first.stop - min(sizes) - lead) <= 1 << 10


def test_threads_that_are_awake_are_told_first(monkeypatch):
    told = []
    workers = threads._Workers(0)
    for state in (threads._BUSY, threads._ASLEEP, threads._AWAKE, threads._ASLEEP):
        worker = threads._Worker("never started")
        worker.state = state
        monkeypatch.setattr(worker, "give", lambda job, state=state: told.append(state))
        workers._workers.append(worker)
    workers.job(lambda part: None, 16 * threads.WORTH, 2, 1, 1).finish()
    assert told == [threads._AWAKE, threads._ASLEEP]


@pytest.mark.parametrize("awake", [True, False])
def test_what_is_quick_is_shared_where_threads_wait_awake(three, monkeypatch, awake):
    monkeypatch.setattr(threads, "waits_awake", lambda: awake)
    done = []
    threads.over(6 * threads.WORTH, done.append, quick=True)
    assert len(done) == (3 if awake else 1)


def test_threads_run_at_once(three):
    meet = at_once()
    threads.over(3 * threads.WORTH, lambda part: meet())


def test_a_thread_that_comes_late_finds_nothing_to_do(three):
    meet, occupied, release, done = at_once(), threading.Event(), threading.Event(), []

    def occupy(part):
        meet()
        occupied.set()
        if threading.current_thread() is not other:  # both workers stay, as where they get no processor
            assert release.wait(60)

    other = threading.Thread(target=threads.over, args=(3 * threads.WORTH, occupy))
    other.start()
    assert occupied.wait(60)
    threads.over(3 * threads.WORTH, lambda part: done.append(threading.get_ident()))
    release.set()
    other.join(60)
    assert done == [threading.get_ident()] * 3


@pytest.mark.parametrize("failing", [0, threads.WORTH], ids=["here", "elsewhere"])
def test_what_a_part_raises_is_raised(three, failing):
    def work(part):
        if part.start == failing:
            raise ValueError(f"at {part.start}")

    with pytest.raises(ValueError, match=f"at {failing}"):
        threads.over(3 * threads.WORTH, work)


def test_of_two_errors_the_first_slices_is_raised(three):
    meet = at_once()

    def work(part):
        meet()
        if part.start:
            raise ValueError(f"at {part.start}")

    with pytest.raises(ValueError, match=f"at {threads.WORTH}"):
        threads.over(3 * threads.WORTH, work)


def test_nobody_begins_another_part_after_an_error(three):
    threads._workers().end()
    begun = []

    def work(part):
        begun.append(part.start)
        if part.start:
            raise KeyError

    with pytest.raises(KeyError):
        threads.over(3 * threads.WORTH, work)
    assert begun == [0, threads.WORTH]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(three):
    threads.over(3 * threads.WORTH, lambda part: None)
    child = os.fork()
    if not child:
        threads.over(3 * threads.WORTH, lambda part: None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_threads_that_have_ended_leave_the_work_to_who_asks(three):
    threads._workers().end()
    done = []
    threads.over(3 * threads.WORTH, done.append)
    assert done == list(threads.blocks(slice(0, 3 * threads.WORTH), threads.WORTH))


def test_a_system_without_further_threads_leaves_the_work_to_who_asks(three, monkeypatch):
    def refuse(thread):
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    done = []
    threads.over(3 * threads.WORTH, done.append)
    assert len(done) == 3


def test_work_that_is_shared_within_shared_work_is_done_by_the_thread_that_has_it(three):
    inner, meet = [], at_once()

    def outer(part):
        meet()
        threads.over(3 * threads.WORTH, lambda some: inner.append((threading.get_ident(), some)))

    threads.over(3 * threads.WORTH, outer)
    whole = slice(0, 3 * threads.WORTH)
    assert sorted(some == whole for _, some in inner) == [False] * 3 + [True] * 2


def test_errors_of_numbers_are_handled_as_who_asks_handles_them(three):
    states = []
    with np.errstate(divide="raise", over="call", under="print"):
        threads.over(3 * threads.WORTH, lambda part: states.append(np.geterr()))
        assert states == [np.geterr()] * 3


def test_what_a_signal_raises_waits_for_the_threads(three):
    interrupted, late, meet = threading.Event(), [], at_once()
    caller = threading.get_ident()

    def work(part):
        meet()
        if threading.get_ident() != caller:
            assert interrupted.wait(30)
            late.append(part.start)
            return
        # The handler runs at once where this thread has the interpreter, and what it raises is this part's.
        interrupted.set()
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        threads.over(3 * threads.WORTH, work)
    assert len(late) == 2


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs signals")
def test_a_signal_while_it_waits_waits_for_the_threads(three):
    caller, late = threading.get_ident(), []
    handled, meet, workers = threading.Event(), at_once(), itertools.count()

    def handler(number, frame):
        handled.set()
        raise KeyboardInterrupt

    def work(part):
        meet()
        if threading.get_ident() == caller:
            return
        sends = next(workers) == 0
        # A signal that comes just before the caller waits is heard when it has waited: another one wakes it.
        for _ in range(600):
            if sends and not handled.is_set():
                signal.pthread_kill(caller, signal.SIGUSR1)
            if handled.wait(0.05):
                break
        assert handled.is_set()
        late.append(part.start)

    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            threads.over(3 * threads.WORTH, work)
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(late) == 2


def test_a_signal_while_threads_are_told_leaves_nobody_at_work(three, monkeypatch):
    raised, late, give = threading.Event(), [], threads._Worker.give
    workers = threads._workers()
    ending = [worker._thread for worker in workers._workers]

    def interrupted(worker, job):
        give(worker, job)
        raise KeyboardInterrupt

    def work(part):
        time.sleep(0.05)
        late.append(raised.is_set())

    with monkeypatch.context() as patch:
        patch.setattr(threads._Worker, "give", interrupted)
        with pytest.raises(KeyboardInterrupt):
            threads.over(3 * threads.WORTH, work)
        raised.set()
    workers.end()
    for thread in ending:
        thread.join(60)
    assert True not in late


def test_what_a_signal_takes_from_the_queue_is_not_waited_for():
    """It may raise between the queue's end of waiting and the next line."""
    job = threads._Job(lambda part: None, [], Signal())
    job._joined.append(None)

    class News:
        def get(self):
            job._left.append(None)
            raise KeyboardInterrupt

        def put(self, word):
            pass

    job._news = News()
    ((number, error),) = job.finish()
    assert (number, type(error)) == (-1, KeyboardInterrupt)


def test_errors_leave_no_cycle(three, own_objects):
    class FailureError(Exception):
        pass

    def work(part):
        raise FailureError

    gc.disable()
    try:
        try:
            threads.over(3 * threads.WORTH, work)
        except FailureError as error:
            left = weakref.ref(error)
        assert left() is None
    finally:
        gc.enable()


def test_threads_keep_nothing_of_what_they_have_done(three):
    class Work:
        def __call__(self, part):
            pass

    work = Work()
    threads.over(3 * threads.WORTH, work)
    left, work = weakref.ref(work), None
    deadline = time.monotonic() + 30  # until both threads wait again
    while left() is not None and time.monotonic() < deadline:
        time.sleep(0)
    assert left() is None


def test_several_callers_share_the_threads(three):
    totals = []

    def call():
        sizes = []
        for _ in range(20):
            threads.over(3 * threads.WORTH, lambda part: sizes.append(part.stop - part.start))
        totals.append(sum(sizes))

    callers = [threading.Thread(target=call) for _ in range(4)]
    for caller in callers:
        caller.start()
    for number in (2, 3, 1, 3):  # the number may change meanwhile
        threads.set_count(number)
    for caller in callers:
        caller.join(60)
    assert totals == [20 * 3 * threads.WORTH] * 4


def test_a_thread_that_outlives_the_main_one_computes():
    program = f"""
import threading
import gradscope as gs
from gradscope.runtime.kernels import elementwise, threads
from gradscope.runtime.kernels.threads.spin_waits import Signal

def late():
    threading.main_thread().join()
    begins = []
    threads.over({4 * threads.WORTH}, lambda part: begins.append(part.start))
    print(*sorted(begins))

threads.set_count(2)
threads._LEAD = threads._LEAD_OF_AWAKE = 0
threading.Thread(target=late).start()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (run.stdout.split(), run.stderr) == (["0", str(2 * threads.WORTH)], "")


# --- operators whose lines or images threads share -------------------------------------------------------------------

F = gs.nn.functional
SHARED = {
    "cumsum along the last": lambda x: x.cumsum(-1),
    "cumsum along the first": lambda x: x.cumsum(0),
    "cumprod": lambda x: x.cumprod(1),
    "sort": lambda x: x.sort(2),
    "sort along the first, descending": lambda x: x.sort(0, descending=True),
    "avg_pool2d": lambda x: F.avg_pool2d(x, 2, padding=1),
    "avg_pool2d of a size that is not divided": lambda x: F.avg_pool2d(x, 3, ceil_mode=True, count_include_pad=False),
    "max_pool2d": lambda x: F.max_pool2d(x, 3, stride=2, return_indices=True),
    "products of small matrices": lambda x: x.flatten(0, 1) @ x.flatten(0, 1).mT,
    "interpolate": lambda x: F.interpolate(x, scale_factor=1.5, mode="bicubic"),
    "interpolate to the same size": lambda x: F.interpolate(x, size=x.shape[2:], mode="bilinear"),
    "cat along the first": lambda x: gs.cat([x, x[1:], x[:0], x + 1]),
    "cat along the third": lambda x: gs.cat([x, x[:, :, 2:], x + 1], 2),
    "cat along a first dimension of one": lambda x: gs.cat([x[:1], x[1:2]], 1),
    "stack": lambda x: gs.stack([x, x + 1], 1),
    "clone": lambda x: x.clone(),
    "clone of a transposed one": lambda x: x.transpose(0, 3).clone(),
    "contiguous": lambda x: x.permute(0, 2, 3, 1).contiguous(),
    "to another dtype": lambda x: x.to(gs.float64),
    "copy_ of an expanded one": lambda x: gs.zeros(4, *x.shape).copy_(x),
    "flip": lambda x: x.flip(0, 3),
    "max along the first": lambda x: x.max(0),
    "max along the last": lambda x: x.max(-1, keepdim=True),
    "amin": lambda x: x.amin(1, keepdim=True),
    "argmax": lambda x: x.argmax(2),
    "clamp": lambda x: x.clamp(-1, 0.5),
    "square": lambda x: x**2,
    "mse_loss": lambda x: F.mse_loss(x, x + 1, reduction="none"),
    "where": lambda x: gs.where(x > 0, x, 2.0),
    "rows at indices": lambda x: x[gs.tensor([[4, 0, 0], [1, -1, 3]])],
    "an embedding": lambda x: F.embedding(gs.tensor([[6, 0], [2, 2]]), x[0, 0].T),
    "pad": lambda x: F.pad(x, (1, 2, 0, 3), value=1.5),
    "fill_": lambda x: gs.empty_like(x).fill_(2.5),
    "a column is added": lambda x: x + x[:, :, :, :1],
    "a part is added to a row": lambda x: x[:, :, 1:, 1:] * x[0, 0, 0, 1:],
}


def test_rows_that_are_not_there_are_missed(three, monkeypatch):
    monkeypatch.setattr(threads, "WORTH", 1)
    for index in ([0, 5], [-6, 0]):
        with pytest.raises(IndexError):
            gs.ones(5, 3)[gs.tensor(index)]


@pytest.mark.parametrize("name", SHARED)
def test_what_threads_share_is_bit_for_bit_that_of_one(three, monkeypatch, name):
    x = gs.tensor(np.random.default_rng(0).integers(-3, 4, (5, 3, 6, 7)).astype("f") / 2)
    x[0, 0, 0] = float("nan")
    calls = []
    for worth in (1, 1 << 40):
        monkeypatch.setattr(threads, "WORTH", worth)
        monkeypatch.setattr(threads, "_WORTH_QUICK", {True: worth, False: worth})
        monkeypatch.setattr(elementwise, "LARGE", worth)
        found = SHARED[name](x)
        calls.append(
            [(part.shape, part.numpy().tobytes()) for part in (found if isinstance(found, tuple) else (found,))]
        )
    assert calls[0] == calls[1]


def test_lines_are_parted_across_another_axis(three, monkeypatch):
    monkeypatch.setattr(threads, "WORTH", 1)
    found = []
    threads.over_lines((6, 4), 0, found.append)
    assert all(index[0] == slice(None) for index in found)
    assert sorted((index[1].start, index[1].stop) for index in found) == [(0, 1), (1, 3), (3, 4)]
    found.clear()
    threads.over_lines((6, 4), 1, found.append)
    assert sorted((index[0].start, index[0].stop) for index in found) == [(0, 2), (2, 4), (4, 6)]
    found.clear()
    threads.over_lines((6,), 0, found.append)
    threads.over_lines((0, 4), 1, found.append)
    assert found == [(), (slice(0, 0),)]
