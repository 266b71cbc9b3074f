"""What the terminal UI costs, on a terminal of its own: ``python benchmarks/screen_cost.py``.

Measured are the first paint, the first stop and when all is read and drawn, the lanes of a large graph last; then for
some keys what each sends to the terminal, the time on the wall until the last of it (median and 90th percentile) and
the processor time of the front (mean); and the processor time of front and program while nothing happens. The program
is a chain of as many nodes as ``--nodes`` says; the terminal is 160 columns wide and 48 lines high. ``--line 1 200``
puts it behind a line of 1 Mbit/s on which there and back take 200 ms.
"""

from __future__ import annotations

import argparse
import fcntl
import math
import os
import pty
import select
import statistics
import struct
import sys
import tempfile
import termios
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SCRIPT = """\
import gradscope as gs
x = gs.ones(10, requires_grad=True)
y = x
for _ in range({rounds}):
    y = y * 1.0 + 0.0
y.sum().backward()
"""
KEYS = {
    "n Next node": b"n",
    "s Run": b"s",
    "j Down": b"j",
    "k Up": b"k",
    "Page down": b"\x1b[6~",
    "Tab": b"\t",
    "/ Filter": b"/",
}
ESCAPE = b"\x1b"
QUIET = 0.25
"""Seconds without output after which a screen is taken to be painted."""
IDLE = 5
"""Seconds in which nothing happens."""
PATIENCE = 3.0
"""Seconds in which a key is answered, however busy the machine is."""
REST = 1.0
"""Seconds without work after which front and program are taken to have read and drawn all."""

_TICK = os.sysconf("SC_CLK_TCK")


class Screen:
    """``gradscope debug`` on a pseudo-terminal, behind a line of so many Mbit/s with a delay there and back in ms."""

    def __init__(self, script: str, line: tuple[float, float], columns: int = 160, rows: int = 48) -> None:
        self._bytes_a_second, self.delay = line[0] * 1e6 / 8, line[1] / 1000
        self.began = time.perf_counter()
        self._said = b""
        self.pid, self._terminal = pty.fork()
        if not self.pid:
            os.environ.update(TERM="xterm-256color", COLORTERM="truecolor")
            os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # a start that compiles all modules is only the first one
            os.execv(sys.executable, [sys.executable, "-m", "gradscope", "debug", script])
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def read(self, seconds: float) -> bytes:
        """Return what comes within so many seconds; nothing where the terminal is quiet."""
        ready, _, _ = select.select([self._terminal], [], [], seconds)
        try:
            data = os.read(self._terminal, 1 << 12) if ready else b""
        except OSError:  # the other side is closed
            return b""
        time.sleep(len(data) / self._bytes_a_second)
        return data

    def until(self, text: bytes) -> float:
        """Read until something has been written since the start, and return the seconds since then.

        Raises
        ------
        EOFError
            If the screen has gone before.
        """
        while text not in self._said:
            part = self.read(60)
            if not part:
                raise EOFError(f"the screen has not shown {text.decode()}: {self._said[-400:]!r}")
            self._said += part
        return time.perf_counter() - self.began

    def settle(self, patience: float = QUIET) -> tuple[int, float]:
        """Read until the terminal is quiet; return how many bytes came, and the seconds until the last of them.

        Parameters
        ----------
        patience : float
            How many seconds the first of them may take.
        """
        began = last = time.perf_counter()
        count = 0
        while part := self.read(QUIET if count else patience):
            count, last = count + len(part), time.perf_counter()
        return count, last - began

    def rest(self) -> float:
        """Read until nobody works any more, and return the seconds from the start until then."""
        last, done = time.perf_counter(), self.work()
        while time.perf_counter() - last < REST:
            self.read(REST / 10)
            now = self.work()
            if now - done > 1 / _TICK:  # a look at whether something has come takes less
                last = time.perf_counter()
            done = now
        return last - self.began

    def cpu(self) -> float:
        """Return the seconds of processor time of the front, without the program's."""
        return processor_time(self.pid)

    def work(self) -> float:
        """Return the seconds of processor time of the front and of the program."""
        return self.cpu() + sum(map(processor_time, self.programs()))

    def programs(self) -> list[str]:
        """Return the process that runs the program, if it is there."""
        return Path(f"/proc/{self.pid}/task/{self.pid}/children").read_text().split()

    def send(self, key: bytes) -> None:
        """Press a key, and wait for nothing."""
        os.write(self._terminal, key)

    def press(self, key: bytes) -> tuple[int, float, float]:
        """Press a key; return bytes, seconds on the wall and seconds of processor time."""
        before = self.cpu()
        self.send(key)
        count, wall = self.settle(PATIENCE)
        return count, wall + self.delay, self.cpu() - before

    def quit(self) -> None:
        """Leave."""
        self.send(b"q")
        self.settle()
        self.send(b"y\r")
        self.settle()
        os.close(self._terminal)
        os.waitpid(self.pid, 0)


def processor_time(process: int | str) -> float:
    """Return the seconds of processor time that a process has taken."""
    fields = Path(f"/proc/{process}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICK


class Cost(NamedTuple):
    """What something costs: bytes to the terminal, seconds on the wall (median, 90 %) and of processor time (mean)."""

    sent: float
    wall: float
    slow: float
    processor: float


def measure(
    nodes: int, times: int, line: tuple[float, float] = (math.inf, 0.0), keys: Sequence[str] = tuple(KEYS)
) -> tuple[dict[str, tuple[float, float]], dict[str, Cost], float]:
    """Start on a chain of so many nodes, press each key so many times, and do nothing for a while.

    Returns
    -------
    dict of str to tuple of float
        Seconds on the wall and of processor time until the first paint, the first stop, and until nobody works.
    dict of str to Cost
        Of each key.
    float
        The share of a processor while nothing happens.
    """
    began, costs = {}, {}
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "chain.py")
        path.write_text(SCRIPT.format(rounds=nodes // 2))
        screen = Screen(str(path), line)
        for name, shown in (("first paint", b"Graph"), ("first stop", b"PAUSED")):
            began[name] = screen.until(shown), screen.cpu()
        began["at rest"] = screen.rest(), screen.cpu()
        for name in keys:
            costs[name] = _cost_of(screen, KEYS[name], times)
        screen.rest()
        before = screen.work()
        time.sleep(IDLE)
        idle = (screen.work() - before) / IDLE
        screen.quit()
    return began, costs, idle


def _cost_of(screen: Screen, key: bytes, times: int) -> Cost:
    pressed = []
    for _ in range(times):
        pressed.append(screen.press(key))
        if key == b"/":
            screen.press(ESCAPE)
    counts, walls, processor = zip(*pressed[times // 5 :])
    slow = statistics.quantiles(walls, n=10)[-1]
    return Cost(statistics.median(counts), statistics.median(walls), slow, statistics.mean(processor))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--keys", type=int, default=30)
    parser.add_argument("--line", type=float, nargs=2, default=(math.inf, 0.0), metavar=("MBIT", "MS"))
    args = parser.parse_args()
    began, costs, idle = measure(args.nodes, args.keys, tuple(args.line))
    for name, (wall, processor) in began.items():
        print(f"{name:11} {wall:8.2f} s wall {processor:8.2f} s processor time")
    for name, cost in costs.items():
        print(
            f"{name:12}{cost.sent / 1000:8.1f} KB {cost.wall * 1000:8.0f} ms wall "
            f"({cost.slow * 1000:.0f} at 90 %) {cost.processor * 1000:8.0f} ms processor time"
        )
    print(f"idle        {idle:8.1%} of a processor")


if __name__ == "__main__":
    main()
