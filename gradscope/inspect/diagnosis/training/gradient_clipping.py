"""When gradients are clipped: before the step that uses them, after it, or while a loss scale is in them."""

from __future__ import annotations

import ast
import linecache
import sys
import weakref
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from types import FrameType
from typing import Any

from ...adapters import Adapter
from ...records.optimizer_steps import OptimizerHooks, held_by
from ...records.records import Location, operator_of
from ...source.call_sites import caller
from ...source.source_syntax import syntax_tree
from ..flow.amplification import loss_scale
from ..program_facts import Fact, Sighting, WatchedProgram
from ..watch import Watch, guarded

__all__ = ["CLIPPING", "IDLE_CLIPPING", "ClippedGradients", "ClippingWatch", "IdleClipping", "clips_beside"]

# The operators by which clipping scales a gradient, in either framework.
_CLIPS = {"clip_grad_norm", "clip_grad_value", "mul", "div", "clamp", "clamp_min", "clamp_max"}
_CLIPS |= {f"_foreach_{name}" for name in _CLIPS}
_CLIPPING_CALLS = {"clip_grad_norm_", "clip_grad_value_"}
_NOT_SEEN = Sighting()
# The functions in which a GradScaler divides gradients by its scale, in gradscope by mul_().
_UNSCALING = {"_unscale_gradients", "_unscale_grads_"}


@dataclass(frozen=True)
class ClippedGradients:
    """Gradients that are changed on a line.

    Attributes
    ----------
    location : Location or None
        Which line.
    in_time, late, scaled : int
        In how many iterations before the optimizer's step, after it, and with a loss scale in them.
    step : Location or None
        The step that came before, where it was late.
    scale : float
        Of the loss.
    sighting : Sighting
        The parameters whose gradients have been clipped while they were scaled, and since when.
    """

    location: Location | None
    in_time: int = 0
    late: int = 0
    scaled: int = 0
    step: Location | None = None
    scale: float = 1.0
    sighting: Sighting = _NOT_SEEN


@dataclass(frozen=True)
class IdleClipping:
    """A line of a training loop that clips, and has never changed a gradient.

    Attributes
    ----------
    steps : int
        How many steps the optimizer of that loop has taken with gradients that a backward has put there.
    early : bool
        Whether it stands before backward().
    sighting : Sighting
        The parameters of that optimizer, and since when it steps.
    """

    location: Location
    steps: int
    early: bool
    sighting: Sighting = _NOT_SEEN


@dataclass
class _ClippedIterations:
    """The iterations, by their number, in which a line has clipped in each way."""

    in_time: set[int]
    late: set[int]
    scaled: set[int]
    step: Location | None = None
    scale: float = 1.0
    sighting: Sighting = _NOT_SEEN


