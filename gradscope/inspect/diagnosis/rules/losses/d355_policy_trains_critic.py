"""D355: The loss of a policy sends a gradient into the critic whose advantage it is weighted with."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ....records.execution_order import NodeLinks
from ....records.records import Location, operator_name
from ...explanation import at
from ...flow.reshaping_operators import RESHAPING
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...sampled_graphs import source_of
from ...watch import Watch

__all__ = ["PolicyTrainsCritic"]

_REGRESSING = {"Pow", "MseLoss", "SmoothL1Loss", "HuberLoss"}
# From the probability of an action to what is multiplied with an advantage: a sign, and the ratio of two policies.
_BESIDE_LIKELIHOOD = RESHAPING | {"Neg", "Exp", "Sub", "Clamp", "Div"}
# From a value to an advantage, which may be normalised.
_BESIDE_ADVANTAGE = RESHAPING | {"Neg", "Div"}


class CriticWatch(Watch):
    """Looks for values that are regressed, and in an advantage that weighs the likelihood of actions."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self.found: dict[Location | None, Location | None] = {}

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task)
        regressed = {key for link in links.values() for key in self._regressed(links, link)}
        for link in links.values() if regressed else ():
            if self._name(link) != "Mul" or len(link.edges) != 2:
                continue
            one, other = (child for child, _ in link.edges)
            for likelihood, weight in ((one, other), (other, one)):
                advantage = (
                    self._advantage(links, weight, regressed) if self._is_likelihood(links, likelihood) else None
                )
                if advantage is not None:
                    line = self._adapter.location(link.node)
                    self.found.setdefault(line, self._adapter.location(advantage.node))

    def _name(self, link: NodeLinks) -> str:
        return operator_name(self._adapter.node_name(link.node))

    def _regressed(self, links: Mapping[int, NodeLinks], link: NodeLinks) -> Iterator[int]:
        """Yield the keys of the values that a node holds against targets without a gradient."""
        if self._name(link) not in _REGRESSING:
            return
        value = source_of(self._adapter, links, link.edges[0][0])
        if value is None:
            return
        children = [child for child, _ in value.edges] if self._name(value) == "Sub" else [link.edges[0][0]]
        targets = len(link.edges) == 2 and link.edges[1][0] is None
        if targets or (self._name(value) == "Sub" and children.count(None) == 1):
            for child in children:
                source = source_of(self._adapter, links, child)
                if source is not None:
                    yield self._adapter.key(source.node)

    def _is_likelihood(self, links: Mapping[int, NodeLinks], key: int | None) -> bool:
        """Whether a factor is the logarithm of the probability of chosen actions, or a ratio made of it."""
        chosen = source_of(self._adapter, links, key, _BESIDE_LIKELIHOOD)
        if chosen is None or self._name(chosen) != "Gather":
            return False
        logs = source_of(self._adapter, links, chosen.edges[0][0])
        if logs is not None and self._name(logs) == "Sub":
            logs = source_of(self._adapter, links, logs.edges[-1][0])
        return logs is not None and self._name(logs) in ("LogSoftmax", "Logsumexp")

    def _advantage(self, links: Mapping[int, NodeLinks], key: int | None, regressed: set[int]) -> NodeLinks | None:
        """Return the node that subtracts a regressed value from what has no gradient, where a factor comes from it."""
        while True:
            source = source_of(self._adapter, links, key, _BESIDE_ADVANTAGE)
            if source is None or self._name(source) != "Sub":
                return None
            children = [child for child, _ in source.edges]
            if children.count(None) == 1:
                (child,) = (child for child in children if child is not None)
                value = source_of(self._adapter, links, child)
                return source if value is not None and self._adapter.key(value.node) in regressed else None
            key = children[0]  # the advantage less its mean


TRAINED_CRITICS = Fact("critics in policies", CriticWatch, lambda watch: tuple(watch.found.items()), backward=True)


class PolicyTrainsCritic(Rule):
    """The loss of a policy sends a gradient into the critic whose advantage it is weighted with."""

    code = "D355"
    title = "a critic that the policy's loss trains"
    severity = "silent-wrong"
    needs = (TRAINED_CRITICS,)
    kind = "loss"
    certainty = "likely"
    what = """
        The advantage of an action weighs the logarithm of its probability, and is meant as a number: the critic's value
        in it is learned from returns. Where it has a history, the policy's loss changes the value as well, so that it
        makes the advantages of likely actions large instead of predicting the return.
        """
    bad = """
        state, action = gs.randn(8, 4), gs.arange(8).reshape(8, 1) % 3
        actor, critic = gs.nn.Linear(4, 3), gs.nn.Linear(4, 1)
        advantage = state.sum(1) - critic(state).squeeze(1)
        chosen = gs.log_softmax(actor(state), 1).gather(1, action).squeeze(1)
        (advantage.square().mean() - (chosen * advantage).mean()).backward()
        """
    good = """
        state, action = gs.randn(8, 4), gs.arange(8).reshape(8, 1) % 3
        actor, critic = gs.nn.Linear(4, 3), gs.nn.Linear(4, 1)
        advantage = state.sum(1) - critic(state).squeeze(1)
        chosen = gs.log_softmax(actor(state), 1).gather(1, action).squeeze(1)
        (advantage.square().mean() - (chosen * advantage.detach()).mean()).backward()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[tuple[Location | None, Location | None]]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for line, advantage in found:
            text = (
                f"the policy's loss{at(line)} is weighted with an advantage{at(advantage, line)} that has a history: "
                "the critic, which is regressed in the same backward, gets the policy's gradient too\n"
                "  Weigh with advantage.detach()."
            )
            yield text, line
