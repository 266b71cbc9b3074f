"""The loop in which threads wait ends when the counter moves, or after its turns."""

import threading

import numpy as np
import pytest

from gradscope.runtime.kernels import loading


@pytest.fixture
def wait_for_change():
    pytest.importorskip("numba", reason="compiles kernels")
    return loading.compiled("waiting_loops").wait_for_change


def test_it_sees_what_another_thread_writes(wait_for_change):
    counter = np.zeros(1, np.int64)
    waiting = threading.Thread(target=wait_for_change, args=(counter, 0, 1 << 40, 0))
    waiting.start()
    counter[0] = 1
    waiting.join(30)
    assert not waiting.is_alive()


@pytest.mark.parametrize("seen", [0, 1])
def test_it_ends_after_its_turns(wait_for_change, seen):
    counter = np.zeros(1, np.int64)
    wait_for_change(counter, seen, 10, 10)
    assert counter[0] == 0
