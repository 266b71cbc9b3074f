"""The verbs of line mode: their names, what they take, and how a line of text is taken apart."""

from __future__ import annotations

import difflib
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from ...records.node_identity import Identity, node_identities
from ...records.records import NodeRecord
from ..session.session_errors import SessionError

__all__ = [
    "OF_THE_SHELL",
    "SECTIONS",
    "VERBS",
    "ComparedBackward",
    "UsageError",
    "Verb",
    "backward_to_compare",
    "find_verb",
    "help_text",
    "read_commands",
    "split_commands",
]


_LOSSES = 8  # backwards that are looked through for one of the same loss: as many as a program has losses, about
_MOST = 1 << 20  # the characters of a file of commands that are read


class UsageError(ValueError):
    """A command that cannot be understood."""


class ComparedBackward(NamedTuple):
    """A backward that is put beside the one that is shown.

    Attributes
    ----------
    about : str
        Why it is this one, where that is not obvious.
    """

    number: int
    nodes: Sequence[NodeRecord]
    about: str = ""


def backward_to_compare(
    records: Callable[[int], Sequence[NodeRecord]], number: int | None, here: int
) -> ComparedBackward:
    """Return the backward that is put beside the one that is shown: by default the last one before of the same loss.

    Losses are the same where the nodes at which the two begin are: by operator, module and the text of the line. Where
    none of those before is, or is recorded, it is the one before.

    Parameters
    ----------
    records : callable
        Returns the nodes of a backward by its number; see :meth:`.Debugger.backward_records`.
    number : int or None
        The one that is asked for.
    here : int
        The one that is shown.

    Raises
    ------
    UsageError
        If it is the one that is shown, or there is none.
    SessionError
        If nothing of it is recorded.
    """
    if number is None and here <= 1:
        raise UsageError(f"backward {here} is shown: there is none before it to compare it with")
    if number is None:
        return _last_of_same_loss(records, here)
    if not 0 < number != here:
        raise UsageError(f"backward {here} is shown: compare it with another, such as `compare {here - 1 or 2}`")
    return ComparedBackward(number, records(number))


def _last_of_same_loss(records: Callable[[int], Sequence[NodeRecord]], here: int) -> ComparedBackward:
    root = _root(records(here))
    for number in range(here - 1, max(0, here - 1 - _LOSSES), -1):
        try:
            nodes = records(number)
        except SessionError:  # nothing is recorded of it
            continue
        if _root(nodes) == root:
            return ComparedBackward(number, nodes, "" if number == here - 1 else "the last of the same loss")
    return ComparedBackward(here - 1, records(here - 1), "of another loss")


def _root(nodes: Sequence[NodeRecord]) -> Identity:
    """Return what tells the node at which a backward begins from others."""
    root = nodes[0]
    return node_identities([(root.module, root.parameter, root.name, root.location)])[0]


def read_commands(path: str) -> list[str]:
    """Return the lines of a file of commands, without comments; nothing is carried out.

    Raises
    ------
    OSError
        If it cannot be read.
    UsageError
        If it is no text, or longer than anybody writes.
    """
    try:
        with open(path, encoding="utf-8-sig") as file:
            text = file.read(_MOST + 1)
    except UnicodeDecodeError:
        raise UsageError(f"cannot read {path!r}: it is not UTF-8 text") from None
    if len(text) > _MOST:
        raise UsageError(f"cannot read {path!r}: it is longer than a file of commands may be ({_MOST:,} characters)")
    return [line.strip() for line in text.split("\n") if not line.lstrip().startswith("#")]


@dataclass(frozen=True, slots=True)
class Verb:
    """A command.

    Attributes
    ----------
    names : tuple of str
        The main name first, then its aliases.
    usage : str
        What may follow.
    help : str
        One line.
    argument : str
        ``'none'``, ``'optional'`` or ``'needed'``.
    """

    names: tuple[str, ...]
    usage: str
    help: str
    argument: str = "none"

    @property
    def name(self) -> str:
        """The main name."""
        return self.names[0]


