"""Where the main thread is, read from another one."""

from __future__ import annotations

import threading

from gradscope.inspect.debuggee.whereabouts import whereabouts


def test_the_line_of_the_main_thread_is_told():
    found = []
    thread = threading.Thread(target=lambda: found.append(whereabouts()))
    thread.start()
    thread.join()
    assert found[0].startswith("is at test_whereabouts.py:")
