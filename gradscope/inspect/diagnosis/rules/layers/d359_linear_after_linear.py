"""D359: Two linear layers have nothing between them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from ....records.records import Location
from ...explanation import at
from ...program_facts import EXAMINATION, Fact, Sighting, WatchedProgram
from ...rule_registry import Found, Rule
from ...sampled_graphs import senders, users_of
from ...training.layer_weights import weight_of
from ...training.module_modes import drops
from ...training.update_sizes import UPDATE_SIZES, OptimizerRun
from ...watch import Watch

__all__ = ["LinearAfterLinear"]


class LinearPair(NamedTuple):
    """Two linear layers in a row, by their paths, and where the second is called."""

    first: str
    second: str
    location: Location | None
    sighting: Sighting


class LinearPairs(Watch):
    """Notes which linear layers are given the result of another, and asks the graph whether anything else is."""

    def __init__(self, program: WatchedProgram) -> None:
        self._program = program
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._tracker = program.ledger.recorder
        self._names = program.watch_of(EXAMINATION).names
        self._made: dict[int, Any] = {}
        self._pairs: dict[int, tuple[Any, Any, Location | None]] = {}
        self._alone: list[tuple[Any, Any, Location | None]] = []
        self.found: dict[tuple[str, str], LinearPair] = {}

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note a layer, and the one whose result it is given."""
        if not self._adapter.is_tensor(output):
            return
        if drops(module):
            self._dropped(output)
        # Layers that a script calls by themselves are models of their own: a body and a head, a generator and a critic.
        weight = weight_of(self._adapter, module, "Linear")
        if weight is None or not weight.requires_grad or not self._tracker.inside_module():
            return
        node, given = self._adapter.root(output), self._adapter.root(inputs[0]) if inputs else None
        if node is None:
            return
        key = None if given is None else self._adapter.key(given[0])
        first = None if key is None else self._made.get(key)
        if key is not None and first is not None and first is not module and not _is_narrow(first, module):
            self._pairs[key] = first, module, self._adapter.location(node[0])
        self._made[self._adapter.key(node[0])] = module

    def _dropped(self, output: Any) -> None:
        """Forget who made what a dropout hands on: in eval mode it stands between two layers and leaves no node."""
        node = self._adapter.root(output)
        if node is not None:
            self._made.pop(self._adapter.key(node[0]), None)

    def task_started(self, task: Any) -> None:
        """Look at the graph."""
        links = self._graphs.of(task) if self._pairs else {}
        above = senders(links)
        self._alone = [pair for key, pair in self._pairs.items() if len(list(users_of(self._adapter, above, key))) == 1]

    def task_finished(self, task: Any) -> None:
        """Name the pairs, whose names are known by now, and let go of the layers."""
        paths = self._names.paths() if self._alone else {}
        for first, second, location in self._alone:
            weights = [paths.get(id(layer.weight), "") for layer in (first, second)]
            (parent, one), (other_parent, other) = (_path_and_parent(weight) for weight in weights)
            # A head that stands on another model's last layer is meant to.
            if one and other and parent == other_parent:
                sighting = self._program.sighting([first.weight, second.weight])
                self.found.setdefault((one, other), LinearPair(one, other, location, sighting))

        self._let_go()

    def task_failed(self, task: Any, error: BaseException) -> None:
        """Let go of the layers."""
        self._let_go()

    def _let_go(self) -> None:
        self._alone = []
        self._made.clear()
        self._pairs.clear()


def _is_narrow(first: Any, second: Any) -> bool:
    """Whether two layers are narrower in the middle than one would be: a product of less rank, which may be meant."""
    return bool(first.weight.shape[0] < min(first.weight.shape[1], second.weight.shape[0]))


def _path_and_parent(weight: str) -> tuple[str, str]:
    path = weight.rpartition(".")[0]
    return path.rpartition(".")[0], path


LINEAR_PAIRS = Fact("linear pairs", LinearPairs, lambda watch: tuple(watch.found.values()), forward=True, backward=True)


class LinearAfterLinear(Rule):
    """Two linear layers have nothing between them."""

    code = "D359"
    title = "linear layers without a function between them"
    severity = "warning"
    certainty = "likely"
    needs = (LINEAR_PAIRS, UPDATE_SIZES)
    kind = "layers"
    what = """
        A linear function of a linear function is one linear function: two layers with nothing between them can compute
        what one of them could, and no curve. Two layers that are narrower in the middle are a product of less rank,
        which may be meant, and so may a head on the last layer of another model: of those nothing is said.
        """
    bad = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 16), gs.nn.Linear(16, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        (model(gs.randn(8, 3)) - 1).square().mean().backward()
        optimizer.step()
        """
    good = """
        model = gs.nn.Sequential(gs.nn.Linear(3, 16), gs.nn.Tanh(), gs.nn.Linear(16, 1))
        optimizer = gs.optim.SGD(model.parameters(), lr=0.01)
        (model(gs.randn(8, 3)) - 1).square().mean().backward()
        optimizer.step()
        """
    topic = "not-learning"

    def judge(self, found: Iterable[LinearPair], runs: Iterable[OptimizerRun]) -> Iterator[Found]:
        """Yield what is found, and where, of layers that an optimizer trains."""
        trained = {path for run in runs for path in run.parameters}
        for pair in found:
            if trained.isdisjoint(pair.sighting.concerns):
                continue
            text = (
                f"`{pair.second}`{at(pair.location)} is given the result of `{pair.first}` as it is: two linear layers "
                "with nothing between them are one linear layer\n  Put an activation, as relu(), between them."
            )
            yield Found(text, pair.location, *pair.sighting)
