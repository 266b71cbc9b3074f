"""How soon a front sees that all ranks have stopped when one does: ``python benchmarks/all_stop.py``.

Ranks run backwards without a pause; one of them comes to a breakpoint. A figure is the time on the wall from the moment
at which the front has heard of this stop until :meth:`RankGroup.wait` comes back and every rank stands. It holds the
tenth of a second in which the others may come to the same breakpoint by themselves.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from gradscope.inspect import SessionState
from gradscope.inspect.ranks.launch import start_ranks
from gradscope.inspect.ranks.rank_group import RankGroup

SCRIPT = """\
import gradscope as gs
x = gs.ones(100, requires_grad=True)
while True:
    y = x
    for _ in range(100):
        y = y * 1.0 + 0.0
    y.exp().sum().backward()
"""


def seconds_to_all_stop(group: RankGroup, rank: int) -> float:
    """Let all ranks go on, stop one at a breakpoint, and return how long the others took."""
    member = group.members[rank]
    heard: list[float] = []
    remove = member.add_listener(
        lambda event: heard.append(time.perf_counter()) if event.kind == "state" and member.state.paused else None
    )
    group.cont()
    point = member.add_breakpoint("op:ExpBackward0")
    group.wait(60)
    seconds = time.perf_counter() - heard[0]
    remove()
    assert all(other.state is not SessionState.RUNNING for other in group.members)
    member.remove_breakpoint(point.id)
    return seconds


def measure(ranks: int, stops: int) -> list[float]:
    """Return the milliseconds that several all-stops took."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "ranks.py")
        path.write_text(SCRIPT)
        processes = start_ranks([str(path)], ranks)
        try:
            group = RankGroup([process.debugger for process in processes])
            group.start()
            group.wait(60)
            taken = [seconds_to_all_stop(group, index % ranks) * 1e3 for index in range(stops)]
            group.abort()
        finally:
            for process in processes:
                process.end()
    return taken


def main() -> None:
    """Print the median and the largest of several all-stops."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--ranks", type=int, default=8)
    parser.add_argument("--stops", type=int, default=20)
    args = parser.parse_args()
    taken = measure(args.ranks, args.stops)
    print(
        f"{args.ranks} ranks, {args.stops} stops: median {statistics.median(taken):.0f} ms, at most {max(taken):.0f} ms"
    )


if __name__ == "__main__":
    main()
