"""The debugger as a prompt: the verbs of the terminal UI, for any terminal, a pipe, or a string of commands."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import TextIO

from .debugger import Debugger, SessionError
from .gate import NotParkedError
from .records import DebuggerEvent, SessionState
from .render import graph_text, list_text, node_text, place_of, title_of
from .verbs import VERBS, UsageError, Verb, find_verb

__all__ = ["LineMode"]

PROMPT = "(gradscope) "

_AROUND = 5
_SHORT = 30


class LineMode:
    """A session at a prompt.

    Parameters
    ----------
    debugger : Debugger
        Not started.
    stdin, stdout, stderr : file, optional
        The process's own by default. What the program writes goes to `stdout` and `stderr` too.

    Attributes
    ----------
    failures : int
        Commands that could not do what they say.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect import Debugger
    >>> x = gs.ones(2, requires_grad=True)
    >>> LineMode(Debugger.for_call((x * 2).sum().backward)).run_commands(["step", "eval grad", "continue"])
    stopped before node 0 of 3: SumBackward0 - first node of backward 1
    (gradscope) step
    stopped before node 1 of 3: MulBackward0 - next node
    (gradscope) eval grad
    tensor([1., 1.])
    (gradscope) continue
    """

    def __init__(
        self,
        debugger: Debugger,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        self.debugger = debugger
        self.stdin = stdin or sys.stdin
        self.stdout = stdout or sys.stdout
        self.stderr = stderr or sys.stderr
        self.failures = 0
        self._leaving = False
        self._actions = {verb.name: getattr(self, "_do_" + verb.name.replace("-", "_")) for verb in VERBS}

    # --- the two ways to run it ---

    def run(self) -> None:
        """Start the program, and take commands from the prompt until it has ended or the person leaves."""
        last = ""
        with self._output():
            self._start()
            while not self._over():
                try:
                    line = self._read()
                except KeyboardInterrupt:
                    self._say("\n(quit leaves)")
                    continue
                if line is None:
                    line = "quit"
                line = last = line.strip() or (last if self.stdin.isatty() else "")
                if line:
                    self._obey(line)
            self._leave()

    def run_commands(self, commands: Iterable[str]) -> None:
        """Start the program and carry out commands, each echoed, so that a log tells the whole story.

        Parameters
        ----------
        commands : iterable of str

        Raises
        ------
        UsageError
            Before anything runs, if one of them is not a command.
        """
        commands = list(commands)
        for command in commands:
            find_verb(command)
        with self._output():
            self._start()
            for command in commands:
                if self._over():
                    break
                self._say(PROMPT + command)
                self._obey(command)
            self._leave()

    @contextmanager
    def _output(self) -> Iterator[None]:
        remove = self.debugger.add_listener(self._listen)
        try:
            yield
        finally:
            remove()

    def _listen(self, event: DebuggerEvent) -> None:
        if event.kind == "output":
            print(event.text, file=self.stderr if event.stream == "stderr" else self.stdout, flush=True)

    def _read(self) -> str | None:
        """Return the next line, or None at the end of input."""
        if not self.stdin.isatty():
            line = self.stdin.readline()
            if not line:
                return None
            self._say(PROMPT + line.strip())
            return line
        # input() edits lines only on the process's own streams, in whose place the program's have been put.
        kept = sys.stdin, sys.stdout
        sys.stdin, sys.stdout = self.stdin, self.stdout
        try:
            return input(PROMPT)
        except EOFError:
            self._say("")
            return None
        finally:
            sys.stdin, sys.stdout = kept

    def _say(self, text: str) -> None:
        print(text, file=self.stdout, flush=True)

    def _start(self) -> None:
        try:
            # For line editing and history at the prompt; not every Python has it.
            import readline  # noqa: F401
        except ImportError:
            pass
        self.debugger.start()
        self._wait()

    def _over(self) -> bool:
        return self._leaving or self.debugger.state.ended

    def _leave(self) -> None:
        """End the program if it has not ended by itself."""
        if not self.debugger.state.ended:
            self.debugger.abort()
            try:
                self.debugger.wait(2)
            except KeyboardInterrupt:
                self._say("")

    def _obey(self, line: str) -> None:
        try:
            verb, argument = find_verb(line)
            self._actions[verb.name](argument)
        except (UsageError, SessionError, NotParkedError, ValueError) as error:
            self._fail(str(error))
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, text: str) -> None:
        self.failures += 1
        self._say(f"*** {text}")

    def _wait(self) -> None:
        """Wait for the next stop and say where it is; Ctrl-C asks for one."""
        asked = False
        while True:
            try:
                state = self.debugger.wait()
                break
            except KeyboardInterrupt:
                if asked:
                    self._leaving = True
                    return
                asked = True
                self._say("\npausing at the next node; press Ctrl-C again to leave")
                if self.debugger.state is SessionState.RUNNING:
                    self.debugger.pause()
        if state.paused:
            self._say(self._stop_text())

    def _stop_text(self) -> str:
        debugger = self.debugger
        record, reason = debugger.nodes[debugger.current], debugger.reason
        word = "before" if debugger.state is SessionState.PAUSED_BEFORE else "after"
        if record.state == "failed":
            word = "in"
        title = title_of(record, len(debugger.nodes))
        text = f"stopped {word} {title} - {reason}"
        if debugger.task_index > 1 and reason is not None and reason.kind != "entry":
            text += f" (backward {debugger.task_index})"
        place = place_of(record.location)
        return f"{text}\n  {place}" if place else text

    # --- verbs that let the program go on ---

    def _do_step(self, argument: str) -> None:
        self.debugger.step(self._number(argument, "COUNT") if argument else 1)
        self._wait()

    def _do_into(self, argument: str) -> None:
        self.debugger.into()
        self._wait()

    def _do_out(self, argument: str) -> None:
        self.debugger.out()
        self._wait()

    def _do_continue(self, argument: str) -> None:
        self.debugger.cont()
        self._wait()

    def _do_run_to(self, argument: str) -> None:
        self.debugger.run_to(self._number(argument, "NODE"))
        self._wait()

    def _do_next_backward(self, argument: str) -> None:
        self.debugger.next_backward()
        self._wait()

    def _do_abort(self, argument: str) -> None:
        self.debugger.abort()
        self.debugger.wait(2)

    def _do_quit(self, argument: str) -> None:
        self._leaving = True

    # --- where to stop ---

    def _do_break(self, argument: str) -> None:
        if argument:
            self._add(argument, temporary=False)
        else:
            self._do_breakpoints("")

    def _do_tbreak(self, argument: str) -> None:
        self._add(argument, temporary=True)

    def _add(self, spec: str, *, temporary: bool) -> None:
        added = self.debugger.add_breakpoint(spec, temporary=temporary)
        ahead = [n for n in self.debugger.nodes[self.debugger.current + 1 :] if added.matches(n)]
        note = "" if added.on_nan else f", {len(ahead)} of the nodes ahead in this backward"
        self._say(f"{'temporary ' if temporary else ''}breakpoint {added.id}: {added}{note}")

    def _do_breakpoints(self, argument: str) -> None:
        for point in self.debugger.breakpoints:
            once = "  once" if point.temporary else ""
            self._say(f"{point.id}  {point}{once}  ({point.hits} hit{'' if point.hits == 1 else 's'})")
        if not self.debugger.breakpoints:
            self._say("no breakpoints")

    def _do_delete(self, argument: str) -> None:
        self.debugger.remove_breakpoint(self._number(argument, "NUMBER"))

    # --- looking ---

    def _do_print(self, argument: str) -> None:
        if argument:
            self._do_eval(argument)
        else:
            self._do_node(str(self.debugger.current))

    def _do_eval(self, argument: str) -> None:
        self._say(self.debugger.evaluate_text(argument))

    def _do_node(self, argument: str) -> None:
        record = self.debugger.inspect(self._number(argument, "NUMBER"))
        self._say(node_text(record, self.debugger.nodes))

    def _do_list(self, argument: str) -> None:
        nodes, here = self.debugger.nodes, self.debugger.current
        if argument == "all" or (not argument and len(nodes) <= _SHORT):
            start, stop = 0, len(nodes)
        elif not argument:
            start, stop = max(0, here - _AROUND), here + _AROUND + 1
        else:
            bounds = [self._number(word, "FROM and TO") for word in argument.replace(",", " ").split()]
            if len(bounds) > 2:
                raise UsageError("usage: list [FROM [TO] | all]")
            start = bounds[0]
            stop = bounds[1] + 1 if len(bounds) == 2 else start + 2 * _AROUND + 1
        self._say(list_text(nodes, start, stop) or f"there are {len(nodes)} nodes")

    def _do_graph(self, argument: str) -> None:
        self._say(graph_text(self.debugger.nodes))

    def _do_where(self, argument: str) -> None:
        record = self.debugger.nodes[self.debugger.current]
        self._say(title_of(record, len(self.debugger.nodes)))
        if record.location is not None:
            self._say(f"made at\n  {place_of(record.location)}  (in {record.location.function})")
        self._say(f"backward {self.debugger.task_index} was called at\n{self.debugger.where().rstrip()}")

    # --- changing ---

    def _do_set(self, argument: str) -> None:
        slot, expression = self._slot(argument, "set [SLOT] EXPRESSION")
        self.debugger.set_grad(slot, expression)
        self._edited(slot)

    def _do_zero(self, argument: str) -> None:
        slot = self._number(argument, "SLOT") if argument else 0
        self.debugger.zero_grad_slot(slot)
        self._edited(slot)

    def _do_scale(self, argument: str) -> None:
        slot, factor = self._slot(argument, "scale [SLOT] FACTOR")
        try:
            self.debugger.scale_grad(slot, float(factor))
        except ValueError as error:
            raise UsageError(f"scale takes a number: {error}") from None
        self._edited(slot)

    def _edited(self, slot: int) -> None:
        after = self.debugger.state is SessionState.PAUSED_AFTER
        record = self.debugger.inspect(self.debugger.current)
        group = record.grad_inputs if after else record.grad_outputs
        summary = group[slot] if group else None
        self._say(f"{'produced' if after else 'incoming'} gradient {slot} is now {summary.preview if summary else '-'}")

    @staticmethod
    def _slot(argument: str, usage: str) -> tuple[int, str]:
        """Take apart ``[SLOT] REST``; a single word is the rest, of slot 0."""
        head, _, rest = argument.partition(" ")
        if not rest:
            return 0, head
        return (int(head), rest.strip()) if head.isdecimal() else (0, argument)

    @staticmethod
    def _number(text: str, name: str) -> int:
        if not text.isdecimal():
            raise UsageError(f"{name} is a number, got {text!r}")
        return int(text)

    def _do_help(self, argument: str) -> None:
        chosen = VERBS if not argument else (find_verb(argument + " 0" if " " in argument else argument)[0],)
        self._say("\n".join(_help_line(verb) for verb in chosen))


def _help_line(verb: Verb) -> str:
    names = ", ".join(verb.names)
    return f"{f'{names} {verb.usage}'.rstrip():<42} {verb.help}"
