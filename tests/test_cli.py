"""The ``gradscope`` command itself."""

import re
import subprocess
import sys

import pytest

import gradscope
from gradscope.cli import SUBCOMMANDS, main


def test_version(capsys):
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"gradscope {gradscope.__version__}\n"


def test_help_lists_the_commands(capsys):
    assert main(["--help"]) == 0
    out = capsys.readouterr().out
    assert "debug" in out
    assert "check" in out


def test_the_commands_stand_in_the_order_of_their_places():
    names = [module.__name__.rpartition(".")[2] for module in SUBCOMMANDS]
    assert names == [
        "tour",
        "debug",
        "attach",
        "check",
        "graph",
        "doctor",
        "explain",
        "record",
        "view",
        "diff",
        "report",
        "agree",
        "export",
        "query",
        "serve",
        "dap",
    ]


@pytest.mark.parametrize("command", [module.__name__.rpartition(".")[2] for module in SUBCOMMANDS])
def test_the_help_of_a_command_says_what_every_exit_status_means(command, capsys):
    assert main([command, "--help"]) == 0
    out = capsys.readouterr().out
    assert out.startswith(f"usage: gradscope {command} [-h]")
    (statuses,) = re.findall(r"\n\nexit status: (.*?)\n\n", out, re.DOTALL)
    assert "2 " in statuses
    assert all(len(line) <= 120 for line in out.splitlines())


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
