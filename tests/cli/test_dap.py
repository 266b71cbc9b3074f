from __future__ import annotations

import os
import subprocess
import sys

import pytest

from gradscope.inspect.dap.framing import Stream

SCRIPT = """\
import gradscope as gs
x = gs.ones(3, requires_grad=True)
y = x * 2
z = y.exp()
z.sum().backward()
print("gradient", x.grad.tolist())
"""
LOOP = """\
import time
import gradscope as gs
x = gs.ones(3, requires_grad=True)
print("ready", flush=True)
while True:
    (x * 2).exp().sum().backward()
    time.sleep(0.01)
"""
COMMAND = [sys.executable, "-m", "gradscope", "dap"]


class Editor:
    """A client of the protocol, which keeps the events that come between answers."""

    def __init__(self, process):
        self.stream = Stream(process.stdout, process.stdin)
        self.events = []

    def request(self, command, **arguments):
        self.stream.send({"type": "request", "command": command, "arguments": arguments})
        while (message := self.stream.receive())["type"] == "event":
            self.events.append(message)
        return message

    def ask(self, command, **arguments):
        answer = self.request(command, **arguments)
        assert answer["success"], answer
        return answer["body"]

    def wait_for(self, name):
        while not any(event["event"] == name for event in self.events):
            self.events.append(self.stream.receive())
        found = next(event for event in self.events if event["event"] == name)
        self.events.remove(found)
        return found["body"]


@pytest.fixture
def editor():
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        yield Editor(process)
        process.stdin.close()
        assert process.wait(30) == 0


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "script.py"
    path.write_text(SCRIPT)
    return str(path)


def test_a_session_with_a_breakpoint_steps_both_ways_and_a_gradient_that_is_set(editor, script):
    assert editor.ask("initialize")["supportsStepBack"]
    editor.ask("launch", program=script)
    editor.wait_for("initialized")
    points = editor.ask("setBreakpoints", source={"path": script}, breakpoints=[{"line": 4}])["breakpoints"]
    assert [point["verified"] for point in points] == [True]
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    frame = editor.ask("stackTrace", threadId=1)["stackFrames"][0]
    assert (frame["name"], frame["line"], frame["source"]["path"]) == ("1 ExpBackward0", 4, script)
    editor.ask("next", threadId=1)
    editor.wait_for("stopped")
    assert editor.ask("stackTrace", threadId=1)["stackFrames"][0]["name"] == "2 MulBackward0"
    editor.ask("stepBack", threadId=1)
    editor.wait_for("stopped")
    assert editor.ask("stackTrace", threadId=1)["stackFrames"][0]["name"] == "1 ExpBackward0"
    editor.ask("next", threadId=1)
    editor.wait_for("stopped")
    editor.ask("scopes", frameId=1)
    (gradient,) = editor.ask("variables", variablesReference=1)["variables"]
    editor.ask("setVariable", variablesReference=1, name=gradient["name"], value="5.0")
    page = editor.ask("variables", variablesReference=gradient["variablesReference"], start=1, count=2)["variables"]
    assert [(one["name"], one["value"]) for one in page] == [("[1]", "5.0"), ("[2]", "5.0")]
    assert editor.ask("evaluate", expression="1 + 1")["result"] == "2"
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited")["exitCode"] == 0
    assert any("[10.0, 10.0, 10.0]" in event["body"].get("output", "") for event in editor.events)
    editor.ask("disconnect")


def test_a_program_that_was_attached_to_runs_on(editor, tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    environment = {**os.environ, "GRADSCOPE_LISTEN": "1"}
    with subprocess.Popen([sys.executable, path], env=environment, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"ready\n"
        editor.ask("initialize")
        editor.ask("attach", processId=program.pid)
        editor.ask("configurationDone")
        editor.wait_for("stopped")
        assert editor.ask("stackTrace", threadId=1)["stackFrames"]
        editor.ask("disconnect")
        editor.stream.receive()
        assert program.poll() is None
        program.kill()


BAD = """\
import gradscope as gs
def train():
    x = gs.zeros(3, requires_grad=True)
    (x.sqrt() * x).sum().backward()
train()
"""


def stack(editor):
    return [frame["name"] for frame in editor.ask("stackTrace", threadId=1)["stackFrames"]]


def test_the_stack_leads_to_the_loss_and_to_the_line_that_called_backward(editor, tmp_path):
    (tmp_path / "bad.py").write_text(BAD)
    editor.ask("launch", program="bad.py", cwd=str(tmp_path))
    (point,) = editor.ask("setFunctionBreakpoints", breakpoints=[{"name": "op:Sqrt"}])["breakpoints"]
    assert point["verified"]
    editor.ask("setExceptionBreakpoints", filters=["nan"])
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    assert stack(editor)[:3] == ["2 SqrtBackward0", "1 MulBackward0", "0 SumBackward0"]
    frames = editor.ask("stackTrace", threadId=1, startFrame=3)["stackFrames"]
    assert [(frame["name"], frame["line"]) for frame in frames] == [("train", 4), ("<module>", 5)]
    answer = editor.request("setVariable", variablesReference=2, name="produced[0]", value="1")
    assert "cannot be set here" in answer["message"]
    editor.ask("stepIn", threadId=1)
    stopped = editor.wait_for("stopped")
    assert (stopped["reason"], "NaN" in stopped["description"]) == ("exception", True)
    editor.ask("setVariable", variablesReference=2, name="produced[0]", value="1")
    editor.ask("reverseContinue", threadId=1)
    editor.wait_for("stopped")
    editor.ask("terminate")
    editor.ask("disconnect")


def test_a_logpoint_prints_and_a_hit_count_passes_by(editor, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    editor.ask("launch", module="loop", cwd=str(tmp_path))
    points = [{"line": 6, "hitCondition": "7"}, {"line": 6, "logMessage": "index * 100"}]
    editor.ask("setBreakpoints", source={"path": str(tmp_path / "loop.py")}, breakpoints=points)
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    printed = "".join(event["body"].get("output", "") for event in editor.events)
    assert "100" in printed
    editor.ask("setBreakpoints", source={"path": str(tmp_path / "loop.py")}, breakpoints=[])
    editor.ask("continue", threadId=1)
    editor.ask("pause", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "pause"
    editor.ask("disconnect")


def test_the_first_node_has_breakpoints_too_and_one_that_is_refused_does_not_stop(editor, script):
    editor.ask("launch", program=script)
    wanted = [{"line": 5}, {"line": 4, "hitCondition": "often"}, {"line": 4, "condition": "(("}]
    points = editor.ask("setBreakpoints", source={"path": script}, breakpoints=wanted)["breakpoints"]
    assert [point["verified"] for point in points] == [True, False, False]
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    assert editor.ask("stackTrace", threadId=1)["stackFrames"][0]["name"] == "0 SumBackward0"
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited")["exitCode"] == 0
    assert not [event for event in editor.events if event["event"] == "stopped"]
    editor.ask("disconnect")


def test_what_is_unknown_or_comes_too_early_is_refused(editor):
    assert "does not know the request 'fly'" in editor.request("fly")["message"]
    assert "launch or attach comes first" in editor.request("continue")["message"]
    editor.stream.send({"type": "request", "command": "next", "arguments": [1]})
    assert "are an object, got list" in editor.stream.receive()["message"]
    editor.ask("disconnect")


def test_what_is_no_message_ends_with_one_line():
    done = subprocess.run(COMMAND, input=b"hello\r\n", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(b"gradscope dap: a line of a header")
    assert done.stderr.count(b"\n") == 1
