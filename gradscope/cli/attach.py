"""``gradscope attach [WHERE]``: debug a program that runs."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import say
from .output import shows_screens, terminal_kept

if TYPE_CHECKING:
    from ..inspect.debugging.prompt.line_mode import LineMode
    from ..inspect.wire.client import RemoteDebugger

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 2

_TOKEN = "GRADSCOPE_TOKEN"

_DESCRIPTION = """\
Attach to a program that listens: one that called gradscope.inspect.listen(), that was started with GRADSCOPE_LISTEN=1
or by `python -m gradscope.debuggee SCRIPT`, or that waits in set_trace() without a terminal.
It stops at the next node of a backward. Leaving lets it run on; attach again as often as you like.

WHERE is the number of its process, the path of a Unix socket or tcp://HOST:PORT; without it, the one program of yours
that listens. With --ranks the session is with all ranks of a job that torchrun has started, and WHERE the process of
any of them, or nothing where there is one job. Over TCP the environment variable GRADSCOPE_TOKEN is the token that the
program was given.

exit status: 0; 1 if a command of -c failed; 2 if there is no such program, or it refuses"""

_EXAMPLES = """\
examples:
  gradscope attach
  gradscope attach 31337
  gradscope attach --line 31337
  gradscope attach -c 'print; where' 31337
  torchrun --nproc-per-node 2 -m gradscope.debuggee train.py & gradscope attach --ranks
  ssh -N -L /tmp/train.sock:/run/user/1000/gradscope/31337.sock server & gradscope attach /tmp/train.sock"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``attach`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "attach",
        help="debug a program that runs and listens",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    parser.add_argument("--line", action="store_true", help="a prompt instead of the terminal UI")
    parser.add_argument(
        "-c", dest="commands", metavar="COMMANDS", help="carry out debugger commands, and leave; needs no terminal"
    )
    parser.add_argument("--ranks", action="store_true", help="all ranks of a torch.distributed job")
    parser.add_argument("--non-stop", action="store_true", help="with --ranks: when one stops, the others go on")
    parser.add_argument("where", metavar="WHERE", nargs="?", help="a process, a socket or tcp://HOST:PORT")
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``where``, ``ranks``, ``line`` and ``commands``.
    """
    # The instruments load when the command runs.
    from ..inspect.debugging.prompt.prompt_verbs import UsageError, find_verb, split_commands
    from ..inspect.wire.client import connect

    try:
        commands = None if args.commands is None else split_commands(args.commands)
        for command in commands or ():
            find_verb(command)
        if not (shows_screens() or args.line or commands is not None):
            return _refuse(
                "the terminal UI needs a terminal that moves its cursor; use --line for a prompt, or -c COMMANDS"
            )
        if args.ranks:
            return _run_ranks(args, commands)
        if args.non_stop:
            return _refuse("--non-stop is about several ranks: add --ranks")
        debugger = connect(_address(args.where), os.environ.get(_TOKEN, "").encode())
    except (UsageError, OSError) as error:
        return _refuse(str(error))
    if args.line or commands is not None:
        return _run_line(debugger, commands)
    return _run_app(debugger)


def _address(where: str | None) -> Any:
    # The instruments load when the command runs.
    from ..inspect.wire.addresses import AddressError, listening_programs, parse_address

    if where is not None:
        return parse_address(where)
    found = listening_programs()
    if not found:
        raise AddressError(
            "no program of yours listens\n"
            "One does after gradscope.inspect.listen(), or when it was started with GRADSCOPE_LISTEN=1, a PyTorch "
            "program from its first call of a module on."
        )
    if len(found) > 1:
        raise AddressError(f"{len(found)} programs of yours listen, say which: {', '.join(map(str, found))}")
    return parse_address(str(found[0]))


def _run_ranks(args: argparse.Namespace, commands: list[str] | None) -> int:
    # The instruments load when the command runs.
    from ..inspect.ranks.rank_discovery import attach_ranks, find_ranks
    from ..inspect.ranks.rank_prompt import AttachedRankPrompt

    if args.where is not None and not args.where.isdecimal():
        return _refuse(f"ranks are found by the number of a process, got {args.where!r}")
    processes = find_ranks(None if args.where is None else int(args.where))
    if not args.line and commands is None:
        return _run_ranks_app(processes, non_stop=args.non_stop)
    mode = AttachedRankPrompt(attach_ranks(processes), non_stop=args.non_stop)
    status = _converse(mode, commands)
    ended, title = mode.group.ended, mode.group.title
    mode.group.detach()
    say(f"all ranks of {title} have ended" if ended else f"{len(processes)} ranks of {title} run on")
    return status


def _run_ranks_app(processes: list[int], *, non_stop: bool) -> int:
    # The instruments load when the command runs.
    from ..inspect.ranks.rank_discovery import attach_ranks
    from ..inspect.ranks.rank_session import RankSession

    try:
        from gradscope_tui.app import run_app  # it loads Textual, an optional dependency
    except ImportError as error:
        return _refuse(f"the terminal UI cannot be loaded ({error}); use `gradscope attach --ranks --line`")
    session = RankSession(attach_ranks(processes), non_stop=non_stop)
    session.join()
    status = run_app(session)  # type: ignore[arg-type] # it has the same verbs
    ended, title = session.ended, session.title
    session.detach()
    say(f"all ranks of {title} have ended" if ended else f"{len(processes)} ranks of {title} run on")
    return status


def _run_line(debugger: RemoteDebugger, commands: list[str] | None) -> int:
    # The instruments load when the command runs.
    from ..inspect.wire.attached_prompt import AttachedPrompt

    return _left(debugger, _converse(AttachedPrompt(debugger), commands))


def _converse(mode: LineMode, commands: list[str] | None) -> int:
    """Take commands from the prompt, or carry out those given; return the exit status."""
    try:
        with terminal_kept(watched=True):
            if commands is None:
                mode.run()
            else:
                mode.run_commands(commands)
    except KeyboardInterrupt:
        mode.interrupted = True
    return int(commands is not None and mode.failures > 0)


def _run_app(debugger: RemoteDebugger) -> int:
    try:
        from gradscope_tui.app import run_app  # it loads Textual, an optional dependency
    except ImportError as error:
        return _refuse(f"the terminal UI cannot be loaded ({error}); use `gradscope attach --line`")
    if str(debugger.state) == "running":
        debugger.pause()
    return _left(debugger, run_app(debugger))  # type: ignore[arg-type] # it has the same verbs


def _left(debugger: RemoteDebugger, status: int) -> int:
    """Detach, and say what has become of the program."""
    gone = debugger.ended
    debugger.detach()
    say(str(debugger.reason) if gone else f"{debugger.title} (process {debugger.pid}) runs on")
    return status


def _refuse(text: str) -> int:
    say(f"gradscope attach: {text}", file=sys.stderr)
    return 2
