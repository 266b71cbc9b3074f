"""Breakpoints as commands: from one session to the next, in the person's state directory, and to be edited."""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from gradscope.inspect.debugging.prompt.prompt_verbs import UsageError, find_verb, read_commands, split_commands

if TYPE_CHECKING:
    from gradscope_tui.sessions.session_protocol import Breakpoint, Session

__all__ = ["SavedBreakpoints", "commands_of", "edited", "name_of", "state_directory", "text_of"]

_SETTING = ("break", "tbreak", "log")
"""Verbs that set a breakpoint."""


def state_directory() -> Path:
    """Return where programs keep what should outlive a session: XDG's state directory, or Windows' equivalent."""
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state")


def name_of(title: str) -> str:
    """Return the name of the file in which something about a script is kept."""
    path = os.path.abspath(title)
    return f"{os.path.basename(path)}-{hashlib.sha256(path.encode()).hexdigest()[:12]}"


def commands_of(session: Session) -> list[str]:
    """Return the commands of line mode that set a session's breakpoints, as ``save-breaks`` writes them."""
    lines = [line for point in session.breakpoints for line in _lines_of(point)]
    return lines + [f"catch {kind} off" for kind, on in session.catching.items() if not on]


def _lines_of(point: Breakpoint) -> list[str]:
    """Return the commands that set one breakpoint."""
    passed = [f"ignore $ {point.ignore}"] if point.ignore else []
    return [point.command(), *passed, *([] if point.enabled else ["disable $"])]


def text_of(point: Breakpoint) -> str:
    """Return a breakpoint as a person edits it: the commands that set it, in one line.

    Examples
    --------
    >>> from gradscope.inspect.debugging.stops.breakpoints import BreakpointTable
    >>> point = BreakpointTable().add("op:Mul* if norm > 10")
    >>> point.ignore = 3
    >>> text_of(point)
    'break op:Mul* if norm > 10; ignore $ 3'
    """
    return "; ".join(_lines_of(point))


def edited(session: Session, point: Breakpoint, text: str) -> None:
    """Replace a breakpoint by the one that an edited text sets.

    Raises
    ------
    ValueError
        If the text cannot be understood; the breakpoint is as it was then.
    """
    known = {other.id for other in session.breakpoints}
    lines = split_commands(text)
    if len([line for line in lines if find_verb(line)[0].name in _SETTING]) != 1:
        raise UsageError("a breakpoint is one of `break SPEC`, `tbreak SPEC` and `log SPEC :: EXPRESSION`")
    try:
        for line in lines:
            _carry_out(session, line)
    except (ValueError, IndexError):
        for number in {other.id for other in session.breakpoints} - known:
            session.remove_breakpoint(number)
        raise
    if any(other.id == point.id for other in session.breakpoints):  # the breakpoint may have gone meanwhile
        session.remove_breakpoint(point.id)


class SavedBreakpoints:
    """The breakpoints of one script.

    Parameters
    ----------
    title : str
        Path of the script.
    directory : path-like, optional
        Where to keep them; a directory of gradscope's own in `state_directory` by default.
    """

    def __init__(self, title: str, directory: str | os.PathLike[str] | None = None) -> None:
        self.path = Path(directory or state_directory() / "gradscope" / "breaks") / name_of(title)
        self._script = os.path.abspath(title)
        self._known: list[str] = []
        self._broken = False

    def load(self, session: Session) -> str:
        """Set the breakpoints that have been kept, unless the session has some already.

        Returns
        -------
        str
            What to say about it; empty if there were none.
        """
        self._known = commands_of(session)
        try:
            lines = read_commands(str(self.path))
        except FileNotFoundError:
            return ""
        except (OSError, UsageError) as error:
            return f"breakpoints cannot be read from {self.path}: {error}"
        wanted = [line for line in lines if line]
        if self._known or not wanted:
            return ""
        bad = [line for line in wanted if not _obey(session, line)]
        self._known = commands_of(session)
        count = len(session.breakpoints)
        text = f"{count} breakpoint{'s' if count != 1 else ''} of the last session (pane 4)"
        return text + (f"; not understood: {'; '.join(bad)}" if bad else "")

    def keep(self, session: Session) -> str:
        """Write the breakpoints if they are others than before.

        Returns
        -------
        str
            Why they could not be written, the first time; mostly empty.
        """
        now = commands_of(session)
        if now == self._known or self._broken:
            return ""
        self._known = now
        try:
            if now:
                self.path.parent.mkdir(parents=True, exist_ok=True)
                fresh = self.path.with_suffix(f".{os.getpid()}")
                fresh.write_text("\n".join([f"# {self._script}", *now, ""]), encoding="utf-8")
                fresh.replace(self.path)
            else:
                self.path.unlink(missing_ok=True)
        except OSError as error:
            self._broken = True
            return f"breakpoints cannot be kept in {self.path}: {error.strerror}"
        return ""


def _obey(session: Session, line: str) -> bool:
    """Carry out one kept command; return whether it could be."""
    try:
        _carry_out(session, line)
    except (ValueError, IndexError):
        return False
    return True


def _carry_out(session: Session, line: str) -> None:
    """Carry out one command that sets a breakpoint, or changes the last that has been set."""
    verb, argument = find_verb(line)
    last = max((point.id for point in session.breakpoints), default=0)
    match verb.name:
        case "break" | "tbreak":
            session.add_breakpoint(argument, temporary=verb.name == "tbreak")
        case "log":
            spec, _, expression = argument.partition("::")
            session.add_breakpoint(spec.strip(), log=expression.strip())
        case "ignore":
            session.ignore_breakpoint(last, _count(argument))
        case "disable" | "enable":
            session.enable_breakpoint(last, verb.name == "enable")
        case "catch":
            kind, _, switch = argument.partition(" ")
            session.catch(kind, switch != "off")
        case name:
            raise UsageError(f"{name} sets no breakpoint")


def _count(argument: str) -> int:
    """Return how often ``$ COUNT`` passes by."""
    count = argument.split()[-1]
    if not count.isdecimal():
        raise UsageError(f"ignore takes a number of times, got {count!r}: ignore $ 3")
    return int(count)
