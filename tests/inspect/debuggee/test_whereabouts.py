"""Where the main thread is, read from another one."""

from __future__ import annotations

import threading

from gradscope.inspect.debuggee.whereabouts import main_thread_stack, whereabouts


def test_the_line_of_the_main_thread_is_told():
    found = []
    thread = threading.Thread(target=lambda: found.append(whereabouts()))
    thread.start()
    thread.join()
    assert found[0].startswith("is at test_whereabouts.py:")


def test_the_functions_of_the_main_thread_are_told_the_innermost_last():
    found = []
    thread = threading.Thread(target=lambda: found.append(main_thread_stack()))
    thread.start()
    thread.join()
    assert found[0].startswith("  File ")
    before, _, inner = found[0].partition(
        "in test_the_functions_of_the_main_thread_are_told_the_innermost_last\n    thread."
    )
    assert inner.startswith(("start()\n", "join()\n")), before
