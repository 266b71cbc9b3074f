"""What a person has set, in TOML, for all programs and for those of one directory: theme, mouse, keys, columns, scale.

A file is used whole or not at all: each line of it that means nothing is told with its place.
"""

from __future__ import annotations

import difflib
import math
import os
import re
import sys
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from textual.theme import BUILTIN_THEMES

from gradscope_tui.actions import ACTIONS, keys_in
from gradscope_tui.terminal.pixel_graphics import GRAPHICS
from gradscope_tui.widgets.graph_columns import COLUMNS
from gradscope_tui.widgets.norm_columns import NormScale

__all__ = ["Settings", "read_settings", "settings_files"]

_SETTINGS = ("theme", "graphics", "mouse", "keys", "graph", "norms")


@dataclass(frozen=True, slots=True)
class Settings:
    """What is set.

    Parameters
    ----------
    theme : str
        Name of one of Textual's themes; empty for its default.
    keys : mapping of str to str
        For some actions the keys that do them, with commas between, in place of their own.
    columns : tuple of str or None
        The columns of the graph; None where they follow from the room.
    scale : NormScale
        What bars of norms stand for, and which norms are set off.
    graphics : str
        How the heat map of a tensor is drawn where the terminal draws pictures: one of `GRAPHICS`.
    mouse : bool
        Whether the terminal is to report the mouse; where it does not, it selects text as it does in a shell.
    """

    theme: str = ""
    keys: Mapping[str, str] = field(default_factory=dict)
    columns: tuple[str, ...] | None = None
    scale: NormScale = field(default_factory=NormScale)
    graphics: str = GRAPHICS[0]
    mouse: bool = True


def settings_files() -> tuple[Path, ...]:
    """Return where settings are looked for: the person's own, then those of the directory, which win."""
    if sys.platform == "win32":
        home = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        home = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return home / "gradscope" / "tui.toml", Path(".gradscope-tui.toml")


def read_settings(files: Iterable[Path]) -> tuple[Settings, list[str]]:
    """Read settings; later files win.

    Parameters
    ----------
    files : iterable of Path
        Those that are not there are passed over.

    Returns
    -------
    Settings
        Those of all files in which nothing is wrong.
    list of str
        What is wrong in the others, a line each, with file and line.
    """
    settings, problems = Settings(), []
    for path in files:
        try:
            text = path.read_text(encoding="utf-8")
            found = tomllib.loads(text)
        except FileNotFoundError:
            continue
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
            problems.append(f"{path}: {getattr(error, 'strerror', None) or error}")
            continue
        merged = {**settings.keys, **_strings(found.get("keys"))}
        wrong = [f"{path}{_place(text, name)}: {what}" for name, what in _problems(found, merged, settings.scale)]
        if wrong:
            problems += wrong
        else:
            settings = _with(settings, found, merged)
    return settings, problems


def _with(settings: Settings, found: dict[str, Any], keys: Mapping[str, str]) -> Settings:
    """Return settings with those of a file, in which nothing is wrong."""
    columns = found.get("graph", {}).get("columns")
    return Settings(
        found.get("theme", settings.theme),
        keys,
        settings.columns if columns is None else tuple(columns),
        replace(settings.scale, **found.get("norms", {})),
        found.get("graphics", settings.graphics),
        found.get("mouse", settings.mouse),
    )


def _strings(table: Any) -> dict[str, str]:
    """Return what is well-formed in a table."""
    return {k: v for k, v in table.items() if isinstance(v, str)} if isinstance(table, dict) else {}


