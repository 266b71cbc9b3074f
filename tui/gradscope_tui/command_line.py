"""The command line of the app: the verbs of line mode, answered in the log pane.

What lets the program go on, or opens a pane or a screen, the app does itself; everything else line mode does, on
another thread, and what it says goes to the log.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from gradscope.inspect.debugging.prompt.prompt import LineMode
from gradscope.inspect.debugging.prompt.prompt_verbs import UsageError, find_verb
from gradscope_tui.explain_command import explain
from gradscope_tui.sessions.session_protocol import is_past, why_not
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope_tui.app import GradscopeApp

__all__ = ["run_command"]

_ACTIONS = {
    "into", "out", "continue", "next-backward", "reverse-continue", "live", "restart", "quit", "help",
}  # fmt: skip
_FAILED = "*** "


async def run_command(app: GradscopeApp, line: str) -> None:
    """Carry out one command; what it has to say goes to the log.

    Parameters
    ----------
    app : GradscopeApp
        The app.
    line : str
        A verb of line mode, and what it is applied to.

    Raises
    ------
    Exception
        When there is no such verb, or it cannot be applied to that; the text says why.
    """
    word, _, rest = line.strip().partition(" ")
    if word == "explain":
        app.log_answer(await explain(app.session, rest.strip()))
        return
    verb, argument = find_verb(line)
    reason = why_not(app.session, verb.name.replace("-", "_"))
    if reason:
        raise UsageError(reason)
    match verb.name:
        case "step":
            app.action_step(_number(argument or "1", "COUNT"))
        case "back":
            app.action_step_back(_number(argument or "1", "COUNT"))
        case "run-to" | "goto":
            app.action_run_to(_number(argument, "NODE"))
        case "until":
            target = int(argument) if argument.isdecimal() else argument
            app.go(lambda: app.session.until(target))
        case name if name in _ACTIONS and not argument:
            await app.run_action(name.replace("-", "_"))
        case "break" | "breakpoints" if not argument:
            app.action_pane(4)
        case "watch" if not argument:
            app.action_pane(6)
        case "watch":
            await on_thread(lambda: app.session.add_watch(argument))
            app.uncover(6)
        case "threads" | "tasks":
            app.action_threads()
        case "what-if":
            slot, expression = _slot(argument)
            await app.ask_what_if(slot, expression)
        case name:
            await _line_mode(app, line)
            if name == "node":
                app.show_node(_number(argument, "NUMBER"))
    app.refresh_session()


async def _line_mode(app: GradscopeApp, line: str) -> None:
    """Let line mode carry out a command, and write into the log what it says."""
    said = io.StringIO()
    session: Any = app.session
    mode = LineMode(session, stdin=io.StringIO(), stdout=said, stderr=said)
    await on_thread(lambda: mode.obey(line))
    text = said.getvalue().rstrip("\n")
    if mode.failures:
        at = text.index(_FAILED) if _FAILED in text else 0
        if text[:at].strip():
            app.log_answer(text[:at].rstrip())
        raise UsageError(text[at:].removeprefix(_FAILED))
    if text:
        app.log_answer(f"{text}  (at a recorded node)" if _looked_back(app, line) and "\n" not in text else text)


def _looked_back(app: GradscopeApp, line: str) -> bool:
    return is_past(app.session.state) and find_verb(line)[0].name in ("print", "eval")


def _slot(argument: str) -> tuple[int, str]:
    """Take apart ``[SLOT] REST``; a single word is the rest, of slot 0."""
    head, _, rest = argument.partition(" ")
    return (int(head), rest.strip()) if rest.strip() and head.isdecimal() else (0, argument)


def _number(text: str, name: str) -> int:
    if not text.removeprefix("#").isdecimal():
        raise UsageError(f"{name} is a number, got {text!r}")
    return int(text.removeprefix("#"))
