"""Requests of an editor, answered by a debugger in another process."""

from __future__ import annotations

import contextlib
import os
import queue
import re
import threading
from collections.abc import Callable
from typing import Any

from ..debugging.session.session_errors import SessionError
from ..records.records import DebuggerEvent, NodeRecord, SessionState
from ..wire.addresses import parse_address
from ..wire.client import RemoteDebugger, connect
from ..wire.program_process import ProgramProcess
from .framing import Stream

__all__ = ["Adapter"]

_CAPABILITIES = {
    "supportsConfigurationDoneRequest": True,
    "supportsConditionalBreakpoints": True,
    "supportsHitConditionalBreakpoints": True,
    "supportsLogPoints": True,
    "supportsFunctionBreakpoints": True,
    "supportsStepBack": True,
    "supportsSetVariable": True,
    "supportsEvaluateForHovers": True,
    "supportsTerminateRequest": True,
    "exceptionBreakpointFilters": [
        {"filter": kind, "label": kind} for kind in ("nan", "inf", "violation", "exception")
    ],
}
_SCOPES = {1: ("Gradients in", "grads"), 2: ("Gradients out", "produced"), 3: ("Saved tensors", "saved")}
_REASONS = {"breakpoint": "breakpoint", "entry": "entry", "pause": "pause", "exception": "exception"}
_TROUBLE = dict.fromkeys(("nan", "inf", "violation"), "exception")
_PAGE = 1000
_DEEPEST = 100
_GRADIENT = re.compile(r"(?P<group>grads|produced)\[(?P<slot>\d+)\]")
_CALLER = re.compile(r'^ *File "(?P<path>.*)", line (?P<line>\d+), in (?P<name>.*)$', re.MULTILINE)
_GOING_ON = {
    "continue": "cont", "next": "step", "stepIn": "into", "stepOut": "out", "pause": "pause",
    "stepBack": "back", "reverseContinue": "reverse_continue", "terminate": "abort",
}  # fmt: skip


