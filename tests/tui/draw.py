"""The screen in states that matter, as text: drawn from the real debugger, on the examples.

    python -m tests.tui.draw            # draws all of tests/tui/pictures anew
    python -m tests.tui.draw nan        # those whose name begins so

Each file is what stands on the screen. Those in colours have below it, for each line, the runs of cells that are not in
the colours of the text around them.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import cast
from unittest.mock import patch

from rich.segment import Segment
from textual.pilot import Pilot
from textual.strip import Strip

from gradscope.inspect import Debugger, open_recording
from gradscope.inspect.debugging.session import session_observer
from gradscope.inspect.ranks.launch import conclude_ranks, start_ranks
from gradscope.inspect.ranks.rank_session import RankSession
from gradscope_tui.app import GradscopeApp
from gradscope_tui.sessions.recorded_session import RecordedSession
from gradscope_tui.sessions.session_protocol import Session
from tests.tui.fake import settling

ROOT = Path(__file__).parents[2]
FOLDER = Path(__file__).with_name("pictures")

SIZES = ((80, 24), (120, 40), (160, 48), (200, 60))
_SIGMOIDS, _DISTANCE = "examples/gallery/deep_sigmoid.py", "examples/gallery/distance_at_zero.py"
_ENCODER = "tests/tui/pictures/encoder.py"
_DIGITS, _BLOCKS = "examples/digits_mlp.py", "examples/inplace_bug.py"


_SCROLLBAR = re.compile("[▁▂▃▄▅▆▇=:](?=[│║|])")
"""The end of a scrollbar's bar, which Textual may draw a moment later."""


@dataclass(frozen=True)
class Picture:
    """What is drawn: a script, the keys that are pressed at it, and what the terminal is like.

    Parameters
    ----------
    keys : tuple of str
        Textual's names; one that begins with a colon is a command.
    colors : bool
        Whether the colours are drawn too.
    ranks : int
        On how many ranks the script runs, under PyTorch.
    recorded : bool
        Whether a recording of the script is looked at.
    """

    script: str
    keys: tuple[str, ...] = ()
    size: tuple[int, int] = (120, 40)
    theme: str = ""
    colors: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    arguments: tuple[str, ...] = ()
    ranks: int = 1
    recorded: bool = False


def _pictures() -> Iterator[tuple[str, Picture]]:
    epoch = ("--epochs", "1")
    for columns, rows in SIZES:
        # There and back, so that nothing about the node is still asked for when it is shown.
        yield f"start-{columns}x{rows}", Picture(_DIGITS, ("j", "k"), (columns, rows), arguments=epoch)
        yield f"vanishing-{columns}x{rows}", Picture(_SIGMOIDS, ("c", "7"), (columns, rows))
    yield "middle", Picture(_DIGITS, ("n", "n", "n", "n", "N"), arguments=epoch)
    yield "nan", Picture(_DISTANCE, ("c",), colors=True)
    yield "nan-light", Picture(_DISTANCE, ("c",), theme="textual-light", colors=True)
    yield "nan-no-color", Picture(_DISTANCE, ("c",), colors=True, environment={"NO_COLOR": "1"})
    yield "nan-ascii", Picture(_DISTANCE, ("c",), environment={"LC_ALL": "C"})
    yield "violation", Picture(_BLOCKS, ("c",), (160, 48))
    yield "exploding", Picture("tests/tui/pictures/exploding.py", ("c", "!"))
    yield "gan", Picture("tests/tui/pictures/gan.py", ("c", "7"))
    yield "cut-off", Picture("tests/tui/pictures/two_towers.py", ("j", "k"), (100, 30))
    yield "cut-off-diagram", Picture("tests/tui/pictures/two_towers.py", ("c", "0", "m"), (120, 40), colors=True)
    yield "folded", Picture(_DIGITS, ("s", "s", "Z"), arguments=epoch)
    yield "transformer", Picture(_ENCODER, ("c", "end"), (160, 48))
    yield "transformer-folded", Picture(_ENCODER, ("c", "Z", "7"), (160, 48))
    yield "transformer-diagram", Picture(_ENCODER, ("c", "0", "m"), (160, 48))
    yield "ranks", Picture("tests/tui/pictures/ranks.py", ("n", "K"), ranks=2)
    yield "ranks-side-by-side", Picture("tests/tui/pictures/ranks.py", ("n", "n", "K", "j", "v"), ranks=2)
    yield "recording", Picture(_DIGITS, ("]", "]", "7"), arguments=epoch, recorded=True)
    yield "sorted", Picture(_SIGMOIDS, ("c", "o", "j", "s"), (160, 48))
    yield "diagram", Picture("tests/tui/pictures/gan.py", ("c", "0", "m", "g", "j"), (160, 48))
    yield "diagram-nan", Picture(_DISTANCE, ("c", "0", "m"), colors=True)
    yield "frames", Picture(_DIGITS, ("9",), arguments=epoch)
    yield "side-by-side", Picture(_SIGMOIDS, (":record on", "]", "]", "c", "v"))
    yield "viewer", Picture(_DIGITS, ("s", "s", "2", "G", "k", "enter"), arguments=epoch)
    yield "edited", Picture(_DIGITS, ("s", ":set 0 grad * 100", "n", "n"), arguments=epoch)


