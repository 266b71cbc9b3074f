"""What a name on the command line means, compared with python: files, directories, zip files, modules."""

import os
import subprocess
import sys
import zipfile

import pytest

import gradscope.inspect as gi
from gradscope.inspect.debuggee.script import ScriptProgram
from gradscope.inspect.debuggee.script_targets import AppTarget, FileTarget, ModuleTarget, check_script, find_target

SOURCE = """\
import sys
from helper import value
print(__name__, __file__, __package__, __spec__ and __spec__.name, type(__loader__).__name__, value)
print(sys.argv, sys.path[0], sys.path.count(sys.path[0]))
def f():
    raise ValueError("in main")
import inspect
print(inspect.getsource(f))
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A folder with all kinds of programs, and in it."""
    for place in (".", "app", "package"):
        (tmp_path / place).mkdir(exist_ok=True)
        (tmp_path / place / "helper.py").write_text("value = 42\n")
    (tmp_path / "script.py").write_text(SOURCE)
    (tmp_path / "app" / "__main__.py").write_text(SOURCE)
    (tmp_path / "package" / "__init__.py").write_text("import sys; print('imported', sys.argv[0])\n")
    (tmp_path / "package" / "__main__.py").write_text(SOURCE)
    (tmp_path / "package" / "part.py").write_text("from . import helper\n" + SOURCE)
    (tmp_path / "package" / "inner").mkdir()
    with zipfile.ZipFile(tmp_path / "app.zip", "w") as made:
        made.writestr("__main__.py", SOURCE)
        made.writestr("helper.py", "value = 43\n")
    monkeypatch.chdir(tmp_path)
    yield tmp_path
    forget()


def forget():
    for name in [n for n in sys.modules if n.partition(".")[0] in ("helper", "package", "script")]:
        del sys.modules[name]


def run(target, *argv):
    written = {"stdout": "", "stderr": ""}

    def write(text, stream="stdout"):
        written[stream] += text

    program = ScriptProgram(target, argv)
    try:
        program.run(write)
    finally:
        forget()
    return program.exit_status, written["stdout"], written["stderr"]


def python(*arguments):
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run([sys.executable, *arguments], capture_output=True, text=True, env=environment)
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("arguments", [["script.py"], ["app"], ["app.zip"], ["-m", "script"], ["-m", "package"],
                                       ["-m", "package.part"], ["-m", "app"]], ids=" ".join)  # fmt: skip
def test_as_python_runs_it(folder, arguments):
    before = list(sys.path), sys.argv, sys.modules["__main__"]
    target = find_target(arguments[-1], module="-m" in arguments)
    assert run(target, "--lr", "1") == python(*arguments, "--lr", "1")
    assert (list(sys.path), sys.argv, sys.modules["__main__"]) == before


@pytest.mark.parametrize(
    ("name", "kind"),
    [("script.py", FileTarget), ("app", AppTarget), ("app.zip", AppTarget), ("script", ModuleTarget),
     ("package.part", ModuleTarget)],
)  # fmt: skip
def test_a_path_comes_before_a_module(folder, name, kind):
    assert type(find_target(name)) is kind


@pytest.mark.parametrize(
    ("name", "module", "error", "said"),
    [
        ("nowhere.py", False, FileNotFoundError, "there is no script 'nowhere.py'"),
        ("nowhere", False, FileNotFoundError, "there is no script 'nowhere'"),
        ("package/inner", False, IsADirectoryError, "is a directory without a __main__.py, not a script"),
        ("nowhere", True, ModuleNotFoundError, "there is no module 'nowhere'"),
        ("script.py", True, None, ""),
        ("no-name", True, ModuleNotFoundError, "there is no module 'no-name'"),
        ("", True, ModuleNotFoundError, "there is no module ''"),
    ],
)
def test_what_cannot_be_run(folder, name, module, error, said):
    if error is None:
        # As with python, `script.py` is the module `py` of the package `script`, and only importing it shows.
        assert run(find_target(name, module=module))[0] == 1
        return
    with pytest.raises(error, match=said):
        find_target(name, module=module)


def test_a_module_that_turns_out_not_to_be_there(folder):
    status, out, err = run(find_target("package.nothing", module=True))
    assert (status, out) == (1, "imported -m\n")
    assert err.endswith("No module named package.nothing\n")
    status, _, err = run(find_target("package.inner", module=True))
    assert status == 1
    assert "is a package and cannot be directly executed" in err


def test_an_import_error_inside_of_a_package_is_its_own(folder):
    (folder / "package" / "__init__.py").write_text("import surely_not_there\n")
    status, _, err = run(find_target("package.part", module=True))
    assert status == 1
    assert err.endswith("ModuleNotFoundError: No module named 'surely_not_there'\n")


def test_a_notebook_is_no_script(tmp_path):
    (tmp_path / "explore.ipynb").write_text('{"cells": []}')
    with pytest.raises(OSError, match=r"is a notebook, not a script\n`%load_ext gradscope` has these commands"):
        check_script(str(tmp_path / "explore.ipynb"))


def test_a_recording_is_no_script(tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        pass
    with pytest.raises(OSError, match=r"is a recording, not a script\n`gradscope view .*run.gscope` opens it"):
        check_script(str(tmp_path / "run.gscope"))
