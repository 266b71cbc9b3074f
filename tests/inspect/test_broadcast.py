"""Output comes in whole lines; a broken listener is dropped."""

import pytest

from gradscope.inspect import DebuggerEvent, SessionState
from gradscope.inspect.broadcast import Broadcast


def broadcast():
    return Broadcast(lambda: SessionState.RUNNING)


def test_lines_of_two_streams_do_not_mix():
    made, heard = broadcast(), []
    made.listen(lambda event: heard.append((event.stream, event.text)))
    made.write("a")
    made.write("x\ny", "stderr")
    made.write("b\n\n")
    made.flush()
    assert heard == [("stderr", "x"), ("stdout", "ab"), ("stdout", ""), ("stderr", "y")]
    assert made.output == ["x", "ab", "", "y"]


def test_the_oldest_lines_go():
    made = broadcast()
    made.write("".join(f"{i}\n" for i in range(100_001)))
    assert (made.output[0], made.output[-1], len(made.output)) == ("10000", "100000", 90_001)


def test_a_listener_that_raises_is_dropped_with_a_warning():
    made, heard = broadcast(), []

    def broken(event):
        raise RuntimeError("closed")

    made.listen(broken)
    made.listen(heard.append)
    event = DebuggerEvent("breakpoints", SessionState.RUNNING)
    with pytest.warns(RuntimeWarning, match="a listener of the debugger raised RuntimeError: closed"):
        made.tell(event)
    made.tell(event)
    assert heard == [event, event]


def test_listening_ends():
    made, heard = broadcast(), []
    stop = made.listen(heard.append)
    stop()
    stop()
    made.write("a\n")
    assert heard == []
