"""D345: The target of a loss is computed by the network that learns from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import source_of
from ...watch import Watch

__all__ = ["LearnedTarget"]

_LOSSES = {"MseLoss", "SmoothL1Loss", "HuberLoss", "L1Loss"}


class TargetWatch(Watch):
    """Looks at which parameters the two sides of a regression loss are computed from."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, Location | None] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        for link in links.values():
            name = operator_name(self._adapter.node_name(link.node))
            if name not in _LOSSES or len(link.edges) < 2 or None in (link.edges[0][0], link.edges[1][0]):
                continue
            target = self._bootstrap(links, link.edges[1][0])
            if target is not None and self._leaves(links, link.edges[0][0]) & self._leaves(links, link.edges[1][0]):
                self.found.setdefault(self._adapter.location(target.node), self._adapter.location(link.node))

    def _bootstrap(self, links: Mapping[int, NodeLinks], key: int | None) -> NodeLinks | None:
        """Return the node of a sum of something given, a reward, and something that has a history."""
        source = source_of(self._adapter, links, key)
        if source is None or operator_name(self._adapter.node_name(source.node)) not in ("Add", "Sub"):
            return None
        sides = [child for child, _ in source.edges]
        return source if len(sides) == 2 and sides.count(None) == 1 else None

    def _leaves(self, links: Mapping[int, NodeLinks], key: int | None) -> set[int]:
        """Return the keys of the leaves below a node."""
        seen, stack = set(), [key]
        while stack:
            now = stack.pop()
            if now is not None and now not in seen:
                seen.add(now)
                stack += [child for child, _ in links[now].edges]
        return {key for key in seen if self._adapter.variable(links[key].node) is not None}


TARGETS = Fact("targets", TargetWatch, lambda watch: tuple(watch.found.items()), backward=True)


class LearnedTarget(Rule):
    """The target of a loss is computed by the network that learns from it."""

    code = "D345"
    title = "a target that is learned with the prediction"
    severity = "silent-wrong"
    certainty = "likely"
    needs = (TARGETS,)
    kind = "loss"
    what = """
        The target of temporal differences is a reward plus what the network says of the next state. With its history,
        the loss does not only draw the prediction to the target: it draws the target to the prediction, and the
        network changes what it should learn. Targets are computed under no_grad(), mostly by a copy of the network.

        Sutton and Barto, "Reinforcement Learning: An Introduction", 2018, section 11.5, on what is minimised otherwise.
        """
    bad = """
        value = gs.nn.Linear(3, 1)
        target = gs.randn(8, 1) + 0.9 * value(gs.randn(8, 3))
        gs.nn.functional.mse_loss(value(gs.randn(8, 3)), target).backward()
        """
    good = """
        value = gs.nn.Linear(3, 1)
        target = gs.randn(8, 1) + 0.9 * value(gs.randn(8, 3)).detach()
        gs.nn.functional.mse_loss(value(gs.randn(8, 3)), target).backward()
        """

    def judge(self, found: Iterable[tuple[Location | None, Location | None]]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for target, loss in found:
            text = (
                f"the target{at(target)} of the loss{at(loss, target)} is a given number plus a result of the network "
                "that learns, with its history: the loss moves the target as well\n"
                "  Compute the target under no_grad(), or detach() it; mostly a copy of the network computes it."
            )
            yield text, target
