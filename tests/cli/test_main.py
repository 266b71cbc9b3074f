"""The ``gradscope`` command itself."""

import subprocess
import sys

import pytest

import gradscope
from gradscope.cli import main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gradscope {gradscope.__version__}\n"


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "debug" in out
    assert "check" in out


@pytest.mark.parametrize("argv", [[], ["frobnicate"], ["debug"], ["debug", "--frobnicate", "x.py"], ["debug", "-c"]])
def test_a_wrong_command_line_is_status_2(argv, capsys):
    assert main(argv) == 2
    assert capsys.readouterr().err.startswith("usage: gradscope")


def test_the_command_starts_without_textual_and_networkx():
    code = (
        "import sys; from gradscope.cli import main; main(['--help'])\n"
        "sys.exit(bool({'textual', 'networkx', 'rich', 'pytest'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], stdout=subprocess.DEVNULL).returncode == 0


def test_python_m_gradscope():
    done = subprocess.run([sys.executable, "-m", "gradscope", "--version"], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (0, f"gradscope {gradscope.__version__}\n")
