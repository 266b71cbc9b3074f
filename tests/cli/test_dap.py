from __future__ import annotations

import os
import random
import signal
import socket
import subprocess
import sys
import types

import pytest

from gradscope.inspect.dap.framing import Stream
from gradscope.inspect.dap.request_arguments import Arguments

from ..dap_schema import check

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
        while (message := self.receive())["type"] == "event":
            self.events.append(message)
        return message

    def receive(self):
        message = self.stream.receive()
        check(message)
        return message

    def ask(self, command, **arguments):
        answer = self.request(command, **arguments)
        assert answer["success"], answer
        return answer["body"]

    def wait_for(self, name):
        while not any(event["event"] == name for event in self.events):
            self.events.append(self.receive())
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


def scopes(editor, frame=1):
    found = editor.ask("scopes", frameId=frame)["scopes"]
    return {scope["name"]: scope["variablesReference"] for scope in found}


def variables(editor, reference, **page):
    found = editor.ask("variables", variablesReference=reference, **page)["variables"]
    return {one["name"]: one for one in found}


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
    scope = scopes(editor)["Gradients in"]
    (gradient,) = editor.ask("variables", variablesReference=scope)["variables"]
    editor.ask("setVariable", variablesReference=scope, name=gradient["name"], value="5.0")
    page = editor.ask("variables", variablesReference=gradient["variablesReference"], start=1, count=2)["variables"]
    assert [(one["name"], one["value"]) for one in page] == [("[1]", "5.0"), ("[2]", "5.0")]
    assert editor.ask("evaluate", expression="1 + 1")["result"] == "2"
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited")["exitCode"] == 0
    assert any("[10.0, 10.0, 10.0]" in event["body"].get("output", "") for event in editor.events)
    editor.ask("disconnect")


@pytest.mark.slow
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
    produced = scopes(editor)["Gradients out"]
    answer = editor.request("setVariable", variablesReference=produced, name="produced[0]", value="1")
    assert "cannot be set here" in answer["message"]
    refused = editor.request("stepOut", threadId=1)
    assert (refused["success"], "belongs to no module" in refused["message"]) == (False, True)
    assert stack(editor)[0] == "2 SqrtBackward0", "it stands where it stood"
    editor.ask("stepIn", threadId=1)
    stopped = editor.wait_for("stopped")
    assert (stopped["reason"], "NaN" in stopped["description"]) == ("exception", True)
    info = editor.ask("exceptionInfo", threadId=1)
    assert (info["exceptionId"], "NaN" in info["description"]) == ("nan", True)
    assert "line 4, in train" in info["details"]["stackTrace"]
    produced = scopes(editor)["Gradients out"]
    editor.ask("setVariable", variablesReference=produced, name="produced[0]", value="1")
    editor.ask("reverseContinue", threadId=1)
    editor.wait_for("stopped")
    editor.ask("terminate")
    editor.ask("disconnect")


