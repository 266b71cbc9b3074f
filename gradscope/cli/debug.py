"""``gradscope debug SCRIPT [args]``: run a script and stop inside its backward passes."""

from __future__ import annotations

import argparse
import signal
import sys
from typing import TYPE_CHECKING, Any

from ..inspect.output.terminal_text import say
from .output import serves_browser, shows_screens, terminal_kept
from .scripts import SCRIPT, add_limit_argument, add_script_arguments, positive

if TYPE_CHECKING:
    from ..inspect.wire.program_process import ProgramProcess

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 1

_INTERRUPTED = 130

_SIGNALLED = 128
"""Where exit statuses begin that tell of a signal."""

_HUNG_UP = _SIGNALLED + 1
"""The exit status after SIGHUP, with which a terminal goes: nobody reads the last words."""

_LEAVE = 2.0
"""Seconds that an ended script is given."""

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would, and stop before the first node of its first backward pass.
{SCRIPT}

exit status: the script's own; 1 if it raised, never called backward(), or a command of -c or --commands failed; 2 if
the command line is wrong or there is no such script; 130 after a second Ctrl-C; 128 and its number where a signal ended
the script, or one such as SIGTERM the terminal UI"""

_EXAMPLES = """\
examples:
  gradscope debug train.py --epochs 1
  gradscope debug -m package.train --epochs 1
  gradscope debug --line train.py
  gradscope debug -c 'break param:fc1.weight if isnan(grad); continue; print; quit' train.py
  gradscope debug --commands nightly.txt train.py < data.csv
  gradscope debug --nproc-per-node 2 train.py

stdin: with -c or --commands it is the script's, and so it is at the prompt of --line on a terminal, while the script
runs; in the terminal UI `>` types a line for the script; where the prompt reads a pipe, the script's stdin is empty.

Ctrl-C pauses the script at its next node, a second one ends it. Other signals reach the handlers that it has set."""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``debug`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "debug",
        help="run a script and step through its backward passes",
        description=_DESCRIPTION,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope debug [-h] [--line] [--nproc-per-node N] [--non-stop] [--limit NAME=VALUE]\n"
        "                       [-c COMMANDS] [--commands FILE] [-m] SCRIPT [args ...]",
        allow_abbrev=False,
    )
    parser.add_argument("--line", action="store_true", help="a prompt instead of the terminal UI")
    parser.add_argument("--nproc-per-node", type=positive, metavar="N", help="start N ranks, as torchrun does")
    parser.add_argument("--non-stop", action="store_true", help="with several ranks: when one stops, the others go on")
    add_limit_argument(parser, "debugger")
    parser.add_argument(
        "-c",
        dest="commands",
        action="append",
        type=_from_text,
        metavar="COMMANDS",
        help="carry out debugger commands, separated by semicolons, and leave; needs no terminal; may be repeated",
    )
    parser.add_argument(
        "--commands",
        dest="commands",
        action="append",
        type=_from_file,
        metavar="FILE",
        help="the same from a file: lines of commands, comments after #",
    )
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def _from_text(text: str) -> tuple[str, str]:
    return "-c", text


def _from_file(path: str) -> tuple[str, str]:
    # The instruments load when the command runs.
    from ..inspect.debugging.prompt.prompt_verbs import UsageError, read_commands

    try:
        return path, "\n".join(read_commands(path))
    except OSError as error:
        raise argparse.ArgumentTypeError(f"cannot read {path!r}: {error.strerror}") from None
    except UsageError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args``, ``line``, ``limits`` and ``commands``.
    """
    # The instruments load when the command runs.
    from ..inspect.debuggee.script_targets import find_target
    from ..inspect.diagnosis.finding_limits import limits_from
    from ..inspect.wire.channel import ChannelError
    from ..inspect.wire.program_process import ProgramProcess

    try:
        limits_from(args.limits, "debugger")
        commands = _commands(args.commands) if args.commands else None
        find_target(args.script, module=args.module)  # what is wrong with it is said before a process starts
    except (ValueError, OSError, ImportError) as error:  # a UsageError is a ValueError
        return _refuse(str(error))
    terminal = serves_browser() or (sys.stdin.isatty() and sys.stdout.isatty())
    plain = args.line or commands is not None
    if not (plain or shows_screens()):
        return _refuse(
            "the terminal UI needs a terminal that moves its cursor; use `gradscope debug --line SCRIPT` for a prompt, "
            "or -c COMMANDS"
        )
    if args.non_stop and not args.nproc_per_node:
        return _refuse("--non-stop is about several ranks: add --nproc-per-node N")
    # A script cannot share stdin with the prompt, unless a person types there, who sees which of them asks.
    target = [*(["-m"] if args.module else []), args.script, *args.args]
    if args.nproc_per_node:
        with terminal_kept(watched=plain):
            return _run_ranks(target, args, commands) if plain else _run_ranks_app(target, args)
    with terminal_kept(watched=plain):
        process = ProgramProcess(target, terminal=commands is None and terminal, stdin=0 if commands else None)
        try:
            if args.limits:
                _set_limits(process.debugger, args.limits)
            status, text = _run_line(process, commands) if plain else _run_app(process)
        except ChannelError as error:
            return _refuse(f"{args.script} could not be started: {error}")
    try:
        say(text, file=sys.stderr if status else sys.stdout)
    except OSError:
        if status != _HUNG_UP:
            raise
        sys.stderr = None  # python's last flush would fail too, and change the exit status
    return status


