"""The command line of the app: the same verbs as in line mode."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from gradscope_tui.actions import ACTIONS, action_for_verb
from gradscope_tui.messages import CommandAnswered
from gradscope_tui.session import is_paused

if TYPE_CHECKING:
    from gradscope_tui.app import GradscopeApp

__all__ = ["CommandError", "add_breakpoint", "edit_gradient", "run_command"]


class CommandError(Exception):
    """A command that cannot be carried out; its text says why and what to do."""


async def run_command(app: GradscopeApp, text: str) -> None:
    """Carry out one command.

    Parameters
    ----------
    app : GradscopeApp
        The app; answers are posted to it.
    text : str
        A verb, and what it is applied to.

    Raises
    ------
    CommandError
        When there is no such verb, or it cannot be applied to that.
    """
    verb, _, rest = text.strip().partition(" ")
    rest = rest.strip()
    action = action_for_verb(verb)
    if action is None:
        verbs = " ".join(action.verb for action in ACTIONS if action.verb)
        raise CommandError(f"no command {verb!r}\nThere are: {verbs}.")
    match action.id:
        case "step":
            app.action_step(_number(rest or "1", "step takes how many nodes to run"))
        case "run_to":
            app.action_run_to(_node(app, rest) if rest else None)
        case "break" if rest:
            add_breakpoint(app, rest)
        case "breakpoints":
            stops = [f"{b.id} {b.spec}{f' if {b.condition}' if b.condition else ''}" for b in app.session.breakpoints]
            app.post_message(CommandAnswered("\n".join(stops) or "no breakpoints"))
            app.action_pane(4)
        case "delete":
            _delete(app, _number(rest, "delete takes the number of a breakpoint"))
        case "print":
            await _print(app, rest)
        case "edit":
            await edit_gradient(app, rest)
        case "zero":
            slot = _number(rest or "0", "zero takes the number of an incoming gradient")
            await _set(app, slot, lambda: app.session.zero_grad_slot(slot), "0")
        case "goto":
            app.show_node(_node(app, rest))
        case _ if rest:
            raise CommandError(f"{verb} takes nothing after it, got {rest!r}")
        case _:
            await app.run_action(action.id)


def add_breakpoint(app: GradscopeApp, text: str) -> None:
    """Set a breakpoint written as ``SPEC [if CONDITION]``.

    Raises
    ------
    CommandError
        When the session does not understand it.
    """
    spec, _, condition = text.partition(" if ")
    try:
        stop = app.session.add_breakpoint(spec.strip(), condition=condition.strip() or None)
    except (ValueError, SyntaxError, LookupError) as error:
        raise CommandError(str(error)) from error
    app.post_message(CommandAnswered(f"breakpoint {stop.id} at {text}"))
    app.refresh_session()


async def edit_gradient(app: GradscopeApp, text: str) -> None:
    """Replace an incoming gradient; `text` is ``[SLOT] EXPRESSION``.

    Raises
    ------
    CommandError
        When there is no such slot, or the expression fails.
    """
    first, _, rest = text.partition(" ")
    slot, expression = (int(first), rest.strip()) if first.isdecimal() and rest.strip() else (0, text)
    if not expression:
        raise CommandError("set takes [SLOT] EXPRESSION, such as: set 0 grad * 0.5")
    await _set(app, slot, lambda: app.session.set_grad(slot, app.session.evaluate(expression)), expression)


async def _set(app: GradscopeApp, slot: int, change: Callable[[], None], what: str) -> None:
    _require_pause(app)
    await _on_thread(change)
    app.post_message(CommandAnswered(f"grad_outputs[{slot}] = {what}"))
    app.refresh_session()


async def _print(app: GradscopeApp, expression: str) -> None:
    """Evaluate an expression on the paused thread; without one, go to the paused node and its inspector."""
    if not expression:
        app.action_here()
        app.action_pane(2)
        return
    _require_pause(app)
    text = await _on_thread(lambda: repr(app.session.evaluate(expression)))
    app.post_message(CommandAnswered(f"{expression} = {text}"))


def _delete(app: GradscopeApp, number: int) -> None:
    if number not in {stop.id for stop in app.session.breakpoints}:
        raise CommandError(f"there is no breakpoint {number}")
    app.session.remove_breakpoint(number)
    app.refresh_session()


def _require_pause(app: GradscopeApp) -> None:
    if not is_paused(app.session.state):
        raise CommandError(f"the session is {app.session.state}: a gradient can only be looked at where it has stopped")


async def _on_thread(work: Callable[[], Any]) -> Any:
    """Let another thread wait for the program's thread, so that the screen stays alive."""
    try:
        return await asyncio.to_thread(work)
    except Exception as error:
        raise CommandError(f"{type(error).__name__}: {error}") from error


def _number(text: str, usage: str) -> int:
    if not text.isdecimal():
        raise CommandError(f"{usage}, got {text!r}")
    return int(text)


def _node(app: GradscopeApp, text: str) -> int:
    index = _number(text.removeprefix("#"), "this takes the number of a node")
    if index >= len(app.session.nodes):
        raise CommandError(f"there is no node {index}: this backward has nodes 0 to {len(app.session.nodes) - 1}")
    return index