@pytest.mark.slow
def test_a_logpoint_prints_and_a_hit_count_passes_by(editor, tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    editor.ask("launch", module="loop", cwd=str(tmp_path))
    points = [{"line": 6, "hitCondition": "7"}, {"line": 6, "logMessage": "at {index * 100}!"}]
    editor.ask("setBreakpoints", source={"path": str(tmp_path / "loop.py")}, breakpoints=points)
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "breakpoint"
    printed = "".join(event["body"].get("output", "") for event in editor.events)
    assert "at 100!" in printed
    editor.ask("setBreakpoints", source={"path": str(tmp_path / "loop.py")}, breakpoints=[])
    editor.ask("continue", threadId=1)
    editor.ask("pause", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "pause"
    editor.ask("disconnect")


@pytest.mark.slow
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
    assert "are an object, got list" in editor.receive()["message"]
    assert "launch needs `program`" in editor.request("launch")["message"]
    assert "there is no module 'nowhere'" in editor.request("launch", module="nowhere")["message"]
    assert "attach needs `processId`" in editor.request("attach")["message"]
    assert "Expected `str`, got `int`" in editor.request("launch", program=3)["message"]
    assert "no program listens" in editor.request("attach", address="/nowhere.sock")["message"]
    assert editor.request("setExceptionBreakpoints", filters=["nan"])["success"] is False
    editor.ask("disconnect")


JUNK = [
    None,
    True,
    -1,
    10**12,
    0.5,
    "",
    "x",
    "saved:",
    "1 saved:9.x",
    [],
    [1],
    {},
    {"path": 3, "line": "x"},
    [{"line": 1}],
]

COMMANDS = [
    "launch", "attach", "setBreakpoints", "setFunctionBreakpoints", "setExceptionBreakpoints", "dataBreakpointInfo",
    "setDataBreakpoints", "threads", "stackTrace", "scopes", "variables", "setVariable", "evaluate", "completions",
    "exceptionInfo", "modules", "loadedSources", "gotoTargets", "goto", "stepBack", "reverseContinue",
]  # fmt: skip


@pytest.mark.slow
def test_whatever_is_asked_is_answered(editor, script):
    editor.ask("launch", program=script, stopOnEntry=True)
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    chance = random.Random(0)
    fields = [*Arguments.__annotations__, "program", "processId"]
    leaked = ("object is not", "has no attribute", "indices must be", "argument must be", "not supported between")
    for _ in range(500):
        command = chance.choice(COMMANDS)
        arguments = {chance.choice(fields): chance.choice(JUNK) for _ in range(4)}
        if command in ("launch", "attach"):
            arguments |= {"program": 3, "processId": []}
        answer = editor.request(command, **arguments)
        assert answer["command"] == command
        assert answer["success"] or not any(words in answer["message"] for words in leaked), answer
    editor.stream.send({"type": "response", "command": "runInTerminal", "request_seq": 1, "success": True})
    assert editor.ask("evaluate", expression="x.tolist()")["result"] == "[1.0, 1.0, 1.0]"
    editor.ask("disconnect")


def test_what_is_no_message_ends_with_one_line():
    done = subprocess.run(COMMAND, input=b"hello\r\n", capture_output=True, timeout=60)
    assert done.returncode == 2
    assert done.stderr.startswith(b"gradscope dap: a line of a header")
    assert done.stderr.count(b"\n") == 1


WRITES = """\
import gradscope as gs
x = gs.ones(3, 2, requires_grad=True)
y = x.exp()
z = (y * 2).sum()
z.backward(retain_graph=True)
with gs.no_grad():
    y.add_(1)
z.backward()
"""


def launched(editor, tmp_path, text, **arguments):
    (tmp_path / "program.py").write_text(text)
    editor.ask("initialize")
    editor.ask("launch", program="program.py", cwd=str(tmp_path), **arguments)
    editor.wait_for("initialized")
    return str(tmp_path / "program.py")


@pytest.mark.slow
def test_a_write_into_a_saved_tensor_stops_in_the_line_that_writes(editor, tmp_path):
    path = launched(editor, tmp_path, WRITES)
    editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 3}])
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    saved = scopes(editor)["Saved tensors"]
    (result,) = variables(editor, saved).values()
    assert (result["name"], result["value"][:13], result["type"]) == ("result", "ok, version 0", "float32[3, 2]")
    rows = variables(editor, result["variablesReference"], start=1, count=2)
    assert [(row["name"], row["value"], row["indexedVariables"]) for row in rows.values()] == [
        ("[1]", "[2]", 2), ("[2]", "[2]", 2),
    ]  # fmt: skip
    elements = variables(editor, rows["[2]"]["variablesReference"])
    assert [round(float(one["value"]), 3) for one in elements.values()] == [2.718, 2.718]
    info = editor.ask("dataBreakpointInfo", variablesReference=saved, name="result")
    assert (info["accessTypes"], info["canPersist"]) == (["write"], False)
    wanted = [{"dataId": info["dataId"]}, {"dataId": "7 saved:2.result"}, {"dataId": "1 saved:2.nothing"}]
    points = editor.ask("setDataBreakpoints", breakpoints=wanted)["breakpoints"]
    assert [point["verified"] for point in points] == [True, False, False]
    again = editor.ask("setDataBreakpoints", breakpoints=wanted[:1])["breakpoints"]
    assert again == points[:1]
    editor.ask("setBreakpoints", source={"path": path}, breakpoints=[])
    editor.ask("continue", threadId=1)
    stopped = editor.wait_for("stopped")
    assert (stopped["reason"], stopped["hitBreakpointIds"]) == ("data breakpoint", [points[0]["id"]])
    frame = editor.ask("stackTrace", threadId=1)["stackFrames"][0]
    assert (frame["name"], frame["line"]) == ("<module>", 7)
    assert variables(editor, scopes(editor)["Locals"])["y"]["type"] == "Tensor"
    assert editor.ask("dataBreakpointInfo", name="y")["dataId"] is None
    editor.ask("continue", threadId=1)
    assert editor.wait_for("stopped")["reason"] == "exception"
    info = editor.ask("exceptionInfo", threadId=1)
    assert (info["exceptionId"], "`result` was written by add_ at" in info["description"]) == ("violation", True)
    editor.ask("disconnect")


