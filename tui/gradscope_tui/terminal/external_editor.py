"""The person's own editor, on the terminal, while the app is suspended."""

from __future__ import annotations

import os
import shlex
import subprocess
from typing import TYPE_CHECKING, Any

from textual.app import App, SuspendNotSupported

if TYPE_CHECKING:
    from gradscope.inspect.records.records import Location

__all__ = ["edit_command", "run_editor"]

_COLON = {"hx", "helix", "zed", "subl"}
_GOTO = {"code", "codium", "cursor"}


def edit_command(location: Location, editor: str | None = None) -> list[str]:
    """Return the command that opens a line.

    Parameters
    ----------
    editor : str, optional
        By default ``$VISUAL``, ``$EDITOR`` or ``vi``.

    Examples
    --------
    >>> from gradscope.inspect import Location
    >>> line = Location("train.py", 31, "main", "loss = criterion(model(x), y)")
    >>> edit_command(line, "nano"), edit_command(line, "code --wait")
    (['nano', '+31', 'train.py'], ['code', '--wait', '--goto', 'train.py:31'])
    """
    text = editor or os.environ.get("VISUAL") or os.environ.get("EDITOR") or "vi"
    words = shlex.split(text) or ["vi"]
    name = os.path.basename(words[0])
    place = f"{location.filename}:{location.lineno}"
    if name in _GOTO:
        return [*words, "--goto", place]
    return [*words, place] if name in _COLON else [*words, f"+{location.lineno}", location.filename]


def run_editor(app: App[Any], command: list[str]) -> str:
    """Run an editor on the terminal until it is left.

    Returns
    -------
    str
        Why it could not be, in a line; empty if it could.
    """
    # File descriptors 1 and 2 lead into the log as long as the app has the terminal.
    screen = getattr(app.driver_class, "descriptor", None)
    try:
        with app.suspend():
            status = subprocess.run(command, stdout=screen, stderr=screen, check=False).returncode
    except SuspendNotSupported:
        return "the app cannot be suspended here, so no editor can be shown"
    except OSError as error:
        return f"{command[0]} cannot be run: {error.strerror}; set $EDITOR to an editor that is there"
    finally:
        app.refresh()
    return f"{command[0]} ended with status {status}" if status else ""
