"""Line mode's verbs about what is there, and how it could be otherwise."""

from __future__ import annotations

from fnmatch import fnmatchcase

from ...diagnosis.explain_topics import TOPICS, find_topic, suggest, topic_text
from ...diagnosis.finding_limits import limit_text
from ...records.records import SessionState
from .plain_text import (
    finding_text,
    frames_text,
    graph_text,
    list_text,
    node_text,
    parameters_text,
    place_of,
    title_of,
    watch_line,
    write_line,
)
from .prompt_output import PromptOutput
from .prompt_verbs import UsageError, backward_to_compare

__all__ = ["InspectVerbs"]

_AROUND = 5
_SHORT = 30


class InspectVerbs(PromptOutput):
    """Answers to ``print``, ``list``, ``set``, ``what-if`` and their kin."""

    # --- looking ---

    def _do_print(self, argument: str) -> None:
        if argument:
            self._do_eval(argument)
            return
        if self.debugger.current >= 0:
            self._do_node(str(self.debugger.current))
        else:
            self._do_where("")
        for watch in self.debugger.watches:
            self._say(watch_line(watch))

    def _do_eval(self, argument: str) -> None:
        self.page(self.debugger.evaluate_text(argument))

    def _do_python(self, argument: str) -> None:
        self.debugger.execute(argument)

    def _do_node(self, argument: str) -> None:
        number = self.number(argument, "NUMBER") if argument else self.debugger.current
        record = self.debugger.inspect(number)
        self._say(node_text(record, self.debugger.nodes))

    def _do_list(self, argument: str) -> None:
        count, here = len(self.debugger.nodes), self.debugger.current
        if argument == "all" or (not argument and count <= _SHORT):
            start, stop = 0, count
        elif not argument:
            start, stop = max(0, here - _AROUND), here + _AROUND + 1
        else:
            bounds = [self.number(word, "FROM and TO") for word in argument.replace(",", " ").split()]
            if len(bounds) > 2:
                raise UsageError("usage: list [FROM [TO] | all]")
            start = bounds[0]
            stop = bounds[1] + 1 if len(bounds) == 2 else start + 2 * _AROUND + 1
        looked_at = here if self.debugger.state is SessionState.REPLAYING else -1
        self.page(list_text(self.debugger.records(start, stop), looked_at) or f"there are {count} nodes")

    def _do_graph(self, argument: str) -> None:
        self.page(graph_text(self.debugger.nodes))

    def _do_where(self, argument: str) -> None:
        debugger = self.debugger
        if debugger.current < 0:
            place = debugger.where().rstrip()
            self._say(f"in no backward, at\n{place}" if place else "in no backward")
            return
        record = debugger.nodes[debugger.current]
        self._say(title_of(record, len(debugger.nodes)))
        if record.location is not None:
            self._say(f"made at\n  {place_of(record.location)}  (in {record.location.function})")
        if len(debugger.tasks) > 1:
            inside = [f"node {task.index} {task.node} of backward {task.number}" for task in debugger.tasks[-2::-1]]
            self._say("inside " + ", inside ".join(inside))
        self._say(f"backward {debugger.task_index} was called at\n{debugger.where().rstrip()}")

    def _do_frames(self, argument: str) -> None:
        ask = getattr(self.debugger, "frames", None)
        if ask is None:
            raise UsageError("this is a recording: there is no program whose functions wait")
        self.page(frames_text(ask()) or "no function of the program waits here")

    # --- questions about the program ---

    def _do_explain(self, argument: str) -> None:
        topic = find_topic(argument) if argument else None
        if argument and topic is None:
            close = suggest(argument)
            meant = f"; did you mean {' or '.join(close)}?" if close else ""
            raise UsageError(f"no topic {argument!r}{meant}\nCodes are explained by `gradscope explain GS101`.")
        self.page(self._why_here() if topic is None else topic_text(topic))

    def _why_here(self) -> str:
        debugger, reason = self.debugger, self.debugger.reason
        found = debugger.explain() if debugger.state.paused and debugger.current >= 0 else ""
        writes = "\n".join(map(write_line, reason.writes if reason is not None else ()))
        return found or writes or f"{reason}\n`explain TOPIC` explains one of: {', '.join(TOPICS)}"

    def _do_findings(self, argument: str) -> None:
        ask = getattr(self.debugger, "findings", None)
        if ask is None:
            raise UsageError("this is a recording: `gradscope doctor` on the script names what is wrong")
        self.page("\n".join(map(finding_text, ask())) or "nothing wrong is seen at this place")

    def _do_limit(self, argument: str) -> None:
        name, _, value = (part.strip() for part in argument.partition("="))
        if value or (name and name not in self.debugger.limits):
            self.debugger.set_limit(argument)
        limits = self.debugger.limits
        self._say("\n".join(limit_text(one, limits[one]) for one in ([name] if name else limits)))

    def _do_parameters(self, argument: str) -> None:
        known = self.debugger.parameters()
        if not known:
            raise UsageError("no parameter is known yet: go on to the first backward")
        shown = [one for one in known if fnmatchcase(one.path, argument or "*")]
        if not shown:
            raise UsageError(f"no parameter is called {argument!r}\n`parameters` lists all {len(known)}.")
        self.page(parameters_text(shown))

    def _do_compare(self, argument: str) -> None:
        # The diagnosis loads when it is asked for.
        from ...diagnosis.flow.backward_comparison import comparison_text, node_pairs
        from ...diagnosis.flow.node_comparison import node_comparison_text

        word, _, node = argument.partition(" ")
        if word == "node":
            here, other = self.debugger.current, self.number(node.strip().removeprefix("#"), "NODE")
            nodes = [self.debugger.inspect(index) for index in (here, other)]
            self.page(node_comparison_text(*nodes))
            return
        here = self.debugger.task_index
        number, records = self.number(argument, "BACKWARD") if argument else None, self.debugger.backward_records
        compared = backward_to_compare(records, number, here)
        about = f" ({compared.about})" if compared.about else ""
        pairs = node_pairs(records(here), compared.nodes)
        self.page(comparison_text(pairs, f"backward {here}", f"backward {compared.number}{about}"))

    def _do_memory(self, argument: str) -> None:
        self._answer("memory", argument)

    def _do_flow(self, argument: str) -> None:
        self._answer("gradient_flow", argument)

    def _do_why(self, argument: str) -> None:
        self._answer("why_no_grad", argument)

    def _answer(self, question: str, argument: str) -> None:
        ask = getattr(self.debugger, question, None)
        if ask is None:
            raise UsageError("this is a recording: there is no program to ask")
        try:
            self.page(str(ask(argument)))
        except NameError as error:
            raise UsageError(f"{error}\nSay which one, by an expression that has a value where it stopped.") from None

    # --- changing ---

    def _do_set(self, argument: str) -> None:
        slot, expression = self._slot(argument)
        self.debugger.set_grad(slot, expression)
        self._edited(slot)

    def _do_zero(self, argument: str) -> None:
        slot = self.number(argument, "SLOT") if argument else 0
        self.debugger.zero_grad_slot(slot)
        self._edited(slot)

    def _do_scale(self, argument: str) -> None:
        slot, factor = self._slot(argument)
        try:
            number = float(factor)
        except ValueError as error:
            raise UsageError(f"scale takes a number: {error}") from None
        self.debugger.scale_grad(slot, number)
        self._edited(slot)

    def _edited(self, slot: int) -> None:
        after = self.debugger.state is SessionState.PAUSED_AFTER
        record = self.debugger.inspect(self.debugger.current)
        group = record.grad_inputs if after else record.grad_outputs
        summary = group[slot] if group else None
        self._say(f"{'produced' if after else 'incoming'} gradient {slot} is now {summary.preview if summary else '-'}")

    def _do_skip(self, argument: str) -> None:
        self.debugger.skip()
        record = self.debugger.nodes[self.debugger.current]
        self._say(f"node {record.index} {record.name} will be left out")

    def _do_what_if(self, argument: str) -> None:
        slot, expression = self._slot(argument)
        self.page(str(self.debugger.what_if(slot, expression)))

    @staticmethod
    def _slot(argument: str) -> tuple[int, str]:
        """Take apart ``[SLOT] REST``; a single word is the rest, of slot 0."""
        head, _, rest = argument.partition(" ")
        if not rest:
            return 0, head
        return (int(head), rest.strip()) if head.isdecimal() else (0, argument)
