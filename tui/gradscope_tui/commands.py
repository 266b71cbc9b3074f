"""The command line of the app: the verbs of line mode, answered in the log pane."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from gradscope.inspect.render import graph_text, list_text, node_text
from gradscope.inspect.verbs import UsageError, find_verb
from gradscope_tui.session import is_paused
from gradscope_tui.threads import on_thread

if TYPE_CHECKING:
    from gradscope_tui.app import GradscopeApp

__all__ = ["run_command"]

_SCREENFUL = 30
"""Nodes that ``list`` prints around the current one."""


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
    verb, argument = find_verb(line)
    session, current = app.session, app.session.current
    match verb.name:
        case "step":
            app.action_step(_number(argument or "1", "COUNT"))
        case "run-to":
            app.action_run_to(_number(argument, "NODE"))
        case "into" | "out" | "continue" | "next-backward" | "quit" | "help":
            await app.run_action(verb.name.replace("-", "_"))
        case "abort":
            session.abort()
        case "break" | "tbreak" if argument:
            added = session.add_breakpoint(argument, temporary=verb.name == "tbreak")
            app.log_answer(f"breakpoint {added.id}: {added}")
        case "break" | "breakpoints":
            app.action_pane(4)
        case "delete":
            session.remove_breakpoint(_number(argument, "NUMBER"))
        case "print" | "eval" if argument:
            app.log_answer(await on_thread(lambda: session.evaluate_text(argument)))
        case "print" | "node":
            index = _number(argument, "NUMBER") if argument else current
            record = await on_thread(lambda: session.inspect(index))
            app.show_node(index)
            app.log_answer(node_text(record, session.nodes))
        case "list":
            first = max(0, current - _SCREENFUL // 2)
            bounds = [_number(word, "FROM and TO") for word in argument.replace("all", "").split()] or [first]
            last = len(session.nodes) if argument == "all" else (bounds[1:] or [bounds[0] + _SCREENFUL])[0] + 1
            app.log_answer(list_text(session.nodes, 0 if argument == "all" else bounds[0], last))
        case "graph":
            app.log_answer(graph_text(session.nodes))
        case "where":
            app.log_answer(f"backward {session.task_index} was called at\n{session.where().rstrip()}")
        case "set":
            await edit_gradient(app, argument)
        case "zero":
            slot = _number(argument or "0", "SLOT")
            await _change(app, slot, lambda: session.zero_grad_slot(slot), "0")
        case "scale":
            slot, text = _slot(argument)
            factor = float(text)
            await _change(app, slot, lambda: session.scale_grad(slot, factor), f"itself × {factor:g}")
        case name:
            raise UsageError(f"{name} works in line mode only")
    app.refresh_session()


async def edit_gradient(app: GradscopeApp, argument: str) -> None:
    """Replace a gradient of the paused node; `argument` is ``[SLOT] EXPRESSION``."""
    slot, expression = _slot(argument)
    await _change(app, slot, lambda: app.session.set_grad(slot, expression), expression)


async def _change(app: GradscopeApp, slot: int, change: Callable[[], None], what: str) -> None:
    state = app.session.state
    if not is_paused(state):
        raise UsageError(f"the session is {state}: a gradient can be changed only where it has stopped")
    await on_thread(change)
    side = "outgoing" if state == "paused after" else "incoming"
    app.log_answer(f"{side} gradient {slot} is now {what}")


def _slot(argument: str) -> tuple[int, str]:
    """Take apart ``[SLOT] REST``; a single word is the rest, of slot 0."""
    head, _, rest = argument.partition(" ")
    return (int(head), rest.strip()) if rest.strip() and head.isdecimal() else (0, argument)


def _number(text: str, name: str) -> int:
    if not text.removeprefix("#").isdecimal():
        raise UsageError(f"{name} is a number, got {text!r}")
    return int(text.removeprefix("#"))