@pytest.mark.slow
def test_the_program_starts_again_with_the_breakpoints_that_were_set(editor, tmp_path):
    path = launched(editor, tmp_path, WRITES)
    (line,) = editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 3}])["breakpoints"]
    editor.ask("setExceptionBreakpoints", filters=[])
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    saved = scopes(editor)["Saved tensors"]
    data = editor.ask("dataBreakpointInfo", variablesReference=saved, name="result")["dataId"]
    (point,) = editor.ask("setDataBreakpoints", breakpoints=[{"dataId": data}])["breakpoints"]
    editor.ask("restart")
    lost = editor.wait_for("breakpoint")["breakpoint"]
    assert (lost["id"], lost["verified"], "can be watched while" in lost["message"]) == (point["id"], False, True)
    assert editor.wait_for("stopped")["hitBreakpointIds"] == [line["id"]]
    editor.ask("setBreakpoints", source={"path": path}, breakpoints=[])
    editor.ask("continue", threadId=1)
    assert editor.wait_for("exited")["exitCode"] == 1
    editor.wait_for("terminated")
    assert not [event for event in editor.events if event["event"] in ("exited", "stopped")]
    editor.ask("disconnect")


LAYERS = """\
import gradscope as gs
model = gs.nn.Sequential(gs.nn.Linear(2, 3), gs.nn.Tanh(), gs.nn.Linear(3, 1))
loss = model(gs.ones(4, 2)).sum()
weights = [1, 2]
loss.backward()
"""


@pytest.mark.slow
def test_goto_goes_back_to_a_node_or_on_to_one(editor, tmp_path):
    path = launched(editor, tmp_path, LAYERS, stopOnEntry=True)
    editor.ask("configurationDone")
    assert editor.wait_for("stopped")["reason"] == "entry"
    targets = editor.ask("gotoTargets", source={"path": path}, line=3)["targets"]
    assert targets[0]["label"].startswith("back to 0 SumBackward0")
    tanh = next(target for target in targets if "Tanh" in target["label"])
    assert tanh["label"].startswith("run to ")
    for target in (tanh, targets[0]):
        editor.ask("goto", threadId=1, targetId=target["id"])
        assert editor.wait_for("stopped")["reason"] == "goto"
        name = editor.ask("stackTrace", threadId=1)["stackFrames"][0]["name"]
        assert name.startswith(target["label"].partition(" to ")[2])
    assert editor.ask("gotoTargets", source={"path": path}, line=1)["targets"] == []
    assert editor.request("goto", threadId=1, targetId=999)["success"] is False
    editor.ask("disconnect")


@pytest.mark.slow
def test_modules_sources_and_completions_are_those_of_the_program(editor, tmp_path):
    path = launched(editor, tmp_path, LAYERS, stopOnEntry=True)
    editor.ask("configurationDone")
    editor.wait_for("stopped")
    found = editor.ask("modules")
    assert ({one["name"] for one in found["modules"]}, found["totalModules"]) == ({"0", "1", "2"}, 3)
    assert [one["id"] for one in editor.ask("modules", startModule=1, moduleCount=1)["modules"]] == ["1"]
    assert editor.ask("loadedSources")["sources"] == [{"name": "program.py", "path": path}]

    def completed(text):
        found = editor.ask("completions", text=text, column=len(text) + 1, frameId=1)["targets"]
        return {one["label"] for one in found}, {(one["start"], one["length"]) for one in found}

    assert completed("1 + we") == ({"weights"}, {(5, 2)})
    assert completed("model.state_d") == ({"state_dict"}, {(7, 7)})
    assert completed("weights[0].bit_l") == ({"bit_length"}, {(12, 5)})
    assert completed("print('(.") == (set(), set())
    assert editor.ask("evaluate", expression="weights.append(3)", context="repl")["result"] == "None"
    assert editor.ask("evaluate", expression="weights += [4]", context="repl")["result"] == ""
    assert editor.ask("evaluate", expression="weights", context="watch")["result"] == "[1, 2, 3, 4]"
    assert "SyntaxError" not in editor.request("evaluate", expression="(", context="repl")["message"]
    editor.ask("disconnect")


