"""``%%gradscope check``, ``record`` and ``doctor``: the lines of a cell under an instrument."""

from __future__ import annotations

import argparse
import os
import shlex
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.display import display

from ..check import Sanitizer, ScriptResult, Silences, make_report, read_settings, symptoms_of
from ..inspect import Doctor, open_recording, record
from ..inspect.debuggee.program import hide_instruments
from ..inspect.diagnosis.finding_limits import limits_from
from ..inspect.diagnosis.step_limit import EnoughSeen
from ..inspect.output.terminal_text import say
from ..inspect.recording import RecordingError
from ..inspect.source.source_paths import program_name
from .cell_runner import run_lines
from .check_result import CheckResult

__all__ = ["GradscopeMagics"]

_DESCRIPTION = """\
Run the cell under an instrument; what it has found is the cell's result, `_` in the next one. The cell computes what it
computes without. Options are those of the `gradscope` command, whose documentation says more."""


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are shown in one line, and which ends no process."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{self.prog}: {message}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise _HelpShownError

    def print_help(self, file: Any = None) -> None:
        say(self.format_help())


class _HelpShownError(Exception):
    """Help was asked for."""


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


def _parser(magics: GradscopeMagics) -> _Parser:
    parser = _Parser(prog="%%gradscope", description=_DESCRIPTION)
    commands = parser.add_subparsers(metavar="COMMAND", required=True)

    check = commands.add_parser("check", help="report in-place writes that spoil gradients")
    check.add_argument("--select", metavar="CODES", type=_words, help="look for these codes only: GS101,GS106")
    check.add_argument("--ignore", metavar="CODES", type=_words, help="and not for these")
    check.add_argument("--keep-going", action="store_true", help="go on with what was saved when it is written over")
    check.set_defaults(run=magics.check)

    recording = commands.add_parser("record", help="record every backward to a file")
    recording.add_argument("-o", "--output", metavar="FILE", help="the recording (default: the notebook's name)")
    recording.add_argument("--keep", default="summaries", metavar="WHAT", help="none, summaries, all, or param:*, ...")
    recording.add_argument("--last", type=int, metavar="N", help="keep values of the last N iterations only")
    recording.add_argument("--budget", metavar="SIZE", help="how large FILE may become, such as 200MB")
    recording.add_argument("--append", action="store_true", help="add a run to FILE instead of replacing it")
    recording.set_defaults(run=magics.record)

    doctor = commands.add_parser("doctor", help="say what is wrong with the gradients")
    doctor.add_argument("--functions", action="store_true", help="compare each custom backward input by input")
    doctor.add_argument("--steps", type=int, metavar="N", help="end the cell when an optimizer has stepped N times")
    doctor.add_argument("--limit", dest="limits", action="append", default=[], metavar="NAME=VALUE", help="of a rule")
    doctor.set_defaults(run=magics.doctor)
    return parser


@magics_class
class GradscopeMagics(Magics):
    """The magics that ``%load_ext gradscope`` adds."""

    @cell_magic
    def gradscope(self, line: str, cell: str) -> Any:
        """Run the cell under an instrument; ``%%gradscope --help`` lists them.

        Raises
        ------
        UsageError
            If the line cannot be understood.
        """
        __tracebackhide__ = True  # an error of the cell is shown without the frames that ran it
        try:
            options = _parser(self).parse_args(shlex.split(line))
        except _HelpShownError:
            return None
        except ValueError as error:  # a quotation that does not end
            raise UsageError(f"%%gradscope: {error}") from None
        run: Callable[[argparse.Namespace, Callable[[], BaseException | None]], Any] = options.run
        return run(options, lambda: run_lines(self.shell, f"%%gradscope {line}", cell))

    def check(self, options: argparse.Namespace, lines: Callable[[], BaseException | None]) -> CheckResult:
        """Return what the sanitizer has found in the lines."""
        __tracebackhide__ = True
        try:
            silences = _silences(options)
        except (OSError, ValueError) as refused:
            raise UsageError(f"%%gradscope check: {refused}") from None
        with Sanitizer(silences, keep_going=options.keep_going) as sanitizer:
            error = lines()
        result = ScriptResult("", (), error, 0 if error is None else 1, os.getcwd())
        found = CheckResult(make_report(sanitizer, result, notices=tuple(silences.notices(sources=()))))
        return _shown(found, error)

    def record(self, options: argparse.Namespace, lines: Callable[[], BaseException | None]) -> Any:
        """Return the recording of the lines."""
        __tracebackhide__ = True
        path = options.output or f"{os.path.splitext(program_name())[0]}.gscope"
        limits = {"last": options.last, "budget": options.budget}
        try:
            with record(path, options.keep, append=options.append, **limits) as recorder:
                error = lines()
        except (RecordingError, ValueError) as refused:
            raise UsageError(f"%%gradscope record: {refused}") from None
        return _shown(open_recording(recorder.path), error)

    def doctor(self, options: argparse.Namespace, lines: Callable[[], BaseException | None]) -> Any:
        """Return the diagnosis of the lines."""
        __tracebackhide__ = True
        try:
            limits = limits_from(options.limits)
            watch = Doctor(functions=options.functions, steps=options.steps, limits=limits)
        except ValueError as error:
            raise UsageError(f"%%gradscope doctor: {error}") from None
        with Sanitizer() as sanitizer, watch as doctor:
            raised = lines()
            doctor.explain(raised)
        diagnosis = replace(doctor.diagnosis, others=symptoms_of(sanitizer))
        return _shown(diagnosis, None if isinstance(raised, EnoughSeen) else raised)


def _silences(options: argparse.Namespace) -> Silences:
    """Return which findings are not told: as the project's settings say, with the options before them."""
    given = {name: codes for name in ("select", "ignore") if (codes := getattr(options, name)) is not None}
    return replace(read_settings(os.getcwd()), **given).check().silences()


def _shown(found: Any, error: BaseException | None) -> Any:
    """Return what was found; where the lines have raised, show what there is, and let the error end the cell."""
    __tracebackhide__ = True
    if error is None:
        return found
    if found:
        display(found)
    hide_instruments(error)
    raise error
