"""The one registry of what a key does: bindings, key bar, help screen and palette derive from it.

What can be typed after ``:`` are the verbs of line mode, which has the registry of those.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import groupby
from typing import Any, TypeVar

from textual.app import App
from textual.binding import Binding, BindingType

from gradscope_tui.panes import PANES
from gradscope_tui.sessions.session_protocol import (
    Session,
    can_look_back,
    can_run_again,
    has_ended,
    is_over,
    is_past,
    is_paused,
    why_not,
)

__all__ = ["ACTIONS", "Action", "answered_by", "bindings", "key_tables", "keymap_of", "keys_in", "unavailable"]

AppType = TypeVar("AppType", bound=type[App[Any]])


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Parameters
    ----------
    id : str
        Name of the action; a part of the app answers it in ``action_<id>``.
    keys : tuple of str
        Textual names of the keys.
    shown : str
        How the keys are written for a person, the main one first.
    label : str
        A few words for the key bar and the palette: what happens.
    help : str
        One line for the help screen and the palette.
    group : str
        Heading under which the help screen lists it.
    verb : str
        The verb of line mode that does the same, if there is one.
    bar : int
        How much it matters in the key bar, where it has the place that it has among all actions; 0 keeps it out. Where
        the bar is too short, the highest numbers go first.
    pair : str
        What the key bar says instead where another action has the same words: both keys share them.
    """

    id: str
    keys: tuple[str, ...]
    shown: str
    label: str
    help: str
    group: str
    verb: str = ""
    bar: int = 0
    pair: str = ""


RUN, BACK, STOP, CHANGE = "Run", "Go back", "Stop at", "Look and change"
FIND, MOVE, SCREEN = "Find and fold", "Move", "Screen"

