"""Runs a program a second time, in a process of its own, to find the lines of writes that the first did not hear of.

Both runs begin with the same seeds; what the second one prints is thrown away. The process is started as
``python -m gradscope.check.exact.second_run FILE [-m] SCRIPT args``: FILE says what is looked for, and is given what
was found.
"""

from __future__ import annotations

import ctypes
import gc
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy

import gradscope as gs

from ...inspect.adapters import NativeAdapter
from ...inspect.adapters.both_frameworks import load_torch_adapter
from ...inspect.adapters.import_watch import when_imported
from ...inspect.records.records import Location
from ..script_result import ScriptResult
from ..script_runner import run_script
from .line_finder import LineFinder, SavedOnce

__all__ = ["find_lines", "seed_all"]


def seed_all() -> None:
    """Seed Python, NumPy and gradscope, and PyTorch as soon as it has been imported."""
    random.seed(0)
    numpy.random.seed(0)  # noqa: NPY002 - the state that a program shares, whoever made its generators
    gs.manual_seed(0)
    when_imported("torch", lambda: sys.modules["torch"].manual_seed(0))


def find_lines(
    wanted: Iterable[SavedOnce], path: str, arguments: Sequence[str] = (), *, module: bool = False, directory: str = ""
) -> dict[SavedOnce, Location]:
    """Run a program again; return the lines on which saved tensors have changed, as far as they are met again.

    Parameters
    ----------
    path, arguments, module
        As for :func:`~gradscope.check.run_script`.
    directory : str
        In which the first run was started.
    """
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "lines.json"
        file.write_text(json.dumps({"wanted": list(wanted)}), encoding="utf-8")
        command = [sys.executable, "-m", __name__, str(file), *["-m"] * module, path, *arguments]
        # The second interpreter must import the same gradscope, whatever directory it starts in.
        found_by = os.pathsep.join(filter(None, [os.environ.get("PYTHONPATH", ""), str(Path(gs.__file__).parents[1])]))
        nothing = subprocess.DEVNULL
        _give_memory_back()
        subprocess.run(
            command,
            cwd=directory or None,
            env={**os.environ, "PYTHONPATH": found_by},
            stdin=nothing,
            stdout=nothing,
            stderr=nothing,
            check=False,
        )
        told = json.loads(file.read_text(encoding="utf-8"))
    return {SavedOnce(*entry["saved"]): Location(*entry["line"]) for entry in told.get("found", [])}


def _give_memory_back() -> None:
    """Let go of what the first run has left behind: the second one needs as much again.

    A script's model and optimizer stand in circles, and the C library keeps what has been freed.
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
    except (AttributeError, OSError, TypeError):  # another C library than GNU's, or Windows
        return


def _main(file: str, *arguments: str) -> int:
    """Run the program; write what was found."""
    path = Path(file)
    wanted = [SavedOnce(*entry) for entry in json.loads(path.read_text(encoding="utf-8"))["wanted"]]
    finders = [LineFinder(NativeAdapter(), wanted)]
    when_imported("torch", lambda: finders.append(LineFinder(load_torch_adapter(), wanted)))

    def leave(result: ScriptResult) -> int:
        found = [_entry(saved, line) for finder in finders for saved, line in finder.found.items()]
        path.write_text(json.dumps({"found": found}), encoding="utf-8")
        return result.exit_code

    module = arguments[0] == "-m"
    script, *own = arguments[module:]
    seed_all()
    try:
        return leave(run_script(script, own, module=module, on_exit=leave))
    finally:
        for finder in finders:
            finder.close()


def _entry(saved: SavedOnce, line: Location) -> dict[str, Any]:
    return {"saved": saved, "line": [line.filename, line.lineno, line.function, line.source]}


if __name__ == "__main__":
    sys.exit(_main(*sys.argv[1:]))
