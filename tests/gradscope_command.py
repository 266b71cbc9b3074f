"""``gradscope ...`` in a process of its own, without the half second in which each would import the package anew.

One process imports gradscope; each command is a fork of it, with the arguments, directory, environment and streams that
a started one has. Tests of how the command is started, ends on a signal or reads a terminal start it themselves.
"""

from __future__ import annotations

import atexit
import gc
import io
import json
import os
import runpy
import subprocess
import sys
import tempfile
import threading
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["gradscope"]


def gradscope(*arguments: str, cwd: Path, input: str = "", timeout: float = 120) -> subprocess.CompletedProcess[str]:
    """Run ``python -m gradscope ARGUMENTS`` in a directory, as :func:`subprocess.run` would."""
    if not hasattr(os, "fork"):
        command = [sys.executable, "-m", "gradscope", *arguments]
        return subprocess.run(command, cwd=cwd, input=input, capture_output=True, text=True, timeout=timeout)
    with tempfile.TemporaryDirectory() as folder:
        streams = [os.path.join(folder, name) for name in ("stdin", "stdout", "stderr")]
        texts = [Path(path) for path in streams]
        texts[0].write_text(input, encoding="utf-8")
        request = {"arguments": arguments, "cwd": str(cwd), "environment": dict(os.environ), "streams": streams}
        server = _server()
        alarm = threading.Timer(timeout, server.kill)
        alarm.start()
        try:
            server.stdin.write(json.dumps(request) + "\n")
            server.stdin.flush()
            status = server.stdout.readline()
        finally:
            alarm.cancel()
            alarm.join()
        if not status:
            _server.cache_clear()
            raise subprocess.TimeoutExpired(["gradscope", *arguments], timeout)
        out, err = (path.read_text(encoding="utf-8") for path in texts[1:])
        return subprocess.CompletedProcess(["gradscope", *arguments], int(status), out, err)


@cache
def _server() -> Any:
    server = subprocess.Popen([sys.executable, __file__], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    atexit.register(_end, server)
    return server


def _end(server: subprocess.Popen[str]) -> None:
    server.communicate()


def _serve() -> list[str] | None:
    """Answer requests with exit statuses; in the process of a command, return its arguments."""
    import gradscope.check.script_runner
    import gradscope.inspect
    import gradscope.inspect.diagnosis.doctor
    from gradscope.inspect.source import source_paths

    for name in gradscope.inspect.__all__:
        getattr(gradscope.inspect, name)  # which loads it
    gc.collect()
    gc.freeze()
    for line in sys.stdin:
        request = json.loads(line)
        child = os.fork()
        if not child:
            os.chdir(request["cwd"])
            os.environ.clear()
            os.environ.update(request["environment"])
            _take_streams(*request["streams"])
            source_paths.started_here()
            added = os.environ.get("PYTHONPATH", "").split(os.pathsep)
            sys.path[:1] = [request["cwd"], *(path for path in added if path and path not in sys.path)]
            return list(request["arguments"])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
    return None


def _take_streams(stdin: str, stdout: str, stderr: str) -> None:
    """Put files in the place of the three streams, buffered as those of a process without a terminal are."""
    for number, path in enumerate([stdin, stdout, stderr]):
        opened = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND if number else os.O_RDONLY, 0o600)
        os.dup2(opened, number)
        os.close(opened)
    sys.stdin = sys.__stdin__ = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, closefd=False)), "utf-8")
    sys.stdout = sys.__stdout__ = _writer(1)
    sys.stderr = sys.__stderr__ = _writer(2, errors="backslashreplace", line_buffering=True)


def _writer(number: int, **options: Any) -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BufferedWriter(io.FileIO(number, "w", closefd=False)), "utf-8", **options)


if __name__ == "__main__":
    arguments = _serve()
    if arguments is not None:
        sys.argv = ["gradscope", *arguments]
        runpy.run_module("gradscope", run_name="__main__", alter_sys=True)
