"""``gradscope doctor [SCRIPT [args]]``: what is wrong with a script's gradients, or with this installation."""

from __future__ import annotations

import argparse
import os
import platform
import shutil
import sys
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TextIO

from gradscope import __version__

from ..inspect.output.terminal_text import json_text, say
from .output import report_stream
from .scripts import SCRIPT, add_format_argument, add_limit_argument, add_script_arguments, positive

if TYPE_CHECKING:
    from ..check import ScriptResult
    from ..inspect import Diagnosis

__all__ = ["PLACE", "add_parser", "run"]

PLACE = 4

NOTHING_FOUND, FOUND, FAILED = 0, 1, 2

_DESCRIPTION = f"""\
Run a script as `python SCRIPT args` would and report what is wrong with its gradients: in-place writes that spoil one
(as `gradscope check` does), parameters without one and why, where NaN and Inf come from, gradients that vanish or
explode, are zero or share memory, gradients that an optimizer uses twice or never, parameters that no optimizer holds,
optimizers that never step, graphs that grow from one iteration to the next, and causes: modes, losses, initialisation,
steps that are too large or too small, masks, hidden states, precision. Frozen parameters are named below. The
script computes what it computes without, more slowly.
{SCRIPT}

Of a recording, which is not run, report what its gradients show: NaN and Inf, zeros, gradients that vanish or explode,
and since which backward.

Without SCRIPT, report on the installation: what was found, what is missing and how to install it.

exit status: 0 nothing found, 1 findings, 2 the script could not be run, or failed, 130 after Ctrl-C, which ends the
script: what was found until then is reported"""


def add_parser(subparsers: Any) -> argparse.ArgumentParser:
    """Add ``doctor`` to the command's subparsers."""
    parser: argparse.ArgumentParser = subparsers.add_parser(
        "doctor",
        help="run a script and report what is wrong with its gradients; alone, report on the installation",
        description=_DESCRIPTION,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        usage="gradscope doctor [-h] [--format {text,json}] [--functions] [--steps N]\n"
        "                        [--limit NAME=VALUE] [-m] [SCRIPT [args ...]]",
        allow_abbrev=False,
    )
    add_format_argument(parser)
    parser.add_argument(
        "--functions",
        action="store_true",
        help="when the script has ended, compare the backward of each custom Function with finite differences of its "
        "forward one input at a time, on copies of its first inputs; otherwise all inputs are moved at once, and "
        "Functions that were given more than tensors, numbers and text are left alone",
    )
    parser.add_argument(
        "--steps",
        type=positive,
        metavar="N",
        help="end the script when one of its optimizers has stepped N times; rules that compare steps need 6",
    )
    add_limit_argument(parser, "doctor")
    add_script_arguments(parser, optional=True)
    parser.set_defaults(run=run)
    return parser


def run(args: argparse.Namespace) -> int:
    """Run the command; return its exit status.

    Parameters
    ----------
    args : argparse.Namespace
        ``script``, ``module``, ``args``, ``format``, ``functions``, ``steps`` and ``limits``.
    """
    if args.script is None:
        unused = [option for option, value in _options_of_a_run(args).items() if value]
        if unused:
            say(f"gradscope doctor: {', '.join(unused)}: there is no SCRIPT to run; name one", file=sys.stderr)
            return FAILED
        return _installation(args.format)
    # What knows a recording by its first bytes loads when the command runs.
    from ..inspect.debuggee.script_targets import is_recording

    with report_stream(args.format) as stream:
        if not args.module and is_recording(args.script):
            return _examine_recording(args, stream)
        return _examine(args, stream)


def _examine_recording(args: argparse.Namespace, stream: TextIO) -> int:
    """Report on what a recording holds, and return the exit status."""
    # The instruments load when the command runs.
    from ..inspect import RecordingError, open_recording
    from ..inspect.diagnosis.finding_limits import DEBUGGER, limits_from
    from ..inspect.recording.reports.recorded_diagnosis import diagnose_recording

    given = {"--functions": args.functions, "--steps": args.steps, "arguments": args.args}
    unused = [option for option, value in given.items() if value]
    if unused:
        say(f"gradscope doctor: {', '.join(unused)}: a recording is not run", file=sys.stderr)
        return FAILED
    try:
        limits = limits_from(args.limits, DEBUGGER)
        with open_recording(args.script) as recording:
            diagnosis = diagnose_recording(recording, limits)
    except (ValueError, OSError, RecordingError) as error:
        say(f"gradscope doctor: {error}", file=sys.stderr)
        return FAILED
    status = FOUND if diagnosis else NOTHING_FOUND
    facts = {"schema": 1, "recording": args.script, "exit_status": status}
    as_text = args.format == "text"
    said = str(diagnosis) if as_text else json_text({**facts, **diagnosis.to_dict()}, indent=2)
    say(said, file=stream)
    return status


