"""Listening in modules that the program imports at any time."""

import sys
import threading
import types

import pytest

from gradscope.inspect.adapters.framework_hooks import FrameworkHooks

NAME = "a_framework"


class Heard(FrameworkHooks):
    """Counts how often it listens, each time until all threads have looked."""

    def __init__(self, threads=1):
        super().__init__([NAME], "ready")
        self.all_look = threading.Semaphore(0)
        self.threads = threads
        self.begun = self.ended = 0

    def look(self):
        self.all_look.release()
        super().look()

    def _listen_to(self, name, undo):
        self.begun += 1
        undo.callback(self._end)
        for _ in range(self.threads):
            assert self.all_look.acquire(timeout=60)

    def _end(self):
        self.ended += 1


@pytest.fixture
def framework(monkeypatch):
    module = types.ModuleType(NAME)
    monkeypatch.setitem(sys.modules, NAME, module)
    return module


def test_a_framework_is_listened_to_once_it_has_been_imported(monkeypatch, framework):
    hooks = Heard()
    monkeypatch.delitem(sys.modules, NAME)
    hooks.look()
    monkeypatch.setitem(sys.modules, NAME, framework)
    hooks.look()
    assert hooks.begun == 0
    framework.ready = True
    hooks.look()
    hooks.look()
    assert (hooks.begun, hooks.ended) == (1, 0)
    hooks.close()
    hooks.close()
    assert (hooks.begun, hooks.ended) == (1, 1)


def test_threads_that_look_at_the_same_moment_listen_once(framework):
    framework.ready = True
    hooks = Heard(threads=3)
    threads = [threading.Thread(target=hooks.look) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    hooks.close()
    assert (hooks.begun, hooks.ended) == (1, 1)
