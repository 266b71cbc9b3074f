"""A script under the debugger is run as python runs it: compared with python itself."""

import os
import subprocess
import sys
from pathlib import Path
from textwrap import dedent

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.debuggee.script import ScriptProgram


def run(path, *argv):
    """Run a script as a program; return the program and what it wrote."""
    written = {"stdout": "", "stderr": ""}

    def write(text, stream="stdout"):
        written[stream] += text

    program = ScriptProgram(str(path), argv)
    program.run(write)
    return program, written


def script(tmp_path, source, name="script.py"):
    path = tmp_path / name
    path.write_text(dedent(source))
    return path


@pytest.mark.parametrize(
    "source",
    [
        "print('one'); print('two')",
        "import sys; print(sys.argv, __name__, __file__)",
        "import sys, os; print(sys.path[0] == os.path.dirname(os.path.realpath(__file__)))",
        "import sys; print(sys.modules['__main__'].__dict__ is globals(), __builtins__ is sys.modules['builtins'])",
        "print(__package__, __spec__, type(__loader__).__name__, __doc__)",
        "import sys; sys.exit(3)",
        "raise SystemExit(True)",
        "1 / 0",
        "import sys; print('out'); print('err', file=sys.stderr); sys.stdout.buffer.write(b'raw\\n')",
        "import sys\ntry:\n    input()\nexcept EOFError:\n    print('no input')",
        "from helper import value\nprint(value)",
        "import sys; sys.stdout.write('é✓\\n'); print(sys.stdout.encoding.lower(), sys.stdout.isatty())",
    ],
)
def test_as_python_runs_it(tmp_path, source, monkeypatch):
    (tmp_path / "helper.py").write_text("value = 42\n")
    script(tmp_path, source)
    path = "script.py"
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(sys.modules, "helper", raising=False)
    # A stream of the session hands lines on as they are written.
    environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "PYTHONUTF8": "1", "PYTHONUNBUFFERED": "1"}
    python = subprocess.run(
        [sys.executable, path, "--lr", "1"],
        capture_output=True, env=environment, stdin=subprocess.DEVNULL, encoding="utf-8",
    )  # fmt: skip
    before = sys.argv, list(sys.path), sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr
    program, written = run(path, "--lr", "1")
    assert (sys.argv, list(sys.path), sys.modules["__main__"], sys.stdin, sys.stdout, sys.stderr) == before
    assert program.exit_status == python.returncode
    assert written["stdout"] == python.stdout
    assert written["stderr"] == python.stderr


def test_a_module_beside_the_script_wins_and_does_not_stay(tmp_path):
    path = script(tmp_path, "import sys; print(sys.path[0])")
    _, written = run(path)
    assert written["stdout"].strip() == os.path.realpath(tmp_path)
    assert os.path.realpath(tmp_path) not in sys.path


@pytest.mark.parametrize(
    ("name", "error", "said"),
    [("nowhere.py", FileNotFoundError, "there is no script"), ("", IsADirectoryError, "is a directory")],
)
def test_what_is_no_script(tmp_path, name, error, said):
    with pytest.raises(error, match=said):
        Debugger.for_script(str(tmp_path / name))


def test_a_script_that_is_not_python(tmp_path):
    path = tmp_path / "data.bin"
    path.write_bytes(bytes(range(256)))
    program, written = run(path)
    assert program.exit_status == 1
    assert "SyntaxError" in written["stderr"] or "ValueError" in written["stderr"]


def test_a_script_that_changes_directory_keeps_its_source_lines(tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    script(tmp_path, "import os\nos.chdir('elsewhere')\nraise ValueError('here')  # this line\n")
    monkeypatch.chdir(tmp_path)
    program, written = run("script.py")
    assert str(program.error) == "here"
    assert "    raise ValueError('here')  # this line\n" in written["stderr"]


def test_a_script_may_replace_its_streams(tmp_path):
    path = script(tmp_path, "import sys, io\nsys.stdout = io.StringIO()\nprint('kept to itself')\n")
    kept = sys.stdout
    try:
        _, written = run(path)
        assert written["stdout"] == ""
    finally:
        sys.stdout = kept


def test_the_file_of_a_record_is_the_scripts(tmp_path):
    source = "import gradscope as gs\nx = gs.ones(2, requires_grad=True)\n(x * 2).sum().backward()\n"
    session = Debugger.for_script(str(script(tmp_path, source)))
    session.start()
    session.wait(20)
    node = session.nodes[1]
    assert (Path(node.location.filename).name, node.location.lineno, node.location.function) == (
        "script.py",
        3,
        "<module>",
    )
    assert session.nodes[-1].parameter == "x"
    assert "script.py" in session.where()
    session.cont()
    assert session.wait(20).value == "finished"