ACTIONS: tuple[Action, ...] = (
    Action("step", ("n", "f10"), "n, F10", "Next node", "Run this node, stop before the next", RUN, "step", 1),
    Action("into", ("s", "f11"), "s, F11", "Run this node", "Stop again after this node, with what it produced", RUN,
           "into", 7),
    # Legacy terminals send shift+F11 as F23.
    Action("out", ("f", "shift+f11", "f23"), "f, ⇧F11", "Finish module",
           "Run until the backward of this module has ended", RUN, "out", 8),
    Action("continue", ("c", "f5"), "c, F5", "Continue", "Run to the next breakpoint or failure", RUN, "continue", 2),
    Action("pause", ("p", "f6", "ctrl+c"), "p, F6, ^c", "Pause", "Stop a running script before its next node", RUN, "",
           1),
    Action("run_to", ("t",), "t", "Go to here",
           "Go to the node under the cursor: on, back, or from the start again", RUN,
           "run-to", 12),
    Action("next_backward", ("]",), "]", "Next backward", "Go to the first node of the next backward", RUN,
           "next-backward", 11, "Backward"),
    Action("restart", ("R",), "R", "Start again", "Start the script again; of a recording, read what is new", RUN,
           "restart", 9),
    Action("step_back", ("N",), "N", "Back", "Look at the node that ran before", BACK, "back", 4),
    Action("back_after", ("S",), "S", "Back, after it", "The same, at what that node has produced", BACK, "back"),
    Action("reverse_continue", ("C",), "C", "Back to a breakpoint", "Go back to where a breakpoint would have stopped",
           BACK, "reverse-continue", 18),
    Action("live", ("L",), "L", "To the script", "From the past, go to where the script is", BACK, "live", 3),
    Action("previous_backward", ("[",), "[", "Backward before", "In a recording, go to the backward before", BACK, "",
           3, "Backward"),
    Action("next_iteration", ("}",), "}", "Next iteration", "In a recording, go to the next iteration", BACK, "", 3,
           "Iteration"),
    Action("previous_iteration", ("{",), "{", "Iteration before", "In a recording, go to the iteration before", BACK,
           "", 3, "Iteration"),
    Action("break", ("b", "f9"), "b, F9", "Break here",
           "Set or remove a breakpoint on the operator or module at the cursor",
           STOP, "break", 5),
    Action("break_spec", ("B",), "B", "Break at…", "Ask for a breakpoint, with a condition if you like", STOP),
    Action("switch", ("space",), "Space", "Switch", "Pane 4: switch it on or off; graph: fold or unfold", STOP),
    Action("delete", ("d", "delete"), "d, Del", "Delete", "In panes 4 and 6, remove what is under the cursor", STOP,
           "delete"),
    Action("open", ("enter",), "Enter", "Open", "Open a tensor, edit a breakpoint, or go where the line leads", CHANGE),
    Action("findings", ("!",), "!", "What is wrong", "Show what is wrong with this backward, the worst first", CHANGE,
           "findings", 3),
    Action("watch", ("w",), "w", "Watch", "Ask for an expression to evaluate at every stop", CHANGE, "watch", 11),
    Action("edit", ("e",), "e", "Change gradient", "Replace a gradient of the paused node: 0, grad * 0.5, …", CHANGE,
           "set", 13),
    Action("skip", ("x",), "x", "Leave out", "Leave out the node that is about to run", CHANGE, "skip"),
    Action("what_if", ("i",), "i", "What if", "What the parameters would get from another gradient here", CHANGE,
           "what-if", 14),
    Action("compare", ("v",), "v", "Compare", "Show this backward beside the last of its loss; : takes another", CHANGE,
           "compare"),
    Action("threads", ("T",), "T", "Threads", "Show nested backwards, and choose the thread to follow", CHANGE,
           "threads"),
    Action("ranks", ("K",), "K", "Ranks", "Show the ranks, the norm of this node on each, and choose one", CHANGE,
           "rank"),
    Action("command", (":",), ":", "Command", "Type a command, as in line mode", CHANGE, "", 10),
    Action("type", (">",), ">", "Type", "Type a line that the script reads: input(), pdb, a question", CHANGE),
    Action("copy", ("y",), "y", "Copy", "Copy what the cursor of the pane is on, or the gradient of pane 2", CHANGE),
    Action("save_log", ("ctrl+s",), "^s", "Save log", "Write what stands in pane 5 into a file", CHANGE),
    Action("editor", ("E",), "E", "Editor", "Open the line that made the node in $EDITOR", CHANGE),
    Action("filter", ("/",), "/", "Find",
           "Show only nodes like op:Mul*, mod:fc1, nan; elsewhere: find lines", FIND, "", 9),
    Action("show_all", ("escape",), "Esc", "All nodes",
           "Show the other nodes again, matches stay marked; after m the other panes", FIND),
    Action("next_match", (".",), ".", "Next match", "Go to the next match; so does n until Esc ends the search", FIND),
    Action("previous_match", (",",), ",", "Match before", "Go to the match before; so does N until Esc ends the search",
           FIND),
    Action("fold", ("z",), "z", "Fold", "Fold the module under the cursor into one line; again: the one around it",
           FIND, "", 16),
    Action("columns", ("o",), "o", "Columns and order", "Choose the columns of the graph, and what sorts its rows",
           FIND, "", 17),
    Action("fold_all", ("Z",), "Z", "Fold all", "Fold all modules, or unfold all", FIND),
    Action("down", ("j", "down"), "j, ↓", "Down", "Move down", MOVE),
    Action("up", ("k", "up"), "k, ↑", "Up", "Move up", MOVE),
    Action("half_down", ("ctrl+d", "pagedown"), "^d, PgDn", "Half page down", "Move down by half a page", MOVE),
    Action("half_up", ("ctrl+u", "pageup"), "^u, PgUp", "Half page up", "Move up by half a page", MOVE),
    Action("top", ("g", "home"), "g, Home", "First", "Go to the first line", MOVE),
    Action("bottom", ("G", "end"), "G, End", "Last", "Go to the last line", MOVE),
    Action("left", ("left",), "←", "Left", "Scroll to the left", MOVE),
    Action("right", ("right",), "→", "Right", "Scroll to the right", MOVE),
    Action("here", ("H",), "H", "Here", "Go back to the node where the session stands", MOVE, "", 19),
    *(
        Action(f"pane({pane.NUMBER})", (pane.KEY,), pane.KEY, pane.TITLE, pane.KEY_HELP, SCREEN)
        for pane in PANES
    ),
    Action("focus_next", ("tab",), "Tab", "Next pane", "Go to the next pane", SCREEN),
    Action("focus_previous", ("shift+tab",), "⇧Tab", "Previous pane", "Go to the pane before", SCREEN),
    Action("maximise", ("m",), "m", "Whole screen", "Give the pane the whole screen, or take it back", SCREEN, "",
           15),
    Action("grow", ("plus", "equals_sign"), "+", "More room",
           "Give the pane more room (drag its borders too); pane 0: zoom in", SCREEN, "", 20, "Pane size"),
    Action("shrink", ("minus",), "-", "Less room", "Give the pane less room; pane 0: zoom out", SCREEN,
           "", 20, "Pane size"),
    Action("help", ("?", "f1"), "?, F1", "Keys", "Show this help", SCREEN, "help", 9),
    Action("command_palette", ("ctrl+p",), "^p", "Palette", "Find an action by its name", SCREEN),
    Action("suspend_process", ("ctrl+z",), "^z", "Suspend", "Go to the shell; fg brings the debugger back", SCREEN),
    Action("quit", ("q", "ctrl+q"), "q", "Quit", "End the script and leave; asks first if it has not ended", SCREEN,
           "quit", 9),
)  # fmt: skip

