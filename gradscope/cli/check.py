"""``gradscope check SCRIPT [args]``: run a script and report each in-place write that spoils a gradient."""

from __future__ import annotations

import argparse
import contextlib
import math
import os
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from ..inspect.output.terminal_text import say
from .output import own, stdout_on_stderr
from .scripts import SCRIPT, add_script_arguments, refuse_unused

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ..check import Report, Sanitizer, ScriptResult, Settings
    from ..check.exact.line_finder import SavedOnce
    from ..inspect import Location
    from ..inspect.ranks.live_agreement import LiveAgreement
    from ..inspect.ranks.live_hangs import HangWatcher
    from ..inspect.records.before_step.forward_log import ForwardAccount

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 2

NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_TIMEOUT = 60  # seconds

# What a mode has no use for: whoever asks for both is told, for one of the two would be passed over.
_OF_A_RUN = ("--exact", "--first", "--keep-going")
_OF_A_REPORT = (
    "--format",
    "--output-file",
    "--select",
    "--ignore",
    "--suppressions",
    "--baseline",
    "--update-baseline",
)
_OF_RANKS = ("--static", *_OF_A_RUN, *_OF_A_REPORT, "--statistics", "--exit-zero")
_MODES = {"--ranks": ("compares ranks", _OF_RANKS), "--static": ("runs nothing", _OF_A_RUN)}

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would, and report where tensors that backward needs are written in place: where
each was saved, where it was written, where it was needed. Writes that no version counts, through .data or NumPy, are
found by their values. The script computes what it computes without. With --static nothing runs.
With --ranks, in a job that torchrun has started, tell instead when the ranks no longer hold the same parameters and
reduced gradients: the first rank that sees it ends its script, with the parameter, the likely cause and its lines; and
when they wait for each other in collectives: one ends its script, with the collective and the line of each.
{SCRIPT}

Options may stand in pyproject.toml, as [tool.gradscope.check] with the names that they have here.

exit status: 0 nothing found (or --exit-zero), 1 findings, 2 wrong usage or settings, or the script could not be run, or
failed for another reason, or nothing was found but gradscope's own code failed, so that not all was looked into, 130
after Ctrl-C, which ends the script: what was found until then is reported"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``check`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "check",
        help="run a script and report in-place writes that spoil gradients",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope check [-h] [options] [-m] SCRIPT [args ...]",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--format",
        type=_format,
        metavar="FORMAT",
        help="text (default) or concise, for people; github, annotations in a pull request; json, sarif or junit, for "
        "which the script's own output goes to stderr unless there is --output-file",
    )
    parser.add_argument("--output-file", metavar="FILE", help="write the report there, instead of on stdout")
    parser.add_argument(
        "--select",
        metavar="CODES",
        type=_words,
        help="look for these codes only: GS101,GS106; GS,GS112 adds what is opt-in to all others",
    )
    parser.add_argument("--ignore", metavar="CODES", type=_words, help="and not for these; GS10 is all that begin so")
    parser.add_argument("--suppressions", metavar="FILE", help="lines CODE:PATTERN, by library, file and function")
    parser.add_argument("--baseline", metavar="FILE", help="tell only what is not in this file of known findings")
    parser.add_argument(
        "--update-baseline", action="store_true", help="write what this run finds into the baseline, and exit 0"
    )
    parser.add_argument("--statistics", action="store_true", help="tell how many findings there are of each code")
    parser.add_argument(
        "--static",
        action="store_true",
        help="run nothing: read files and directories, SCRIPT [args ...], and tell what is sure from the source alone",
    )
    parser.add_argument(
        "--exact",
        action="store_true",
        default=None,
        help="run the script a second time, with the same seeds, to find the line of a write that nothing counts",
    )
    parser.add_argument("--first", action="store_true", default=None, help="end the script at the first finding")
    parser.add_argument(
        "--keep-going",
        action="store_true",
        default=None,
        help="keep what was saved when it is written over, and go on with it: one run tells all violations, and how "
        "wrong each gradient would have been",
    )
    parser.add_argument("--exit-zero", action="store_true", default=None, help="exit with 0 though there are findings")
    parser.add_argument("--ranks", action="store_true", help="end the script when ranks of a job no longer agree")
    parser.add_argument(
        "--timeout",
        type=_seconds,
        metavar="SECONDS",
        help="with --ranks: how long all ranks may wait in collectives before they count as hanging (default "
        f"{_TIMEOUT}; 0: for ever)",
    )
    parser.add_argument("--explain", action=_Explain, metavar="CODE", help="print what a code such as GS101 means")
    add_script_arguments(parser)
    parser.set_defaults(run=run)
    return parser


