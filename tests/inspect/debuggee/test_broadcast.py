"""Output comes in whole lines; a broken listener is dropped."""

import pytest

from gradscope.inspect import DebuggerEvent, SessionState
from gradscope.inspect.debuggee.broadcast import Broadcast


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


def test_an_echo_gets_what_is_written_as_it_comes():
    made, heard = broadcast(), []
    stop = made.echo_to(lambda text, stream="stdout": heard.append((stream, text)))
    made.write("a")
    made.write("b\nc", "stderr")
    made.flush()
    stop()
    stop()
    made.write("d\n")
    assert heard == [("stdout", "a"), ("stderr", "b\nc")]
    assert made.output == ["b", "a", "c", "d"]


def test_a_line_that_is_written_over_is_as_a_terminal_shows_it():
    made = broadcast()
    for percent in range(0, 101, 10):
        made.write(f"\r{percent} %")
    made.write("\none\r\n\r\n")
    assert made.output == ["100 %", "one", ""]


def test_bytes_that_are_no_text_are_shown_as_such():
    made = broadcast()
    made.write("é\udcff\n")
    assert made.output == ["é\N{REPLACEMENT CHARACTER}"]


def test_a_line_without_an_end_is_bounded():
    made = broadcast()
    for _ in range(100):
        made.write("\r" + 1000 * "=")
    made.write("\n")
    for _ in range(100):
        made.write(1000 * "x")
    made.flush()
    assert made.output[0] == 1000 * "="
    assert "".join(made.output[1:]) == 100_000 * "x"
    assert max(map(len, made.output)) < 70_000


def test_long_lines_go_before_many(monkeypatch):
    monkeypatch.setattr("gradscope.inspect.debuggee.broadcast._KEPT_CHARACTERS", 1000)
    made = broadcast()
    for number in range(50):
        made.write(f"{number:0100}\n")
    assert 5 <= len(made.output) <= 10
    assert made.output[-1] == f"{49:0100}"
