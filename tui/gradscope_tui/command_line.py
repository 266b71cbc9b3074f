"""The command line and the questions of the prompt: the verbs of line mode, answered in the log pane.

What lets the program go on, or opens a pane or a screen, the app does itself; everything else line mode does, on
another thread, and what it says goes to the log.
"""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from textual.app import App
from textual.worker import Worker

from gradscope.inspect.debugging.prompt.completion import complete as completions
from gradscope.inspect.debugging.prompt.prompt_verbs import UsageError, backward_to_compare, find_verb
from gradscope.inspect.diagnosis.flow.backward_comparison import node_pairs
from gradscope_tui.commands.compare_command import recorded_nodes
from gradscope_tui.commands.explain_command import explain
from gradscope_tui.navigation import Navigation
from gradscope_tui.pane_layout import PaneLayout
from gradscope_tui.pane_verbs import PaneVerbs
from gradscope_tui.panes.breakpoints_pane import BreakpointsPane
from gradscope_tui.panes.graph_pane import GraphPane
from gradscope_tui.panes.log_pane import LogPane
from gradscope_tui.panes.watches_pane import WatchesPane
from gradscope_tui.refusal import can, refuse
from gradscope_tui.run_verbs import RunVerbs
from gradscope_tui.screens.comparison_screen import ComparisonScreen
from gradscope_tui.screens.ranks_screen import RankChoice, RanksScreen
from gradscope_tui.screens.threads_screen import ThreadsScreen
from gradscope_tui.screens.what_if_screen import WhatIfScreen
from gradscope_tui.sessions.saved_breakpoints import edited, text_of
from gradscope_tui.sessions.session_protocol import (
    Breakpoint,
    Session,
    can_run_again,
    has_ended,
    is_past,
    is_paused,
    why_not,
)
from gradscope_tui.sessions.session_watcher import SessionWatcher
from gradscope_tui.widgets.prompt_line import Prompt
from gradscope_tui.worker_thread import on_thread

if TYPE_CHECKING:
    from gradscope.inspect.ranks.rank_comparison import RankComparison
    from gradscope.inspect.records.records import NodeRecord

__all__ = ["CommandLine"]

_ACTIONS = {
    "into", "out", "continue", "next-backward", "reverse-continue", "live", "restart", "quit", "help",
}  # fmt: skip
_FAILED = "*** "


