"""D342: One module stands several times in a container."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....records.naming import tables_of
from ....records.records import Location
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...watch import Watch

__all__ = ["RepeatedModule"]

_CONTAINERS = {"Sequential", "ModuleList"}


class RepeatedEntry(NamedTuple):
    """A module with parameters that is several entries of one container."""

    container: str
    kind: str
    module: str
    times: int
    made: Location | None


class ContainerWatch(Watch):
    """Looks into the containers of each model when a backward has ended."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._looked_at: set[int] = set()
        self.found: dict[RepeatedEntry, None] = {}

    def task_finished(self, task: Any) -> None:
        """Look at each model once."""
        for label, root in self._recorder.roots().items():
            if id(root) not in self._looked_at:
                self._looked_at.add(id(root))
                self.found.update(dict.fromkeys(self._repeated_in(label, root)))

    def _repeated_in(self, label: str, root: Any) -> Iterator[RepeatedEntry]:
        for path, part in self._adapter.named_modules(root):
            if type(part).__name__ not in _CONTAINERS:
                continue
            # What torch.fx traces has the name, but does not iterate; and a place may be left empty.
            children = [child for child in tables_of(part)[1].values() if child is not None]
            counts = Counter(map(id, children))
            for child in {id(child): child for child in children}.values():
                parameters = self._adapter.named_parameters(child)
                if counts[id(child)] > 1 and parameters:
                    name = f"{label}.{path}".strip(".")
                    made = self._recorder.made_at(parameters[0][1])
                    yield RepeatedEntry(name, type(part).__name__, type(child).__name__, counts[id(child)], made)


REPEATED = Fact("repeated modules", ContainerWatch, lambda watch: tuple(watch.found), backward=True)


class RepeatedModule(Rule):
    """One module stands several times in a container."""

    code = "D342"
    title = "one module several times in a container"
    severity = "warning"
    needs = (REPEATED,)
    certainty = "likely"
    kind = "tying"
    what = """
        A list that is multiplied, `[layer] * 6`, holds the same layer six times: its places share one set of weights,
        whose gradients add up. A model that is to share weights calls one module several times instead.
        """
    bad = """
        layers = gs.nn.Sequential(*[gs.nn.Linear(4, 4)] * 3)
        (layers(gs.randn(8, 4)) - 1).square().mean().backward()
        """
    good = """
        layers = gs.nn.Sequential(*[gs.nn.Linear(4, 4) for _ in range(3)])
        (layers(gs.randn(8, 4)) - 1).square().mean().backward()
        """

    def judge(self, found: Iterable[RepeatedEntry]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            holder = f"{one.kind} `{one.container}`".removesuffix(" ``")
            made = f", made{at(one.made)}" if one.made else ""
            text = (
                f"the {holder} holds one and the same {one.module} {one.times} times{made}: "
                f"{one.times} layers with one set of weights\n"
                f"  Make each anew: [{one.module}(...) for _ in range({one.times})]."
            )
            yield text, one.made
