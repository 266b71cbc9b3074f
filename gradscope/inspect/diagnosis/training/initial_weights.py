"""How weights start: all alike, or so that the signal grows or fades from layer to layer."""

from __future__ import annotations

import math
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy

from ...records.execution_order import NodeLinks
from ...records.records import Location, operator_name
from ...records.tensor_statistics import norm_of
from ..nan.nan_producers import saved_values
from ..program_facts import EXAMINATION, Fact, WatchedProgram
from ..sampled_graphs import source_of
from ..watch import Watch
from .module_modes import tensors_in

__all__ = ["INITIAL_WEIGHTS", "AlikeUnits", "InitialWeightWatch", "InitialWeights", "LayerGain"]


@dataclass(frozen=True)
class AlikeUnits:
    """A weight whose rows, which are units, are all the same, and so are their gradients.

    Attributes
    ----------
    name : str
        The parameter.
    units : int
        How many rows it has.
    written : Location or None
        Where it was last written before the first backward.
    """

    name: str
    units: int
    written: Location | None


@dataclass(frozen=True)
class LayerGain:
    """By how much a layer with a weight makes the signal larger in the first forward pass.

    Attributes
    ----------
    gain : float
        The root mean square of its result, as a share of that of what it was given.
    rms : float
        Of its result.
    parameter : str
        The path of its weight.
    """

    name: str
    kind: str
    gain: float
    rms: float
    written: Location | None
    parameter: str = ""


@dataclass(frozen=True)
class InitialWeights:
    """What is known of how weights start.

    Attributes
    ----------
    alike : tuple of AlikeUnits
        The layers whose units never become different.
    gains : tuple of LayerGain
        The layers with a weight in the first forward pass that is learned from, in their order, and then the parameters
        that matrices are multiplied with by the program itself.
    """

    alike: tuple[AlikeUnits, ...]
    gains: tuple[LayerGain, ...]


class InitialWeightWatch(Watch):
    """Looks at the weights of the first backward passes, and at the results of the first forward."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._limits = program.limits
        self._graphs = program.graphs
        self._recorder = program.ledger.recorder
        self._names = program.watch_of(EXAMINATION).names
        self._written: dict[int, tuple[weakref.ref[Any], Location | None]] = {}
        self._gains: list[tuple[int, LayerGain]] = []  # products, each with the id of its weight
        self._measured: set[int] = set()
        self._weights: set[int] = set()
        self._backwards = 0
        # For each weight, by its id: in how many of the first backward passes its units were alike.
        self._alike: dict[int, tuple[AlikeUnits, int]] = {}

    @property
    def weights(self) -> InitialWeights:
        """What has been seen."""
        alike = tuple(
            found for found, times in self._alike.values() if times == self._backwards == self._limits.first_backwards
        )
        paths = self._names.paths()
        gains = (replace(layer, parameter=paths.get(weight, "")) for weight, layer in self._gains)
        return InitialWeights(alike, tuple(gains))

    def tensor_written(self, write: Any) -> None:
        """Note who initialises a weight."""
        if not self._backwards and self._adapter.is_parameter(write.tensor):
            self._written[id(write.tensor)] = weakref.ref(write.tensor), write.location

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Measure what a layer makes of the first batch."""
        weight = getattr(module, "weight", None)
        if self._backwards or weight is None or id(module) in self._measured or len(getattr(weight, "shape", ())) < 2:
            return
        kinds = self._adapter.tensor_classes()
        given, made = next(tensors_in(inputs, kinds), None), next(tensors_in(output, kinds), None)
        if given is None or made is None or not made.requires_grad or not given.is_floating_point():
            return
        self._measured.add(id(module))
        self._weights.add(id(weight))
        before, after = _rms(self._adapter.to_host(given)), _rms(self._adapter.to_host(made))
        if before and math.isfinite(before):
            path, line = self._recorder.path_of(module), self._written_at(weight)
            self._gains.append((id(weight), LayerGain(path, type(module).__name__, after / before, after, line)))

    def task_started(self, task: Any) -> None:
        """Measure what products with bare parameters, of no layer, make of the first batch."""
        if self._backwards:
            return
        links = self._graphs.of(task)
        for link in sorted(links.values(), key=lambda link: self._adapter.sequence_nr(link.node)):
            if operator_name(self._adapter.node_name(link.node)) == "Mm":
                self._measure_product(links, link)

    def _measure_product(self, links: Mapping[int, NodeLinks], link: NodeLinks) -> None:
        source = source_of(self._adapter, links, link.edges[1][0])
        weight = None if source is None else self._adapter.variable(source.node)
        given = saved_values(self._adapter, link.node).get("self")
        if weight is None or given is None or id(weight) in self._weights or not self._adapter.is_parameter(weight):
            return
        self._weights.add(id(weight))
        left, right = self._adapter.to_host(given), self._adapter.to_host(weight)
        if left.ndim != 2 or right.ndim != 2:
            return
        matrix = right if left.shape[1] == right.shape[0] else right.T
        before, after = _rms(left), _rms(left @ matrix)
        if before and math.isfinite(before):
            name = self._names.paths().get(id(weight), "a parameter")
            line = self._written_at(weight)
            self._gains.append((id(weight), LayerGain(name, "parameter", after / before, after, line)))

    def task_finished(self, task: Any) -> None:
        """Compare the units of each weight, and their gradients."""
        if self._backwards >= self._limits.first_backwards:
            return
        paths = self._names.paths()
        parameters = self._recorder.parameters()
        if not any(self._adapter.leaf_grad(tensor) is not None for _, tensor in parameters):
            return
        self._backwards += 1
        for name, tensor in parameters:
            grad = self._adapter.leaf_grad(tensor)
            if grad is None or len(tensor.shape) < 2 or tensor.shape[0] < self._limits.alike_units:
                continue
            if all(self._rows_alike(self._adapter.to_host(one)) for one in (tensor, grad)):
                found = AlikeUnits(paths.get(id(tensor), name), tensor.shape[0], self._written_at(tensor))
                self._alike[id(tensor)] = found, self._alike.get(id(tensor), (found, 0))[1] + 1

    def _rows_alike(self, array: Any) -> bool:
        rows = numpy.asarray(array, dtype=numpy.result_type(array, numpy.float64)).reshape(len(array), -1)
        if not numpy.isfinite(rows).all():
            return False
        return bool(abs(rows - rows[0]).max() <= self._limits.alike_rounding * abs(rows).max())

    def _written_at(self, weight: Any) -> Location | None:
        reference, line = self._written.get(id(weight), (None, None))
        return line if reference is not None and reference() is weight else self._recorder.made_at(weight)


def _rms(array: Any) -> float:
    values = numpy.asarray(array)
    return norm_of(values) / math.sqrt(values.size) if values.size else 0.0


INITIAL_WEIGHTS = Fact(
    "initial weights", InitialWeightWatch, lambda watch: watch.weights, forward=True, backward=True, writes=True
)
"""How weights start: :class:`InitialWeights`."""