def _options_of_a_run(args: argparse.Namespace) -> dict[str, Any]:
    """Return the options that mean nothing without a script, and what they were given."""
    return {"-m": args.module, "--functions": args.functions, "--steps": args.steps, "--limit": args.limits}


def _examine(args: argparse.Namespace, stream: TextIO) -> int:
    """Run the script, write the report, and return the exit status."""
    # The instruments load when the command runs.
    from ..check import Sanitizer, run_script, symptoms_of
    from ..inspect import Doctor
    from ..inspect.debuggee.program import print_uncaught
    from ..inspect.debuggee.streams import flush
    from ..inspect.diagnosis.finding_limits import limits_from
    from ..inspect.diagnosis.step_limit import EnoughSeen

    pid = os.getpid()
    try:
        limits = limits_from(args.limits)
    except ValueError as error:
        say(f"gradscope doctor: {error}", file=sys.stderr)
        return FAILED
    try:
        with Sanitizer() as sanitizer, Doctor(functions=args.functions, steps=args.steps, limits=limits) as doctor:

            def diagnosis() -> Diagnosis:
                seen = doctor.diagnosis
                return replace(seen, others=symptoms_of(sanitizer), unseen=(*seen.unseen, *sanitizer.faults))

            result = run_script(
                args.script,
                args.args,
                module=args.module,
                on_exit=lambda result: _report(args, diagnosis(), result, False, stream),
            )
            explained = doctor.explain(result.error) or sanitizer.explains(result.error)
        found = diagnosis()  # nobody listens any more, should Functions run again
    except (OSError, ImportError) as error:
        say(f"gradscope doctor: {error}", file=sys.stderr)
        return FAILED
    flush()
    if isinstance(result.error, EnoughSeen):
        result = replace(result, error=None, exit_code=0)
    if result.error is not None and not explained:
        print_uncaught(result.error)
    if os.getpid() != pid:  # a child that the script has forked
        return result.exit_code
    return _report(args, found, result, explained, stream)


def _report(
    args: argparse.Namespace, diagnosis: Diagnosis, result: ScriptResult, explained: bool, stream: TextIO
) -> int:
    """Write the report, and return the exit status."""
    if result.exit_code and result.error is None:
        say(f"gradscope doctor: {args.script} ended with exit status {result.exit_code}", file=sys.stderr)
    diagnosis = replace(diagnosis, unseen=(*diagnosis.unseen, *filter(None, [result.unseen])))
    failed = result.exit_code and not explained
    status = FAILED if failed else FOUND if diagnosis else NOTHING_FOUND
    if isinstance(result.error, KeyboardInterrupt):
        status = result.exit_code
    if args.format == "text":
        say(f"{diagnosis}\n{_ended_by(result.error, explained)}", end="", file=stream)
        return status
    ended = None if result.error is None else {"type": type(result.error).__name__, "message": str(result.error)}
    facts = {"schema": 1, "script": args.script, "arguments": args.args, "exit_status": status, "ended_by": ended}
    say(json_text({**facts, **diagnosis.to_dict()}, indent=2), file=stream)
    return status


def _ended_by(error: BaseException | None, explained: bool) -> str:
    if error is None:
        return ""
    if explained:
        return f"The script did not catch the {type(error).__name__} and ended there.\n"
    if isinstance(error, KeyboardInterrupt):
        return "The script was interrupted; this is what was seen until then.\n"
    return f"The script ended by {type(error).__name__}; this is what was seen until then.\n"


# --- the installation -------------------------------------------------------------------------------------------------

