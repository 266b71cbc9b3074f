"""``python -m tests.hostile``: the long run. ``python -m tests.hostile 0.1 recordings`` is a tenth of one part."""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tests.hostile import checkpoints, moves, names, recordings
from tests.hostile.guarded import run_guarded
from tests.inspect.recording.killing import kill_one

WHOLE = {"recordings": 2000, "names": 200, "checkpoints": 1000, "kills": 200, "moves": 50}


def main(part: float, wanted: list[str]) -> int:
    """Run a part of each of what is wanted; return the exit status."""
    failed = 0
    for what in wanted or list(WHOLE):
        began = time.monotonic()
        wrong, facts = _run(what, max(1, round(WHOLE[what] * part)))
        print(f"{what}: {facts}, {len(wrong)} wrong, {time.monotonic() - began:.0f} s", flush=True)
        for text in wrong:
            print(f"  {text}", flush=True)
        failed += len(wrong)
    return int(failed > 0)


def _run(what: str, count: int) -> tuple[list[str], str]:
    cases = {"recordings": recordings.Case, "names": names.Case, "checkpoints": checkpoints.Case}
    if what in cases:
        wrong, nbytes = run_guarded(cases[what](), range(count), text_runs=what != "checkpoints")
        return wrong, f"{count}, at most {nbytes >> 20} MiB of memory"
    with tempfile.TemporaryDirectory() as folder:
        return _each(count, (lambda n: _killed(Path(folder), n)) if what == "kills" else _moved_in(Path(folder)))


def _each(count: int, attempt: Callable[[int], str]) -> tuple[list[str], str]:
    wrong, last = [], ""
    for number in range(count):
        try:
            last = attempt(number)
        except Exception as error:
            wrong.append(f"{number}: {type(error).__name__}: {error}")
    return wrong, f"{count}, the last: {last}"


def _killed(folder: Path, number: int) -> str:
    # Half of them from the first moment on, half while it writes.
    count = kill_one(folder / f"{number}.gscope", (number * 37 % 100) / 250, least=number % 2 * 43)
    return f"{count} nodes, all readable"


def _moved_in(folder: Path) -> Callable[[int], str]:
    def moved(number: int) -> str:
        way, before, after = moves.move_one(folder, number)
        assert after >= before, f"{way}: {before} nodes were committed, {after} are left"
        return f"{way}, {before} nodes before and {after} after"

    return moved


def parse() -> argparse.Namespace:
    """Return what the command line asks for."""
    parser = argparse.ArgumentParser(prog="python -m tests.hostile", description="A long run.")
    parser.add_argument(
        "part", metavar="PART", type=float, nargs="?", default=1.0, help="how much of it: 0.1 is a tenth"
    )
    parser.add_argument("what", metavar="WHAT", nargs="*", help=f"of {', '.join(WHOLE)}; all of them without one")
    args = parser.parse_args()
    unknown = set(args.what) - WHOLE.keys()
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}: choose from {', '.join(WHOLE)}")
    return args


if __name__ == "__main__":
    args = parse()
    sys.exit(main(args.part, args.what))
