"""D336: The samples of a batch influence each other's results."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from ....records.records import Location, operator_name
from ...explanation import at
from ...flow.backward_replay import BackwardReplay
from ...flow.reshaping_operators import RESHAPING
from ...nan.nan_producers import saved_values
from ...program_facts import Fact, WatchedProgram
from ...rule_registry import Rule
from ...training.module_modes import tensors_in
from ...watch import Watch

__all__ = ["MixedSamples"]

# A custom Function, which may do more than compute, is not run a second time; nor is what it is part of.
_OWN_NODE = re.compile(r"AccumulateGrad|\w+Backward\d+")
_RECURRENT = re.compile(r"\w*(Rnn|Lstm|Gru)\w*")
# Layers whose backward writes into the workspace that they have saved: they are not run a second time.
_WORKSPACE = re.compile(r"(Mkldnn|Cudnn|Miopen)\w*")
# Operators that mix rows on purpose: statistics of a batch, the edges of a graph.
_MEANT = re.compile(r"(\w*BatchNorm|\w*Mm|Index|Gather|Scatter|Embedding|Cumsum|Sum|Mean|Var|Std|Norm)\w*")
_PRODUCT = "Bmm"


@dataclass(frozen=True)
class Mixture:
    """A result of which one row depends on other rows of what a model was given.

    Attributes
    ----------
    module : str
        The model's class.
    node : str
        Where the rows come together.
    given : tuple of int
        The shape of what the model was given.
    others : int
        On how many other rows it depends; 0 where the layer that runs along the batch says so by itself.
    """

    module: str
    node: str
    given: tuple[int, ...]
    others: int
    location: Location | None


class SampleWatch(Watch):
    """Sends a gradient into one row of a model's first result, and looks at which rows of its input it arrives."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._recorder = program.ledger.recorder
        self._looked_at: set[int] = set()
        self.found: dict[Location | None, Mixture] = {}

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Look at the first result of each model that is learned from."""
        kinds = self._adapter.tensor_classes()
        if id(module) in self._looked_at or self._recorder.inside_module() or not isinstance(output, kinds):
            return
        given = next(tensors_in(inputs, kinds), None)
        if given is None or self._adapter.root(output) is None or not self._is_batch(given, output):
            return
        self._looked_at.add(id(module))
        trace = _Trace(self._adapter, given)
        try:
            replay = BackwardReplay(self._adapter, output)
            if all(_OWN_NODE.fullmatch(self._adapter.node_name(link.node)) for link in replay.links.values()):
                replay.run(trace.visit, self._last_row(output), leave_out=self._keeps_workspace)
        except RuntimeError:  # PyTorch 2.4 does not tell what gradients its nodes expect
            return
        if trace.mixer is not None and trace.reached:
            node, line = trace.mixer
            self.found[line] = Mixture(type(module).__name__, node, tuple(given.shape), trace.others, line)

    def _keeps_workspace(self, node: Any) -> bool:
        return bool(_WORKSPACE.fullmatch(self._adapter.node_name(node)))

    def _is_batch(self, given: Any, output: Any) -> bool:
        """Whether a result has a row for each row of what a model was given, which has more than one dimension each."""
        shape, made = self._adapter.spec(given).shape, self._adapter.spec(output).shape
        if -1 in shape:  # samples of several lengths
            return False
        sequence = len(shape) > 2 or (len(shape) == 2 and not given.is_floating_point())
        return sequence and len(made) in (1, 2) and made[0] == shape[0] > 1 and shape[0] != shape[1]

    def _last_row(self, output: Any) -> Any:
        rows = numpy.zeros(tuple(output.shape), numpy.float32)
        rows[-1] = 1.0
        return self._adapter.tensor_like(rows, self._adapter.spec(output))


class _Trace:
    """The way of a gradient of the last row, back to what the model was given.

    Attributes
    ----------
    mixer : (str, Location or None) or None
        The first node that hands the gradient to other rows.
    reached : bool
        Whether other rows of what the model was given were reached.
    others : int
        How many.
    """

    def __init__(self, adapter: Any, given: Any) -> None:
        self._adapter = adapter
        self._address = adapter.address(given)
        self._shape = tuple(given.shape)
        self._silent = False
        self.mixer: tuple[str, Location | None] | None = None
        self.reached = False
        self.others = 0

    def visit(self, node: Any, grads: list[Any], produced: Sequence[Any]) -> None:
        """Look at a node that has run."""
        name = operator_name(self._adapter.node_name(node))
        if self._silent or self._adapter.variable(node) is not None:
            return
        entered = self._is_entry(node)
        if _RECURRENT.fullmatch(name) and (entered or self._has_rows(node)) and self._only_last(grads):
            self.mixer, self.reached = (name, self._adapter.location(node)), True
        elif self.mixer is None and any(self._rows(gradient) for gradient in self._onward(node, produced)):
            self._silent = bool(_MEANT.fullmatch(name)) and name != _PRODUCT
            self.mixer = None if self._silent else (name, self._adapter.location(node))
        if entered and not self._silent:
            self.others = max([self.others, *(self._rows(gradient) for gradient in grads)])
            self.reached = self.reached or self.others > 0

    def _onward(self, node: Any, produced: Sequence[Any]) -> Iterator[Any]:
        """Yield the gradients that do not go to a parameter, which may have as many rows as the batch."""
        for (child, _), gradient in zip(self._adapter.edges(node), produced):
            while child is not None and operator_name(self._adapter.node_name(child)) in RESHAPING:
                child = self._adapter.edges(child)[0][0]
            leaf = None if child is None else self._adapter.variable(child)
            if leaf is None or not self._adapter.is_parameter(leaf):
                yield gradient

    def _is_entry(self, node: Any) -> bool:
        """Whether a node uses what the model was given, its rows in their order."""
        saved = saved_values(self._adapter, node).values()
        return any(
            self._adapter.address(tensor) == self._address
            and (tuple(tensor.shape) == self._shape or tensor.shape[0] == self._shape[0] * self._shape[1])
            for tensor in saved
            if len(tensor.shape) > 1
        )

    def _has_rows(self, node: Any) -> bool:
        """Whether a node was given as many samples and positions, as an embedding of them is."""
        saved = saved_values(self._adapter, node).values()
        return any(len(tensor.shape) == 3 and tuple(tensor.shape[:2]) == self._shape[:2] for tensor in saved)

    def _rows(self, gradient: Any) -> int:
        """Return how many rows but the last a gradient has something in; 0 where its rows are none of the batch."""
        batch = self._shape[0]
        if gradient is None or not len(gradient.shape) or gradient.shape[0] not in (batch, batch * self._shape[1]):
            return 0
        values = numpy.asarray(self._adapter.to_host(gradient)).reshape(batch, -1)
        return int(numpy.count_nonzero(values[:-1].any(axis=1)))

    def _only_last(self, grads: Sequence[Any]) -> bool:
        """Whether the gradient of a recurrent layer's result is that of the last step alone, of all its columns."""
        first = grads[0]
        if first is None or tuple(first.shape[:2]) != self._shape[:2]:
            return False
        return not self._rows(first)


