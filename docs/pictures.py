"""Draw the pictures of the terminal UI that the documentation shows, from the real debugger.

    python docs/pictures.py          # docs/images/tui*.svg

Each is what stands on the screen after some keys, on one of the examples.
"""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from gradscope.inspect import Debugger
from gradscope_tui.app import GradscopeApp

ROOT = Path(__file__).parents[1]


class Picture(NamedTuple):
    """What a picture shows: a script, and the keys that are pressed, each when the program stands still."""

    script: str
    arguments: tuple[str, ...]
    keys: tuple[str, ...]
    size: tuple[int, int] = (132, 38)


PICTURES = {
    "tui": Picture("examples/digits_mlp.py", ("--epochs", "1"), ("n", "n", "n")),
    "tui-vanishing": Picture("examples/gallery/deep_sigmoid.py", (), ("c", "Z", "!"), (132, 46)),
    "tui-nan": Picture("examples/gallery/distance_at_zero.py", (), ("c", "!")),
    "tui-replay": Picture("examples/digits_mlp.py", ("--epochs", "1"), ("n", "n", "n", "n", "N", "N")),
}


async def draw(picture: Picture) -> str:
    """Run a script under the terminal UI, and return its screen as SVG."""
    session = Debugger.for_script(picture.script, picture.arguments)
    app = GradscopeApp(session, script=Path(picture.script).name)
    async with app.run_test(size=picture.size) as pilot:
        for key in ("", *picture.keys):
            if key:
                await pilot.press(key)
            await settled(lambda: session.state != "running" and bool(session.nodes))
            await asyncio.sleep(1.0)  # the answers to what was asked at the stop
        svg: str = app.export_screenshot(title="gradscope")
    session.abort()
    session.wait(30)
    return re.sub(r"terminal-\d+", "terminal", svg)


async def settled(ready: Callable[[], bool]) -> None:
    """Wait until something holds."""
    while not ready():
        await asyncio.sleep(0.05)


def main() -> None:
    """Draw all of them."""
    os.environ["COLORTERM"] = "truecolor"  # whatever terminal this is started from
    for name, picture in PICTURES.items():
        svg = asyncio.run(draw(picture))
        (ROOT / "docs" / "images" / f"{name}.svg").write_text(svg, encoding="utf-8")


if __name__ == "__main__":
    main()
