"""Two pipes of a program, and whoever reads them."""

import os
import select
import subprocess
import sys

import pytest

from gradscope.inspect.debuggee import ordered_output

pytestmark = pytest.mark.skipif(os.name != "posix", reason="a pipe of another system does not tell whether it was read")

PROGRAM = """\
import sys
from gradscope.inspect.debuggee import ordered_output
ordered_output._PATIENCE = 600
kept = [(s.name, s.mode, s.encoding, s.errors, s.fileno(), type(s.buffer).__name__) for s in (sys.stdout, sys.stderr)]
ordered_output.order_output(line_buffered=True)
assert kept[0][:-1] == (sys.stdout.name, "w", sys.stdout.encoding, sys.stdout.errors, 1), kept
assert kept[1][:-1] == (sys.stderr.name, "w", sys.stderr.encoding, sys.stderr.errors, 2), kept
assert sys.stdout is sys.__stdout__ and sys.stderr is sys.__stderr__
for number in range(100):
    print("out", number)
    print("err", number, file=sys.stderr)
"""


@pytest.mark.parametrize("options", [[], ["-u"]], ids=["buffered", "unbuffered"])
def test_of_two_pipes_one_has_something_at_a_time(options):
    pipe = subprocess.PIPE
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    read = b""
    with subprocess.Popen(
        [sys.executable, *options, "-c", PROGRAM], env=environment, stdout=pipe, stderr=pipe, bufsize=0
    ) as process:
        left = [process.stdout, process.stderr]
        while left:
            ready, _, _ = select.select(left, [], [])
            for stream in ready:
                data = stream.read(65536)
                assert not data or ready == [stream] or len(left) < 2
                read += data
                if not data:
                    left.remove(stream)
    assert process.returncode == 0, read.decode()
    assert read.decode() == "".join(f"out {number}\nerr {number}\n" for number in range(100))


@pytest.fixture
def pipes():
    """The ends of two pipes: what reads the first and the second, then what writes to them."""
    (first, to_first), (second, to_second) = os.pipe(), os.pipe()
    yield first, second, to_first, to_second
    for descriptor in (first, second, to_first, to_second):
        os.close(descriptor)


def count(calls, function):
    def counted(self):
        calls.append(self)
        return function(self)

    return counted


def test_a_reader_that_has_stopped_is_waited_for_once(pipes, monkeypatch):
    first, second, to_first, to_second = pipes
    waited = []
    monkeypatch.setattr(ordered_output, "_PATIENCE", 0.01)
    monkeypatch.setattr(ordered_output._OrderedPipe, "_wait", count(waited, ordered_output._OrderedPipe._wait))
    stream = ordered_output._OrderedPipe(to_first, to_second)
    os.write(to_second, b"before")
    for _ in range(3):
        stream.write(b"after")
    assert (len(waited), os.read(first, 100)) == (1, b"after" * 3)
    os.read(second, 100)
    stream.write(b"read")
    os.write(to_second, b"and again")
    stream.write(b"after")
    assert len(waited) == 2


def test_what_is_no_pipe_any_more_is_not_waited_for(tmp_path):
    path = tmp_path / "log"
    path.write_text("there is something to read")
    with path.open("r+") as log:
        assert not ordered_output._is_unread(log.fileno())
    with open(os.devnull, "w") as nothing:
        assert not ordered_output._is_unread(nothing.fileno())