SECTIONS: tuple[tuple[str, tuple[Verb, ...]], ...] = (
    ("going on", (
        Verb(("step", "next", "n"), "[COUNT]", "run the current node (or COUNT) and stop before the next", "optional"),
        Verb(("into", "s"), "", "run the current node and stop after it, with the gradients it produced"),
        Verb(("out", "finish", "f"), "", "run until the backward of the current module has ended"),
        Verb(("continue", "cont", "c"), "", "run to the next breakpoint, failure, or the end of the program"),
        Verb(("run-to", "to", "t"), "NODE", "run until node number NODE is about to run", "needed"),
        Verb(("until", "unt"), "NODE | SPEC", "the same, or until a node that SPEC names (train.py:31)", "needed"),
        Verb(("next-backward", "nb"), "", "run to the first node of the next backward"),
        Verb(("restart", "run", "r"), "", "end the program and start it again, with the breakpoints that are set"),
    )),
    ("looking back", (
        Verb(("back", "reverse-step", "rs"), "[COUNT]", "look at the node that ran before (COUNT before)", "optional"),
        Verb(("reverse-continue", "rc"), "", "go back to where a breakpoint would have stopped"),
        Verb(("goto",), "NODE", "look at a recorded node of this backward, in the past or back again", "needed"),
        Verb(("live",), "", "go from the past to where the program is"),
        Verb(("record",), "on|off", "record every node while running free too, for `back`", "needed"),
    )),
    ("where to stop", (
        Verb(("break", "b"), "[SPEC] [if CONDITION]", "stop before the nodes SPEC names", "optional"),
        Verb(("tbreak",), "SPEC [if CONDITION]", "the same, once", "needed"),
        Verb(("log", "dprintf"), "SPEC [if CONDITION] :: EXPRESSION", "print EXPRESSION there and go on", "needed"),
        Verb(("breakpoints", "breaks"), "", "list the breakpoints"),
        Verb(("delete", "d"), "NUMBER", "remove a breakpoint ($ is the last)", "needed"),
        Verb(("enable",), "NUMBER", "let a breakpoint stop the program again", "needed"),
        Verb(("disable",), "NUMBER", "let a breakpoint stop it no more, and keep it", "needed"),
        Verb(("ignore",), "NUMBER COUNT", "pass a breakpoint by the next COUNT times", "needed"),
        Verb(("catch",), "[nan|inf|violation|exception [on|off]]", "stop at trouble of a kind, or do not", "optional"),
        Verb(("save-breaks",), "FILE", "write the breakpoints as commands, for `source`", "needed"),
        Verb(("source",), "FILE", "carry out the commands in a file", "needed"),
    )),
    ("looking", (
        Verb(("print", "p"), "[EXPRESSION]", "print the current node and watches, or an expression", "optional"),
        Verb(("eval",), "EXPRESSION", "print a value made from grad, grads, produced, saved, norm, node", "needed"),
        Verb(("node", "info"), "[NUMBER]", "print a node of this backward: the current one, or another", "optional"),
        Verb(("list", "nodes", "l"), "[FROM [TO] | all]", "list nodes: + done, > next, < looked at", "optional"),
        Verb(("graph", "g"), "", "print the graph: every node, and where its gradients go"),
        Verb(("where", "backtrace", "bt", "w"), "", "the line that made the node, and those that led to backward()"),
        Verb(("frames", "locals"), "", "the functions of the program that wait, with their variables"),
        Verb(("watch", "display"), "[EXPRESSION]", "evaluate an expression at every stop", "optional"),
        Verb(("unwatch", "undisplay"), "NUMBER", "remove a watch", "needed"),
        Verb(("tasks",), "", "list the backwards in progress, one inside the other"),
        Verb(("threads",), "", "list the threads that have called backward()"),
        Verb(("thread",), "NUMBER", "stop in this thread only, from when the program goes on", "needed"),
    )),
    ("asking", (
        Verb(("findings", "wrong"), "", "what is wrong with this backward, the worst first, each with its line"),
        Verb(("limit", "limits"), "[NAME[=VALUE]]", "the numbers beyond which there is a finding; set one", "optional"),
        Verb(("parameters", "params"), "[PATTERN]", "every parameter, with its gradient's norm over time", "optional"),
        Verb(("compare",), "[BACKWARD | node N]", "a backward beside the last of its loss; two nodes", "optional"),
        Verb(("explain",), "[TOPIC]", "why it has stopped here; or a short text, such as explain nan", "optional"),
        Verb(("memory",), "[LOSS]", "what the graph of this backward, or of LOSS, keeps in memory", "optional"),
        Verb(("flow",), "[MODEL]", "how gradients have flowed so far, through all modules or MODEL", "optional"),
        Verb(("why",), "TENSOR [, LOSS]", "why a tensor has no gradient, or a zero one: why fc1.weight", "needed"),
        Verb(("what-if", "whatif"), "[SLOT] EXPRESSION", "what parameters would get from another gradient", "needed"),
    )),
    ("changing", (
        Verb(("set",), "[SLOT] EXPRESSION", "replace an incoming gradient, or after `into` a produced one", "needed"),
        Verb(("zero",), "[SLOT]", "set that gradient to zero", "optional"),
        Verb(("scale",), "[SLOT] FACTOR", "multiply that gradient by a number", "needed"),
        Verb(("skip",), "", "leave the node out that is about to run: it produces nothing"),
        Verb(("python", "!"), "STATEMENT", "run a Python statement in the paused function: !lr = 0.1", "needed"),
    )),
    ("ranks", (
        Verb(("rank",), "[RANK]", "list the ranks and where each waits, or look at another one", "optional"),
        Verb(("ranks",), "", "the norm of the current node on every rank, and whose graph differs"),
    )),
    ("leaving", (
        Verb(("abort",), "", "end the program here, and put .grad back as before this backward"),
        Verb(("detach",), "", "leave a program that was attached to: it runs on"),
        Verb(("quit", "q", "exit"), "", "end the program and leave; one that was attached to runs on"),
        Verb(("help", "h", "?"), "[VERB]", "print this help", "optional"),
    )),
)  # fmt: skip
"""What the verbs are for, and the verbs."""

