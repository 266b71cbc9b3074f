"""The debugger as a prompt: the verbs of the terminal UI, for any terminal, a pipe, or a string of commands."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TextIO

from ...debuggee.pause_gate import NotParkedError
from ...debuggee.streams import echo
from ...records.records import DebuggerEvent, SessionState
from ..session.session_errors import ProgramEndedError, SessionError
from .break_verbs import BreakVerbs
from .completion import install
from .inspect_verbs import InspectVerbs
from .plain_text import place_of, title_of, watch_line, write_line
from .prompt_output import PROMPT
from .prompt_verbs import VERBS, UsageError, find_verb, help_text

if TYPE_CHECKING:
    from ..session.debugger import Debugger

__all__ = ["LineMode"]

_AFTER_THE_END = (
    "`back`, `goto` and `list` look at what was recorded (all of it after `record on`), `restart` starts it again, "
    "`quit` leaves."
)


class LineMode(BreakVerbs, InspectVerbs):
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
    mid_line : bool
        Whether the program has begun a line on stdout and not ended it.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.inspect import Debugger
    >>> x = gs.ones(2, requires_grad=True)
    >>> LineMode(Debugger.for_call((x * 2).sum().backward)).run_commands(["step", "eval grad", "back", "continue"])
    stopped before node 0 of 3: SumBackward0 - first node of backward 1
    (gradscope) step
    stopped before node 1 of 3: MulBackward0 - next node
    (gradscope) eval grad
    tensor([1., 1.])
    (gradscope) back
    looking at node 0 of 3: SumBackward0 - one node back (recorded)
    (gradscope) continue
    stopped before node 1 of 3: MulBackward0 - back where the program is
    """

    def __init__(
        self,
        debugger: Debugger,
        *,
        stdin: TextIO | None = None,
        stdout: TextIO | None = None,
        stderr: TextIO | None = None,
    ) -> None:
        super().__init__(debugger, stdin=stdin, stdout=stdout, stderr=stderr)
        self._actions = {verb.name: getattr(self, "_do_" + verb.name.replace("-", "_")) for verb in VERBS}

    # --- the two ways to run it ---

    def run(self) -> None:
        """Start the program, and take commands from the prompt; after its end too, to look at what was recorded."""
        with self._output():
            self._start()
            self.prompt()
            self._leave()

    def prompt(self) -> None:
        """Take commands until the person leaves, or the program has ended and nothing was recorded of it."""
        last = ""
        while not self._over():
            self._tell_end()
            try:
                line = self.read()
            except KeyboardInterrupt:
                self._say("\n(quit leaves)")
                continue
            if line is None:
                line = "quit"
            line = last = line.strip() or (last if self.interactive else "")
            if line:
                self.obey(line)

    def run_commands(self, commands: Iterable[str]) -> None:
        """Start the program and carry out commands, each echoed, so that a log tells the whole story.

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
                if self._over() or (self.debugger.ended and find_verb(command)[0].name == "quit"):
                    break
                self._say(PROMPT + command)
                self.obey(command)
                self._end_told = self.debugger.ended
            self._leave()

    @contextmanager
    def _output(self) -> Iterator[None]:
        removes = [self._begin_echo(), self.debugger.add_listener(self._listen)]
        hook, sys.breakpointhook = sys.breakpointhook, self._breakpoint_hook(sys.breakpointhook)
        try:
            yield
        finally:
            sys.breakpointhook = hook
            for remove in removes:
                remove()

    def _begin_echo(self) -> Callable[[], None]:
        """Write what the program writes from now on; return what ends it."""
        return self.debugger.echo_to(self._echo)

    def _breakpoint_hook(self, hook: Any) -> Any:
        """Return what ``breakpoint()`` in the program does: Python's debugger, on the streams of this prompt."""

        def debug_here(*args: Any, **keywords: Any) -> Any:
            if hook is not sys.__breakpointhook__ or os.environ.get("PYTHONBREAKPOINT"):
                return hook(*args, **keywords)
            import pdb  # noqa: T100 - it loads when a program asks for it

            # The prompt waits for the program meanwhile, so nobody else reads. The current directory is the program's,
            # which may be a stranger's: its .pdbrc is not obeyed.
            python = pdb.Pdb(stdin=self.stdin, stdout=self.stdout, nosigint=True, readrc=False)
            return python.set_trace(sys._getframe(1))

        return debug_here

    def _echo(self, text: str, stream: str = "stdout") -> None:
        with self._writing:
            if stream == "stdout":
                self.mid_line = not text.endswith("\n")
            echo(text, self.stderr if stream == "stderr" else self.stdout)

    def _listen(self, event: DebuggerEvent) -> None:
        if event.kind == "log":
            self._say(event.text)

    def _start(self) -> None:
        if self.terminal:
            install(self.debugger)
        self.debugger.start()
        self._wait()

    def _tell_end(self) -> None:
        """Say once that the program has ended, and what can be done then."""
        ended = self.debugger.ended
        if ended and not self._end_told:
            self._say(f"{self.debugger.reason}\n{_AFTER_THE_END}")
        self._end_told = ended

    def _leave(self) -> None:
        """End the program if it has not ended by itself, or let it run on if it was not started here."""
        if not self.debugger.ended:
            self.debugger.leave()
            try:
                self.debugger.wait(2)
            except KeyboardInterrupt:
                self._say("")

    def obey(self, line: str) -> None:
        """Carry out a command; say what is wrong with it."""
        try:
            self._carry_out(line)
        except KeyboardInterrupt:
            if self.debugger.state is not SessionState.RUNNING:
                raise
            self._wait(presses=1)  # Ctrl-C came before the wait for the program began

    def _carry_out(self, line: str) -> None:
        try:
            verb, argument = find_verb(line)
            self._actions[verb.name](argument)
        except ProgramEndedError as error:
            # This is no failure: a list of commands may well go on until there is nothing left to stop at.
            self._say(str(error))
        except (UsageError, SessionError, NotParkedError, ValueError) as error:
            self._fail(str(error))
        except OSError as error:
            self._fail(f"{error.filename}: {error.strerror}" if error.filename else str(error))
        except Exception as error:
            self._fail(f"{type(error).__name__}: {error}")

    def _fail(self, text: str) -> None:
        self.failures += 1
        self._say(f"*** {text}")

    def _wait(self, presses: int = 0) -> None:
        """Wait for the next stop and say where it is; Ctrl-C asks for one, and has been pressed so often before."""
        while True:
            # A second press may come as soon as the first has been answered, so the answer too is inside the try.
            try:
                if presses:
                    self._say("\npausing at the next node; press Ctrl-C again to leave")
                    if self.debugger.state is SessionState.RUNNING:
                        self.debugger.pause()
                state = self.debugger.wait()
                break
            except KeyboardInterrupt:
                presses += 1
                if presses > 1:
                    self._leaving = self.interrupted = True
                    return
        if state.paused or self._end_told:  # the program may also be back at its end, out of the past
            self.say_stop()

    def say_stop(self) -> None:
        """Say where the program has stopped, and what is watched."""
        lines = [*self._stop_text(), *map(watch_line, self.debugger.watches)]
        self._say("\n  ".join(lines))

    def _stop_text(self) -> list[str]:
        debugger, reason = self.debugger, self.debugger.reason
        if debugger.state.ended:
            return [str(reason)]
        if debugger.current < 0 or reason is None:
            return [f"stopped in no backward - {reason}"]
        record = debugger.nodes[debugger.current]
        word = "before" if debugger.state is SessionState.PAUSED_BEFORE else "after"
        if record.state == "failed" or reason.kind in ("trace", "write"):
            word = "in"
        start = "looking at" if debugger.state is SessionState.REPLAYING else f"stopped {word}"
        text = f"{start} {title_of(record, len(debugger.nodes))} - {reason}"
        if debugger.task_index > 1 and reason.kind != "entry":
            text += f" (backward {debugger.task_index})"
        found = debugger.explain().splitlines() if reason.kind in ("nan", "inf") else []
        return [text, *filter(None, [place_of(record.location)]), *map(write_line, reason.writes), *found]

    # --- verbs that let the program go on ---

    def _do_step(self, argument: str) -> None:
        self.debugger.step(self.number(argument, "COUNT") if argument else 1)
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
        self.debugger.run_to(self.number(argument, "NODE"))
        self._wait()

    def _do_until(self, argument: str) -> None:
        self.debugger.until(argument)
        self._wait()

    def _do_next_backward(self, argument: str) -> None:
        self.debugger.next_backward()
        self._wait()

    def _do_restart(self, argument: str) -> None:
        self.debugger.restart()
        self._say(f"started again in {self.debugger.restarts_in}")
        self._wait()

    def _do_abort(self, argument: str) -> None:
        self.debugger.abort()
        self.debugger.wait(2)

    def _do_detach(self, argument: str) -> None:
        raise SessionError(
            "the program runs under the debugger that has started it\n"
            "`continue` lets it run, `quit` ends it; `gradscope attach` leaves a program as it was."
        )

    def _do_quit(self, argument: str) -> None:
        self._leaving = True

    # --- verbs that go through the past ---

    def _do_back(self, argument: str) -> None:
        self.debugger.back(self.number(argument, "COUNT") if argument else 1)
        self.say_stop()

    def _do_reverse_continue(self, argument: str) -> None:
        self.debugger.reverse_continue()
        self.say_stop()

    def _do_goto(self, argument: str) -> None:
        self.debugger.goto(self.number(argument, "NODE"))
        self.say_stop()

    def _do_live(self, argument: str) -> None:
        self.debugger.go_live()
        self.say_stop()

    def _do_record(self, argument: str) -> None:
        if argument not in ("on", "off"):
            raise UsageError("usage: record on|off")
        self.debugger.record_always = argument == "on"

    def _do_rank(self, argument: str) -> None:
        raise UsageError("the program has no ranks: `gradscope debug --nproc-per-node N` starts one that has")

    def _do_ranks(self, argument: str) -> None:
        self._do_rank(argument)

    # --- help ---

    def _do_help(self, argument: str) -> None:
        if not argument:
            self.page(help_text())
            return
        found = [verb for verb in VERBS if argument in verb.names]
        if not found:
            raise UsageError(f"there is no command {argument!r}; `help` lists them")
        self._say(help_text(found[0]))
