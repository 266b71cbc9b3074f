"""Which operators make a gradient smaller or larger on its way to a parameter."""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from ...adapters import Adapter
from ...records.records import Location, operator_name
from ...records.tensor_statistics import quick_norm
from ..explanation import at
from ..nan.nan_producers import saved_values
from .compiled_flow import CallGain
from .reshaping_operators import RESHAPING

__all__ = ["Gain", "GainVisitor", "loss_scale"]


@dataclass(frozen=True)
class Gain:
    """What the nodes of one line do to the size of a gradient.

    Attributes
    ----------
    node : str
        ``'SigmoidBackward0'``.
    times : int
        How many such nodes the gradient passes through, one after the other.
    factor : float
        By how much each multiplies the root mean square of the gradient, in the geometric mean.
    """

    node: str
    location: Location | None
    times: int
    factor: float

    def __str__(self) -> str:
        often = f"{self.times} times, by {self.factor:.2g} each" if self.times > 1 else f"by {self.factor:.2g}"
        return f"{self.node}{at(self.location)} multiplies them {often}"


class GainVisitor:
    """Notes the size of every gradient of a backward.

    Attributes
    ----------
    inside : dict of int to sequence of CallGain
        Of compiled nodes, by key: what the calls inside of them do.
    """

    def __init__(self, adapter: Adapter) -> None:
        self._adapter = adapter
        self._nodes: dict[int, tuple[str, Location | None]] = {}
        # For each edge (node, child): the logarithm of the factor by which the gradient grows from one to the other.
        self._factors: dict[tuple[int, int], float] = {}
        self._senders: dict[int, list[int]] = {}
        self._leaves: dict[int, int] = {}
        # For each input of a node, by the node's key: the state of the last gradient that was sent there, and its size.
        self._sent: dict[tuple[int, int], tuple[Hashable, float]] = {}
        self.inside: dict[int, Sequence[CallGain]] = {}

    def visit(self, node: Any, grads: Sequence[Any], produced: Sequence[Any]) -> list[float]:
        """Look at a node that has run; return the size of each gradient that it has sent, 0 of none.

        Parameters
        ----------
        grads, produced : sequence of (Tensor or None)
            The gradients that the node received, one an output, and those that it returned, one an edge.
        """
        adapter = self._adapter
        key = adapter.key(node)
        leaf = adapter.variable(node)
        if leaf is not None:
            self._leaves[id(leaf)] = key
            return []
        arrived = max((self._arrived(key, nr, g) for nr, g in enumerate(grads) if g is not None), default=0.0)
        sizes = [0.0] * len(produced)
        self._nodes[key] = adapter.node_name(node), adapter.location(node)
        for index, (child, nr) in enumerate(adapter.edges(node)):
            if child is None or index >= len(produced) or produced[index] is None:
                continue
            other, sent = adapter.key(child), self._size(produced[index])
            sizes[index] = sent
            place = other, nr
            self._sent[place] = (None, 0.0) if place in self._sent else (self._state(produced[index]), sent)
            self._senders.setdefault(other, []).append(key)
            if arrived > 0 and 0 < sent < math.inf and arrived < math.inf:
                self._factors[key, other] = math.log(sent / arrived)
        return sizes

    def _arrived(self, key: int, nr: int, grad: Any) -> float:
        """Return the size of a gradient that a node was given: as it was sent, unless it was added to another one."""
        state, size = self._sent.pop((key, nr), (None, 0.0))
        return size if state is not None and state == self._state(grad) else self._size(grad)

    def _state(self, grad: Any) -> Hashable:
        """Return where a gradient lies and how often it was written: a hook may write into one on its way."""
        return self._adapter.address(grad), self._adapter.version(grad)

    def _size(self, grad: Any) -> float:
        (moments,) = self._adapter.moments([grad])
        if moments is not None:
            return moments.norm / math.sqrt(moments.size)
        values = self._adapter.to_host(grad)
        return quick_norm(values) / math.sqrt(values.size) if values.size else 0.0

    def reached(self, leaf: Any) -> bool:
        """Whether a gradient has arrived at a leaf."""
        return id(leaf) in self._leaves

    def passed_by(self, leaf: Any) -> set[int]:
        """Return the ids of the leaves that are used on the way from the loss to a leaf, and its own."""
        end = self._leaves.get(id(leaf))
        way, stack = set[int](), [] if end is None else [end]
        while stack:
            new = [key for key in self._senders.get(stack.pop(), ()) if key not in way]
            way.update(new)
            stack += new
        return {identity for identity, key in self._leaves.items() if key == end or way & self._users_of(key)}

    def _users_of(self, key: int) -> set[int]:
        """Return the nodes that use a leaf, past those that reshape it."""
        found, stack = set[int](), [key]
        while stack:
            for sender in self._senders.get(stack.pop(), ()):
                if operator_name(self._nodes[sender][0]) in RESHAPING:
                    stack.append(sender)
                else:
                    found.add(sender)
        return found

    def towards(self, leaf: Any) -> list[Gain]:
        """Return what the operators on the way to a leaf do, those first that make the gradient smallest."""
        end = self._leaves.get(id(leaf))
        passed: dict[tuple[str, Location | None], list[float]] = {}
        way, stack = set(), [] if end is None else [(end, True)]
        while stack:
            child, leafward = stack.pop()
            for key in self._senders.get(child, ()):
                if key in self.inside and key not in way:
                    for call in self.inside[key]:
                        passed.setdefault((call.operator, call.location), []).append(call.factor)
                # The last operator uses the leaf itself, or elements of it: its gradient is a sum over the batch.
                if not leafward and (key, child) in self._factors:
                    passed.setdefault(self._nodes[key], []).append(self._factors[key, child])
                if key not in way:
                    way.add(key)
                    stack.append((key, leafward and operator_name(self._nodes[key][0]) in RESHAPING))
        totals = sorted(passed.items(), key=lambda item: sum(item[1]))
        return [Gain(*name, len(logs), math.exp(sum(logs) / len(logs))) for name, logs in totals]


def loss_scale(adapter: Adapter, root: Any) -> float:
    """Return by what a loss is multiplied that its small gradients may not underflow: a power of 2, as GradScaler does.

    Parameters
    ----------
    root : node
        Of the loss.

    Returns
    -------
    float
        1 where there is no such product.
    """
    if operator_name(adapter.node_name(root)) != "Mul":
        return 1.0
    for saved in saved_values(adapter, root).values():
        factor = abs(float(adapter.to_host(saved).reshape(-1)[0])) if saved.numel() == 1 else 0.0
        if factor > 1.0 and math.frexp(factor)[0] == 0.5:
            return factor
    return 1.0
