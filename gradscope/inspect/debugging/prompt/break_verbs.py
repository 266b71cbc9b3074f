"""Line mode's verbs about where to stop and what to show: breakpoints, watches, threads, files of commands."""

from __future__ import annotations

from ..session.node_sequence import candidates_of
from ..stops.breakpoints import Breakpoint
from .plain_text import watch_line
from .prompt_output import PromptOutput
from .prompt_verbs import UsageError, read_commands

__all__ = ["BreakVerbs"]

_NESTED_FILES = 10


class BreakVerbs(PromptOutput):
    """Answers to ``break``, ``watch``, ``threads`` and their kin."""

    # --- breakpoints ---

    def _do_break(self, argument: str) -> None:
        if argument:
            self._add(argument)
        else:
            self._do_breakpoints("")

    def _do_tbreak(self, argument: str) -> None:
        self._add(argument, temporary=True)

    def _do_log(self, argument: str) -> None:
        spec, found, expression = argument.partition("::")
        if not found or not expression.strip():
            raise UsageError("usage: log SPEC [if CONDITION] :: EXPRESSION")
        self._add(spec.strip(), log=expression.strip())

    def _add(self, spec: str, *, temporary: bool = False, log: str | None = None) -> None:
        debugger = self.debugger
        added = debugger.add_breakpoint(spec, temporary=temporary, log=log)
        kind = "logpoint" if log is not None else "temporary breakpoint" if temporary else "breakpoint"
        self._say(f"{kind} {added.id}: {added}{self._ahead(added)}")

    def _ahead(self, point: Breakpoint) -> str:
        """Say how many of the nodes to come a breakpoint names."""
        debugger = self.debugger
        if (
            point.on_value is not None
            or point.on_write
            or point.spec.startswith(("iter:", "backward:"))
            or not debugger.nodes
        ):
            return ""
        ahead = sum(map(point.matches, candidates_of(debugger.nodes, debugger.current + 1)))
        return f", {ahead} of the nodes ahead in this backward"

    def _do_breakpoints(self, argument: str) -> None:
        points = self.debugger.breakpoints
        for point in points:
            notes = [
                "  once" if point.temporary else "",
                "" if point.enabled else "  disabled",
                f"  passed by {point.ignore} more times" if point.ignore else "",
            ]
            self._say(f"{point.id}  {point}{''.join(notes)}  ({point.hits} hit{'' if point.hits == 1 else 's'})")
        if not points:
            self._say("no breakpoints")

    def _do_delete(self, argument: str) -> None:
        self.debugger.remove_breakpoint(self._point(argument))

    def _do_enable(self, argument: str) -> None:
        self.debugger.enable_breakpoint(self._point(argument))

    def _do_disable(self, argument: str) -> None:
        self.debugger.enable_breakpoint(self._point(argument), False)

    def _do_ignore(self, argument: str) -> None:
        words = argument.split()
        if len(words) != 2:
            raise UsageError("usage: ignore NUMBER COUNT")
        id, count = self._point(words[0]), self.number(words[1], "COUNT")
        self.debugger.ignore_breakpoint(id, count)
        self._say(f"breakpoint {id} is passed by the next {count} times")

    def _point(self, text: str) -> int:
        points = self.debugger.breakpoints
        if text == "$" and points:
            return points[-1].id
        return self.number(text, "NUMBER")

    def _do_catch(self, argument: str) -> None:
        kind, _, switch = argument.partition(" ")
        if switch not in ("", "on", "off"):
            raise UsageError("usage: catch [nan|inf|violation|exception [on|off]]")
        if kind:
            self.debugger.catch(kind, switch != "off")
        catching = self.debugger.catching
        self._say("stops at: " + (", ".join(name for name, on in catching.items() if on) or "no trouble"))

    # --- files of commands ---

    def _do_save_breaks(self, argument: str) -> None:
        lines = []
        for point in self.debugger.breakpoints:
            lines.append(point.command())
            if point.ignore:
                lines.append(f"ignore $ {point.ignore}")
            if not point.enabled:
                lines.append("disable $")
        lines += [f"catch {kind} off" for kind in ("violation", "exception") if not self.debugger.catching[kind]]
        with open(argument, "w", encoding="utf-8") as file:
            file.write("\n".join(lines) + "\n" if lines else "")
        count = len(self.debugger.breakpoints)
        self._say(f"wrote {count} breakpoint{'' if count == 1 else 's'} to {argument}")

    def _do_source(self, argument: str) -> None:
        if self._sources >= _NESTED_FILES:
            raise UsageError(f"{argument}: files that `source` each other go round in circles")
        lines = read_commands(argument)
        self._sources += 1
        try:
            for line in lines:
                if line and not self._over():
                    self._say(f"+ {line}")
                    self.obey(line)
        finally:
            self._sources -= 1

    # --- watches ---

    def _do_watch(self, argument: str) -> None:
        if argument:
            self._say(watch_line(self.debugger.add_watch(argument)))
            return
        self._say("\n".join(map(watch_line, self.debugger.watches)) or "no watches")

    def _do_unwatch(self, argument: str) -> None:
        self.debugger.remove_watch(self.number(argument, "NUMBER"))

    # --- threads ---

    def _do_threads(self, argument: str) -> None:
        for thread in self.debugger.threads:
            mark = ">" if thread.followed else " "
            busy = f"{thread.backwards} in progress" if thread.backwards else "in no backward"
            self._say(f"{mark} {thread.number}  {thread.name}  {busy}")
        if not self.debugger.threads:
            self._say("no thread has called backward()")

    def _do_thread(self, argument: str) -> None:
        number = self.number(argument, "NUMBER")
        self.debugger.follow_thread(number)
        self._say(f"stops in thread {number} only, from when the program goes on")

    def _do_tasks(self, argument: str) -> None:
        for task in self.debugger.tasks:
            node = f"node {task.index}" + (f" of {task.total}" if task.total >= 0 else "")
            self._say(f"{'  ' * task.depth}backward {task.number} at {node} {task.node}".rstrip())
        if not self.debugger.tasks:
            self._say("no backward is in progress")
