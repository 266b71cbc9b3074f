"""Signals that end the process."""

from __future__ import annotations

import os
import signal
import threading
import time

import pytest

from gradscope_tui.terminal.shutdown_signals import ended_by_signals


def test_a_signal_is_told_and_its_default_action_is_back_afterwards():
    heard = []
    with ended_by_signals(heard.append):
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGTERM):
            signal.raise_signal(number)
    assert heard == [signal.SIGTERM, signal.SIGINT, signal.SIGTERM]
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(not hasattr(signal, "SIGHUP"), reason="no SIGHUP")
def test_what_is_ignored_or_handled_stays_so():
    heard, before = [], signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        with ended_by_signals(heard.append):
            signal.raise_signal(signal.SIGHUP)
        assert heard == []
        assert signal.getsignal(signal.SIGHUP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_forked_child_is_ended_as_ever():
    ready, tell = os.pipe()
    with ended_by_signals(lambda number: None):
        child = os.fork()
        if not child:
            os.write(tell, b"!")
            time.sleep(10)
            os._exit(0)
        os.read(ready, 1)  # Python forgets signals that come while it forks
        os.kill(child, signal.SIGTERM)
        assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGTERM


def test_another_thread_than_the_main_one_takes_nothing():
    found = []

    def look():
        with ended_by_signals(lambda number: None):
            found.append(signal.getsignal(signal.SIGTERM))

    thread = threading.Thread(target=look)
    thread.start()
    thread.join()
    assert found == [signal.SIG_DFL]
