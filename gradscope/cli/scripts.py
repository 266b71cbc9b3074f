"""Scripts on the command line, for the commands that run one: its arguments, and the exit without it."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Collection, Mapping
from typing import NoReturn

__all__ = [
    "SCRIPT",
    "add_format_argument",
    "add_limit_argument",
    "add_script_arguments",
    "leave",
    "positive",
    "refuse_unused",
    "take_output",
]

SCRIPT = "SCRIPT is a file, a directory or zip file with a __main__.py, or a module (with -m, as `python -m` runs it)."
"""For the description of a command."""


def add_script_arguments(parser: argparse.ArgumentParser, *, optional: bool = False) -> None:
    """Add ``-m``, the script and its own arguments, which come last.

    Parameters
    ----------
    optional : bool
        Whether the command does something without a script.
    """
    parser.add_argument("-m", dest="module", action="store_true", help="SCRIPT is the name of a module or package")
    parser.add_argument("script", metavar="SCRIPT", nargs="?" if optional else None, help="the script to run")
    rest = parser.add_argument("args", nargs=argparse.REMAINDER, metavar="args", help="the script's own arguments")
    # Otherwise argparse lists it among what is missing when SCRIPT is.
    rest.required = False


def add_limit_argument(parser: argparse.ArgumentParser, user: str) -> None:
    """Add ``--limit NAME=VALUE``, which can be given several times.

    Parameters
    ----------
    user : str
        ``'doctor'`` or ``'debugger'``, whose findings have the limits.
    """
    # The commands without limits do not load them.
    from ..inspect.diagnosis.finding_limits import limits_of

    usual = ", ".join(f"{name}={value:g}" for name, value in limits_of(user).items())
    parser.add_argument(
        "--limit",
        dest="limits",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="a number beyond which a finding is made, in place of the usual one; can be given several times. "
        f"The names, and the usual numbers: {usual}",
    )


def take_output(args: argparse.Namespace, endings: Collection[str]) -> None:
    """Take a last ``-o FILE`` for the command's, though it stands where the script's own arguments do.

    That is where people write it. A script with such an option itself gets it where the command has been given its own.

    Parameters
    ----------
    args : argparse.Namespace
        ``output`` and ``args``, which are changed.
    endings : collection of str
        Of the files that the command writes, such as ``.svg``: another file is the script's.
    """
    option = args.args[-2:-1]
    if (
        args.output is None
        and option in (["-o"], ["--output"])
        and os.path.splitext(args.args[-1])[1].lower() in endings
    ):
        args.args, args.output = args.args[:-2], args.args[-1]


def refuse_unused(args: argparse.Namespace, modes: Mapping[str, tuple[str, Collection[str]]]) -> None:
    """Refuse options that a mode of the command would pass over.

    Parameters
    ----------
    args : argparse.Namespace
        The options, each false where it was not given.
    modes : mapping of str to tuple
        For the option that asks for a mode: what the mode does, and the options that mean nothing to it.

    Raises
    ------
    ValueError
        If a mode is asked for together with one of them.

    Examples
    --------
    >>> import argparse
    >>> args = argparse.Namespace(static=True, first=True)
    >>> refuse_unused(args, {"--static": ("runs nothing", ("--first",))})
    Traceback (most recent call last):
        ...
    ValueError: --static runs nothing: leave out --first
    """

    def given(option: str) -> bool:
        return bool(getattr(args, option.removeprefix("--").replace("-", "_")))

    for mode, (what, options) in modes.items():
        unused = [option for option in options if given(option)]
        if given(mode) and unused:
            raise ValueError(f"{mode} {what}: leave out {', '.join(unused)}")


def add_format_argument(parser: argparse.ArgumentParser) -> None:
    """Add ``--format``, of a report on a script."""
    parser.add_argument(
        "--format",
        choices=("text", "json"),
        default="text",
        help="text after the script's own output (default), or JSON on stdout with the script's output on stderr",
    )


def positive(text: str) -> int:
    """Return a number that an option takes, 1 or more.

    Raises
    ------
    argparse.ArgumentTypeError
        If it is none.
    """
    number = int(text) if text.isascii() and text.isdigit() else 0
    if number < 1:
        raise argparse.ArgumentTypeError(f"a positive number is wanted, got {text!r}")
    return number


def leave(status: int) -> NoReturn:
    """End the process though threads of a script run on, for which python would wait.

    Parameters
    ----------
    status : int
        The exit status.
    """
    processes = sys.modules.get("multiprocessing")
    for child in processes.active_children() if processes is not None else ():
        child.terminate()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # full, closed by the script, or gone
            pass
    os._exit(status)
