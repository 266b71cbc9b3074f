"""A thread that waits hears at once of what comes, and no longer than for a while of what does not."""

import threading
import time

import pytest

from gradscope.runtime.kernels.threads import spin_waits
from gradscope.runtime.kernels.threads.spin_waits import Signal, waits_awake
from tests.runtime.kernels.both_forms import numpy_alone

compiled = pytest.mark.skipif(not waits_awake(), reason="needs Numba")


@pytest.fixture
def patient(monkeypatch):
    """Have threads wait for a minute."""
    monkeypatch.setattr(spin_waits, "_AWAKE", 60e6)


@compiled
def test_a_signal_ends_the_waiting_of_another_thread(patient):
    signal, heard = Signal(), []
    waiting = threading.Thread(target=lambda: heard.append(signal.comes_after(0)))
    waiting.start()
    assert waiting.is_alive()
    signal.send()  # this thread has the interpreter's lock, so the other one waits without it
    waiting.join(30)
    assert heard == [True]


def test_a_signal_that_has_come_already_is_not_waited_for(patient):
    signal = Signal()
    seen = signal.count
    signal.send()
    assert signal.comes_after(seen)


def test_what_does_not_come_is_waited_for_no_longer_than_a_while():
    signal = Signal()
    assert not signal.comes_after(signal.count)


@compiled
def test_who_has_heard_waits_as_long_as_is_asked_for():
    signal = Signal()
    signal.send()
    started = time.monotonic()
    assert signal.comes_after(0, 50_000)
    assert time.monotonic() - started > 0.01


def test_without_numba_nobody_waits_awake(patient):
    with numpy_alone():
        assert not waits_awake()
        signal = Signal()
        assert not signal.comes_after(signal.count)
        signal.send()
        assert signal.comes_after(0)