NEEDS_PAUSE = frozenset(
    {
        "step", "into", "out", "continue", "run_to", "next_backward", "step_back", "back_after", "reverse_continue",
        "edit", "skip", "what_if",
    }
)  # fmt: skip
"""Actions that make sense only where the session has stopped."""

LOOKS_BACK = frozenset({"run_to", "step_back", "back_after", "reverse_continue"})
"""Actions that make sense after the end of the program too, if anything of it was recorded."""

BETWEEN = frozenset({"previous_backward", "next_iteration", "previous_iteration"})
"""Actions of a session that can be read in any order: a recording."""

NEEDS_PRESENT = frozenset({"edit", "skip"})
"""Actions that make sense only where the program waits, not at an earlier node."""

_KEY_NAMES = {
    ":": "colon",
    "?": "question_mark",
    ">": "greater_than_sign",
    "[": "left_square_bracket",
    "]": "right_square_bracket",
    "{": "left_curly_bracket",
    "}": "right_curly_bracket",
    "/": "slash",
    "!": "exclamation_mark",
    ".": "full_stop",
    ",": "comma",
}


def keymap_of(keys: Mapping[str, str]) -> dict[str, str]:
    """Return, for actions with keys of a person's own (``"a, f10"``), their names for Textual.

    Examples
    --------
    >>> keymap_of({"step": "a, f10", "findings": "!"})
    {'step': 'a,f10', 'findings': 'exclamation_mark'}
    """
    return {action: ",".join(_KEY_NAMES.get(key, key) for key in keys_in(text)) for action, text in keys.items()}


def keys_in(text: str) -> list[str]:
    """Return the keys that stand in a text with commas between; a comma alone is the key.

    Examples
    --------
    >>> keys_in("a, f10"), keys_in(",")
    (['a', 'f10'], [','])
    """
    return [key.strip() for key in text.split(",")] if text.strip() != "," else [","]


def bindings() -> list[BindingType]:
    """Return the key bindings of every action, for the app.

    Returns
    -------
    list of Binding
        One an action, with the action's id, so that a keymap may put it on other keys.
    """
    return [
        Binding(
            ",".join(_KEY_NAMES.get(key, key) for key in action.keys),
            action.id,
            action.label,
            show=False,
            id=action.id,
            tooltip=action.help,
        )
        for action in ACTIONS
    ]


def unavailable(session: Session) -> frozenset[str]:
    """Return the actions that make no sense now, or never in this session."""
    state = session.state
    off = {action.id for action in ACTIONS if why_not(session, action.id)}
    off |= {action for action in BETWEEN if not hasattr(session, action)}
    if not hasattr(session, "compare_ranks"):
        off.add("ranks")
    if not is_paused(state):
        off |= NEEDS_PAUSE - LOOKS_BACK if can_look_back(session) else NEEDS_PAUSE
    if is_over(str(state)) and can_run_again(session):
        off.discard("run_to")
    if has_ended(session):
        off |= {"edit", "skip", "what_if"}
    if is_past(state):
        off |= NEEDS_PRESENT
    else:
        off.add("live")
    return frozenset(off if state == "running" else off | {"pause"})


def answered_by(**parts: type) -> Callable[[AppType], AppType]:
    """Let the parts of an app answer actions.

    Parameters
    ----------
    **parts : type
        For an attribute of the app, its class: for each of its methods ``action_*`` the app gets one that calls it.

    Returns
    -------
    callable
        The decorator of the app's class.
    """

    def decorate(app: AppType) -> AppType:
        for part, kind in parts.items():
            for name, method in vars(kind).items():
                if name.startswith("action_"):
                    setattr(app, name, _forward(part, method))
        return app

    return decorate


def _forward(part: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def forward(app: App[Any], *arguments: Any) -> Any:
        return getattr(getattr(app, part), method.__name__)(*arguments)

    return forward


def key_tables() -> str:
    """Return what every key does as tables in Markdown, one a group, for the documentation."""
    tables = []
    for group, actions in groupby(ACTIONS, lambda action: action.group):
        rows = [f"| {_code(action.shown)} | {action.help} |" for action in actions]
        tables.append("\n".join([f"### {group}", "", "| key | |", "|---|---|", *rows]))
    return "\n\n".join(tables)


def _code(shown: str) -> str:
    return ", ".join(f"`{key}`" for key in shown.split(", "))