@pytest.mark.slow
def test_a_run_without_debugging_stops_nowhere(editor, tmp_path):
    path = launched(editor, tmp_path, WRITES, noDebug=True, stopOnEntry=True, env={"HOME": None})
    (point,) = editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 3}])["breakpoints"]
    assert (point["verified"], point["message"]) == (False, "the program runs without debugging")
    editor.ask("setExceptionBreakpoints", filters=["violation", "exception", "nan"])
    editor.ask("configurationDone")
    assert editor.wait_for("exited")["exitCode"] == 1
    assert not [event for event in editor.events if event["event"] == "stopped"]
    editor.ask("disconnect")


@pytest.mark.slow
def test_a_finding_is_told_once_where_a_limit_of_the_configuration_makes_it_one(editor, tmp_path):
    path = tmp_path / "unlike.py"
    path.write_text(
        "import gradscope as gs\n"
        "w, v = gs.ones(3, requires_grad=True), gs.full((3,), 1e-3, requires_grad=True)\n"
        "(w * v).exp().sum().backward()\n"
    )
    editor.ask("initialize")
    refused = editor.request("launch", program=str(path), limits={"norm_spred": 10})
    assert refused["message"] == "there is no limit 'norm_spred'\nDid you mean one of norm_spread?"
    editor.ask("launch", program=str(path), stopOnEntry=True, limits={"norm_spread": 10, "exploding_norm": 1})
    editor.wait_for("initialized")
    editor.ask("configurationDone")
    for _ in range(4):
        editor.wait_for("stopped")
        editor.ask("next", threadId=1)
    editor.wait_for("stopped")
    editor.ask("continue", threadId=1)
    editor.wait_for("exited")
    told = [event["body"] for event in editor.events if event["body"].get("category") == "console"]
    (finding,) = (one for one in told if "exploding" in one["output"])
    assert (finding["source"]["name"], finding["line"]) == ("unlike.py", 3)
    editor.ask("disconnect")


@pytest.mark.slow
def test_terminate_ends_a_program_and_disconnect_the_session(editor, tmp_path):
    launched(editor, tmp_path, LOOP)
    editor.ask("configurationDone")
    assert "runs on" in editor.request("disconnect", terminateDebuggee=False)["message"]
    editor.ask("terminate")
    editor.wait_for("terminated")
    editor.ask("disconnect")
    assert editor.stream.receive() is None


@pytest.mark.slow
def test_what_has_been_attached_to_ends_only_where_the_editor_asks_for_it(editor, tmp_path):
    path = tmp_path / "loop.py"
    path.write_text(LOOP)
    environment = {**os.environ, "GRADSCOPE_LISTEN": "1"}
    with subprocess.Popen([sys.executable, path], env=environment, stdout=subprocess.PIPE) as program:
        assert program.stdout.readline() == b"ready\n"
        assert editor.ask("initialize")["supportsRestartRequest"]
        editor.ask("attach", processId=program.pid, stopOnEntry=False)
        told = editor.wait_for("capabilities")["capabilities"]
        assert told == {"supportTerminateDebuggee": True, "supportsRestartRequest": False}
        assert editor.wait_for("process")["systemProcessId"] == program.pid
        assert "not started anew from here" in editor.request("restart")["message"]
        editor.ask("configurationDone")
        editor.ask("disconnect", terminateDebuggee=True)
        assert program.wait(60) != 0


THREADS = """\
import threading
import gradscope as gs
def work():
    x = gs.ones(2, requires_grad=True)
    while True:
        (x * 3).sum().backward()
        both.wait()
both = threading.Barrier(2)
threads = [threading.Thread(target=work, name=name, daemon=True) for name in ("one", "two")]
for thread in threads:
    thread.start()
threading.Event().wait()
"""


