"""Requests of an editor, answered by a debugger in another process."""

from __future__ import annotations

import ast
import contextlib
import os
import queue
import signal
import socket
import threading
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from ..debuggee.script_targets import check_script
from ..debugging.prompt.plain_text import finding_text
from ..debugging.session.session_errors import SessionError
from ..diagnosis.finding_limits import DEBUGGER, limits_from
from ..ranks.launch import renew_ranks, start_ranks
from ..ranks.rank_discovery import attach_ranks, find_ranks
from ..ranks.rank_group import RankGroup
from ..records.records import DebuggerEvent, Location, SessionState, StopReason
from ..wire.addresses import parse_address
from ..wire.channel import ChannelError
from ..wire.client import RemoteDebugger, connect
from ..wire.program_process import ProgramProcess
from .completions import complete
from .debugged_ranks import DebuggedRank, DebuggedRanks
from .editor_terminal import CONSOLES, TerminalProcess
from .framing import Stream
from .request_arguments import Arguments, AttachArguments, LaunchArguments, converted
from .stack import Frame, node_records, same_file
from .stop_points import TROUBLE, StopPoints, data_id, line_spec

__all__ = ["DebugAdapter"]

_CAPABILITIES = {
    **dict.fromkeys(
        [
            "supportsConfigurationDoneRequest", "supportsConditionalBreakpoints", "supportsHitConditionalBreakpoints",
            "supportsLogPoints", "supportsFunctionBreakpoints", "supportsDataBreakpoints", "supportsStepBack",
            "supportsSetVariable", "supportsEvaluateForHovers", "supportsExceptionInfoRequest",
            "supportsCompletionsRequest", "supportsModulesRequest", "supportsLoadedSourcesRequest",
            "supportsGotoTargetsRequest", "supportsRestartRequest", "supportsTerminateRequest",
            "supportsSingleThreadExecutionRequests",
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


_PAUSING = 2.0
"""Seconds in which a program that is in no collective comes to its next node."""


class DebugAdapter:
    """A session between an editor and one program.

    Parameters
    ----------
    stream : Stream
        To the editor.
    """

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self._processes: list[ProgramProcess | TerminalProcess] = []
        self._has_terminals = False
        self._postponed: deque[dict[str, Any]] = deque()
        self._program: DebuggedRanks | None = None
        self._points = StopPoints()
        self._first_line = self._first_column = 1
        self._stop_on_entry = False
        self._left = False
        self._ended = False
        self._stops: queue.SimpleQueue[DebuggedRank | None] = queue.SimpleQueue()
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
            while not self._left and (asked := self._next()) is not None:
                # What an answer brings about is told after it.
                with self._turn:
                    if asked.get("type") == "request":
                        self._answer(asked)
        except (BrokenPipeError, ConnectionResetError):  # the editor is gone
            pass
        finally:
            self._leave()

    def _next(self) -> dict[str, Any] | None:
        return self._postponed.popleft() if self._postponed else self._stream.receive()

    def _open_terminal(self, arguments: dict[str, Any]) -> None:
        """Ask the editor to run a command in a terminal; what it asks meanwhile is answered afterwards."""
        number = self._stream.send({"type": "request", "command": "runInTerminal", "arguments": arguments})
        while (message := self._stream.receive()) is not None:
            if message.get("type") != "response":
                self._postponed.append(message)
            elif message.get("request_seq") == number:
                if not message.get("success"):
                    raise ValueError(
                        f"the editor has opened no terminal: {message.get('message') or 'it says not why'}"
                    )
                return
        raise ValueError("the editor has left before it has opened a terminal")

    def _answer(self, asked: dict[str, Any]) -> None:
        command, arguments = asked.get("command"), asked.get("arguments") or {}
        reply = {"type": "response", "request_seq": asked.get("seq", 0), "command": str(command)}
        try:
            if command not in self._answers:
                raise ValueError(f"gradscope does not know the request {command!r}")
            if not isinstance(arguments, dict):
                raise ValueError(f"the arguments of {command} are an object, got {type(arguments).__name__}")
            own = command in ("launch", "attach")
            taken = arguments if own else dict(converted(arguments, Arguments))
            if self._program is not None and not own:
                self._program.turn_to(taken)
            body = self._answers[command](taken)
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
        self._has_terminals = asked.get("supportsRunInTerminalRequest", False) and hasattr(socket, "AF_UNIX")
        return _CAPABILITIES

    def _launch(self, asked: dict[str, Any]) -> None:
        wanted = converted(asked, LaunchArguments)
        settings = _settings(wanted.limits)
        if not wanted.program and not wanted.module:
            raise ValueError("launch needs `program`, a script's path, or `module`, a module's name")
        program = ["-m", wanted.module] if wanted.module else [wanted.program]
        if wanted.cwd:
            os.chdir(wanted.cwd)
        if not wanted.module:
            check_script(wanted.program)
        for name, value in wanted.env.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value
        self._stop_on_entry = wanted.stop_on_entry and not wanted.no_debug
        self._points.ignored = wanted.no_debug
        target = [*program, *wanted.args]
        if wanted.nproc_per_node:
            self._processes = [*start_ranks(target, wanted.nproc_per_node)]
        elif self._has_terminals and wanted.console in CONSOLES:
            self._processes = [TerminalProcess(self._open_terminal, target, CONSOLES[wanted.console], wanted.env)]
        else:
            self._processes = [ProgramProcess(target, terminal=False, line_buffered=True)]
        try:
            debuggers = [process.debugger for process in self._processes]
        except ChannelError:
            started, self._processes = self._processes, []  # the editor may launch again, or leave
            for process in started:
                if isinstance(process, ProgramProcess):
                    process.send_signal(signal.SIGTERM)
            raise
        self._take(debuggers, settings, non_stop=wanted.non_stop)

    def _attach(self, asked: dict[str, Any]) -> None:
        wanted = converted(asked, AttachArguments)
        where = wanted.address or str(wanted.process_id)
        self._stop_on_entry = wanted.stop_on_entry
        settings = _settings(wanted.limits)
        if wanted.ranks:
            process = int(wanted.process_id) if wanted.process_id else None
            self._take(attach_ranks(find_ranks(process)), settings, non_stop=wanted.non_stop)
            return
        if not where:
            raise ValueError("attach needs `processId`, the number of a program that listens, or `address`")
        self._take([connect(parse_address(where), os.environ.get("GRADSCOPE_TOKEN", "").encode())], settings)

    def _take(self, debuggers: Sequence[RemoteDebugger], settings: Sequence[str], *, non_stop: bool = False) -> None:
        self._program = program = DebuggedRanks(RankGroup(debuggers, non_stop=non_stop))
        for debugger in debuggers:
            for setting in settings:
                debugger.set_limit(setting)
        for rank in program.ranks:
            rank.debugger.add_listener(partial(self._hear, rank))
        (program.group if len(debuggers) > 1 else debuggers[0]).echo_to(self._write)

    def _introduce(self, command: str) -> None:
        """Tell what program it is, and that breakpoints may be set."""
        if command == "attach":
            self._event("capabilities", capabilities=_WHEN_ATTACHED)
        for known in [rank.debugger for rank in self._ranks]:
            self._event(
                "process", name=known.title, systemProcessId=known.pid, isLocalProcess=True, startMethod=command
            )
        self._event("initialized")

    def _write(self, text: str, stream: str = "stdout") -> None:
        self._event("output", category=stream, output=text)

    def _configured(self, asked: dict[str, Any]) -> None:
        begun = [rank for rank in self._ranks if rank.debugger.state is not SessionState.NOT_STARTED]
        if len(begun) < len(self._ranks):
            self._begin()
        for rank in begun:
            if rank.debugger.state is not SessionState.RUNNING:
                self._stops.put(rank)
            elif self._stop_on_entry:
                rank.debugger.pause()

    def _begin(self) -> None:
        for rank in self._ranks:
            if rank.debugger.state is not SessionState.NOT_STARTED:
                continue
            if self._stop_on_entry:
                rank.debugger.start()
            else:
                rank.debugger.cont()

    def _restart(self, asked: dict[str, Any]) -> None:
        if not self._processes:
            raise ValueError(
                "a program that was attached to is not started anew from here\n"
                "Disconnect, start it again where it was started, and attach."
            )
        wanted = asked.get("arguments")
        if isinstance(wanted, dict):
            self._stop_on_entry = bool(wanted.get("stopOnEntry", self._stop_on_entry))
        renew_ranks([process for process in self._processes if isinstance(process, ProgramProcess)])
        for rank in self._ranks:
            assert rank.debugger.start_again is not None  # it has been launched
            rank.debugger.start_again()
            rank.moves()
            rank.findings.clear()
        self._ended = False
        for point in self._points.set_again(self._all):
            self._event("breakpoint", reason="changed", breakpoint=point)
        self._begin()

    def _terminate(self, asked: dict[str, Any]) -> None:
        for rank in self._ranks:
            rank.moves()
        self._all.abort()

    def _disconnect(self, asked: dict[str, Any]) -> None:
        ends = asked.get("terminateDebuggee", bool(self._processes))
        if self._processes and not ends:
            raise ValueError(
                "a program that was launched ends with its editor\n"
                "Start it with GRADSCOPE_LISTEN=1 and attach: then it runs on."
            )
        if self._program is not None and not self._processes and ends:
            self._program.group.abort()
        self._leave()

    @property
    def _debugged(self) -> DebuggedRanks:
        if self._program is None:
            raise ValueError("there is no program yet; launch or attach comes first")
        return self._program

    @property
    def _ranks(self) -> list[DebuggedRank]:
        return self._debugged.ranks

    @property
    def _here(self) -> DebuggedRank:
        """The rank that the request is about."""
        return self._debugged.here

    @property
    def _known(self) -> RemoteDebugger:
        return self._here.debugger

    @property
    def _all(self) -> RemoteDebugger:
        """All ranks as one."""
        return self._debugged.group  # type: ignore[return-value] # it has the same verbs

    def _hear(self, rank: DebuggedRank, event: DebuggerEvent) -> None:
        if event.kind == "log":
            name = f"[rank {rank.rank}] " if len(self._ranks) > 1 else ""
            self._event("output", category="console", output=f"{name}{event.text}\n")
        elif event.kind == "state":
            self._stops.put(rank)

    def _tell_stops(self) -> None:
        while (rank := self._stops.get()) is not None:
            with self._turn:  # what is told is how it is now: the process may be another one since
                reason = rank.debugger.reason
                if rank.debugger.ended:
                    self._tell_end(rank)
                elif rank.debugger.state.paused and reason is not None:
                    self._tell_stop(rank, reason)

    def _tell_end(self, rank: DebuggedRank) -> None:
        if rank.told != ("ended",) and len(self._ranks) > 1:
            self._event("thread", reason="exited", threadId=rank.number(rank.followed))
        rank.told = ("ended",)
        if not self._ended and self._debugged.group.ended:
            self._ended = True
            statuses = [one.debugger.exit_status for one in self._ranks]
            if statuses != [None]:  # nobody knows that of a process of somebody else that was killed
                self._event("exited", exitCode=next(filter(None, statuses), 0))
            self._event("terminated")
        elif rank.debugger.exit_status:
            self._stop_others(rank)

    def _tell_stop(self, rank: DebuggedRank, reason: StopReason) -> None:
        known = rank.debugger
        here = known.state, reason, known.task_index, known.current
        if here == rank.told:  # a gradient has been set where it stands
            return
        rank.moves()
        rank.told = here
        body: dict[str, Any] = {"reason": rank.goes_to or _REASONS.get(reason.kind, "step")}
        rank.goes_to = None
        point = self._points.number(reason.breakpoint)
        if point is not None:
            body["hitBreakpointIds"] = [point]
        if len(self._ranks) > 1:  # that another has stopped too is no news to who looks at one
            hint = rank is not self._here and reason.kind in ("pause", "step")
            body |= {"allThreadsStopped": False, "preserveFocusHint": hint}
        thread = rank.number(rank.followed)
        self._event("stopped", description=reason.text, text=reason.text, threadId=thread, **body)
        self._tell_findings(rank)
        self._stop_others(rank)

    def _tell_findings(self, rank: DebuggedRank) -> None:
        """Write what is wrong with the backward into the console, each finding once."""
        with contextlib.suppress(SessionError):  # the program has ended
            for finding in rank.debugger.findings():
                known = rank.debugger.task_index, finding.title
                if known not in rank.findings:
                    rank.findings.add(known)
                    where = finding.location
                    place = {} if where is None else {"source": _source(where.filename), "line": self._shown(where)}
                    self._event("output", category="console", output=f"{finding_text(finding)}\n", **place)

    def _shown(self, location: Location) -> int:
        return location.lineno - 1 + self._first_line

    def _stop_others(self, rank: DebuggedRank) -> None:
        """Stop the other ranks where one has stopped or failed, unless they are to go on."""
        group = self._debugged.group
        if len(self._ranks) > 1 and not group.non_stop:
            threading.Thread(target=group.stop_with, args=(rank.debugger,), daemon=True).start()

    def _leave(self) -> None:
        if self._left:
            return
        self._left = True
        self._stops.put(None)
        if self._program is not None:
            for rank in self._program.ranks:
                rank.debugger.leave()
        for process in self._processes:
            process.end()

    def _verb(self, method: str) -> Callable[[dict[str, Any]], dict[str, Any]]:
        def carry_out(asked: dict[str, Any]) -> dict[str, Any]:
            self._check_stopped(asked)
            alone = asked.get("singleThread", False) or method in ("back", "reverse_continue")
            for rank in [self._here] if alone else self._ranks:
                if rank.debugger.state is not SessionState.RUNNING:
                    rank.moves()
            getattr(self._known if alone else self._all, method)()
            return {"allThreadsContinued": not alone} if method == "cont" else {}

        return carry_out

    def _pause(self, asked: dict[str, Any]) -> None:
        if self._runs(asked):
            self._known.follow_thread(self._debugged.own(asked["threadId"]))
        rank = self._here
        rank.debugger.pause()
        threading.Thread(target=self._tell_delay, args=(rank,), daemon=True).start()

    def _tell_delay(self, rank: DebuggedRank) -> None:
        """Say it where a program that is to stop waits in a collective: an editor shows it as running."""
        debugger = rank.debugger
        with contextlib.suppress(SessionError):  # it has ended
            if debugger.wait(_PAUSING) is SessionState.RUNNING and (place := debugger.whereabouts()).startswith(
                "waits in"
            ):
                name = f"rank {rank.rank}" if len(self._ranks) > 1 else "the program"
                self._write(f"{name} {place}\n{debugger.main_thread_stack()}", "console")

    def _goto(self, asked: dict[str, Any]) -> None:
        self._check_stopped(asked)
        known, index = self._known, int(asked["targetId"])
        self._here.moves()
        self._here.goes_to = "goto"
        try:
            if index <= known.live:
                known.goto(index)
            else:
                known.run_to(index)
        except BaseException:
            self._here.goes_to = None
            raise

    def _check_stopped(self, asked: dict[str, Any]) -> None:
        if self._runs(asked):
            raise ValueError(f"thread {asked['threadId']} runs: one thread is stopped at a time\nPause this one first.")

    def _runs(self, asked: dict[str, Any]) -> bool:
        """Whether a request is about a thread that runs through while another is followed."""
        followed = {thread.number: thread.followed for thread in self._known.threads}
        return any(followed.values()) and not followed.get(self._debugged.own(asked.get("threadId", 0)), True)

    # --- where to stop ---

    def _set_lines(self, asked: dict[str, Any]) -> dict[str, Any]:
        path, below = asked["source"]["path"], 1 - self._first_line
        wanted = [(line_spec(path, point["line"] + below), point) for point in asked.get("breakpoints") or ()]
        return {"breakpoints": self._points.replace(self._all, path, wanted)}

    def _set_specs(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = [(point["name"], point) for point in asked["breakpoints"]]
        return {"breakpoints": self._points.replace(self._all, "functions", wanted)}

    def _set_data(self, asked: dict[str, Any]) -> dict[str, Any]:
        wanted = [(point["dataId"], point) for point in asked["breakpoints"]]
        return {"breakpoints": self._points.replace(self._all, "data", wanted)}

    def _set_filters(self, asked: dict[str, Any]) -> None:
        self._points.catch(self._all, asked["filters"])

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

    def _threads(self, asked: dict[str, Any]) -> dict[str, Any]:
        found = []
        for rank in self._ranks:
            name = f"rank {rank.rank}: " if len(self._ranks) > 1 else ""
            threads = {thread.number: thread.name for thread in rank.debugger.threads} or {1: "program"}
            if not (rank.debugger.ended and len(self._ranks) > 1):
                found += [{"id": rank.number(number), "name": name + each} for number, each in threads.items()]
        return {"threads": found}

    def _at(self, number: int) -> Frame:
        frames, own = self._here.frames(), self._debugged.own(number)
        if not 0 < own <= len(frames):
            raise ValueError(f"there is no frame {number}: the stack has {len(frames)}")
        return frames[own - 1]

    def _stack_trace(self, asked: dict[str, Any]) -> dict[str, Any]:
        here = self._here
        frames = [] if self._runs(asked) else here.frames()
        found = [self._frame(here.number(place), frame) for place, frame in enumerate(frames, 1)]
        start = asked.get("startFrame") or 0
        return {"stackFrames": found[start : start + (asked.get("levels") or len(found))], "totalFrames": len(found)}

    def _frame(self, number: int, frame: Frame) -> dict[str, Any]:
        shown = {"id": number, "name": frame.name}
        if not frame.path:
            return {**shown, "line": 0, "column": 0, "presentationHint": "subtle"}
        line = frame.line - 1 + self._first_line
        return {**shown, "line": line, "column": self._first_column, "source": _source(frame.path)}

    def _scopes(self, asked: dict[str, Any]) -> dict[str, Any]:
        return {"scopes": self._here.variables.scopes(self._known, self._at(asked["frameId"]))}

    def _unfold(self, asked: dict[str, Any]) -> dict[str, Any]:
        start, count = asked.get("start") or 0, asked.get("count") or 0
        return {"variables": self._here.variables.unfold(asked["variablesReference"], start, count)}

    def _set_variable(self, asked: dict[str, Any]) -> dict[str, Any]:
        return self._here.variables.change(asked["variablesReference"], str(asked["name"]), str(asked["value"]))

    def _evaluate(self, asked: dict[str, Any]) -> dict[str, Any]:
        text = str(asked["expression"])
        if asked.get("context") == "repl" and _is_statement(text):
            self._known.execute(text)
            return {"result": "", "variablesReference": 0}
        return self._here.variables.of_expression(self._known, text)

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


def _settings(limits: Mapping[str, float]) -> list[str]:
    """Return the limits of a configuration as the debugger takes them, before there is a program to end.

    Raises
    ------
    ValueError
        If no finding of the debugger's has one, or its value is no number above 0.
    """
    settings = [f"{name}={value:.17g}" for name, value in limits.items()]
    limits_from(settings, DEBUGGER)
    return settings


def _source(path: str) -> dict[str, Any]:
    return {"name": os.path.basename(path), "path": path}


def _is_statement(text: str) -> bool:
    """Whether a text is no expression, but can be carried out."""
    for mode, found in (("eval", False), ("single", True)):
        with contextlib.suppress(SyntaxError, ValueError):
            ast.parse(text.strip(), mode=mode)
            return found
    return False
