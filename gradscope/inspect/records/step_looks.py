"""What a rank holds when its optimizer is about to step: a checksum of every gradient and every parameter."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy

from ..adapters import Adapter, DataParallel
from .backward_log import BackwardLog, LoggedBackward
from .module_tracking import Tracker
from .optimizer_steps import held_by

__all__ = ["BROADCAST", "BUFFER", "IGNORED", "OUTSIDE", "REDUCED", "HeldTensor", "StepLook", "StepLooker"]

BUFFER, BROADCAST, IGNORED, OUTSIDE, REDUCED = "buffer", "broadcast", "ignored", "outside", "reduced"
"""What is done about a tensor so that ranks agree: `HeldTensor.kind`."""


class HeldTensor(NamedTuple):
    """A parameter or buffer, as far as it does not change from step to step.

    Attributes
    ----------
    part : str
        Which part of the whole this rank holds (``'Shard(dim=0) 1 of 2'``); empty where that is all of it.
    kind : str
        ``'reduced'`` (DistributedDataParallel reduces its gradient), ``'ignored'`` (it was told not to), ``'outside'``
        (a parameter that it does not know), ``'buffer'``, ``'broadcast'`` (a buffer that it copies from rank 0).
    stepped : bool
        Whether the optimizer holds it.
    group : str
        The ranks that DistributedDataParallel keeps equal, or over which it is spread (``'0, 2'``): those of one stage
        of a pipeline. Empty where these are all, and where nothing says so.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    part: str
    kind: str
    stepped: bool
    group: str = ""


@dataclass(slots=True, eq=False)
class StepLook:
    """What there was when an optimizer was about to step.

    Attributes
    ----------
    optimizer : int
        Which of the program's, numbered as they stepped first.
    number : int
        Which of its steps, from 0.
    tensors : tuple of HeldTensor
        In one order, which all that follows has too.
    values, gradients : ndarray of uint64
        Checksums.
    present : ndarray of bool
        Which tensors have a gradient.
    norms : ndarray of float64
        Of the gradients.
    facts : dict
        What may explain a disagreement: ``'lr'``, ``'seed'``, ``'generator'`` (a checksum of its state),
        ``'synchronised'`` (whether the last forward was one whose gradients DistributedDataParallel reduces; not there
        without one), ``'backwards'`` (how many had begun) and ``'passes'`` (of those since the step before, as
        :class:`.LoggedBackward` has it).
    """

    optimizer: int
    number: int
    tensors: tuple[HeldTensor, ...]
    values: Any
    gradients: Any
    present: Any
    norms: Any
    facts: dict[str, Any] = field(default_factory=dict)

    @property
    def passes(self) -> list[LoggedBackward]:
        """The backwards since the step before; empty where they are not known."""
        passes = self.facts.get("passes")
        return [LoggedBackward(bool(inner), tuple(unreached)) for inner, unreached in passes or ()]

    def reaches(self, backward: LoggedBackward, name: str) -> bool:
        """Whether a backward had a way to a parameter."""
        return any(held.name == name for held in self.tensors) and not any(
            self.tensors[place].name == name for place in backward.unreached
        )


