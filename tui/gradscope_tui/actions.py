"""The one registry of what a key does: bindings, key bar, help screen and palette derive from it.

What can be typed after ``:`` are the verbs of line mode, which has the registry of those.
"""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding, BindingType

__all__ = ["ACTIONS", "Action", "bindings"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Parameters
    ----------
    id : str
        Name of the action; the app answers it in ``action_<id>``.
    keys : tuple of str
        Textual names of the keys.
    shown : str
        How the keys are written for a person, the main one first.
    label : str
        One or two words for the key bar and the palette.
    help : str
        One line for the help screen and the palette.
    group : str
        Heading under which the help screen lists it.
    verb : str
        The verb of line mode that does the same, if there is one.
    bar : int
        Place in the key bar; 0 keeps it out. Where the bar is too short, the highest numbers go first.
    """

    id: str
    keys: tuple[str, ...]
    shown: str
    label: str
    help: str
    group: str
    verb: str = ""
    bar: int = 0


RUN, STOP, CHANGE, MOVE, SCREEN = "Run", "Stop at", "Look and change", "Move", "Screen"

ACTIONS: tuple[Action, ...] = (
    Action("step", ("n", "f10"), "n, F10", "Step", "Run this node, stop before the next", RUN, "step", 1),
    Action("into", ("s", "f11"), "s, F11", "Into", "Stop again after this node, with what it produced", RUN, "into", 2),
    # Legacy terminals send shift+F11 as F23.
    Action("out", ("f", "shift+f11", "f23"), "f, ⇧F11", "Out", "Run until the backward of this module has ended", RUN,
           "out", 3),
    Action("continue", ("c", "f5"), "c, F5", "Cont", "Run to the next breakpoint or failure", RUN, "continue", 4),
    Action("pause", ("p", "f6"), "p, F6", "Pause", "Stop a running script before its next node", RUN, "", 5),
    Action("run_to", ("t",), "t", "To cursor", "Run until the node under the cursor is about to run", RUN, "run-to", 8),
    Action("next_backward", ("]",), "]", "Next backward", "Run to the first node of the next backward", RUN,
           "next-backward", 14),
    Action("break", ("b", "f9"), "b, F9", "Break", "Set or remove a breakpoint on the operator under the cursor", STOP,
           "break", 6),
    Action("break_spec", ("B",), "B", "Break at…", "Ask for a breakpoint, with a condition if you like", STOP),
    Action("delete", ("d", "delete"), "d, Del", "Delete", "In pane 4, remove the breakpoint under the cursor", STOP,
           "delete"),
    Action("edit", ("e",), "e", "Edit", "Replace a gradient of the paused node: 0, grad * 0.5, …", CHANGE, "set", 9),
    Action("command", (":",), ":", "Command", "Type a command, as in line mode", CHANGE, "", 7),
    Action("down", ("j", "down"), "j, ↓", "Down", "Move down", MOVE),
    Action("up", ("k", "up"), "k, ↑", "Up", "Move up", MOVE),
    Action("half_down", ("ctrl+d", "pagedown"), "^d, PgDn", "Half page down", "Move down by half a page", MOVE),
    Action("half_up", ("ctrl+u", "pageup"), "^u, PgUp", "Half page up", "Move up by half a page", MOVE),
    Action("top", ("g", "home"), "g, Home", "First", "Go to the first line", MOVE),
    Action("bottom", ("G", "end"), "G, End", "Last", "Go to the last line", MOVE),
    Action("left", ("left",), "←", "Left", "Scroll to the left", MOVE),
    Action("right", ("right",), "→", "Right", "Scroll to the right", MOVE),
    Action("here", ("H",), "H", "Here", "Go back to the node where the script has stopped", MOVE, "", 13),
    Action("pane(1)", ("1",), "1", "Graph", "Go to the graph", SCREEN),
    Action("pane(2)", ("2",), "2", "Inspector", "Go to the inspector of the node under the cursor", SCREEN),
    Action("pane(3)", ("3",), "3", "Source", "Go to the source of the node under the cursor", SCREEN),
    Action("pane(4)", ("4",), "4", "Breakpoints", "Go to the breakpoints", SCREEN),
    Action("pane(5)", ("5",), "5", "Log", "Go to what the script has printed", SCREEN),
    Action("focus_next", ("tab",), "Tab", "Next pane", "Go to the next pane", SCREEN),
    Action("focus_previous", ("shift+tab",), "⇧Tab", "Previous pane", "Go to the pane before", SCREEN),
    Action("maximise", ("m",), "m", "Maximise", "Give the pane the whole screen, or take it back", SCREEN, "", 12),
    Action("help", ("?", "f1"), "?, F1", "Help", "Show this help", SCREEN, "help", 10),
    Action("command_palette", ("ctrl+p",), "^p", "Palette", "Find an action by its name", SCREEN),
    Action("suspend_process", ("ctrl+z",), "^z", "Suspend", "Go to the shell; fg brings the debugger back", SCREEN),
    Action("quit", ("q", "ctrl+q"), "q", "Quit", "End the script and leave; asks first if it has not ended", SCREEN,
           "quit", 11),
)  # fmt: skip

_KEY_NAMES = {":": "colon", "?": "question_mark", "]": "right_square_bracket"}


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
