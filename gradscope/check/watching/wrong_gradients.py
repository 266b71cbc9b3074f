"""How wrong gradients would have been: what they are with the saved values, beside what overwritten ones give.

A node whose saved tensors have been written runs a second time, beside the backward, with what is there now; the
difference is carried on to the leaves through the nodes below, which run with it a second time too.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from threading import get_ident
from typing import Any

import numpy

from ...inspect.adapters import Adapter
from ...inspect.records.records import Location, dtype_name
from .kept_values import WrittenTensor
from .tensor_names import name_of

__all__ = ["WrongGradient", "WrongGradients", "largest_first"]


@dataclass(frozen=True, slots=True)
class WrongGradient:
    """How wrong the gradient of a leaf would have been.

    Attributes
    ----------
    name : str
        The path of the parameter, or the variable; empty where it has none.
    difference : float
        The norm of the difference, relative to that of the right gradient; infinite where that is 0.
    read : Location or None
        Where backward() was called.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    difference: float
    read: Location | None


def largest_first(gradients: Iterable[WrongGradient]) -> list[WrongGradient]:
    """Return gradients with the most wrong ones first; what is no number counts as infinite."""
    return sorted(gradients, key=lambda wrong: -math.inf if math.isnan(wrong.difference) else -wrong.difference)


class WrongGradients:
    """Follows through each backward what its gradients would have been.

    Attributes
    ----------
    unmeasured : dict
        Why some were not followed, in the order met; the values mean nothing.
    """

    def __init__(self, adapter: Adapter) -> None:
        self.unmeasured: dict[str, None] = {}
        self._adapter = adapter
        self._found: dict[tuple[Any, ...], WrongGradient] = {}
        # For each task, the error of the gradients that nodes have yet to receive, by the node's key and input number.
        self._coming: dict[int, dict[tuple[int, int], Any]] = {}
        self._beside: dict[int, Sequence[Any]] = {}

    @property
    def found(self) -> list[WrongGradient]:
        """One for each leaf and line of a backward, that of the largest difference; the largest first."""
        return largest_first(self._found.values())

    def entered(self, call: Any, written: Sequence[WrittenTensor], read: Location | None) -> None:
        """Run a node that is about to run with what it would have had."""
        coming = self._coming.get(id(call.task), {})
        if not (written or coming):
            return
        adapter, node = self._adapter, call.node
        key = adapter.key(node)
        given = call.grad_outputs
        added = [coming.pop((key, number), None) for number in range(len(given))]
        if not written and all(difference is None for difference in added):
            return
        leaf = adapter.variable(node)
        with self._noting(node), adapter.quiet():
            if leaf is not None:
                self._measure(leaf, given[0], added[0], read)
            elif not self._runs_once(node):
                self._beside[get_ident()] = self._run(node, list(map(_sum, given, added)), written)

    def _run(self, node: Any, given: list[Any], written: Sequence[WrittenTensor]) -> Sequence[Any]:
        """Run a node with what is in its memory now, which it is made to take for what it has saved."""
        undo = [self._adapter.exchange(node, tensor.saved, None, tensor.version) for tensor in written]
        try:
            return self._adapter.run_node(node, given)
        finally:
            for step in reversed(undo):
                step()

    def _runs_once(self, node: Any) -> bool:
        """Whether a node must not run a second time; say so."""
        adapter = self._adapter
        custom = hasattr(node, "_forward_cls")
        packed = any(saved.current_version is None for saved in adapter.saved(node))
        if custom or packed or adapter.blind(node):
            self._note(node, "is the program's own code, which runs once")
            return True
        return False

    def exited(self, call: Any) -> None:
        """Note what the difference is to what the node has made."""
        beside = self._beside.pop(get_ident(), None)
        if beside is None:
            return
        adapter, coming = self._adapter, self._coming.setdefault(id(call.task), {})
        with self._noting(call.node), adapter.quiet():
            for (child, number), right, wrong in zip(adapter.edges(call.node), call.grad_inputs, beside, strict=False):
                difference = None if child is None else _difference(wrong, right)
                if difference is not None:
                    place = adapter.key(child), number
                    coming[place] = _sum(coming.get(place), difference)

    def ended(self, task: Any) -> None:
        """Forget a backward."""
        self._coming.pop(id(task), None)
        self._beside.pop(get_ident(), None)

    def _measure(self, leaf: Any, right: Any, difference: Any, read: Location | None) -> None:
        adapter = self._adapter
        size = 0.0 if right is None else _norm(adapter.to_host(right))
        off = _norm(adapter.to_host(difference))
        spec = adapter.spec(leaf)
        wrong = WrongGradient(name_of(leaf), spec.shape, dtype_name(spec.dtype), off / size if size else math.inf, read)
        place = wrong.name or adapter.memory_key(leaf), read
        known = self._found.get(place)
        if known is None or not known.difference >= wrong.difference:
            self._found[place] = wrong

    @contextlib.contextmanager
    def _noting(self, node: Any) -> Iterator[None]:
        """Say what could not be measured, rather than let the program meet an error that is none of its own."""
        try:
            yield
        except Exception as error:
            self._note(node, f"raises {type(error).__name__} when it runs with them")

    def _note(self, node: Any, why: str) -> None:
        self.unmeasured[f"how wrong gradients would be behind {self._adapter.node_name(node)}, which {why}"] = None


def _sum(one: Any, other: Any) -> Any:
    return other if one is None else one if other is None else one + other


def _difference(wrong: Any, right: Any) -> Any:
    """Return the difference of two gradients, of which each may be None; None where there is none."""
    if wrong is None:
        return None if right is None else -right
    if right is None:
        return wrong
    # The engine sums a gradient to its receiver's shape and casts it; the difference is taken after that.
    difference = wrong.sum_to_size(*right.shape).to(right.dtype) - right
    return difference if bool((difference != 0).any()) else None


def _norm(values: numpy.ndarray) -> float:
    kind = numpy.complex128 if values.dtype.kind == "c" else numpy.float64
    return float(numpy.linalg.norm(values.astype(kind).reshape(-1)))
