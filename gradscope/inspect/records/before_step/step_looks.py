"""What a rank holds when its optimizer is about to step: a checksum of every gradient and every parameter."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, NamedTuple

import numpy

from ...adapters import Adapter, DataParallel
from ..module_tracking import Tracker, module_of_parameter
from ..optimizer_steps import held_by
from .backward_log import BackwardLog, LoggedBackward
from .call_lines import CallLines, line_of_frame, own_frame
from .forward_log import ForwardAccount, ForwardLog, SkippedForward
from .parameter_writes import ParameterWrites, Written
from .training_loop import TrainingLoop

__all__ = [
    "BROADCAST", "BUFFER", "FROZEN", "IGNORED", "OUTSIDE", "REDUCED", "TRAINED", "HeldTensor", "StepLook", "StepLooker",
]  # fmt: skip

BUFFER, BROADCAST, FROZEN, IGNORED = "buffer", "broadcast", "frozen", "ignored"
OUTSIDE, REDUCED = "outside", "reduced"
"""What is done about a tensor so that ranks agree: `HeldTensor.kind`."""

TRAINED = (REDUCED, FROZEN, OUTSIDE)
"""The kinds of which ranks that train one model hold the same, and the same gradients."""

_NUMBERS = (bool, int, float)


class HeldTensor(NamedTuple):
    """A parameter or buffer, as far as it does not change from step to step.

    Attributes
    ----------
    part : str
        Which part of the whole this rank holds (``'Shard(dim=0) 1 of 2'``); empty where that is all of it.
    kind : str
        ``'reduced'`` (DistributedDataParallel reduces its gradient), ``'frozen'`` (it does not, since none was required
        when the model was wrapped), ``'ignored'`` (it was told not to), ``'outside'`` (a parameter that it does not
        know), ``'buffer'``, ``'broadcast'`` (a buffer that it copies from rank 0).
    stepped : bool
        Whether the optimizer holds it.
    group : str
        The ranks that DistributedDataParallel keeps equal, or over which it is spread (``'0, 2'``): those of one stage
        of a pipeline. Empty where these are all, and where nothing says so.
    called : str
        The line, as ``'file:line'``, that called the module which has it first; empty where that is not known.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    part: str
    kind: str
    stepped: bool
    group: str = ""
    called: str = ""