PICTURES = dict(_pictures())


def draw(picture: Picture) -> str:
    """Run the script under the terminal UI, press the keys, and return what stands on the screen."""
    with (
        patch.dict(os.environ, {"COLORTERM": "truecolor", **picture.environment}),
        patch.object(session_observer, "perf_counter_ns", itertools.count(0, 1500).__next__),
    ):
        return asyncio.run(_draw(picture))


async def _draw(picture: Picture) -> str:
    with _session(picture) as session:
        app = GradscopeApp(session, script=Path(picture.script).name)
        async with app.run_test(size=picture.size) as pilot:
            with settling(pilot):
                if picture.theme:
                    app.theme = picture.theme
                await _settled(pilot, session)
                for key in picture.keys:
                    if key.startswith(":"):
                        await pilot.press("colon", *key[1:].replace(" ", "\t").replace("\t", " "), "enter")
                    else:
                        await pilot.press(key)
                    await _settled(pilot, session)
            return _text(app, picture.colors)


@contextmanager
def _session(picture: Picture) -> Iterator[Session]:
    """Start what a picture is of, and end it."""
    if picture.recorded:
        with TemporaryDirectory() as folder:
            path = str(Path(folder, "run.gscope"))
            subprocess.run(
                [sys.executable, "-m", "gradscope", "record", "-o", path, picture.script, *picture.arguments],
                check=True,
                capture_output=True,
            )
            with open_recording(path) as recording:
                yield RecordedSession(recording)
        return
    if picture.ranks > 1:
        processes = start_ranks([picture.script, *picture.arguments], picture.ranks)
        ranks = RankSession([process.debugger for process in processes])
        try:
            yield cast("Session", ranks)
        finally:
            ranks.abort()
            conclude_ranks(processes)
        return
    session = Debugger.for_script(picture.script, picture.arguments)
    yield session
    session.abort()
    session.wait(30)


async def _settled(pilot: Pilot[int], session: Session) -> None:
    """Wait until the program stands still, everything has been asked of it, and the screen says so twice."""
    before, same = "", 0
    while same < 4:
        await pilot.pause(0.02)
        members = getattr(session, "members", [session])
        busy = any(one.state == "running" or not one.nodes for one in members) or any(
            w.is_running for w in pilot.app.workers
        )
        now = _text(pilot.app, colors=True)
        same = 0 if busy or now != before else same + 1
        before = now


def _text(app: GradscopeApp, colors: bool) -> str:
    filters = app.get_line_filters()
    background = app.screen.background_colors[1]
    drawn = []
    for strip in app.screen._compositor.render_strips(app.size):
        segments = list(strip)
        for line_filter in filters:
            segments = line_filter.apply(segments, background)
        drawn.append(Strip(segments))
    lines = [_SCROLLBAR.sub(" ", strip.text).rstrip() for strip in drawn]
    if colors:
        lines += ["", *(f"{row:>2} {_runs(strip)}" for row, strip in enumerate(drawn))]
    return "\n".join(lines) + "\n"


def _runs(strip: Strip) -> str:
    """Return the runs of cells of one style, each with its first cell, foreground, background and what else it is."""
    found, at = [], 0
    for style, group in itertools.groupby(strip, lambda segment: segment.style):
        cells = Segment.get_line_length(list(group))
        if style is not None:
            colors = [color.get_truecolor().hex if color else "-" for color in (style.color, style.bgcolor)]
            words = [word for word in ("bold", "dim", "italic", "underline", "reverse") if getattr(style, word)]
            found.append(" ".join([str(at), *colors, *words]))
        at += cells
    return ", ".join(dict.fromkeys(found))


def main(prefix: str = "") -> None:
    """Draw the pictures whose name begins with `prefix` anew."""
    os.chdir(ROOT)
    for name, picture in PICTURES.items():
        if name.startswith(prefix):
            (FOLDER / f"{name}.txt").write_text(draw(picture), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:2])