VERBS: tuple[Verb, ...] = tuple(verb for _, verbs in SECTIONS for verb in verbs)

_WIDTH = 80
_COLUMN = 30
_BY_NAME = {name: verb for verb in VERBS for name in verb.names}

OF_THE_SHELL = frozenset({
    "agree", "attach", "check", "dap", "debug", "diff", "doctor", "export", "query", "report", "serve", "tour", "view",
})  # fmt: skip
"""The commands of ``gradscope`` of whose name there is no verb; texts recommend some of them."""


def find_verb(line: str) -> tuple[Verb, str]:
    """Return the verb of a line, and what follows it.

    Raises
    ------
    UsageError
        If there is no such verb, or what follows it cannot be right.

    Examples
    --------
    >>> verb, argument = find_verb("b op:Mul* if norm > 10")
    >>> verb.name, argument
    ('break', 'op:Mul* if norm > 10')
    """
    line = line.strip()
    name, _, argument = ("! " + line[1:] if line.startswith("!") else line).partition(" ")
    verb, argument = _BY_NAME.get(name), argument.strip()
    if verb is None and name in OF_THE_SHELL:
        raise UsageError(f"{name} is no command here but one of the shell: gradscope {name} --help")
    if verb is None:
        close = difflib.get_close_matches(name, _BY_NAME, 1)
        hint = f"did you mean {close[0]!r}?" if close else "`help` lists them"
        raise UsageError(f"there is no command {name!r}; {hint}")
    if argument and verb.argument == "none":
        raise UsageError(f"{verb.name} takes nothing, got {argument!r}")
    if not argument and verb.argument == "needed":
        raise UsageError(f"usage: {verb.name} {verb.usage}")
    return verb, argument


def split_commands(text: str) -> list[str]:
    """Return the commands of a ``-c`` string: parts between semicolons and newlines that stand outside quotes.

    Examples
    --------
    >>> split_commands("step; print '; '; quit")
    ['step', "print '; '", 'quit']
    """
    commands, current, quote = [], "", ""
    for character in text:
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        if character in ";\n" and not quote:
            commands.append(current)
            current = ""
        else:
            current += character
    return [command.strip() for command in [*commands, current] if command.strip()]


def help_text(verb: Verb | None = None) -> str:
    """Return what a verb does, or what all of them do, for a terminal of 80 columns.

    Examples
    --------
    >>> print(help_text(find_verb("step")[0]))
    step, next, n [COUNT]       run the current node (or COUNT) and stop before the
                                next
    """
    if verb is not None:
        return _entry(verb, "")
    parts = ["\n".join([title, *(_entry(verb, "  ") for verb in verbs)]) for title, verbs in SECTIONS]
    return "\n\n".join(parts)


def _entry(verb: Verb, indent: str) -> str:
    """Return a verb and its help in two columns; the help begins on a line of its own where the verb is long."""
    left = indent + f"{', '.join(verb.names)} {verb.usage}".rstrip()
    column = " " * (_COLUMN - 2 + len(indent))
    lines = textwrap.wrap(verb.help, _WIDTH - len(column), break_on_hyphens=False)
    if len(left) + 2 > len(column):
        return "\n".join([left, *(column + line for line in lines)])
    return "\n".join([left.ljust(len(column)) + lines[0], *(column + line for line in lines[1:])])
