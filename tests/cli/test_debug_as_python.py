"""``gradscope debug`` runs a script as python does: what it writes, and its exit status, compared with python's."""

import os
import re
import subprocess
import sys
from textwrap import dedent

import pytest

from tests.quick_cases import quick

CONCLUSION = re.compile(
    r"(script\.py (finished without calling backward\(\).*\n.*|raised \w+ \(exit status \d+\)"
    r"|(finished|has ended) \(exit status \d+\)))\n\Z"
)

# One behaviour each, by name; all of them end by themselves and none calls backward().
SCRIPTS = {
    "names": """
        import sys, os, threading
        print(sys.argv, __name__, __file__, __package__, __spec__, type(__loader__).__name__, __doc__)
        print(sys.path[0] == os.path.dirname(os.path.realpath(__file__)), sys.path.count(sys.path[0]))
        print(sys.modules["__main__"].__dict__ is globals(), __builtins__ is sys.modules["builtins"])
        thread = threading.current_thread()
        print(thread is threading.main_thread(), thread.name, thread.daemon, threading.Thread().daemon)
        """,
    "imports beside the script": """
        from helper import value
        import helper
        print(value, helper.__file__)
        """,
    "exit status": "import sys; sys.exit(3)",
    "exit status below zero": "raise SystemExit(-1)",
    "exit with a message": "import sys; print('first'); sys.exit('bad luck')",
    "exit with another object": "raise SystemExit([1, 2.5])",
    "syntax error": "x = (",
    "indentation error": "if True:\n    x = 1\n  y = 2",
    "encoding": b"# -*- coding: latin-1 -*-\nprint(ascii('\xe9'))\n",
    "byte order mark": b"\xef\xbb\xbfprint('marked')\n",
    "error in a function": """
        def f():
            g()
        def g():
            raise ValueError("deep")
        f()
        """,
    "causes, contexts, notes and groups": """
        def fail(kind):
            raise kind("from fail")
        try:
            try:
                fail(KeyError)
            except KeyError:
                fail(TypeError)
        except TypeError as error:
            error.add_note("a note\\non two lines")
            group = ExceptionGroup("several", [error, ValueError(2), ExceptionGroup("inner", [OSError(3)])])
            raise group from RuntimeError("the cause")
        """,
    "an error without a context": """
        try:
            1 / 0
        except ZeroDivisionError:
            raise KeyError("x") from None
        """,
    "an error whose str fails": """
        class Bad(Exception):
            def __str__(self):
                raise RuntimeError
        raise Bad
        """,
    "recursion": """
        def f(n):
            return f(n + 1)
        try:
            f(0)
        except RecursionError as error:
            print(error)
        """,
    "missing module": "import surely_not_installed.part",
    "import error": "from os import surely_not_there",
    "keyboard interrupt": "print('before', flush=True)\nraise KeyboardInterrupt",
    "excepthook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind.__name__, error, trace.tb_lineno, trace.tb_next)
        raise ValueError("hooked")
        """,
    "excepthook that fails": """
        import sys
        def hook(kind, error, trace):
            raise KeyError("in the hook")
        sys.excepthook = hook
        raise ValueError("hooked")
        """,
    "streams": """
        import sys
        print("out"); print("err", file=sys.stderr)
        sys.stdout.buffer.write(b"bytes \\xff\\n"); sys.stdout.flush()
        sys.stdout.write("\\xe9\\u2713\\n")
        print(sys.stdout.encoding, sys.stdout.errors, sys.stderr.errors, sys.stdout.isatty(), sys.stdout.fileno())
        for i in range(3):
            print(f"\\r{i}", end="", file=sys.stderr)
        print("no end of line", end="")
        """,
    "streams put elsewhere": """
        import contextlib, io, os, subprocess, sys
        kept = io.StringIO()
        with contextlib.redirect_stdout(kept):
            print("kept")
        print("again", repr(kept.getvalue()), flush=True)
        print("around", file=sys.__stdout__, flush=True)
        os.write(1, b"raw\\n")
        subprocess.run([sys.executable, "-c", "print('child')"], stdout=sys.stdout, check=True)
        with open("log.txt", "w") as log:
            saved = os.dup(1)
            os.dup2(log.fileno(), 1)
            print("into the file", flush=True)
            os.dup2(saved, 1)
        print(open("log.txt").read())
        sys.stderr = sys.stdout
        sys.stdout = open(os.devnull, "w")
        print("nowhere")
        raise ValueError("on stdout")
        """,
    "stdout closed": """
        import sys
        print("first", flush=True)
        sys.stdout = None
        print("nobody hears")
        sys.stderr = None
        raise ValueError("nobody hears this either")
        """,
    "stdin": """
        import sys
        print(input("name? "), sys.stdin.readline(), list(sys.stdin), sys.stdin.read() == "")
        input()
        """,
    "exit handlers": """
        import atexit, threading, time, weakref
        class A: pass
        a = A()
        weakref.finalize(a, print, "finalized")
        atexit.register(print, "registered first")
        @atexit.register
        def last():
            print("last")
        atexit.register(lambda: print("never"))
        atexit.unregister(last)
        atexit.register(last)
        threading.Thread(target=lambda: (time.sleep(0.1), print("the thread ends before"))).start()
        def bad():
            raise ValueError("in a handler")
        atexit.register(bad)
        print("end", flush=True)
        """,
    "exit handlers after an error": """
        import atexit, sys
        atexit.register(lambda: (sys.stderr.flush(), print("handled", file=sys.stderr)))
        raise ValueError("before")
        """,
    "threads": """
        import sys, threading, time
        from concurrent.futures import ThreadPoolExecutor
        def work(name):
            time.sleep(0.05)
            print(name, threading.current_thread() is threading.main_thread())
            sys.exit(7)
        threading.Thread(target=work, args=("kept",)).start()
        threading.Thread(target=lambda: time.sleep(600), daemon=True).start()
        pool = ThreadPoolExecutor(1)
        pool.submit(lambda: (time.sleep(0.2), print("pooled")))
        """,
    "an error in a thread": """
        import threading
        def work():
            raise ValueError("in a thread")
        thread = threading.Thread(target=work, name="worker")
        thread.start(); thread.join()
        print("main goes on")
        """,
    "fork": """
        import os, sys
        sys.stdout.flush()
        pid = os.fork()
        if not pid:
            print("child", flush=True)
            sys.exit(5)
        print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        pid = os.fork()
        if not pid:
            os._exit(6)
        print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        pid = os.fork()
        if not pid:
            raise ValueError("in the child")
        print("parent", os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), flush=True)
        """,
    "processes": """
        import multiprocessing
        from concurrent.futures import ProcessPoolExecutor
        def square(x):
            return x * x
        if __name__ == "__main__":
            for method in ("fork", "spawn"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(method, pool.map(square, range(3)))
            pool = ProcessPoolExecutor(1, multiprocessing.get_context("fork"))
            print(pool.submit(square, 4).result())
        """,
    "os._exit": "import os; print('gone', flush=True); os._exit(9)",
    "signals": """
        import os, signal, time
        def handler(number, frame):
            print(signal.Signals(number).name, frame.f_code.co_name, frame.f_globals["__name__"])
        print(signal.signal(signal.SIGALRM, handler), signal.getsignal(signal.SIGALRM) is handler)
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        time.sleep(0.3)
        signal.signal(signal.SIGUSR1, handler)
        os.kill(os.getpid(), signal.SIGUSR1)
        class TooSlow(Exception):
            pass
        def stop(number, frame):
            raise TooSlow("timed out")
        signal.signal(signal.SIGALRM, stop)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        start = time.monotonic()
        try:
            time.sleep(60)
        except TooSlow as error:
            print(error, time.monotonic() - start < 50)
        signal.setitimer(signal.ITIMER_REAL, 0.05)
        try:
            while True:
                pass
        except TooSlow as error:
            print(repr(error))
        signal.signal(signal.SIGALRM, handler)
        signal.setitimer(signal.ITIMER_REAL, 0.2)
        signal.pause()
        try:
            os.kill(os.getpid(), signal.SIGINT)
        except KeyboardInterrupt:
            print("interrupted itself")
        try:
            signal.signal(signal.SIGTERM, "nonsense")
        except TypeError as error:
            print(error)
        signal.signal(signal.SIGTERM, lambda *_: (_ for _ in ()).throw(SystemExit(4)))
        os.kill(os.getpid(), signal.SIGTERM)
        """,
    "asyncio": """
        import asyncio, os, signal
        async def main():
            loop, heard = asyncio.get_running_loop(), asyncio.Event()
            loop.add_signal_handler(signal.SIGUSR2, heard.set)
            os.kill(os.getpid(), signal.SIGUSR2)
            await asyncio.wait_for(heard.wait(), 5)
            process = await asyncio.create_subprocess_exec("true")
            print("heard", await process.wait(), await asyncio.to_thread(lambda: "from a thread"))
        asyncio.run(main())
        """,
    "main's classes and functions": """
        import dataclasses, inspect, pickle, typing
        @dataclasses.dataclass
        class Point:
            x: "int"
            y: typing.ClassVar[int] = 2
        print(pickle.loads(pickle.dumps(Point(1))), typing.get_type_hints(Point))
        def f():
            return 1  # a comment
        print(inspect.getsource(f), inspect.getfile(f), inspect.getmodule(f).__name__)
        """,
    "another directory": """
        import os, sys
        os.mkdir("elsewhere"); os.chdir("elsewhere")
        sys.path.append(os.getcwd()); sys.path = list(sys.path)
        open("beside.py", "w").write("print('imported')")
        import beside
        raise ValueError("its line is still found")  # this one
        """,
    "warnings and logging": """
        import logging, warnings
        logging.basicConfig(format="%(levelname)s %(threadName)s %(filename)s %(message)s")
        logging.warning("logged")
        warnings.warn("deprecated", DeprecationWarning)
        def f():
            warnings.warn("one line up", stacklevel=2)
        f()
        warnings.simplefilter("error")
        warnings.warn("raised")
        """,
}


def run(command, tmp_path):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(
        [sys.executable, *command],
        cwd=tmp_path,
        capture_output=True,
        env=environment,
        timeout=60,
        input=b"Ada\ntwo\nthree\n",
    )
    hidden = re.compile(rb" at 0x[0-9a-f]+")
    return done.returncode, hidden.sub(b" at 0x0", done.stdout), hidden.sub(b" at 0x0", done.stderr)


USUAL = {"exit status", "error in a function"}


@pytest.mark.parametrize("name", quick(SCRIPTS, USUAL))
def test_a_script(name, tmp_path):
    source = SCRIPTS[name]
    (tmp_path / "one").mkdir()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "helper.py").write_text("value = 42\n")
        path = tmp_path / folder / "script.py"
        path.write_bytes(source if isinstance(source, bytes) else dedent(source).encode())
    status, out, err = run(["script.py", "--lr", "1"], tmp_path / "one")
    command = ["-m", "gradscope", "debug", "--line", "-c", "continue", "script.py", "--lr", "1"]
    ours, our_out, our_err = run(command, tmp_path / "two")
    our_out, our_err = (t.replace(b"/two/", b"/one/").decode(errors="backslashreplace") for t in (our_out, our_err))
    assert our_out == out.decode(errors="backslashreplace")
    assert CONCLUSION.sub("", our_err) == err.decode(errors="backslashreplace")
    # A script that never calls backward() is a failure of the debugger's own.
    assert ours == (130 if status == -2 else status or 1)


NO_SOURCES = {"null": b"x = 1\x00", "encoding": b"# -*- coding: nonsense -*-\n", "bytes": b"print('\xff')\n"}


@pytest.mark.parametrize("name", quick(NO_SOURCES, ()))
def test_a_file_that_is_no_source(name, tmp_path):
    """Python's own words differ with the way in which the file is read."""
    (tmp_path / "script.py").write_bytes(NO_SOURCES[name])
    status, out, err = run(["-m", "gradscope", "debug", "-c", "continue", "script.py"], tmp_path)
    assert (status, out) == (1, b"")
    assert b"\nSyntaxError: " in b"\n" + err
    assert b"gradscope/" not in err
