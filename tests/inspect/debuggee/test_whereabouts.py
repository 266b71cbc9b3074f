"""Where the main thread is, read from another one."""

from __future__ import annotations

import sys
import threading

import pytest

from gradscope.inspect.debuggee.whereabouts import current_line, main_thread_stack, whereabouts


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


def test_functions_of_the_instruments_are_none_of_the_programs():
    found, space = [], {}
    thread = threading.Thread(target=lambda: found.append(main_thread_stack()))
    adapter = whereabouts.__code__.co_filename.replace("debuggee", "adapters")
    exec(compile("def observed(call):\n    call()\n", adapter, "exec"), space)

    def within():
        thread.start()
        thread.join()

    space["observed"](within)
    assert "in within\n" in found[0]
    assert "in observed\n" not in found[0]


@pytest.mark.parametrize(
    ("filename", "name", "told"),
    [
        ("torch/distributed/distributed_c10d.py", "all_reduce", "waits in all_reduce, called at "),
        ("torch/nn/parallel/distributed.py", "forward", "waits in DistributedDataParallel.forward, called at "),
        ("torch/_tensor.py", "backward", "is in backward(), called at "),
        ("torch/_tensor.py", "item", "is at "),
    ],
)
def test_what_a_line_waits_in_is_told(filename, name, told):
    found, space = [], {}
    thread = threading.Thread(target=lambda: found.append(whereabouts()))
    source = f"def {name}(thread):\n    thread.start()\n    thread.join()\n"
    exec(compile(source, f"site-packages/{filename}", "exec"), space)
    space[name](thread)
    assert found[0].startswith(f"{told}test_whereabouts.py:")


def test_an_instruction_without_a_line_is_at_the_first_one_of_its_function():
    code = compile("\n\nframe = frame_of()", "train.py", "exec").replace(co_linetable=b"", co_firstlineno=3)
    space = {"frame_of": lambda: sys._getframe(1)}
    exec(code, space)
    assert space["frame"].f_lineno is None
    assert current_line(space["frame"]) == 3
    assert current_line(sys._getframe()) == sys._getframe().f_lineno