class Adapter:
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
        self._points: dict[str, list[int]] = {}
        self._expandable: list[str] = []
        self._stop_on_entry = False
        self._told: tuple[Any, ...] | None = None
        self._stops: queue.SimpleQueue[DebuggerEvent | None] = queue.SimpleQueue()
        self._answers: dict[str, Callable[[dict[str, Any]], dict[str, Any] | None]] = {
            "initialize": lambda asked: _CAPABILITIES,
            "launch": self._launch,
            "attach": self._attach,
            "configurationDone": self._configured,
            "setBreakpoints": self._set_lines,
            "setFunctionBreakpoints": self._set_specs,
            "setExceptionBreakpoints": self._set_filters,
            "threads": self._threads,
            "stackTrace": self._stack,
            "scopes": self._scopes,
            "variables": self._variables,
            "setVariable": self._set_variable,
            "evaluate": self._evaluate,
            **{name: self._verb(method) for name, method in _GOING_ON.items()},
        }

    def run(self) -> None:
        """Answer until the editor leaves.

        Raises
        ------
        FramingError
            If what the editor writes is no message.
        """
        threading.Thread(target=self._tell_stops, name="gradscope-dap", daemon=True).start()
        try:
            while (asked := self._stream.receive()) is not None:
                self._answer(asked)
                if asked.get("command") == "disconnect":
                    break
        finally:
            self._leave()

    def _answer(self, asked: dict[str, Any]) -> None:
        command, arguments = asked.get("command"), asked.get("arguments") or {}
        reply = {"type": "response", "request_seq": asked.get("seq", 0), "command": str(command)}
        try:
            if command != "disconnect" and command not in self._answers:
                raise ValueError(f"gradscope does not know the request {command!r}")
            if not isinstance(arguments, dict):
                raise ValueError(f"the arguments of {command} are an object, got {type(arguments).__name__}")
            body = None if command == "disconnect" else self._answers[str(command)](arguments)
        except Exception as error:  # whatever it is, the editor shows it, and the session goes on
            text = f"{command} has no {error}" if isinstance(error, KeyError) else str(error)
            self._stream.send({**reply, "success": False, "message": text})
            return
        self._stream.send({**reply, "success": True, "body": body or {}})
        if command in ("launch", "attach"):
            self._event("initialized")

    def _event(self, name: str, **body: Any) -> None:
        self._stream.send({"type": "event", "event": name, "body": body})

    # --- the program ---

    def _launch(self, asked: dict[str, Any]) -> None:
        program = ["-m", asked["module"]] if "module" in asked else [asked["program"]]
        if "cwd" in asked:
            os.chdir(asked["cwd"])
        os.environ.update(asked.get("env", {}))
        self._stop_on_entry = bool(asked.get("stopOnEntry"))
        self._process = ProgramProcess([*program, *asked.get("args", ())], terminal=False)
        self._take(self._process.debugger)

    def _attach(self, asked: dict[str, Any]) -> None:
        where = str(asked["address"] if "address" in asked else asked["processId"])
        self._stop_on_entry = True
        self._take(connect(parse_address(where), os.environ.get("GRADSCOPE_TOKEN", "").encode()))

    def _take(self, debugger: RemoteDebugger) -> None:
        self._debugger = debugger
        debugger.add_listener(self._hear)
        debugger.echo_to(self._write)

    def _write(self, text: str, stream: str = "stdout") -> None:
        self._event("output", category=stream, output=text)

    def _configured(self, asked: dict[str, Any]) -> None:
        state = self._known.state
        if state is SessionState.NOT_STARTED:
            self._known.start()
        elif state is SessionState.RUNNING:
            self._known.pause()
        else:
            self._stops.put(DebuggerEvent("state", state, self._known.reason))

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
        while (event := self._stops.get()) is not None:
            if self._known.ended:
                self._event("exited", exitCode=self._known.exit_status or 0)
                self._event("terminated")
                return
            if event.state is SessionState.RUNNING or event.reason is None:
                continue
            here = event.state, event.reason, self._known.task_index, self._known.current
            if here == self._told:  # a gradient has been set where it stands
                continue
            self._told = here
            kind = event.reason.kind
            if kind == "entry" and not self._stop_on_entry:
                with contextlib.suppress(SessionError):  # it has gone on, or is gone
                    self._known.cont()
                continue
            self._expandable = []
            why = {**_REASONS, **_TROUBLE}.get(kind, "step")
            followed = next((thread.number for thread in self._known.threads if thread.followed), 1)
            self._event("stopped", reason=why, description=event.reason.text, threadId=followed)

    def _leave(self) -> None:
        self._stops.put(None)
        if self._debugger is not None:
            self._debugger.leave()
        if self._process is not None:
            self._process.end()

    def _verb(self, method: str) -> Callable[[dict[str, Any]], None]:
        def carry_out(asked: dict[str, Any]) -> None:
            self._told = None
            getattr(self._known, method)()

        return carry_out

    # --- where to stop ---

    def _replace(self, group: str, wanted: list[tuple[str, dict[str, Any]]]) -> dict[str, Any]:
        for number in self._points.pop(group, ()):
            self._known.remove_breakpoint(number)
        return {"breakpoints": [self._add(group, spec, options) for spec, options in wanted]}

    def _add(self, group: str, spec: str, options: dict[str, Any]) -> dict[str, Any]:
        try:
            log, condition = options.get("logMessage") or None, options.get("condition") or None
            passed = int(options.get("hitCondition") or 1) - 1
            number = self._known.add_breakpoint(spec, condition=condition, log=log).id
            self._points.setdefault(group, []).append(number)
            if passed:
                self._known.ignore_breakpoint(number, passed)
        except (ValueError, TypeError, RuntimeError) as error:
            return {"verified": False, "message": str(error)}
        return {"verified": True, "id": number, **({"line": options["line"]} if "line" in options else {})}

    def _set_lines(self, asked: dict[str, Any]) -> dict[str, Any]:
        path = asked["source"]["path"]
        wanted = [(f"line:{path}:{point['line']}", point) for point in asked.get("breakpoints", ())]
        return self._replace(path, wanted)

    def _set_specs(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._replace("function", [(point["name"], point) for point in asked["breakpoints"]])

    def _set_filters(self, asked: dict[str, Any]) -> dict[str, Any]:
        chosen = asked["filters"]
        for kind in ("violation", "exception"):
            self._known.catch(kind, kind in chosen)
        return self._replace("filter", [(kind, {}) for kind in chosen if kind in ("nan", "inf")])

    # --- looking ---

    def _threads(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = [{"id": thread.number, "name": thread.name} for thread in self._known.threads]
        return {"threads": found or [{"id": 1, "name": "program"}]}

    def _stack(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = [_frame(node) for node in self._to_the_loss()]
        callers = [match.groupdict() for match in _CALLER.finditer(self._known.where())]
        found += [_place(caller["name"], caller["path"], int(caller["line"])) for caller in reversed(callers)]
        frames = [{"id": number, **frame} for number, frame in enumerate(found, 1)]
        start = asked.get("startFrame") or 0
        stop = start + (asked.get("levels") or len(frames))
        return {"stackFrames": frames[start:stop], "totalFrames": len(frames)}

    def _to_the_loss(self) -> list[NodeRecord]:
        """Return the node at hand, and those that its gradient came through, from the last to the loss."""
        if self._known.current < 0:
            return []
        ran = list(self._known.nodes.bare() if hasattr(self._known.nodes, "bare") else self._known.nodes)
        senders = {edge.target_key: node for node in reversed(ran[: self._known.current]) for edge in node.edges}
        found = [self._known.node]
        while found[-1].key in senders and len(found) < _DEEPEST:
            found.append(senders[found[-1].key])
        return found

    def _scopes(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"scopes": [
            {"name": name, "variablesReference": number, "expensive": False} for number, (name, _) in _SCOPES.items()
        ]}  # fmt: skip

    def _variables(self, asked: dict[str, Any]) -> dict[str, Any]:
        reference = asked["variablesReference"]
        if reference in _SCOPES:
            return {"variables": self._tensors(_SCOPES[reference][1])}
        start = asked.get("start", 0)
        expression = self._expandable[reference - len(_SCOPES) - 1]
        page = self._known.elements(expression, start, start + (asked.get("count") or _PAGE))
        numbers = enumerate(page.values, start)
        return {"variables": [{"name": f"[{i}]", "value": str(v), "variablesReference": 0} for i, v in numbers]}

    def _tensors(self, group: str) -> list[dict[str, Any]]:
        node = self._known.node
        if group == "saved":
            return [
                {"name": one.name, "value": f"{one.dtype}{list(one.shape or ())} {one.state}", "variablesReference": 0}
                for one in node.saved
            ]
        found = node.grad_outputs if group == "grads" else node.grad_inputs
        return [self._gradient(f"{group}[{slot}]", one) for slot, one in enumerate(found or ())]

    def _gradient(self, expression: str, summary: Any) -> dict[str, Any]:
        if summary is None:
            return {"name": expression, "value": "None", "variablesReference": 0}
        self._expandable.append(expression)
        shown = {"name": expression, "value": summary.preview, "type": f"{summary.dtype}{list(summary.shape)}"}
        reference = len(_SCOPES) + len(self._expandable)
        return {**shown, "variablesReference": reference, "indexedVariables": summary.numel}

    def _set_variable(self, asked: dict[str, Any]) -> dict[str, Any]:
        name = str(asked["name"])
        group = "produced" if self._known.state is SessionState.PAUSED_AFTER else "grads"
        match = _GRADIENT.fullmatch(name)
        if match is None or match["group"] != group:
            raise ValueError(f"{name} cannot be set here: before a node its grads can, after it what it has produced")
        self._known.set_grad(int(match["slot"]), str(asked["value"]))
        return {"value": self._known.evaluate_text(name)}

    def _evaluate(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"result": self._known.evaluate_text(asked["expression"]), "variablesReference": 0}


def _frame(node: NodeRecord) -> dict[str, Any]:
    name = f"{node.index} {node.name}"
    if node.location is None:
        return {"name": name, "line": 0, "column": 0}
    return _place(name, node.location.filename, node.location.lineno)


def _place(name: str, path: str, line: int) -> dict[str, Any]:
    full = os.path.abspath(path)
    return {"name": name, "line": line, "column": 0, "source": {"name": os.path.basename(full), "path": full}}