MIXTURES = Fact("mixtures", SampleWatch, lambda watch: tuple(watch.found.values()), forward=True)


class MixedSamples(Rule):
    """The samples of a batch influence each other's results."""

    code = "D336"
    title = "samples of a batch that influence each other"
    severity = "silent-wrong"
    needs = (MIXTURES,)
    kind = "batch"
    what = """
        The result for one sample depends on other samples of its batch. A recurrent layer or an attention that expects
        time first was given the batch first, or view() was used where transpose() was meant: the shapes fit, and the
        numbers of different samples stand in one row. The doctor sends a gradient into one row of the result, and looks
        at which rows of the input it arrives.
        """
    bad = """
        class Model(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.head = gs.nn.LSTM(3, 8), gs.nn.Linear(8, 2)

            def forward(self, x):
                return self.head(self.lstm(x)[0][:, -1])

        model = Model()
        model(gs.randn(6, 4, 3)).square().mean().backward()
        """
    good = """
        class Model(gs.nn.Module):
            def __init__(self):
                super().__init__()
                self.lstm, self.head = gs.nn.LSTM(3, 8, batch_first=True), gs.nn.Linear(8, 2)

            def forward(self, x):
                return self.head(self.lstm(x)[0][:, -1])

        model = Model()
        model(gs.randn(6, 4, 3)).square().mean().backward()
        """

    def judge(self, found: Iterable[Mixture]) -> Iterator[tuple[str, Location | None]]:
        """Yield what is found, and where."""
        for one in found:
            if one.others:
                text = (
                    f"{one.module} was given {one.given[0]} samples, and its result for the last depends on "
                    f"{one.others} others as well: their rows come together in {one.node.lower()}{at(one.location)}\n"
                    "  Use transpose() or permute() to exchange dimensions, and view() only to join or split them."
                )
            else:
                text = (
                    f"{one.module} was given {one.given[0]} samples, and its recurrent layer{at(one.location)} runs "
                    "along them: it takes the first dimension for time\n  Pass batch_first=True, or transpose(0, 1)."
                )
            yield text, one.location
