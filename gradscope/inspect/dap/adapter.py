"""Requests of an editor, answered by a debugger in another process."""

from __future__ import annotations

import ast
import contextlib
import os
import queue
import threading
from collections.abc import Callable
from typing import Any

from ..records.records import DebuggerEvent, SessionState, StopReason
from ..wire.addresses import parse_address
from ..wire.client import RemoteDebugger, connect
from ..wire.program_process import ProgramProcess
from .completions import complete
from .framing import Stream
from .requests import Arguments, AttachArguments, LaunchArguments, converted
from .stack import Frame, node_records, same_file, stack_of
from .stop_points import TROUBLE, StopPoints, data_id, line_spec
from .variables import VariableReferences

__all__ = ["DebugAdapter"]

_CAPABILITIES = {
    **dict.fromkeys(
        [
            "supportsConfigurationDoneRequest", "supportsConditionalBreakpoints", "supportsHitConditionalBreakpoints",
            "supportsLogPoints", "supportsFunctionBreakpoints", "supportsDataBreakpoints", "supportsStepBack",
            "supportsSetVariable", "supportsEvaluateForHovers", "supportsExceptionInfoRequest",
            "supportsCompletionsRequest", "supportsModulesRequest", "supportsLoadedSourcesRequest",
            "supportsGotoTargetsRequest", "supportsRestartRequest", "supportsTerminateRequest",
        ],
        True,
    ),
    "completionTriggerCharacters": ["."],
    "exceptionBreakpointFilters": [
        {"filter": kind, "label": kind, "description": text, "default": kind in ("violation", "exception")}
        for kind, text in TROUBLE.items()
    ],
}  # fmt: skip
_WHEN_ATTACHED = {"supportTerminateDebuggee": True, "supportsRestartRequest": False}
"""What can be done otherwise with a program that the editor has not launched."""

_REASONS = {
    "breakpoint": "breakpoint", "trace": "breakpoint", "write": "data breakpoint", "entry": "entry", "pause": "pause",
    **dict.fromkeys(TROUBLE, "exception"),
}  # fmt: skip
_GOING_ON = {
    "continue": "cont", "next": "step", "stepIn": "into", "stepOut": "out",
    "stepBack": "back", "reverseContinue": "reverse_continue",
}  # fmt: skip


