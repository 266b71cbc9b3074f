"""The streams of a program: what it writes is handed on, what it reads is its own or refused."""

import io
import os
import sys

import pytest

from gradscope.inspect.debuggee.streams import captured, captured_stream, echo


def heard():
    """Return a list of what is written, and the context that captures it."""
    written = []
    return written, captured(lambda text, stream="stdout": written.append((stream, text)))


def test_both_streams_are_handed_on_and_given_back():
    before = sys.stdin, sys.stdout, sys.stderr
    written, capture = heard()
    with capture:
        print("a", 1)
        print("b\r", end="", file=sys.stderr)
        sys.stdout.buffer.write(b"c")
        print("d", end="")
        print("e", end="", flush=True)
        print("f", end="")
    assert written == [("stdout", "a 1\n"), ("stderr", "b\r"), ("stdout", "c"), ("stdout", "de"), ("stdout", "f")]
    assert (sys.stdin, sys.stdout, sys.stderr) == before


def test_a_stream_that_the_program_replaced_stays():
    written, capture = heard()
    kept, mine = sys.stdout, io.StringIO()
    try:
        with capture:
            sys.stdout = mine
            print("to itself")
        assert sys.stdout is mine
    finally:
        sys.stdout = kept
    assert written == []
    assert mine.getvalue() == "to itself\n"


def test_bytes_that_are_no_text_survive_the_way_through():
    written = []
    stream = captured_stream(written.append, sys.__stdout__)
    stream.buffer.write(b"a\xff\xc3")
    stream.buffer.write(b"\xa9\n")
    raw = io.BytesIO()
    target = io.TextIOWrapper(raw, encoding="utf-8", newline="\n")
    for text in written:
        echo(text, target)
    assert raw.getvalue() == b"a\xff\xc3\xa9\n"


def test_a_descriptor_that_the_program_puts_elsewhere_gets_the_output(tmp_path):
    written = []
    with open(tmp_path / "first", "w+") as stands_for, open(tmp_path / "second", "w+b") as other:
        stream = captured_stream(written.append, stands_for)
        stream.write("captured\n")
        kept = os.dup(stands_for.fileno())
        os.dup2(other.fileno(), stands_for.fileno())
        stream.write("to the file\n")
        os.dup2(kept, stands_for.fileno())
        os.close(kept)
        stream.write("captured again\n")
    assert written == ["captured\n", "captured again\n"]
    assert (tmp_path / "second").read_text() == "to the file\n"


def test_input_is_refused_with_the_reason():
    written, capture = heard()
    with capture:
        assert (sys.stdin.read(), list(sys.stdin)) == ("", [])
        with pytest.raises(EOFError, match="it belongs to the debugger"):
            input("name? ")
    assert written == [("stdout", "name? ")]


def test_input_from_a_stream_of_the_programs_own():
    _, capture = heard()
    with capture:
        kept, sys.stdin = sys.stdin, io.StringIO("Ada\n")
        assert input() == "Ada"
        sys.stdin = kept