class ClippingWatch(Watch):
    """Notes when gradients are written in place."""

    at_leaves_alone = ("node_exited",)

    def __init__(self, program: WatchedProgram) -> None:
        self._adapter = program.adapter
        self._program = program
        self._hooks = OptimizerHooks(before=self._steps, after=self._stepped)
        self._owners: dict[int, tuple[weakref.ref[Any], int]] = {}
        self._used: dict[int, Location | None] = {}
        self._stepping = 0
        self._backwards = 0
        self._scale = 1.0
        # Lines that have clipped since the last backward while its scale was in the gradients.
        self._while_scaled: set[Location | None] = set()
        self._clips: dict[Location | None, _ClippedIterations] = {}
        self._steps_at: Counter[Location | None] = Counter()
        self._first_steps: dict[Location | None, Sighting] = {}

    def close(self) -> None:
        """Listen to optimizers no more."""
        self._hooks.close()

    @property
    def idle(self) -> tuple[IdleClipping, ...]:
        """The lines that clip without effect: each stands unconditionally beside a step.

        Where any line has clipped there is none: it may be that of a function, or a package, which these lines call.
        """
        if self._clips:
            return ()
        return tuple(
            IdleClipping(line, times, early, self._first_steps[step])
            for step, times in self._steps_at.items()
            for line, early in (() if step is None else clips_beside(step))
        )

    @property
    def clipped(self) -> tuple[ClippedGradients, ...]:
        """Where gradients are clipped."""
        return tuple(
            ClippedGradients(line, len(c.in_time), len(c.late), len(c.scaled), c.step, c.scale, c.sighting)
            for line, c in self._clips.items()
        )

    def task_started(self, task: Any) -> None:
        """Note the scale of the loss."""
        self._hooks.look()
        self._backwards += 1
        self._while_scaled.clear()
        self._scale = max((loss_scale(self._adapter, node) for node, _ in self._adapter.task_roots(task)), default=1.0)

    def node_exited(self, call: Any) -> None:
        """Note which tensor is the gradient of a leaf now."""
        leaf = self._adapter.variable(call.node)
        grad = None if leaf is None else self._adapter.leaf_grad(leaf)
        if grad is not None:
            self._owners[id(grad)] = weakref.ref(leaf), id(leaf)
            self._used.pop(id(leaf), None)

    def tensor_written(self, write: Any) -> None:
        """Note whether a gradient is clipped."""
        found = self._owners.get(id(write.tensor))
        if found is None or self._stepping:
            return
        leaf = found[0]()
        if leaf is None or self._adapter.leaf_grad(leaf) is not write.tensor:
            return
        if _unscales():
            self._unscaled()
        elif operator_of(write.operator) in _CLIPS:
            self._clipped(found[1], write.location)

    def _clipped(self, leaf: int, line: Location | None) -> None:
        clips = self._clips.setdefault(line, _ClippedIterations(set(), set(), set()))
        if leaf in self._used:
            clips.late.add(self._backwards)
            clips.step = self._used[leaf]
        else:
            clips.in_time.add(self._backwards)
            if self._scale > 1:
                self._while_scaled.add(line)

    def _unscaled(self) -> None:
        for line in self._while_scaled:
            clips = self._clips[line]
            if not clips.scaled:
                leaves = (leaf() for leaf, _ in self._owners.values())
                clips.sighting = self._program.sighting(leaf for leaf in leaves if leaf is not None)
            clips.scaled.add(self._backwards)
            clips.scale = self._scale
        self._while_scaled.clear()
        self._scale = 1.0

    @guarded
    def _steps(self, optimizer: Any) -> None:
        self._stepping += 1

    @guarded
    def _stepped(self, optimizer: Any) -> None:
        self._stepping = max(0, self._stepping - 1)
        line, held = caller(), tuple(held_by(optimizer))
        # Of gradients that the program has put there itself it is not known what has been clipped: their shards, say.
        if any(map(self._accumulated, held)):
            self._first_steps.setdefault(line, self._program.sighting(held))
            self._steps_at[line] += 1
        self._used.update(_with_gradients(held, self._adapter, line))

    def _accumulated(self, leaf: Any) -> bool:
        """Whether the gradient of a leaf is the one that a backward has put there."""
        owner = self._owners.get(id(self._adapter.leaf_grad(leaf)))
        return owner is not None and owner[0]() is leaf


def clips_beside(step: Location) -> Iterator[tuple[Location, bool]]:
    """Yield the lines that clip gradients in the block of statements in which an optimizer steps.

    Parameters
    ----------
    step : Location
        Where it steps.

    Yields
    ------
    tuple of (Location, bool)
        A line, and whether a backward() comes after it in that block.
    """
    tree = syntax_tree(step.filename)
    blocks = [] if tree is None else [_calls_of(body) for body in _loops(tree)]
    for block in blocks:
        if ("step", step.lineno) not in block:
            continue
        for name, line in block:
            if name in _CLIPPING_CALLS:
                late = any(other == "backward" and number > line for other, number in block)
                yield Location(step.filename, line, step.function, linecache.getline(step.filename, line).strip()), late


def _loops(tree: ast.AST) -> Iterator[Sequence[ast.stmt]]:
    for node in ast.walk(tree):
        if isinstance(node, (ast.For, ast.While)):
            yield node.body


def _calls_of(body: Sequence[ast.stmt]) -> list[tuple[str, int]]:
    """Return the methods and functions that the expressions of a block call unconditionally, each with its line."""
    calls = (
        node
        for statement in body
        if isinstance(statement, (ast.Expr, ast.Assign))
        for node in ast.walk(statement)
        if isinstance(node, ast.Call)
    )
    return [(getattr(call.func, "attr", getattr(call.func, "id", "")), call.lineno) for call in calls]


def _unscales() -> bool:
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name in _UNSCALING:
            return True
        frame = frame.f_back
    return False


def _with_gradients(leaves: Iterable[Any], adapter: Adapter, line: Location | None) -> dict[int, Location | None]:
    return {id(leaf): line for leaf in leaves if adapter.leaf_grad(leaf) is not None}


CLIPPING = Fact("clipping", ClippingWatch, lambda watch: watch.clipped, backward=True, writes=True)
"""When gradients are clipped: a tuple of :class:`ClippedGradients`."""

IDLE_CLIPPING = Fact("idle clipping", lambda program: program.watch_of(CLIPPING), lambda watch: watch.idle)
"""Lines that clip without effect: a tuple of :class:`IdleClipping`."""