class CommandLine:
    """Asks in the prompt, and carries out what is typed there."""

    def __init__(
        self,
        app: App[Any],
        session: Session,
        watcher: SessionWatcher,
        layout: PaneLayout,
        run_verbs: RunVerbs,
        navigation: Navigation,
        pane_verbs: PaneVerbs,
    ) -> None:
        self._app = app
        self._session = session
        self._watcher = watcher
        self._layout = layout
        self._run_verbs = run_verbs
        self._navigation = navigation
        self._pane_verbs = pane_verbs
        self._point: Breakpoint

    # Questions -------------------------------------------------------------------------------------------------------

    def _ask(self, kind: str, text: str = "", about: str = "") -> None:
        self._app.query_one(Prompt).ask(kind, text, about)

    def _here(self) -> str:
        """Return the node where the session stands, and the shape of what comes to it; nothing where it is at none."""
        nodes, current = self._session.nodes, self._session.current
        if not 0 <= current < len(nodes):
            return ""
        node = nodes[current]
        shape = ",".join(map(str, node.outputs[0].shape)) if node.outputs else ""
        return f"#{node.index} {node.operator}" + (f" ({shape})" if shape else "")

    def action_command(self) -> None:
        """Ask for a command."""
        self._ask("command")

    def action_break_spec(self) -> None:
        """Ask for a breakpoint."""
        self._ask("break")

    def edit_breakpoint(self, point: Breakpoint) -> None:
        """Ask for a breakpoint in place of one; what is wrong with the answer is said, and the question stays."""
        self._point = point
        self._ask("breakpoint", text_of(point))

    def _replace_breakpoint(self, text: str) -> None:
        try:
            edited(self._session, self._point, text)
        except (ValueError, IndexError, RuntimeError) as error:
            refuse(self._app, str(error))
            self._ask("breakpoint", text)
        self._watcher.refresh()

    def action_type(self) -> None:
        """Ask for a line that the script is to read."""
        if getattr(self._session, "types", False):
            self._ask("type")
        else:
            refuse(self._app, "there is no script that reads what is typed here")

    def action_watch(self) -> None:
        """Ask for a watch expression."""
        self._ask("watch")

    def action_edit(self) -> None:
        """Ask for a gradient."""
        state = str(self._session.state)
        if not can(self._app, self._session, "edit"):
            return
        if has_ended(self._session):
            refuse(self._app, f"the script has ended: its gradients can no longer be changed{self._or_again()}")
        elif is_past(state):
            refuse(self._app, "this node has run: L goes to where the script is, i asks what if")
        elif not is_paused(state):
            refuse(self._app, f"the script is {state}: a gradient can be changed only where it has stopped")
        else:
            self._ask("edit after" if state == "paused after" else "edit before", about=self._here())

    def _or_again(self) -> str:
        """Return how a script that has ended is had again, where this front can start it."""
        return "; R starts it again" if can_run_again(self._session) else ""

    def action_what_if(self) -> None:
        """Ask for a gradient, and show what would become of the parameters."""
        state = str(self._session.state)
        if not can(self._app, self._session, "what_if"):
            return
        if has_ended(self._session):
            text = "the script has ended, and its tensors with it: there is nothing to run"
            refuse(self._app, f"{text}{self._or_again()}")
        elif is_paused(state):
            self._ask("what if", about=self._here())
        else:
            refuse(self._app, f"the script is {state}: what-if is asked where it has stopped")

    def action_skip(self) -> None:
        """Leave out the node that is about to run."""
        if can(self._app, self._session, "skip"):
            self.obey("skip")

    def action_compare(self) -> None:
        """Show the backward beside the last one before of the same loss."""
        self.obey("compare")

    def action_threads(self) -> None:
        """Show the nested backwards and the threads, and choose which to follow."""
        if can(self._app, self._session, "threads"):
            self._app.push_screen(ThreadsScreen(self._session.tasks, self._session.threads), self._follow_thread)

    async def action_ranks(self) -> None:
        """Show the ranks of the program, and choose which to look at."""
        compare: Callable[[], RankComparison] | None = getattr(self._session, "compare_ranks", None)
        if compare is None:
            refuse(self._app, "the program has no ranks: `gradscope debug --nproc-per-node N` starts one that has")
            return
        self._asking_ranks: Worker[None] = self._app.run_worker(self._show_ranks(compare), group="ranks")

    async def _show_ranks(self, compare: Callable[[], RankComparison]) -> None:
        try:
            found = await on_thread(compare)
        except (RuntimeError, ValueError) as error:  # a rank has gone on meanwhile
            refuse(self._app, str(error))
        else:
            self._app.push_screen(RanksScreen(found, self._watcher.scale), self._look_at_rank)

    def _look_at_rank(self, choice: RankChoice | None) -> None:
        if choice is not None:
            self.obey(f"{'compare ' if choice.beside else ''}rank {choice.rank}")

    async def _choose_rank(self, argument: str) -> None:
        choose: Callable[[int], None] | None = getattr(self._session, "choose", None)
        if not argument or choose is None:
            await self.action_ranks()
            return
        await on_thread(lambda: choose(_number(argument, "RANK")))
        self._log(f"rank {argument} is looked at")

    def _follow_thread(self, number: int | None) -> None:
        if number is not None:
            self.obey(f"thread {number}")

    def answer(self, kind: str, text: str) -> None:
        """Do what the prompt has been answered, to a question of one of its kinds."""
        match kind:
            case "command":
                self.obey(text, echo=True)
            case "break" | "watch":
                self.obey(f"{kind} {text}")
            case "breakpoint":
                self._replace_breakpoint(text)
            case "what if":
                self.obey(f"what-if {text}")
            case "type":
                self._type(text)
            case "filter":
                self._navigation.filter(text)
            case "find":
                self._navigation.find(text)
            case "save":
                self._pane_verbs.save_log(text)
            case _:
                self.obey(f"set {text}")

    def complete(self, line: str, typed: str) -> None:
        """Find out on another thread what the last word of a command may become, and tell the prompt.

        Parameters
        ----------
        line : str
            The command of line mode that would be carried out.
        typed : str
            What stands in the prompt.
        """
        session: Any = self._session

        async def find() -> None:
            with suppress(RuntimeError):  # a program that runs, or has ended, cannot be asked for its names
                self._app.query_one(Prompt).complete(typed, await on_thread(lambda: completions(session, line)))

        self._app.run_worker(find(), group="completion", exclusive=True)

    def _type(self, text: str) -> None:
        """Give the script a line, which its terminal shows."""
        session: Any = self._session
        try:
            session.type_line(text)
        except (OSError, RuntimeError) as error:
            refuse(self._app, str(error))

    # Commands --------------------------------------------------------------------------------------------------------

    def obey(self, line: str, *, echo: bool = False) -> None:
        """Carry out a command of line mode; `echo` repeats it in the log."""
        if echo:
            self._log(f":{line}", "head")
        self._run_verbs.command_begun()
        self._app.run_worker(self._say_errors(line), group="command")

    def _log(self, text: str, color: str = "told") -> None:
        """Write an answer of the debugger into the log, and show it."""
        self._layout.uncover(LogPane.NUMBER)
        self._app.query_one(LogPane).write([(line, color) for line in text.split("\n")], from_start=True)

    async def _say_errors(self, line: str) -> None:
        """Carry out a command; what goes wrong is said, not raised."""
        try:
            await self._carry_out(line)
        except Exception as error:
            known = isinstance(error, (ValueError, RuntimeError))
            text = str(error) if known else f"{type(error).__name__}: {error}"
            self._log(text, "bad")
            if not self._layout.is_seen(LogPane.NUMBER):
                refuse(self._app, text)
        finally:
            self._run_verbs.command_ended()

    async def _carry_out(self, line: str) -> None:
        """Carry out one command; what it has to say goes to the log."""
        word, _, rest = line.strip().partition(" ")
        if word == "explain":
            self._log(await explain(self._session, rest.strip()))
            return
        verb, argument = find_verb(line)
        reason = why_not(self._session, verb.name.replace("-", "_"))
        if reason:
            raise UsageError(reason)
        match verb.name:
            case "step":
                self._run_verbs.action_step(_number(argument or "1", "COUNT"))
            case "back":
                self._run_verbs.action_step_back(_number(argument or "1", "COUNT"))
            case "run-to" | "goto":
                self._run_verbs.action_run_to(_number(argument, "NODE"))
            case "until":
                target = int(argument) if argument.isdecimal() else argument
                self._run_verbs.go(lambda: self._session.until(target))
            case name if name in _ACTIONS and not argument:
                await self._app.run_action(name.replace("-", "_"))
            case "break" | "breakpoints" if not argument:
                self._layout.action_pane(BreakpointsPane.NUMBER)
            case "watch" if not argument:
                self._layout.action_pane(WatchesPane.NUMBER)
            case "watch":
                await on_thread(lambda: self._session.add_watch(argument))
                self._layout.uncover(WatchesPane.NUMBER)
            case "threads" | "tasks":
                self.action_threads()
            case "rank" | "ranks":
                await self._choose_rank(argument)
            case "what-if":
                await self._what_if(*_slot(argument))
            case "compare":
                await self._compare(argument)
            case name:
                await self._line_mode(line)
                if name == "node":
                    self._navigation.show_node(_number(argument, "NUMBER"))
                elif name == "break" and self._layout.active == BreakpointsPane.NUMBER:
                    self._layout.uncover(BreakpointsPane.NUMBER)  # where it is asked for, it is to be seen
        self._watcher.refresh()

    async def _what_if(self, slot: int, expression: str) -> None:
        """Show what would become of the parameters if a gradient were another."""
        index = self._session.current
        found = await on_thread(lambda: self._session.what_if(slot, expression))
        self._app.push_screen(WhatIfScreen(found, expression, self._session.nodes[index]))

    async def _compare(self, argument: str) -> None:
        """Show the backward beside the last of its loss, another, one of a rank or a recording, or two nodes of it."""
        session, here = self._session, self._session.task_index
        shown, about = f"backward {here}", ""
        word, _, rest = argument.partition(" ")
        if word == "node":
            await self._compare_nodes(_number(rest.strip(), "NODE"))
            return
        records: Callable[[int, int], Sequence[NodeRecord]] | None = getattr(session, "rank_records", None)
        if word == "rank" and records is not None:
            number = _number(rest.strip(), "RANK")
            shown, name = f"rank {getattr(session, 'rank', 0)}", f"rank {number}"
            other = await on_thread(lambda: records(number, here))
        elif argument and not argument.isdecimal():
            name = f"backward {here} of {argument}"
            other = await on_thread(lambda: recorded_nodes(argument, here))
        else:
            asked = _number(argument, "BACKWARD") if argument else None
            compared = await on_thread(lambda: backward_to_compare(session.backward_records, asked, here))
            name, about, other = f"backward {compared.number}", compared.about, compared.nodes
        pairs = node_pairs(await on_thread(lambda: session.backward_records(here)), other)
        screen = ComparisonScreen.of_backwards(pairs, shown, name, self._watcher.scale, about)
        self._app.push_screen(screen, self._go_to_compared)

    async def _compare_nodes(self, other: int) -> None:
        """Show the node under the cursor of the graph beside another of the backward."""
        here = self._app.query_one(GraphPane).node
        if here is None:
            raise UsageError("there is no node yet to compare")
        left, right = await on_thread(lambda: [self._session.inspect(index) for index in (here.index, other)])
        self._app.push_screen(ComparisonScreen.of_nodes(left, right), self._go_to_compared)

    def _go_to_compared(self, index: int | None) -> None:
        if index is not None and index >= 0:
            self._navigation.show_node(index)

    async def _line_mode(self, line: str) -> None:
        """Let line mode carry out a command, and write into the log what it says."""
        # Line mode, with the debugger behind it, loads when the first line is typed, not before the first paint.
        from gradscope.inspect.debugging.prompt.line_mode import LineMode

        said = io.StringIO()
        session: Any = self._session
        mode = LineMode(session, stdin=io.StringIO(), stdout=said, stderr=said)
        await on_thread(lambda: mode.obey(line))
        text = said.getvalue().rstrip("\n")
        if mode.failures:
            at = text.index(_FAILED) if _FAILED in text else 0
            if text[:at].strip():
                self._log(text[:at].rstrip())
            raise UsageError(text[at:].removeprefix(_FAILED))
        if text:
            self._log(f"{text}  (at a recorded node)" if self._looked_back(line) and "\n" not in text else text)

    def _looked_back(self, line: str) -> bool:
        return is_past(self._session.state) and find_verb(line)[0].name in ("print", "eval")


def _slot(argument: str) -> tuple[int, str]:
    """Take apart ``[SLOT] REST``; a single word is the rest, of slot 0."""
    head, _, rest = argument.partition(" ")
    return (int(head), rest.strip()) if rest.strip() and head.isdecimal() else (0, argument)


def _number(text: str, name: str) -> int:
    if not text.removeprefix("#").isdecimal():
        raise UsageError(f"{name} is a number, got {text!r}")
    return int(text.removeprefix("#"))