def _problems(found: dict[str, Any], merged: Mapping[str, str], scale: NormScale) -> Iterable[tuple[str, str]]:
    """Yield the names at which something is wrong, and what."""
    for name in found.keys() - set(_SETTINGS):
        yield name, f"there is no setting {name!r}{_meant(name, _SETTINGS)}"
    yield from _wrong_columns(found.get("graph", {}))
    yield from _wrong_norms(found.get("norms", {}), scale)
    theme = found.get("theme", "")
    if not isinstance(theme, str) or (theme and theme not in BUILTIN_THEMES):
        yield "theme", f"there is no theme {theme!r}{_meant(str(theme), BUILTIN_THEMES)}"
    graphics = found.get("graphics", GRAPHICS[0])
    if graphics not in GRAPHICS:
        yield "graphics", f"graphics is one of {', '.join(GRAPHICS)}, got {graphics!r}"
    mouse = found.get("mouse", True)
    if not isinstance(mouse, bool):
        yield "mouse", f"mouse is true or false, got {mouse!r}"
    keys = found.get("keys", {})
    if not isinstance(keys, dict):
        yield "keys", 'keys is a table: [keys], and below it lines such as step = "a, f10"'
        return
    known = {action.id: action for action in ACTIONS}
    for name, value in keys.items():
        if name not in known:
            yield name, f"there is no action {name!r}{_meant(name, known)}"
        elif not isinstance(value, str) or not all(keys_in(value)):
            yield name, f'the keys of {name} are a string such as "a, f10", got {value!r}'
    yield from _clashes(keys, merged)


def _wrong_columns(graph: Any) -> Iterable[tuple[str, str]]:
    """Yield what is wrong in the table of the graph."""
    known = [column.id for column in COLUMNS]
    if not isinstance(graph, dict):
        yield "graph", 'graph is a table: [graph], and below it columns = ["norm", "bar"]'
        return
    for name in graph.keys() - {"columns"}:
        yield name, f"there is no setting {name!r} of the graph{_meant(name, ('columns',))}"
    columns = graph.get("columns", [])
    if not isinstance(columns, list):
        yield "columns", f'the columns are a list such as ["norm", "bar"], got {columns!r}'
        return
    for name in columns:
        if name not in known:
            yield "columns", f"there is no column {name!r}{_meant(str(name), known)}"


def _wrong_norms(norms: Any, scale: NormScale) -> Iterable[tuple[str, str]]:
    """Yield what is wrong in the table of norms."""
    known = [one.name for one in fields(NormScale)]
    if not isinstance(norms, dict):
        yield "norms", "norms is a table: [norms], and below it lines such as vanishing = 1e-7"
        return
    for name, value in norms.items():
        if name not in known:
            yield name, f"there is no setting {name!r} of norms{_meant(name, known)}"
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < math.inf:
            yield name, f"{name} is a norm above 0, such as 1e-7, got {value!r}"
            return
    merged = {**asdict(scale), **norms}
    for low, high in (("least", "most"), ("vanishing", "exploding")):
        if merged[low] >= merged[high] and not norms.keys().isdisjoint((low, high)):
            yield (
                (low if low in norms else high),
                f"{low} is less than {high}, got {merged[low]:g} and {merged[high]:g}",
            )


def _clashes(keys: Mapping[str, str], merged: Mapping[str, str]) -> Iterable[tuple[str, str]]:
    """Yield the actions whose keys another one has."""
    owners: dict[str, str] = {}
    for action in sorted(ACTIONS, key=lambda action: action.id in keys):
        for key in keys_in(merged[action.id]) if action.id in merged else action.keys:
            other = owners.setdefault(key, action.id)
            if other != action.id:
                yield action.id, f"{key!r} is a key of {other} already"


def _meant(name: str, known: Iterable[str]) -> str:
    """Return what may have been meant, else what there is."""
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean {close[0]!r}?" if close else f"; there are {', '.join(sorted(known))}"


def _place(text: str, name: str) -> str:
    """Return the line in which a name is set: TOML's reader does not tell."""
    pattern = re.compile(rf"\s*(\[\s*)?[\"']?{re.escape(name)}[\"']?\s*[\]=.]")
    lines = [number for number, line in enumerate(text.split("\n"), 1) if pattern.match(line)]
    return f":{lines[-1]}" if lines else ""