class DebugAdapter:
    """A session between an editor and one program.

    Parameters
    ----------
    stream : Stream
        To the editor.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._process: ProgramProcess | None = None
        self._debugger: RemoteDebugger | None = None
        self._points = StopPoints()
        self._variables = VariableReferences()
        self._frames: list[Frame] | None = None
        self._first_line = self._first_column = 1
        self._stop_on_entry = False
        self._left = False
        self._goes_to: str | None = None
        self._told: tuple[Any, ...] | None = None
        self._stops: queue.SimpleQueue[DebuggerEvent | None] = queue.SimpleQueue()
        self._turn = threading.Lock()
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "initialize": self._initialize,
            "launch": self._launch,
            "attach": self._attach,
            "configurationDone": self._configured,
            "restart": self._restart,
            "terminate": self._terminate,
            "disconnect": self._disconnect,
            "setBreakpoints": self._set_lines,
            "setFunctionBreakpoints": self._set_specs,
            "setExceptionBreakpoints": self._set_filters,
            "dataBreakpointInfo": self._data_info,
            "setDataBreakpoints": self._set_data,
            "threads": self._threads,
            "stackTrace": self._stack_trace,
            "scopes": self._scopes,
            "variables": self._unfold,
            "setVariable": self._set_variable,
            "evaluate": self._evaluate,
            "completions": self._completions,
            "exceptionInfo": self._exception_info,
            "modules": self._modules,
            "loadedSources": self._sources,
            "gotoTargets": self._targets,
            "goto": self._goto,
            "pause": self._pause,
            **{name: self._verb(method) for name, method in _GOING_ON.items()},
        }

    def run(self) -> None:
        """Answer until the editor leaves.

        Raises
        ------
        FramingError
            If what the editor writes is no message.
        """
        teller = threading.Thread(target=self._tell_stops, name="gradscope-dap", daemon=True)
        teller.start()
        try:
            while not self._left and (asked := self._stream.receive()) is not None:
                # What an answer brings about is told after it.
                with self._turn:
                    if asked.get("type") == "request":
                        self._answer(asked)
        except (BrokenPipeError, ConnectionResetError):  # the editor is gone
            pass
        finally:
            self._leave()

    def _answer(self, asked: dict[str, Any]) -> None:
        command, arguments = asked.get("command"), asked.get("arguments") or {}
        reply = {"type": "response", "request_seq": asked.get("seq", 0), "command": str(command)}
        try:
            if command not in self._answers:
                raise ValueError(f"gradscope does not know the request {command!r}")
            if not isinstance(arguments, dict):
                raise ValueError(f"the arguments of {command} are an object, got {type(arguments).__name__}")
            own = command in ("launch", "attach")
            body = self._answers[command](arguments if own else dict(converted(arguments, Arguments)))
        except Exception as error:  # whatever it is, the editor shows it, and the session goes on
            text = f"{command} has no {error}" if isinstance(error, KeyError) else str(error)
            body = {"error": {"id": 1, "format": "{text}", "variables": {"text": text}, "showUser": True}}
            self._stream.send({**reply, "success": False, "message": text, "body": body})
            return
        self._stream.send({**reply, "success": True, "body": body or {}})
        if command in ("launch", "attach"):
            self._introduce(command)

    def _event(self, name: str, /, **body: Any) -> None:
        with contextlib.suppress(OSError, ValueError):  # the editor is gone
            self._stream.send({"type": "event", "event": name, "body": body})

    # --- the program ---

    def _initialize(self, asked: dict[str, Any]) -> dict[str, Any]:
        self._first_line = int(asked.get("linesStartAt1", True))
        self._first_column = int(asked.get("columnsStartAt1", True))
        return _CAPABILITIES

    def _launch(self, asked: dict[str, Any]) -> None:
        wanted = converted(asked, LaunchArguments)
        if not wanted.program and not wanted.module:
            raise ValueError("launch needs `program`, a script's path, or `module`, a module's name")
        program = ["-m", wanted.module] if wanted.module else [wanted.program]
        if wanted.cwd:
            os.chdir(wanted.cwd)
        for name, value in wanted.env.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._stop_on_entry = wanted.stop_on_entry and not wanted.no_debug
        self._points.ignored = wanted.no_debug
        self._process = ProgramProcess([*program, *wanted.args], terminal=False)
        self._take(self._process.debugger)

    def _attach(self, asked: dict[str, Any]) -> None:
        wanted = converted(asked, AttachArguments)
        where = wanted.address or str(wanted.process_id)
        if not where:
            raise ValueError("attach needs `processId`, the number of a program that listens, or `address`")
        self._stop_on_entry = wanted.stop_on_entry
        self._take(connect(parse_address(where), os.environ.get("GRADSCOPE_TOKEN", "").encode()))

    def _take(self, debugger: RemoteDebugger) -> None:
        self._debugger = debugger
        debugger.add_listener(self._hear)
        debugger.echo_to(self._write)

    def _introduce(self, command: str) -> None:
        """Tell what program it is, and that breakpoints may be set."""
        if command == "attach":
            self._event("capabilities", capabilities=_WHEN_ATTACHED)
        known = self._known
        self._event("process", name=known.title, systemProcessId=known.pid, isLocalProcess=True, startMethod=command)
        self._event("initialized")

    def _write(self, text: str, stream: str = "stdout") -> None:
        self._event("output", category=stream, output=text)

    def _configured(self, asked: dict[str, Any]) -> None:
        state = self._known.state
        if state is SessionState.NOT_STARTED:
            self._begin()
        elif state is not SessionState.RUNNING:
            self._stops.put(DebuggerEvent("state", state, self._known.reason))
        elif self._stop_on_entry:
            self._known.pause()

    def _begin(self) -> None:
        if self._stop_on_entry:
            self._known.start()
        else:
            self._known.cont()

    def _restart(self, asked: dict[str, Any]) -> None:
        start_again = self._known.start_again
        if start_again is None:
            raise ValueError(
                "a program that was attached to is not started anew from here\n"
                "Disconnect, start it again where it was started, and attach."
            )
        wanted = asked.get("arguments")
        if isinstance(wanted, dict):
            self._stop_on_entry = bool(wanted.get("stopOnEntry", self._stop_on_entry))
        start_again()
        self._moves()
        for point in self._points.set_again(self._known):
            self._event("breakpoint", reason="changed", breakpoint=point)
        self._begin()

    def _terminate(self, asked: dict[str, Any]) -> None:
        self._moves()
        self._known.abort()

    def _disconnect(self, asked: dict[str, Any]) -> None:
        ends = asked.get("terminateDebuggee", self._process is not None)
        if self._process is not None and not ends:
            raise ValueError(
                "a program that was launched ends with its editor\n"
                "Start it with GRADSCOPE_LISTEN=1 and attach: then it runs on."
            )
        if self._debugger is not None and self._process is None and ends:
            self._debugger.abort()
        self._leave()

    @property
    def _known(self) -> RemoteDebugger:
        if self._debugger is None:
            raise ValueError("there is no program yet; launch or attach comes first")
        return self._debugger

    def _hear(self, event: DebuggerEvent) -> None:
        if event.kind == "log":
            self._event("output", category="console", output=event.text + "\n")
        elif event.kind == "state":
            self._stops.put(event)

    def _tell_stops(self) -> None:
        while self._stops.get() is not None:
            with self._turn:  # what is told is how it is now: the process may be another one since
                reason = self._known.reason
                if self._known.ended:
                    self._tell_end()
                elif self._known.state.paused and reason is not None:
                    self._tell_stop(reason)

    def _tell_end(self) -> None:
        if self._told != ("ended",):
            self._told = ("ended",)
            self._event("exited", exitCode=self._known.exit_status or 0)
            self._event("terminated")

    def _tell_stop(self, reason: StopReason) -> None:
        here = self._known.state, reason, self._known.task_index, self._known.current
        if here == self._told:  # a gradient has been set where it stands
            return
        self._moves()
        self._told = here
        why = self._goes_to or _REASONS.get(reason.kind, "step")
        self._goes_to = None
        point = self._points.number(reason.breakpoint)
        hit = {} if point is None else {"hitBreakpointIds": [point]}
        self._event("stopped", reason=why, description=reason.text, text=reason.text, threadId=self._followed(), **hit)

    def _moves(self) -> None:
        """Forget where the program stood."""
        self._told = self._frames = None
        self._variables.forget()

    def _leave(self) -> None:
        if self._left:
            return
        self._left = True
        self._stops.put(None)
        if self._debugger is not None:
            self._debugger.leave()
        if self._process is not None:
            self._process.end()

    def _verb(self, method: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
            self._check_stopped(asked)
            self._moves()
            getattr(self._known, method)()
            return {"allThreadsContinued": True} if method == "cont" else {}

        return carry_out

    def _pause(self, asked: dict[str, Any]) -> None:
        if self._runs(asked):
            self._known.follow_thread(asked["threadId"])
        self._known.pause()

    def _goto(self, asked: dict[str, Any]) -> None:
        self._check_stopped(asked)
        known, index = self._known, int(asked["targetId"])
        self._moves()
        self._goes_to = "goto"
        try:
            if index <= known.live:
                known.goto(index)
            else:
                known.run_to(index)
        except BaseException:
            self._goes_to = None
            raise

    def _check_stopped(self, asked: dict[str, Any]) -> None:
        if self._runs(asked):
            raise ValueError(f"thread {asked['threadId']} runs: one thread is stopped at a time\nPause this one first.")

    def _runs(self, asked: dict[str, Any]) -> bool:
        """Whether a request is about a thread that runs through while another is followed."""
        followed = {thread.number: thread.followed for thread in self._known.threads}
        return any(followed.values()) and not followed.get(asked.get("threadId", 0), True)

    # --- where to stop ---

    def _set_lines(self, asked: dict[str, Any]) -> dict[str, Any]:
        path, below = asked["source"]["path"], 1 - self._first_line
        wanted = [(line_spec(path, point["line"] + below), point) for point in asked.get("breakpoints") or ()]
        return {"breakpoints": self._points.replace(self._known, path, wanted)}

    def _set_specs(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = [(point["name"], point) for point in asked["breakpoints"]]
        return {"breakpoints": self._points.replace(self._known, "functions", wanted)}

    def _set_data(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = [(point["dataId"], point) for point in asked["breakpoints"]]
        return {"breakpoints": self._points.replace(self._known, "data", wanted)}

    def _set_filters(self, asked: dict[str, Any]) -> None:
        self._points.catch(self._known, asked["filters"])

    def _data_info(self, asked: dict[str, Any]) -> dict[str, Any]:
        name, known = str(asked["name"]), self._known
        node = known.node if known.current >= 0 else None
        saved = next((one for one in node.saved if one.name == name), None) if node is not None else None
        if node is None or saved is None or "variablesReference" not in asked:
            return {"dataId": None, "description": f"{name} is no saved tensor of the current node"}
        if saved.state == "released":
            return {"dataId": None, "description": f"{node.name} has released {name}"}
        text = f"{name}, saved by {node.name} at version {saved.saved_version}"
        found = data_id(known, known.current, name)
        return {"dataId": found, "description": text, "accessTypes": ["write"], "canPersist": False}

    # --- looking ---

    def _followed(self) -> int:
        return next((thread.number for thread in self._known.threads if thread.followed), 1)

    def _threads(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = [{"id": thread.number, "name": thread.name} for thread in self._known.threads]
        return {"threads": found or [{"id": 1, "name": "program"}]}

    def _at(self, frame: int) -> Frame:
        if self._frames is None:
            self._frames = stack_of(self._known)
        if not 0 < frame <= len(self._frames):
            raise ValueError(f"there is no frame {frame}: the stack has {len(self._frames)}")
        return self._frames[frame - 1]

    def _stack_trace(self, asked: dict[str, Any]) -> dict[str, Any]:
        if self._frames is None:
            self._frames = stack_of(self._known)
        found = (
            [] if self._runs(asked) else [self._frame(number, frame) for number, frame in enumerate(self._frames, 1)]
        )
        start = asked.get("startFrame") or 0
        return {"stackFrames": found[start : start + (asked.get("levels") or len(found))], "totalFrames": len(found)}

    def _frame(self, number: int, frame: Frame) -> dict[str, Any]:
        shown = {"id": number, "name": frame.name}
        if not frame.path:
            return {**shown, "line": 0, "column": 0, "presentationHint": "subtle"}
        line = frame.line - 1 + self._first_line
        return {**shown, "line": line, "column": self._first_column, "source": _source(frame.path)}

    def _scopes(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"scopes": self._variables.scopes(self._known, self._at(asked["frameId"]))}

    def _unfold(self, asked: dict[str, Any]) -> dict[str, Any]:
        start, count = asked.get("start") or 0, asked.get("count") or 0
        return {"variables": self._variables.unfold(asked["variablesReference"], start, count)}

    def _set_variable(self, asked: dict[str, Any]) -> dict[str, Any]:
        value = self._variables.change(asked["variablesReference"], str(asked["name"]), str(asked["value"]))
        return {"value": value}

    def _evaluate(self, asked: dict[str, Any]) -> dict[str, Any]:
        text = str(asked["expression"])
        if asked.get("context") == "repl" and _is_statement(text):
            self._known.execute(text)
            return {"result": "", "variablesReference": 0}
        return self._variables.of_expression(self._known, text)

    def _completions(self, asked: dict[str, Any]) -> dict[str, Any]:
        typed = asked["text"][: asked["column"] - self._first_column]
        words, length = complete(self._known, typed.rpartition("\n")[2])
        start = len(typed) - length + self._first_column
        return {"targets": [{"label": word, "start": start, "length": length} for word in words]}

    def _exception_info(self, asked: dict[str, Any]) -> dict[str, Any]:
        reason = self._known.reason
        if reason is None or reason.kind not in TROUBLE:
            raise ValueError(f"the program has not stopped at trouble, but since: {reason}")
        written = [f"`{one.name}` was written by {one.operator} at {one.location}" for one in reason.writes]
        more = self._known.explain() if reason.kind in ("nan", "inf") else ""
        text = "\n".join(filter(None, [reason.text, *written, more]))
        details = {"message": reason.text, "typeName": reason.kind, "stackTrace": self._known.where()}
        return {"exceptionId": reason.kind, "description": text, "breakMode": "always", "details": details}

    def _modules(self, asked: dict[str, Any]) -> dict[str, Any]:
        paths = dict.fromkeys(node.module for node in node_records(self._known) if node.module)
        found = [{"id": path, "name": path} for path in paths]
        start = asked.get("startModule") or 0
        stop = start + (asked.get("moduleCount") or len(found))
        return {"modules": found[start:stop], "totalModules": len(found)}

    def _sources(self, asked: dict[str, Any]) -> dict[str, Any]:
        places = [node.location.filename for node in node_records(self._known) if node.location is not None]
        return {"sources": [_source(path) for path in dict.fromkeys(map(os.path.abspath, places))]}

    def _targets(self, asked: dict[str, Any]) -> dict[str, Any]:
        path, line, live = asked["source"]["path"], asked["line"] + 1 - self._first_line, self._known.live
        nodes = [one for one in node_records(self._known) if same_file(one.location, path)]
        return {
            "targets": [
                {"id": one.index, "label": f"{'run' if one.index > live else 'back'} to {one.index} {one.name}",
                 "line": asked["line"]}
                for one in nodes if one.location is not None and one.location.lineno == line
            ]
        }  # fmt: skip


def _source(path: str) -> dict[str, Any]:
    return {"name": os.path.basename(path), "path": path}


def _is_statement(text: str) -> bool:
    """Whether a text is no expression, but can be carried out."""
    for mode, found in (("eval", False), ("single", True)):
        with contextlib.suppress(SyntaxError, ValueError):
            ast.parse(text.strip(), mode=mode)
            return found
    return False