def _set_limits(session: Any, settings: list[str]) -> None:
    for setting in settings:
        session.set_limit(setting)


def _commands(given: list[tuple[str, str]]) -> list[str]:
    """Return the commands of all options; raise UsageError, naming the option or file, if one cannot be understood."""
    # The instruments load when the command runs.
    from ..inspect.debugging.prompt.prompt_verbs import UsageError, find_verb, split_commands

    commands = []
    for origin, text in given:
        try:
            found = split_commands(text)
            for command in found:
                find_verb(command)
        except UsageError as error:
            raise UsageError(f"{origin}: {error}") from None
        if not found:
            raise UsageError(f"{origin} needs at least one command, such as 'step; print; continue'")
        commands += found
    return commands


def _run_line(process: ProgramProcess, commands: list[str] | None) -> tuple[int, str]:
    """Run the session at a prompt; return the exit status, and the line that says how it ended."""
    # The instruments load when the command runs.
    from ..inspect.wire.process_prompt import ProcessPrompt, SignalledError

    mode = ProcessPrompt(process)
    debugger = process.debugger
    try:
        with mode.signals_passed_on():
            if commands is None:
                mode.run()
            else:
                mode.run_commands(commands)
                process.wait_unseen()
    except SignalledError:
        pass
    except KeyboardInterrupt:  # one that came between two waits
        mode.interrupted = True
        debugger.abort()
        debugger.wait(_LEAVE)
    except BrokenPipeError:  # nobody reads on; the script has exit handlers, which PyTorch needs too
        mode.end_echo()
        debugger.abort()
        debugger.wait(_LEAVE)
        process.end()
        raise
    status, text = mode.conclude()
    if mode.interrupted:
        status = _INTERRUPTED
    if mode.mid_line and (not status or mode.stdout.isatty()):
        text = "\n" + text
    return status or int(commands is not None and mode.failures > 0), text


def _run_ranks(target: list[str], args: argparse.Namespace, commands: list[str] | None) -> int:
    """Run a session with all ranks at a prompt; return the exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.launch import start_ranks
    from ..inspect.ranks.rank_prompt import StartedRankPrompt
    from ..inspect.wire.channel import ChannelError

    processes = start_ranks(target, args.nproc_per_node)
    try:
        mode = StartedRankPrompt(processes, non_stop=args.non_stop)
        _set_limits(mode.group, args.limits)
    except ChannelError as error:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        return _refuse(f"{args.script} could not be started: {error}")
    try:
        if commands is None:
            mode.run()
        else:
            mode.run_commands(commands)
    finally:
        if not mode.group.ended:
            mode.group.abort()
        status, text = mode.conclude()
    say(text, file=sys.stderr if status else sys.stdout)
    return _INTERRUPTED if mode.interrupted else status or int(commands is not None and mode.failures > 0)


def _run_ranks_app(target: list[str], args: argparse.Namespace) -> int:
    """Run a session with all ranks in the terminal UI; return the exit status."""
    # The instruments load when the command runs.
    from ..inspect.ranks.launch import conclude_ranks, renew_ranks, start_ranks
    from ..inspect.ranks.rank_session import RankSession
    from ..inspect.wire.channel import ChannelError

    try:
        from gradscope_tui.app import run_app  # it loads Textual, an optional dependency
    except ImportError as error:
        return _refuse(f"the terminal UI cannot be loaded ({error}); use `gradscope debug --line SCRIPT`")
    processes = start_ranks(target, args.nproc_per_node)
    try:
        session = RankSession([process.debugger for process in processes], non_stop=args.non_stop)
        _set_limits(session, args.limits)
    except ChannelError as error:
        for process in processes:
            process.send_signal(signal.SIGTERM)
        return _refuse(f"{args.script} could not be started: {error}")
    session.renew = lambda: renew_ranks(processes)
    try:
        failed = run_app(session)  # type: ignore[arg-type] # it has the same verbs
    finally:
        session.abort()
        status, text = conclude_ranks(processes)
    say(text, file=sys.stderr if status else sys.stdout)
    return failed if failed > _SIGNALLED else status or failed


def _run_app(process: ProgramProcess) -> tuple[int, str]:
    try:
        from gradscope_tui.app import run_app  # it loads Textual, an optional dependency
    except ImportError as error:
        process.end()
        return 2, f"gradscope debug: the terminal UI cannot be loaded ({error}); use `gradscope debug --line SCRIPT`"
    failed = run_app(process.debugger)  # type: ignore[arg-type] # it has the same verbs
    # What the program has printed is said again when the screen is gone, its traceback too, but not in a browser.
    traceback = process.debugger.traceback if serves_browser() else ""
    status, text = process.conclude()
    return failed if failed > _SIGNALLED else status or failed, traceback + text


def _refuse(text: str) -> int:
    say(f"gradscope debug: {text}", file=sys.stderr)
    return 2
