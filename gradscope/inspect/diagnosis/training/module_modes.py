"""In which mode modules train and are validated, of those in which the mode matters: dropouts and batch norms."""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from ...records.optimizer_steps import OptimizerHooks, held_by
from ...records.records import Location
from ...source.call_sites import caller
from ..program_facts import Fact, WatchedProgram
from ..watch import Watch, guarded

__all__ = ["MODES", "ModeWatch", "ModuleModes", "drop_probability", "drops", "tensors_in"]


@dataclass
class ModuleModes:
    """What is known of a module that the program calls.

    Attributes
    ----------
    name : str
        Of its class.
    dropouts, norms : tuple of str
        Its parts that differ by mode, by their paths.
    steps : int
        How many steps an optimizer has taken with gradients of it.
    steps_in_eval : int
        In how many of these it was in eval mode whenever it ran.
    eval_line : Location or None
        Where it ran then.
    validated : dict of Location to int
        Lines at which it runs in training mode with nothing recorded, once it has trained, and how often. Those whose
        results go into a loss are not among them.
    """

    name: str
    dropouts: tuple[str, ...]
    norms: tuple[str, ...]
    steps: int = 0
    steps_in_eval: int = 0
    eval_line: Location | None = None
    validated: dict[Location | None, int] = field(default_factory=dict)


@dataclass(eq=False)
class _FollowedModule:
    modes: ModuleModes
    reference: weakref.ref[Any]
    trained: bool = False  # called in training mode since the last step
    evaluated: bool = False  # called in eval mode since the last step, with its results recorded
    line: Location | None = None  # the line of the last such call


class ModeWatch(Watch):
    """Follows the modes of the modules that a program calls itself."""

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._graphs = program.graphs
        self._recorder = program.ledger.recorder
        self._hooks = OptimizerHooks(before=self._steps)
        self._followed: dict[int, _FollowedModule] = {}
        # Results of modules in training mode that were not recorded, by their entry in the ledger.
        self._unrecorded: dict[Any, tuple[_FollowedModule, Location | None]] = {}
        self._used: set[Location | None] = set()

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    @property
    def modules(self) -> tuple[ModuleModes, ...]:
        """The modules that have parts which differ by mode."""
        return tuple(followed.modes for followed in self._followed.values())

    def module_returned(self, module: Any, inputs: tuple[Any, ...], output: Any) -> None:
        """Note the mode of a module that no other one calls."""
        self._hooks.look()
        if self._recorder.inside_module():
            return
        followed = self._follow(module)
        tensors = list(tensors_in(output, self._adapter.tensor_classes()))
        if followed is None or not tensors:
            return
        if any(tensor.requires_grad for tensor in tensors):
            self._note_recorded(followed, module.training)
        elif module.training and followed.modes.steps and self._learns(module):
            line = caller()
            if line not in self._used:
                followed.modes.validated[line] = followed.modes.validated.get(line, 0) + 1
                self._unrecorded.update((self._recorder.entry_of(tensor), (followed, line)) for tensor in tensors)

    def task_started(self, task: Any) -> None:
        """Look whether what was computed in training mode, with nothing recorded, is in the loss."""
        if not self._unrecorded or not self._graphs.of(task):
            return
        loss = self._recorder.entry_of_node(self._adapter.task_roots(task)[0][0])
        for entry in () if loss is None else loss.ancestors().intersection(self._unrecorded):
            followed, line = self._unrecorded.pop(entry)
            self._used.add(line)
            followed.modes.validated.pop(line, None)

    def _follow(self, module: Any) -> _FollowedModule | None:
        known = self._followed.get(id(module))
        if known is not None and known.reference() is module:
            return known
        parts = self._adapter.named_modules(module)
        dropouts = tuple(path for path, part in parts if drops(part))
        norms = tuple(path for path, part in parts if getattr(part, "running_mean", None) is not None)
        if not dropouts and not norms:
            return None
        modes = ModuleModes(type(module).__name__, dropouts, norms)
        found = self._followed[id(module)] = _FollowedModule(modes, weakref.ref(module))
        return found

    def _note_recorded(self, followed: _FollowedModule, training: bool) -> None:
        if training:
            followed.trained = True
        else:
            followed.evaluated = True
            followed.line = caller()

    def _learns(self, module: Any) -> bool:
        return any(parameter.requires_grad for _, parameter in self._adapter.named_parameters(module))

    @guarded
    def _steps(self, optimizer: Any) -> None:
        held = {id(leaf) for leaf in held_by(optimizer) if self._adapter.leaf_grad(leaf) is not None}
        for followed in self._followed.values():
            module = followed.reference()
            if module is None or not (followed.trained or followed.evaluated):
                continue
            if not any(id(parameter) in held for _, parameter in self._adapter.named_parameters(module)):
                continue
            followed.modes.steps += 1
            if followed.evaluated and not followed.trained:
                followed.modes.steps_in_eval += 1
                followed.modes.eval_line = followed.modes.eval_line or followed.line
            followed.trained = followed.evaluated = False


def tensors_in(value: Any, kinds: tuple[type, ...]) -> Iterator[Any]:
    """Yield the tensors in what a module returns: one, or a tuple, list or dictionary of such.

    Examples
    --------
    >>> list(tensors_in({"logits": 1, "states": (2, [3, "x"])}, (int,)))
    [1, 2, 3]
    """
    if isinstance(value, kinds):
        yield value
    elif isinstance(value, Mapping):
        yield from tensors_in(list(value.values()), kinds)
    elif isinstance(value, (tuple, list)):
        for part in value:
            yield from tensors_in(part, kinds)


def drops(module: Any) -> bool:
    """Whether a module is a dropout that drops something in training mode."""
    return drop_probability(module) > 0


def drop_probability(module: Any) -> float:
    """Return with which probability a dropout drops; 0 of another module, and of a namesake whose `p` is no number."""
    p = getattr(module, "p", 0.0) if "Dropout" in type(module).__name__ else 0.0
    return float(p) if isinstance(p, (int, float)) else 0.0


MODES = Fact("modes", ModeWatch, lambda watch: watch.modules, forward=True, backward=True)
"""In which mode modules ran: a tuple of :class:`ModuleModes`."""