# (distribution, what it is for, how to get it, whether gradscope works without)
_PARTS = (
    ("numpy", "the runtime", "pip install numpy", False),
    ("networkx", "the graph model", "pip install networkx", False),
    ("textual", "the terminal UI", "pip install textual", False),
    ("rich", "tables", "pip install rich", False),
    ("numba", "compiled kernels for large arrays", "pip install 'gradscope-debugger[fast]'", True),
    ("torch", "debugging PyTorch programs (2.4 or newer)", "pip install 'gradscope-debugger[torch]'", True),
    ("cupy", "device='cuda'", "pip install 'gradscope-debugger[cuda12]'", True),
    ("matplotlib", "plots of explanations", "pip install 'gradscope-debugger[plots]'", True),
    ("anywidget", "the debugger in a notebook", "pip install 'gradscope-debugger[notebook]'", True),
    ("hypothesis", "strategies of gradscope.testing", "pip install 'gradscope-debugger[test]'", True),
)


def _installation(form: str) -> int:
    facts = _facts()
    if form == "json":
        say(json_text({"schema": 1, **facts}, indent=2))
    else:
        say(_as_text(facts))
    return FOUND if facts["problems"] else NOTHING_FOUND


def _facts() -> dict[str, Any]:
    # The instruments load when the command runs.
    from ..inspect.adapters.torch.torch_version import check_version

    parts = {name: _version_of(name) for name, *_ in _PARTS}
    problems = [
        f"{name} is missing, which {purpose} needs: {install}"
        for name, purpose, install, optional in _PARTS
        if not optional and parts[name] is None
    ]
    if parts["torch"] is not None:
        try:
            check_version(parts["torch"])
        except ImportError as error:
            problems.append(str(error).replace("\n", ". "))
    return {
        "gradscope": __version__,
        "python": platform.python_version(),
        "platform": platform.platform(),
        "parts": parts,
        "kernels": _kernels(),
        "graphviz": shutil.which("dot"),
        "terminal": _terminal(),
        "problems": problems,
    }


def _version_of(distribution: str) -> str | None:
    """Return an installed version, without importing anything."""
    # It takes as long to load as all other of the command line.
    from importlib.metadata import PackageNotFoundError, packages_distributions, version

    try:
        return version(distribution)
    except PackageNotFoundError:
        # CuPy's wheels are called cupy-cuda12x and the like.
        owners = packages_distributions().get(distribution, ())
        return version(owners[0]) if owners else None


def _kernels() -> dict[str, Any]:
    """Return what computes on large arrays: who compiled the kernels, or why none are, and with how many threads."""
    # NumPy loads when the command runs.
    from ..runtime.kernels import loading, threads

    return {"compiled_by": loading.compiler(), "threads": threads.count()}


def _terminal() -> dict[str, Any]:
    size = shutil.get_terminal_size()
    return {
        "interactive": sys.stdin.isatty() and sys.stdout.isatty(),
        "term": os.environ.get("TERM", ""),
        "colors": os.environ.get("COLORTERM", "") or "no COLORTERM",
        "columns": size.columns,
        "lines": size.lines,
        "encoding": getattr(sys.stdout, "encoding", "") or "",
    }


def _as_text(facts: dict[str, Any]) -> str:
    lines = [f"gradscope {facts['gradscope']} on Python {facts['python']}, {facts['platform']}", ""]
    for name, purpose, install, optional in _PARTS:
        found = facts["parts"][name]
        missing = f"not found (optional): {install}" if optional else f"MISSING: {install}"
        lines.append(f"  {name:<11} {purpose:<42} {found or missing}")
    dot = facts["graphviz"] or "not found (optional): gradscope lays graphs out itself"
    lines.append(f"  {'graphviz':<11} {'layout of graph pictures':<42} {dot}")
    kernels, terminal = facts["kernels"], facts["terminal"]
    lines += ["", f"  kernels: {kernels['compiled_by']}; threads: {kernels['threads']}"]
    kind = "interactive" if terminal["interactive"] else "not a terminal (the terminal UI needs one; --line does not)"
    size = f"{terminal['columns']}x{terminal['lines']}"
    lines += [f"  terminal: {kind}, {terminal['term'] or 'TERM unset'}, {terminal['colors']}, {size}, "]
    lines[-1] += terminal["encoding"]
    lines += ["", *(facts["problems"] or ["Everything that gradscope needs is here."])]
    return "\n".join(lines)
