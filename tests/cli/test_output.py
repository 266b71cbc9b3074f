"""Where output goes when it cannot go where it should: a closed pipe, a full disk, streams closed by the parent."""

import os
import subprocess
import sys

import pytest

from gradscope.cli.output import shows_screens
from tests.quick_cases import quick

SCRIPT = """
import gradscope as gs
x = gs.ones(3, requires_grad=True)
(x * x).sum().backward()
print("done")
"""

COMMANDS = [
    ["check", "script.py"],
    ["check", "--format", "json", "script.py"],
    ["graph", "script.py"],
    ["debug", "-c", "continue", "script.py"],
    ["explain"],
    ["--version"],
]

full = pytest.mark.skipif(not os.path.exists("/dev/full"), reason="the system has no full device")


def start(tmp_path, command, source=SCRIPT, **options):
    (tmp_path / "script.py").write_text(source)
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    line = [sys.executable, "-m", "gradscope", *command]
    return subprocess.Popen(line, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True, **options)


@full
@pytest.mark.parametrize("command", quick(COMMANDS, COMMANDS[1:2]), ids=" ".join)
def test_a_full_disk_is_one_line_and_status_2(command, tmp_path):
    with open("/dev/full", "w") as nowhere:
        process = start(tmp_path, command, stdout=nowhere)
        errors = process.communicate()[1].removeprefix("done\n")
    assert (process.returncode, errors) == (2, "gradscope: cannot write the output: No space left on device\n")


@pytest.mark.parametrize("command", quick([COMMANDS[0], COMMANDS[2], COMMANDS[4]], COMMANDS[:1]), ids=" ".join)
def test_a_reader_that_has_left_ends_it_without_a_word(command, tmp_path):
    reading, writing = os.pipe()
    os.close(reading)
    process = start(tmp_path, command, stdout=writing)
    os.close(writing)
    assert process.communicate()[1] == ""
    assert process.returncode == 141


CLOSED = """
import os, sys
os.close(int(sys.argv.pop(1)))
os.execv(sys.executable, [sys.executable, "-m", "gradscope", *sys.argv[1:]])
"""


@pytest.mark.slow
@pytest.mark.parametrize("descriptor", [0, 1, 2], ids=["stdin", "stdout", "stderr"])
@pytest.mark.parametrize("command", quick([COMMANDS[1], COMMANDS[3]], COMMANDS[1:2]), ids=" ".join)
def test_a_stream_that_the_parent_has_closed_is_done_without(command, descriptor, tmp_path):
    (tmp_path / "script.py").write_text(SCRIPT)
    line = [sys.executable, "-c", CLOSED, str(descriptor), *command]
    done = subprocess.run(line, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr.removeprefix("done\n")) == (0, "")
    assert bool(done.stdout) == (descriptor != 1)


def test_the_graph_is_printed_where_the_command_was_told_to(tmp_path):
    source = SCRIPT.replace("import", "import sys, io; sys.stdout = io.StringIO()\nimport", 1)
    process = start(tmp_path, ["graph", "script.py"], source, stdout=subprocess.PIPE)
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    assert output.startswith("3 nodes, 3 edges")


@pytest.mark.parametrize(("term", "shown"), [("xterm-256color", True), ("dumb", False)])
def test_a_dumb_terminal_shows_no_screens(monkeypatch, term, shown):
    monkeypatch.setenv("TERM", term)
    monkeypatch.setattr("sys.stdin", Terminal())
    monkeypatch.setattr("sys.stdout", Terminal())
    assert shows_screens() is shown


class Terminal:
    def isatty(self):
        return True