class StepLooker:
    """Looks at what optimizers are about to use, on the program's thread.

    Parameters
    ----------
    adapter : Adapter
        Which asks the tensors.
    tracker : Tracker
        Which knows what they are called.

    Attributes
    ----------
    log : BackwardLog
        To be told of backwards.
    """

    def __init__(self, adapter: Adapter, tracker: Tracker) -> None:
        self.log = BackwardLog(adapter)
        self._adapter = adapter
        self._tracker = tracker
        self._optimizers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._wrappers: tuple[Any, ...] = ()
        self._modules = -1
        self._known: dict[int, tuple[tuple[int, ...], tuple[HeldTensor, ...]]] = {}

    def look(self, optimizer: Any) -> StepLook | None:
        """Return what an optimizer is about to use; None inside another's step, and where it holds no tensor."""
        held = [tensor for tensor in held_by(optimizer) if self._adapter.is_tensor(tensor)]
        if not held or _inside_another_step():
            return None
        which = self._number_of(optimizer)
        number = self._numbers[which] = self._numbers.get(which, -1) + 1
        adapter = self._adapter.of(held[0])
        parallel = self._parallel(adapter)
        tensors, described = self._tensors(which, adapter, held, parallel)
        gradients = [adapter.leaf_grad(tensor) for tensor in tensors]
        values, _ = adapter.checksums(tensors)
        sums, norms = adapter.checksums(gradients)
        facts: dict[str, Any] = {"lr": [float(group.get("lr", 0.0)) for group in optimizer.param_groups]}
        facts.update(adapter.generator_facts())
        facts.update(backwards=self.log.count, passes=self._passes(which, tensors, described))
        if parallel:
            facts["synchronised"] = all(found.synchronised for found in parallel)
        return StepLook(
            which,
            number,
            described,
            numpy.array(values, numpy.uint64),
            numpy.array(sums, numpy.uint64),
            numpy.array([gradient is not None for gradient in gradients], numpy.bool_),
            numpy.array(norms, numpy.float64),
            facts,
        )

    def _passes(self, which: int, tensors: Sequence[Any], described: Sequence[HeldTensor]) -> list[LoggedBackward]:
        names = self._tracker.parameter_paths()
        names.update((id(tensor), held.name) for tensor, held in zip(tensors, described) if id(tensor) not in names)
        asked = [(at, held.name) for at, held in enumerate(described) if held.kind not in (BUFFER, BROADCAST)]
        return self.log.before_step(which, asked, names)

    def _number_of(self, optimizer: Any) -> int:
        reference, number = self._optimizers.get(id(optimizer), (None, -1))
        if reference is None or reference() is not optimizer:
            number, self._count = self._count, self._count + 1
            self._optimizers[id(optimizer)] = weakref.ref(optimizer), number
        return number

    def _parallel(self, adapter: Adapter) -> list[DataParallel]:
        """Return the modules whose gradients are reduced, of those that have been called."""
        modules = self._tracker.modules()
        if len(modules) != self._modules:
            self._modules = len(modules)
            self._wrappers = tuple(weakref.ref(module) for module in adapter.parallel_modules(modules))
        living = [module for module in (reference() for reference in self._wrappers) if module is not None]
        return [adapter.data_parallel(module) for module in living]

    def _tensors(
        self, which: int, adapter: Adapter, held: Sequence[Any], parallel: Sequence[DataParallel]
    ) -> tuple[list[Any], tuple[HeldTensor, ...]]:
        """Return the tensors to look at: an optimizer's, and what else DistributedDataParallel keeps equal."""
        found = {id(tensor): tensor for tensor in held}
        stepped = set(found)
        if which == 0:  # once a round is enough
            for wrapper in parallel:
                found.update((id(tensor), tensor) for tensor in wrapper.reduced)
                found.update((id(tensor), tensor) for _, tensor in wrapper.buffers)
        key = tuple(found)
        known, described = self._known.get(which, ((), ()))
        if known != key:
            described = self._described(adapter, found, stepped, parallel)
            self._known[which] = key, described
        return list(found.values()), described

    def _described(
        self, adapter: Adapter, found: dict[int, Any], stepped: set[int], parallel: Sequence[DataParallel]
    ) -> tuple[HeldTensor, ...]:
        names = self._tracker.parameter_paths()
        kinds: dict[int, str] = {}
        groups: dict[int, str] = {}
        for wrapper in parallel:
            kinds.update((id(tensor), REDUCED) for tensor in wrapper.reduced)
            kinds.update((id(tensor), IGNORED) for tensor in wrapper.ignored)
            groups.update((id(tensor), wrapper.group) for tensor in wrapper.reduced)
            path = self._tracker.path_of(wrapper.module)
            for name, buffer in wrapper.buffers:
                names[id(buffer)] = f"{path}.{name}" if path else name
                kinds[id(buffer)] = BROADCAST if wrapper.broadcasts else BUFFER
                groups[id(buffer)] = wrapper.group
        described = []
        for place, (identity, tensor) in enumerate(found.items()):
            spec = adapter.spec(tensor)
            name = names.get(identity) or f"parameter {place}"
            kind = kinds.get(identity, OUTSIDE)
            part = adapter.part_of(tensor)
            group = groups[identity] if identity in groups else adapter.group_of(tensor)
            described.append(HeldTensor(name, tuple(spec.shape), spec.dtype, part, kind, identity in stepped, group))
        return tuple(described)


def _inside_another_step() -> bool:
    """Whether the optimizer that is about to step does so for another one, which steps now (ZeRO's)."""
    frame, steps = sys._getframe(2), 0
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wrapper" and code.co_filename.endswith("optimizer.py"):
            steps += 1
        frame = frame.f_back  # type: ignore[assignment]
    return steps > 1
