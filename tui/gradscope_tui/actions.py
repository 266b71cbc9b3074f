"""The one registry of what a person can do: keys, command verbs, the help screen and the palette derive from it."""

from __future__ import annotations

from dataclasses import dataclass

from textual.binding import Binding

__all__ = ["ACTIONS", "Action", "action_for_verb", "bindings"]


@dataclass(frozen=True, slots=True)
class Action:
    """One thing a person can do.

    Parameters
    ----------
    id : str
        Name of the action; the app answers it in ``action_<id>``.
    keys : tuple of str
        Textual names of the keys, the main one first.
    label : str
        One or two words for the key bar.
    help : str
        One line for the help screen and the palette.
    group : str
        Heading under which the help screen lists it.
    verbs : tuple of str
        Words that the command line takes for it, the main one first; empty when it has none.
    usage : str
        What follows the verb on the command line.
    bar : int
        Place in the key bar; 0 keeps it out. Where the bar is too short, the highest numbers are left out first.
    key_help : str
        How the keys are written for a person.
    """

    id: str
    keys: tuple[str, ...]
    label: str
    help: str
    group: str
    verbs: tuple[str, ...] = ()
    usage: str = ""
    bar: int = 0
    key_help: str = ""

    @property
    def verb(self) -> str:
        """The main command verb, or an empty string."""
        return self.verbs[0] if self.verbs else ""


RUN, STOP, LOOK, MOVE, SCREEN = "Run", "Stop at", "Look and change", "Move", "Screen"

ACTIONS: tuple[Action, ...] = (
    # Run
    Action("step", ("n", "f10"), "Step", "Run the current node and stop before the next one",
           RUN, ("step", "next", "n"), "[COUNT]", 1, "n, F10"),
    Action("into", ("s", "f11"), "Into", "Stop again after this node, with the gradients it produced",
           RUN, ("into", "s"), "", 2, "s, F11"),
    Action("out", ("f", "shift+f11", "f23"), "Out", "Run until the backward of the current module has ended",
           RUN, ("out", "finish", "f"), "", 3, "f, shift+F11"),
    Action("continue", ("c", "f5"), "Continue", "Run to the next breakpoint or the next backward",
           RUN, ("continue", "cont", "c"), "", 4, "c, F5"),
    Action("run_to", ("t",), "To cursor", "Run until the node under the cursor is about to run",
           RUN, ("to", "until", "run-to", "t"), "[NODE]", 6, "t"),
    Action("pause", ("p", "f6"), "Pause", "Stop before the next node while the script is running",
           RUN, ("pause",), "", 5, "p, F6"),
    # Stop at
    Action("break", ("b", "f9"), "Break", "Set or remove a breakpoint on the operator under the cursor",
           STOP, ("break", "b"), "[SPEC] [if CONDITION]", 7, "b, F9"),
    Action("break_spec", ("B",), "Break at", "Ask for a breakpoint: op:Mul*, node:12, param:fc1.weight, mod:layers.*, "
           "line:train.py:31, each with an optional 'if norm > 10'", STOP, (), "", 0, "B"),
    Action("breakpoints", (), "Breakpoints", "List the breakpoints", STOP, ("breakpoints", "breaks"), "", 0, ""),
    Action("delete", ("d", "delete"), "Delete", "Remove a breakpoint: the one under the cursor in its pane, or by number",
           STOP, ("delete", "d"), "NUMBER", 0, "d, Del"),
    # Look and change
    Action("print", (), "Print", "Evaluate an expression in the paused backward, or print the current node",
           LOOK, ("print", "p"), "[EXPRESSION]", 0, ""),
    Action("edit", ("e",), "Edit", "Replace an incoming gradient of the paused node: 0, grad * 0.5, ...",
           LOOK, ("set",), "[SLOT] EXPRESSION", 8, "e"),
    Action("zero", (), "Zero", "Set an incoming gradient of the paused node to zero", LOOK, ("zero",), "[SLOT]", 0, ""),
    Action("command", ("colon",), "Command", "Type a command: the same verbs as in line mode",
           LOOK, (), "", 9, ":"),
    # Move
    Action("down", ("j", "down"), "Down", "Move down", MOVE, (), "", 0, "j, ↓"),
    Action("up", ("k", "up"), "Up", "Move up", MOVE, (), "", 0, "k, ↑"),
    Action("half_down", ("ctrl+d", "pagedown"), "Half page down", "Move down by half a page", MOVE, (), "", 0,
           "ctrl+d, PgDn"),
    Action("half_up", ("ctrl+u", "pageup"), "Half page up", "Move up by half a page", MOVE, (), "", 0, "ctrl+u, PgUp"),
    Action("top", ("g", "home"), "First", "Go to the first line", MOVE, (), "", 0, "g, Home"),
    Action("bottom", ("G", "end"), "Last", "Go to the last line", MOVE, (), "", 0, "G, End"),
    Action("left", ("left",), "Left", "Scroll left", MOVE, (), "", 0, "←"),
    Action("right", ("right",), "Right", "Scroll right", MOVE, (), "", 0, "→"),
    Action("here", ("H",), "Here", "Go back to the node where the debugger has stopped", MOVE, ("here",), "", 10, "H"),
    Action("goto", (), "Go to", "Move the cursor to a node by its number", MOVE, ("goto",), "NODE", 0, ""),
    # Screen
    Action("pane(1)", ("1",), "Graph", "Show the graph", SCREEN, (), "", 0, "1"),
    Action("pane(2)", ("2",), "Inspector", "Show the node inspector", SCREEN, (), "", 0, "2"),
    Action("pane(3)", ("3",), "Source", "Show the source", SCREEN, (), "", 0, "3"),
    Action("pane(4)", ("4",), "Breakpoints", "Show the breakpoints", SCREEN, (), "", 0, "4"),
    Action("pane(5)", ("5",), "Log", "Show what the script has printed", SCREEN, (), "", 0, "5"),
    Action("maximise", ("m",), "Maximise", "Give the whole screen to the focused pane, or take it back",
           SCREEN, (), "", 12, "m"),
    Action("help", ("question_mark", "f1"), "Help", "Show this help", SCREEN, ("help", "h", "?"), "", 11, "?, F1"),
    Action("quit", ("q",), "Quit", "Leave the debugger; asks first while a backward is stopped",
           SCREEN, ("quit", "q", "exit"), "", 13, "q"),
)  # fmt: skip

_BY_VERB = {verb: action for action in ACTIONS for verb in action.verbs}


def action_for_verb(verb: str) -> Action | None:
    """Find the action of a command verb.

    Parameters
    ----------
    verb : str
        A verb or one of its aliases, as typed on the command line.

    Returns
    -------
    Action or None
        ``None`` when no action has this verb.

    Examples
    --------
    >>> action_for_verb("next").id
    'step'
    """
    return _BY_VERB.get(verb)


def bindings() -> list[Binding]:
    """Return the key bindings of every action that has keys."""
    return [
        Binding(",".join(action.keys), action.id, action.label, show=False, id=action.id, tooltip=action.help)
        for action in ACTIONS
        if action.keys
    ]