@dataclass(slots=True, eq=False)
class StepLook:
    """What there was when an optimizer was about to step.

    Attributes
    ----------
    optimizer : int
        Which of the program's, numbered as they stepped first.
    number : int
        Which of its steps, from 1.
    tensors : tuple of HeldTensor
        In one order, which all that follows has too.
    values, gradients : ndarray of uint64
        Checksums.
    present : ndarray of bool
        Which tensors have a gradient.
    norms : ndarray of float64
        Of the gradients.
    facts : dict
        What may explain a disagreement: ``'lr'``, ``'options'`` (what else its groups hold in numbers), ``'seed'``,
        ``'generator'`` (a checksum of its state), ``'synchronised'`` (whether the last forward was one whose gradients
        DistributedDataParallel reduces; not there without one), ``'backwards'`` (how many had begun), ``'passes'`` (of
        those since the step before, as :class:`.LoggedBackward` has it), ``'line'`` (which calls ``step()``),
        ``'written'`` (which tensors others have written since the step before, as :class:`.Written` has it),
        ``'versions'`` (of all, before the first step), ``'checkpointed'`` (which tensors' modules a re-entrant
        checkpoint calls) and ``'skipped'`` (of the time since the step before, as :class:`.SkippedForward` has it); the
        last two are not there where there is none.
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
        return [LoggedBackward(bool(inner), tuple(unreached), *lines) for inner, unreached, *lines in passes or ()]

    @property
    def options(self) -> dict[str, str]:
        """The numbers that the optimizer steps by besides its learning rate: of each group, as text."""
        return {name: ", ".join(map(str, values)) for name, values in self.facts.get("options", {}).items()}

    @property
    def line(self) -> str:
        """The line that calls ``step()``, as ``'file:line'``; empty where it is not known."""
        return str(self.facts.get("line", ""))

    @property
    def skipped(self) -> list[SkippedForward]:
        """The forwards since the step before that no backward followed."""
        return [SkippedForward(*skip) for skip in self.facts.get("skipped", ())]

    @property
    def written(self) -> Written:
        """Which tensors others than the optimizer have written since its step before."""
        return Written(*map(tuple, self.facts.get("written", ())))

    def is_checkpointed(self, name: str) -> bool:
        """Whether a re-entrant checkpoint calls the module of a tensor."""
        return any(self.tensors[place].name == name for place in self.facts.get("checkpointed", ()))

    def version(self, name: str) -> int | None:
        """Return how many times a tensor had been written before the first step; None where that is not known."""
        versions = self.facts.get("versions", ())
        return next((v for held, v in zip(self.tensors, versions) if held.name == name), None)

    def reaches(self, backward: LoggedBackward, name: str) -> bool:
        """Whether a backward had a way to a parameter."""
        return any(held.name == name for held in self.tensors) and not any(
            self.tensors[place].name == name for place in backward.unreached
        )


class _Described(NamedTuple):
    """The tensors of an optimizer's steps, which are described anew only where they are others.

    Attributes
    ----------
    key : tuple of int
        What tells whether they are: their ids, and how many modules are known.
    asked : list of (int, int, str)
        The places, ids and names of the parameters among them.
    """

    key: tuple[int, ...]
    tensors: tuple[HeldTensor, ...]
    asked: list[tuple[int, int, str]]


class StepLooker:
    """Looks at what optimizers are about to use, on the program's thread.

    It is told of modules that are called and backwards that begin, beside steps.

    Parameters
    ----------
    adapter : Adapter
        Which asks the tensors.
    tracker : Tracker
        Which knows what they are called.
    """

    def __init__(self, adapter: Adapter, tracker: Tracker) -> None:
        self._log = BackwardLog(adapter)
        self._forwards = ForwardLog(adapter)
        self._lines = CallLines(adapter, tracker)
        self._writes = ParameterWrites()
        self._loop = TrainingLoop()
        self._adapter = adapter
        self._tracker = tracker
        self._optimizers: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._count = 0
        self._numbers: dict[int, int] = {}
        self._wrappers: tuple[Any, ...] = ()
        self._modules = -1
        self._known: dict[int, _Described] = {}

    def module_entered(self, module: Any) -> None:
        """Note the call of a module, for the tracker too."""
        if self._lines.module_entered(module):
            self._writes.forward_begins()
            if self._tracker.is_root(module):  # others that are called alone are computed again for a checkpoint
                self._forwards.entered(module, self._lines.forward)

    def progress(self) -> tuple[int, int]:
        """Return what grows as the program goes on: the calls of modules, and the backwards."""
        return self._lines.calls, self._log.count

    def backward_started(self, task: Any, *, inside: bool) -> None:
        """Note a backward that begins, or one that begins inside of another."""
        frame = None if inside else own_frame(sys._getframe(1))
        self._log.started(task, inside=inside, forward=self._lines.forward, called=line_of_frame(frame))
        if not inside:
            self._loop.backward_begins(frame)
            self._forwards.followed(frame, self._log.leaves)

    def skipped(self, frame: FrameType | None = None) -> list[SkippedForward]:
        """Return the forwards since the newest step that no backward follows: see :meth:`.ForwardLog.after_step`."""
        return self._forwards.after_step(frame)

    def account(self, frame: FrameType | None = None) -> ForwardAccount:
        """Return how far the rank has come: see :meth:`.ForwardLog.account`."""
        return self._forwards.account(frame)

    def has_left_loop(self, frame: FrameType | None) -> bool:
        """Whether a frame stands outside of the loop in which the program trains: see :class:`.TrainingLoop`."""
        return self._loop.is_left_at(frame)

    def stepped(self, optimizer: Any) -> None:
        """Note that an optimizer has stepped."""
        reference, which = self._optimizers.get(id(optimizer), (None, -1))
        if reference is not None and reference() is optimizer:
            held = self._held(optimizer)
            self._writes.stepped(which, self._adapter.of(held[0]), held)

    def look(self, optimizer: Any) -> StepLook | None:
        """Return what an optimizer is about to use; None inside another's step, and where it holds no tensor."""
        held = self._held(optimizer)
        if not held or _inside_another_step():
            return None
        which = self._number_of(optimizer)
        number = self._numbers[which] = self._numbers.get(which, 0) + 1
        adapter = self._adapter.of(held[0])
        parallel = self._parallel(adapter)
        tensors, known = self._tensors(which, adapter, held, parallel)
        described = known.tensors
        gradients = [adapter.leaf_grad(tensor) for tensor in tensors]
        values, _ = adapter.checksums(tensors, norms=False)
        sums, norms = adapter.checksums(gradients)
        frame = own_frame(sys._getframe(1))
        self._loop.steps(frame)
        facts: dict[str, Any] = {"lr": [float(group.get("lr", 0.0)) for group in optimizer.param_groups]}
        facts["options"] = _options(optimizer)
        facts.update(adapter.generator_facts())
        facts.update(
            backwards=self._log.count,
            passes=self._log.before_step(which, known.asked, self._names(known)),
            line=line_of_frame(frame),
        )
        skipped = self._forwards.before_step(number, facts["line"])
        if skipped:
            facts["skipped"] = skipped
        facts.update(self._written(which, number, adapter, tensors))
        checkpointed = self._lines.checkpointed()
        if checkpointed:
            modules = map(module_of_parameter, (held.name for held in described))
            facts["checkpointed"] = [place for place, module in enumerate(modules) if module in checkpointed]
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

    def _held(self, optimizer: Any) -> list[Any]:
        """Return the tensors that an optimizer changes."""
        held = held_by(optimizer)
        if len(set(map(type, held))) == 1 and self._adapter.is_tensor(held[0]):
            return held
        return [tensor for tensor in held if self._adapter.is_tensor(tensor)]

    def _names(self, known: _Described) -> Callable[[], dict[int, str]]:
        """Return what tells what leaves are called, by their ids."""
        return lambda: {identity: name for _, identity, name in known.asked} | self._tracker.parameter_paths()

    def _written(self, which: int, number: int, adapter: Adapter, tensors: Sequence[Any]) -> dict[str, Any]:
        """Return the facts that tell what others than the optimizer have written."""
        if number == 1:
            return {"versions": [adapter.version(tensor) for tensor in tensors]}
        written = self._writes.before_step(which, tensors)
        return {"written": written} if any(written) else {}

    def _number_of(self, optimizer: Any) -> int:
        reference, number = self._optimizers.get(id(optimizer), (None, -1))
        if reference is None or reference() is not optimizer:
            number, self._count = self._count, self._count + 1
            self._optimizers[id(optimizer)] = weakref.ref(optimizer), number
        return number

    def _parallel(self, adapter: Adapter) -> list[DataParallel]:
        """Return the modules whose gradients are reduced, of those that have been called."""
        if self._tracker.count != self._modules:
            self._modules = self._tracker.count
            wrappers = adapter.parallel_modules(self._tracker.modules())
            self._wrappers = tuple(weakref.ref(module) for module in wrappers)
        living = [module for module in (reference() for reference in self._wrappers) if module is not None]
        return [adapter.data_parallel(module) for module in living]

    def _tensors(
        self, which: int, adapter: Adapter, held: Sequence[Any], parallel: Sequence[DataParallel]
    ) -> tuple[list[Any], _Described]:
        """Return the tensors to look at: an optimizer's, and what else DistributedDataParallel keeps equal."""
        found = {id(tensor): tensor for tensor in held}
        stepped = set(found)
        if which == 0:  # once a round is enough
            for wrapper in parallel:
                found.update((id(tensor), tensor) for tensor in wrapper.reduced)
                found.update((id(tensor), tensor) for _, tensor in wrapper.buffers)
        key = (*found, self._lines.known)  # where a module is called may be learned later
        known = self._known.get(which)
        if known is None or known.key != key:
            described = self._described(adapter, found, stepped, parallel)
            parameters = [
                (place, identity, tensor.name)
                for place, (identity, tensor) in enumerate(zip(found, described))
                if tensor.kind not in (BUFFER, BROADCAST)
            ]
            known = self._known[which] = _Described(key, described, parameters)
        return list(found.values()), known

    def _described(
        self, adapter: Adapter, found: dict[int, Any], stepped: set[int], parallel: Sequence[DataParallel]
    ) -> tuple[HeldTensor, ...]:
        names = self._tracker.parameter_paths()
        lines = self._lines.by_path()
        kinds: dict[int, str] = {}
        groups: dict[int, str] = {}
        for wrapper in parallel:
            kinds.update((id(tensor), REDUCED) for tensor in wrapper.reduced)
            kinds.update((id(tensor), FROZEN) for tensor in wrapper.frozen)
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
            stepped_here, called = identity in stepped, lines.get(module_of_parameter(name), "")
            described.append(HeldTensor(name, tuple(spec.shape), spec.dtype, part, kind, stepped_here, group, called))
        return tuple(described)


def _options(optimizer: Any) -> dict[str, list[Any]]:
    """Return what an optimizer's groups hold in numbers, beside the learning rate."""
    found: dict[str, list[Any]] = {}
    for group in optimizer.param_groups:
        for name, value in group.items():
            numbers = list(value) if type(value) is tuple else [value]  # betas are two
            if name != "lr" and all(type(number) in _NUMBERS for number in numbers):
                found.setdefault(name, []).extend(numbers)
    return found


def _inside_another_step() -> bool:
    """Whether the optimizer that is about to step does so for another one, which steps now (ZeRO's)."""
    frame, steps = sys._getframe(2), 0
    while frame is not None:
        code = frame.f_code
        if code.co_name == "wrapper" and code.co_filename.endswith("optimizer.py"):
            steps += 1
        frame = frame.f_back  # type: ignore[assignment]
    return steps > 1