def _format(text: str) -> str:
    # The formats load when one is named.
    from ..check import format_named

    try:
        return format_named(text).name
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _seconds(text: str) -> float:
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise argparse.ArgumentTypeError(f"{text!r} is no time in seconds")
    return seconds


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(","))


class _Explain(argparse.Action):
    """Prints the explanation of a code and leaves, as ``--help`` does."""

    def __call__(
        self, parser: argparse.ArgumentParser, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        # The instruments load when the command runs.
        from ..check.findings.finding_codes import CODES, explain

        if values.upper() not in CODES:
            parser.error(f"argument --explain: no code {values!r}; there are {', '.join(CODES)}")
        say(explain(values))
        parser.exit()


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args``, and the options.
    """
    try:
        refuse_unused(args, _MODES)
        if args.timeout is not None and not args.ranks:
            raise ValueError("--timeout is for ranks that wait for each other: add --ranks")
        if args.ranks:
            return _check_ranks(args)
        check = _Check(args)
    except (OSError, ValueError) as error:
        say(f"gradscope check: {_words_of(error)}", file=sys.stderr)
        return FAILED
    with check.stream() as stream:
        return check.run(stream)


def _check_ranks(args: argparse.Namespace) -> int:
    """Run the script as a rank that is compared with rank 0; return the exit status."""
    # The instruments load when the command runs.
    from ..check import run_script
    from ..inspect.debuggee.program import print_uncaught
    from ..inspect.ranks.live_agreement import LiveAgreement, RanksDisagreeError
    from ..inspect.records.own_rank import own_rank

    place = own_rank()
    if place.world < 2:
        say(
            "gradscope check: --ranks: this process is no rank among others\n"
            "Start it with `torchrun --nproc-per-node N -m gradscope check --ranks SCRIPT`.",
            file=sys.stderr,
        )
        return FAILED
    limit = _TIMEOUT if args.timeout is None else args.timeout
    try:
        with LiveAgreement(place, _note) as watch, _watching(watch, limit) as hangs:
            result = run_script(args.script, args.args, module=args.module)
            if hangs is not None and result.error is not None:
                hangs.failed(result.error)
    except (OSError, ImportError) as error:
        say(f"gradscope check: {error}", file=sys.stderr)
        return FAILED
    if isinstance(result.error, RanksDisagreeError):
        say(str(result.error))
        return FOUND
    if result.error is not None:
        print_uncaught(result.error)
        if hangs is not None and isinstance(result.error, RuntimeError):
            _tell_of_others(hangs)
    elif place.rank != watch.first or watch.note:
        compared = f"{watch.steps} steps agreed with rank {watch.first}'s"
        if watch.steps and not watch.tensors:
            compared = f"it holds nothing that rank {watch.first} holds too and that could disagree"
        say(f"rank {place.rank}: {watch.note or compared}")
    return FAILED if result.exit_code else NOTHING_FOUND


def _tell_of_others(hangs: HangWatcher) -> None:
    """Say what others have done that came to their ends, upon which a collective may have failed here."""
    # The instruments load when the command runs.
    from ..inspect.adapters.event_guards import fault_of, own_error

    try:
        for told in hangs.others_before():
            _note(told)
    except Exception as error:
        _note(own_error(fault_of(error)))


def _note(text: str) -> None:
    say(f"gradscope check: {text}", file=sys.stderr)


def _watching(watch: LiveAgreement, limit: float) -> contextlib.AbstractContextManager[HangWatcher | None]:
    """Return what ends the process when the ranks hang, which no exception could: the main thread is in C++."""
    # The instruments load when the command runs.
    from ..inspect.ranks.live_hangs import hang_text

    def end(places: Mapping[int, str], accounts: Mapping[int, ForwardAccount]) -> None:
        say(hang_text(places, limit, accounts))
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(FOUND)

    return watch.watcher(limit, hangs=end, note=_note) if limit else contextlib.nullcontext()


def _words_of(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return str(error)


def _settings(args: argparse.Namespace) -> Settings:
    """Return the settings of the project, with the options of the command line before them."""
    # The instruments load when the command runs.
    from ..check import Settings, read_settings

    given = {name: getattr(args, name) for name in Settings.__slots__}
    settings = replace(
        read_settings(os.getcwd()), **{name: value for name, value in given.items() if value is not None}
    )
    return settings.check()


def _writable(filename: str) -> str:
    """Return the absolute name of a file that can be written; raise OSError for another."""
    path = os.path.abspath(filename) if filename else ""
    there = os.path.exists(path)
    if path:
        open(path, "a", encoding="utf-8").close()
        if not there:
            os.unlink(path)
    return path


class _Check:
    """The command, with all that its options name read before the script runs.

    Parameters
    ----------
    args : argparse.Namespace
        As for :func:`run`.

    Raises
    ------
    OSError, ValueError
        If settings, suppressions or baseline cannot be read, or options do not go together.
    """

    def __init__(self, args: argparse.Namespace) -> None:
        # The instruments load when the command runs.
        from ..check import format_named

        self._args = args
        if args.static and (args.module or any(path.startswith("-") for path in args.args)):
            raise ValueError("--static takes files and directories, and options before them: no -m, and no arguments")
        settings = self._settings = _settings(args)
        if args.update_baseline and not settings.baseline:
            raise ValueError("--update-baseline: name the file, --baseline FILE")
        if args.statistics and settings.format not in ("text", "concise"):
            raise ValueError(f"--statistics is text; leave --format {settings.format} out")
        self._format = format_named(settings.format)
        self._silences = settings.silences(update_baseline=args.update_baseline)
        # Named from where the command is started, and found to be writable before the script has run for a day.
        self._output_file = _writable(settings.output_file)
        if args.update_baseline:
            _writable(settings.baseline)

    def stream(self) -> contextlib.AbstractContextManager[TextIO]:
        """Return where the report goes if it is not to go to a file: a stream that the script cannot take away."""
        alone = self._format.alone and not self._output_file
        return stdout_on_stderr() if alone else own(sys.stdout)

    def run(self, stream: TextIO) -> int:
        """Run the script, or read it, write the report, and return the exit status."""
        return self._read_sources(stream) if self._args.static else self._run_script(stream)

    def _read_sources(self, stream: TextIO) -> int:
        # The instruments load when the command runs.
        from ..check import check_sources, make_static_report

        paths = [self._args.script, *self._args.args]
        try:
            told = check_sources(paths, self._silences)
        except OSError as error:
            say(f"gradscope check: {_words_of(error)}", file=sys.stderr)
            return FAILED
        status = self._found if told.findings else FAILED if told.unread else NOTHING_FOUND
        notices = () if self._updated_baseline() else tuple(self._silences.notices(sources=told.files))
        self._write(make_static_report(told, paths, os.getcwd(), status, notices), stream)
        return status

    def _run_script(self, stream: TextIO) -> int:
        # The instruments load when the command runs.
        from ..check import Sanitizer, run_script
        from ..inspect.debuggee.program import print_uncaught
        from ..inspect.debuggee.streams import flush

        args, pid = self._args, os.getpid()
        if self._settings.exact:
            self._seed()
        try:
            settings = self._settings
            with Sanitizer(self._silences, first=settings.first, keep_going=settings.keep_going) as sanitizer:
                result = run_script(
                    args.script,
                    args.args,
                    module=args.module,
                    on_exit=lambda result: self._end(sanitizer, result, stream),
                )
        except (OSError, ImportError) as error:
            say(f"gradscope check: {error}", file=sys.stderr)
            return FAILED
        flush()
        if result.error is not None and not sanitizer.explains(result.error):
            print_uncaught(result.error)
        if os.getpid() != pid:  # a child that the script has forked
            return result.exit_code
        return self._end(sanitizer, result, stream)

    def _end(self, sanitizer: Sanitizer, result: ScriptResult, stream: TextIO) -> int:
        """Write the report, and the baseline, and return the exit status."""
        # The instruments load when the command runs.
        from ..inspect.adapters.event_guards import fault_of, own_error

        try:
            return self._report(sanitizer, result, stream)
        except OSError:  # of the file or the terminal that the report goes to
            raise
        except Exception as error:  # to the script it is no error, and to whoever asks for the status no finding
            say(f"gradscope check: there is no report: {own_error(fault_of(error))}", file=sys.stderr)
            return FAILED

    def _report(self, sanitizer: Sanitizer, result: ScriptResult, stream: TextIO) -> int:
        # The instruments load when the command runs.
        from ..check import make_report

        if self._settings.exact:
            sanitizer.place_writes(lambda wanted: self._find_lines(wanted, result.directory))
        status = self._status(sanitizer, result)
        if status == FAILED and result.exit_code and result.error is None:
            say(f"gradscope check: {self._args.script} ended with exit status {result.exit_code}", file=sys.stderr)
        notices = () if self._updated_baseline() else tuple(self._silences.notices(result.filename))
        self._write(make_report(sanitizer, result, status, notices), stream)
        return status

    def _seed(self) -> None:
        # The instruments load when the command runs.
        from ..check.exact.second_run import seed_all

        seed_all()

    def _find_lines(self, wanted: Iterable[SavedOnce], directory: str) -> dict[SavedOnce, Location]:
        # The instruments load when the command runs.
        from ..check.exact.second_run import find_lines

        args = self._args
        return find_lines(wanted, args.script, args.args, module=args.module, directory=directory)

    def _updated_baseline(self) -> bool:
        """Write what was found into the baseline, where that is asked for."""
        baseline = self._silences.baseline
        if not self._args.update_baseline or baseline is None:
            return False
        count = baseline.write()
        findings = "finding" if count == 1 else "findings"
        say(f"gradscope check: {count} {findings} in {self._settings.baseline}", file=sys.stderr)
        return True

    def _status(self, sanitizer: Sanitizer, result: ScriptResult) -> int:
        if isinstance(result.error, KeyboardInterrupt):
            return result.exit_code
        if sanitizer.findings:
            return self._found
        return FAILED if result.exit_code or sanitizer.faults else NOTHING_FOUND

    @property
    def _found(self) -> int:
        """The exit status with findings."""
        return NOTHING_FOUND if self._settings.exit_zero or self._args.update_baseline else FOUND

    def _write(self, report: Report, stream: TextIO) -> None:
        # The instruments load when the command runs.
        from ..check.formats.text_report import statistics, summary

        text = statistics(report) if self._args.statistics else self._format.write(report)
        if not self._output_file:
            say(text, end="", file=stream)
            return
        with open(self._output_file, "w", encoding="utf-8") as file:
            say(text, end="", file=file)
        say(f"gradscope check: {summary(report)} The report is in {self._settings.output_file}.", file=sys.stderr)