@pytest.mark.slow
def test_one_thread_stops_at_a_time_and_the_other_is_seen_to_run(editor, tmp_path):
    path = launched(editor, tmp_path, THREADS)
    editor.ask("setBreakpoints", source={"path": path}, breakpoints=[{"line": 6}])
    editor.ask("configurationDone")
    followed = editor.wait_for("stopped")["threadId"]
    while len(threads := editor.ask("threads")["threads"]) < 2:  # the other is on its way
        editor.ask("continue", threadId=followed)
        editor.wait_for("stopped")
    assert {thread["name"] for thread in threads} == {"one", "two"}
    other = next(thread["id"] for thread in threads if thread["id"] != followed)
    assert editor.ask("stackTrace", threadId=followed)["stackFrames"]
    assert editor.ask("stackTrace", threadId=other) == {"stackFrames": [], "totalFrames": 0}
    assert f"thread {other} runs" in editor.request("next", threadId=other)["message"]
    editor.ask("disconnect")


@pytest.mark.slow
def test_editors_come_to_a_port_one_after_the_other(script):
    server = subprocess.Popen([*COMMAND, "--port", "0"], stderr=subprocess.PIPE, text=True)
    try:
        port = int(server.stderr.readline().rpartition(":")[2])
        for _ in range(2):
            with socket.create_connection(("127.0.0.1", port)) as connection, connection.makefile("rwb") as stream:
                editor = Editor(types.SimpleNamespace(stdin=stream, stdout=stream))
                editor.ask("launch", program=script)
                editor.ask("configurationDone")
                assert editor.wait_for("exited")["exitCode"] == 0
                editor.ask("disconnect")
        taken = subprocess.run([*COMMAND, "--port", str(port)], capture_output=True, text=True, timeout=60)
        assert (taken.returncode, taken.stderr.count("\n")) == (2, 1)
        assert f"cannot listen at 127.0.0.1:{port}" in taken.stderr
        server.send_signal(signal.SIGINT)
        assert server.wait(60) == 0
    finally:
        server.kill()
        server.wait()
        server.stderr.close()


@pytest.mark.slow
def test_an_editor_that_dies_takes_its_program_along(tmp_path):
    (tmp_path / "loop.py").write_text(LOOP)
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        editor = Editor(process)
        editor.ask("launch", program="loop.py", cwd=str(tmp_path))
        program = editor.wait_for("process")["systemProcessId"]
        editor.ask("configurationDone")
        process.stdout.close()
        process.stdin.close()
        assert process.wait(60) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(program, 0)


RANKS = """\
import os
import gradscope as gs
rank = int(os.environ["RANK"])
x = gs.full((3,), 1.0 + rank, requires_grad=True)
while True:
    (x * 2).exp().sum().backward()
"""


COLLECTIVE = """\
import os
import gradscope as gs
x = gs.ones(3, requires_grad=True)
(x * 2).sum().backward()
made = {}
name = os.path.join("torch", "distributed", "site-packages")
exec(compile("def all_reduce(gate):\\n    open(gate).read()", name, "exec"), made)
print("waits", flush=True)
made["all_reduce"]("gate")
(x * 3).sum().backward()
"""


@pytest.mark.slow
def test_what_is_to_stop_and_waits_in_a_collective_is_named(editor, tmp_path):
    path = tmp_path / "collective.py"
    path.write_text(COLLECTIVE)
    os.mkfifo(tmp_path / "gate")
    editor.ask("launch", program=str(path), cwd=str(tmp_path))
    editor.ask("configurationDone")
    while "waits" not in editor.wait_for("output")["output"]:
        pass
    editor.ask("pause", threadId=editor.ask("threads")["threads"][0]["id"])
    while "waits in all_reduce" not in (told := editor.wait_for("output")["output"]):
        pass
    assert "called at collective.py:9; it will stop when that returns" in told
    assert 'made["all_reduce"]' in told, "its stack is shown"


@pytest.fixture
def ranks(tmp_path):
    path = tmp_path / "ranks.py"
    path.write_text(RANKS)
    return str(path)


