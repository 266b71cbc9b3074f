"""Work that is shared by threads: every index once, what was raised raised again."""

import os
import subprocess
import sys
import threading

import pytest

from gradscope.runtime.kernels import threads


@pytest.fixture
def three():
    before = threads.count()
    threads.set_count(3)
    yield
    threads.set_count(before)


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


def test_threads_run_at_once(three):
    meeting = threading.Barrier(3, timeout=30)
    threads.over(3 * threads.WORTH, lambda part: meeting.wait())


@pytest.mark.parametrize("failing", [0, threads.WORTH], ids=["here", "elsewhere"])
def test_what_a_part_raises_is_raised(three, failing):
    def work(part):
        if part.start == failing:
            raise ValueError(f"at {part.start}")

    with pytest.raises(ValueError, match=f"at {failing}"):
        threads.over(3 * threads.WORTH, work)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
def test_a_forked_process_has_threads_of_its_own(three):
    threads.over(3 * threads.WORTH, lambda part: None)
    child = os.fork()
    if not child:
        threads.over(3 * threads.WORTH, lambda part: None)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0


def test_a_pool_that_has_ended_leaves_the_work_to_who_asks(three):
    threads._pool().shutdown()
    done = []
    threads.over(3 * threads.WORTH, done.append)
    assert done == list(threads.blocks(slice(0, 3 * threads.WORTH), threads.WORTH))
    threads._forget_pool()


def test_a_thread_that_outlives_the_main_one_computes():
    program = f"""
import threading
from gradscope.runtime.kernels import threads

def late():
    threading.main_thread().join()
    threads.over({4 * threads.WORTH}, lambda part: print(part.start, flush=True))

threads.set_count(2)
threading.Thread(target=late).start()
"""
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120)
    assert (run.stdout.split(), run.stderr) == (["0", str(2 * threads.WORTH)], "")