def stopped_ranks(editor):
    """Return the stops of two ranks, by rank."""
    stops = [editor.wait_for("stopped") for _ in range(2)]
    return {stop["threadId"] // 100_000: stop for stop in stops}


def top(editor, thread):
    """Return the frame that the stack of a thread begins with."""
    return editor.ask("stackTrace", threadId=thread)["stackFrames"][0]


def first_gradient(editor, thread):
    """Return the first number of the gradient that has come in where a thread stands."""
    frame = top(editor, thread)
    scopes = editor.ask("scopes", frameId=frame["id"])["scopes"]
    gradients = editor.ask("variables", variablesReference=scopes[0]["variablesReference"])["variables"]
    (value,) = editor.ask("variables", variablesReference=gradients[0]["variablesReference"], count=1)["variables"]
    return float(value["value"])


@pytest.mark.slow
def test_each_rank_is_a_thread(editor, ranks):
    editor.ask("launch", program=ranks, nprocPerNode=2, stopOnEntry=True)
    editor.ask("configurationDone")
    assert {stop["reason"] for stop in stopped_ranks(editor).values()} == {"entry"}
    threads = editor.ask("threads")["threads"]
    assert [(one["id"], one["name"]) for one in threads] == [(1, "rank 0: MainThread"), (100_001, "rank 1: MainThread")]

    for place, name in ((1, "1 ExpBackward0"), (2, "2 MulBackward0")):
        editor.ask("next", threadId=100_001)
        stops = stopped_ranks(editor)
        assert [stops[rank]["reason"] for rank in (0, 1)] == ["step", "step"], place
        assert [top(editor, one["id"])["name"] for one in threads] == [name, name]
    assert [first_gradient(editor, one["id"]) for one in threads] == pytest.approx([7.389056, 54.59815], rel=1e-4)
    evaluated = [
        editor.ask("evaluate", expression="grad.shape[0] + rank", frameId=one["id"] // 100_000 * 100_000 + 1)["result"]
        for one in threads
    ]
    assert evaluated == ["3", "4"]
    editor.ask("disconnect")


@pytest.mark.slow
def test_one_rank_goes_on_alone_and_one_that_stops_stops_all(editor, ranks):
    editor.ask("launch", program=ranks, nprocPerNode=2, stopOnEntry=True)
    wanted = [{"name": "op:MulBackward0", "condition": "rank == 1"}]
    (point,) = editor.ask("setFunctionBreakpoints", breakpoints=wanted)["breakpoints"]
    editor.ask("configurationDone")
    stopped_ranks(editor)
    editor.ask("next", threadId=1, singleThread=True)
    stop = editor.wait_for("stopped")
    assert stop["threadId"] == 1
    assert [top(editor, thread)["name"] for thread in (1, 100_001)] == ["1 ExpBackward0", "0 SumBackward0"]
    assert editor.ask("continue", threadId=1)["allThreadsContinued"] is True
    stops = stopped_ranks(editor)
    assert stops[1]["hitBreakpointIds"] == [point["id"]]
    assert stops[0]["reason"] == "pause"
    editor.ask("disconnect")


@pytest.mark.slow
def test_ranks_are_started_again(editor, ranks):
    editor.ask("launch", program=ranks, nprocPerNode=2, stopOnEntry=True)
    editor.ask("configurationDone")
    stopped_ranks(editor)
    editor.ask("restart")
    assert {stop["reason"] for stop in stopped_ranks(editor).values()} == {"entry"}
    editor.ask("disconnect")


@pytest.mark.slow
def test_a_number_of_no_rank_is_refused(editor, ranks):
    editor.ask("launch", program=ranks, nprocPerNode=2)
    answer = editor.request("pause", threadId=700_001)
    assert answer["message"] == "number 700001 is of rank 7: they are 0 to 1"
    editor.ask("disconnect")


@pytest.mark.slow
def test_all_ranks_come_to_their_ends(editor, tmp_path):
    path = tmp_path / "ranks.py"
    path.write_text("import os, sys\nsys.exit(3 * int(os.environ['RANK']))\n")
    editor.ask("launch", program=str(path), nprocPerNode=2)
    editor.ask("configurationDone")
    assert editor.wait_for("exited")["exitCode"] == 3
    assert {editor.wait_for("thread")["threadId"] for _ in range(2)} == {1, 100_001}
    editor.ask("disconnect")


class EditorWithTerminals(Editor):
    """One that runs what it is asked to in a terminal: here without any."""

    def __init__(self, process):
        super().__init__(process)
        self.opened = []
        self.refusal = ""
        self.meanwhile = ""

    def receive(self):
        message = super().receive()
        while message["type"] == "request":
            assert message["command"] == "runInTerminal"
            self.open(message)
            message = super().receive()
        return message

    def open(self, message):
        asked = message["arguments"]
        if self.meanwhile:
            self.stream.send({"type": "request", "command": self.meanwhile})
        answer = {"type": "response", "command": "runInTerminal", "request_seq": message["seq"]}
        if self.refusal:
            self.stream.send({**answer, "success": False, "message": self.refusal})
            return
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
        environment = {name: value for name, value in {**os.environ, **asked["env"]}.items() if value is not None}
        process = subprocess.Popen(asked["args"], cwd=asked["cwd"], env=environment, text=True, **pipes)
        self.opened.append((asked["kind"], process))
        self.stream.send({**answer, "success": True, "body": {"processId": process.pid}})


@pytest.fixture
def terminals():
    with subprocess.Popen(COMMAND, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        editor = EditorWithTerminals(process)
        editor.ask("initialize", adapterID="gradscope", supportsRunInTerminalRequest=True)
        yield editor
        process.stdin.close()
        assert process.wait(30) == 0
    for _, program in editor.opened:
        program.communicate(timeout=60)


TYPED = """\
import os
import gradscope as gs
x = gs.ones(3, requires_grad=True)
(x * 2).sum().backward()
print(input("how many? "), os.environ.get("SHADE"))
"""


def test_a_program_runs_in_a_terminal_of_the_editor(terminals, tmp_path):
    path = tmp_path / "script.py"
    path.write_text(TYPED)
    env = {"SHADE": "blue"}
    console = "integratedTerminal"
    answer = terminals.request(
        "launch", program=str(path), console=console, env=env, stopOnEntry=True, cwd=str(tmp_path)
    )
    assert answer["success"], answer
    terminals.ask("configurationDone")
    assert terminals.wait_for("stopped")["reason"] == "entry"
    terminals.ask("continue", threadId=1)
    ((kind, program),) = terminals.opened
    program.stdin.write("seven\n")
    program.stdin.flush()
    assert terminals.wait_for("exited")["exitCode"] == 0
    assert [event for event in terminals.events if event["event"] == "output"] == []
    terminals.ask("disconnect")
    assert program.communicate(timeout=60)[0] == "how many? seven blue\n"
    assert (kind, program.returncode) == ("integrated", 0)


@pytest.mark.slow
def test_a_program_in_a_terminal_is_started_again_in_another(terminals, script):
    assert terminals.request("launch", program=script, console="externalTerminal", stopOnEntry=True)["success"]
    terminals.ask("configurationDone")
    terminals.wait_for("stopped")
    terminals.ask("restart")
    assert terminals.wait_for("stopped")["reason"] == "entry"
    (first, before), (second, now) = terminals.opened
    assert (first, second, before.wait(60) is not None, now.poll()) == ("external", "external", True, None)
    terminals.ask("disconnect")
    assert now.wait(60) is not None


@pytest.mark.slow
def test_a_program_in_a_terminal_that_dies_ends_the_session(terminals, tmp_path):
    path = tmp_path / "script.py"
    path.write_text("import os\nos.abort()\n")
    assert terminals.request("launch", program=str(path), console="integratedTerminal")["success"]
    terminals.ask("configurationDone")
    terminals.wait_for("terminated")
    assert not any(event["event"] == "exited" for event in terminals.events)
    terminals.ask("disconnect")


@pytest.mark.slow
def test_what_is_asked_before_the_terminal_is_there_is_answered_afterwards(terminals, script):
    terminals.meanwhile = "threads"
    terminals.ask("launch", program=script, console="integratedTerminal", stopOnEntry=True)
    while (answer := terminals.receive())["type"] == "event":
        terminals.events.append(answer)
    assert (answer["command"], answer["body"]) == ("threads", {"threads": [{"id": 1, "name": "program"}]})
    terminals.ask("disconnect")


@pytest.mark.slow
def test_an_editor_that_opens_no_terminal_is_told_why_there_is_no_program(terminals, script):
    terminals.refusal = "no terminal here"
    answer = terminals.request("launch", program=script, console="integratedTerminal")
    assert answer["message"] == "the editor has opened no terminal: no terminal here"
    terminals.ask("disconnect")


@pytest.mark.slow
def test_an_editor_without_terminals_gets_the_output(editor, script):
    editor.ask("initialize", adapterID="gradscope")
    editor.ask("launch", program=script, console="integratedTerminal")
    editor.ask("configurationDone")
    assert editor.wait_for("exited")["exitCode"] == 0
    assert any("gradient" in event["body"]["output"] for event in editor.events if event["event"] == "output")
    editor.ask("disconnect")
