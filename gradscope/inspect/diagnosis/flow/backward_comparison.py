"""Two backwards side by side: node by node, where their gradients part."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from ...records.node_identity import Identity, node_identities
from ...records.records import NodeRecord

__all__ = ["NodePair", "comparison_text", "first_difference", "node_pairs", "ratio_text", "same_number"]

_Identify = Callable[[Sequence[NodeRecord]], list[Identity]]

_TOLERANCE = 1e-6
"""By which part of themselves norms may differ that count as the same: float32 rounds at 2 ** -24."""


class NodePair(NamedTuple):
    """A node of one backward, and the same one of another.

    Parameters
    ----------
    left, right : NodeRecord or None
        None where one of them has no such node.
    """

    left: NodeRecord | None
    right: NodeRecord | None

    @property
    def node(self) -> NodeRecord:
        """The left node, or the right one where there is no left."""
        node = self.left if self.left is not None else self.right
        assert node is not None
        return node

    @property
    def norms(self) -> tuple[float | None, float | None]:
        """The norms of what comes to the two."""
        left, right = self
        return None if left is None else left.norm, None if right is None else right.norm

    @property
    def ratio(self) -> float | None:
        """By what the right norm is larger than the left one; None where that says nothing."""
        left, right = self.norms
        if not left or right is None:
            return None
        ratio = right / left
        return ratio if math.isfinite(ratio) else None

    @property
    def differs(self) -> bool:
        """Whether one of the two is missing, or what comes to them differs in shape or norm."""
        if self.left is None or self.right is None or self.left.outputs != self.right.outputs:
            return True
        left, right = self.norms
        if left is None or right is None:
            return False
        return not same_number(left, right)


def same_number(left: float, right: float) -> bool:
    """Whether two numbers are the same but for rounding; two NaNs are.

    Examples
    --------
    >>> same_number(1.0, 1.0 + 1e-9), same_number(1.0, 1.001)
    (True, False)
    """
    both_bad = not math.isfinite(left) and str(left) == str(right)
    return both_bad or math.isclose(left, right, rel_tol=_TOLERANCE)


def ratio_text(ratio: float | None) -> str:
    """Write a ratio in three digits, or in as many as show that it is not 1; nothing for None.

    Examples
    --------
    >>> ratio_text(7.7391), ratio_text(1.0000001), ratio_text(0.99987), ratio_text(None)
    ('7.74', '1', '0.9999', '')
    """
    if ratio is None:
        return ""
    digits = range(3, 3 if same_number(ratio, 1.0) else 8)
    return next((text for count in digits if (text := f"{ratio:.{count}g}") != "1"), f"{ratio:.3g}")


def node_pairs(left: Sequence[NodeRecord], right: Sequence[NodeRecord]) -> list[NodePair]:
    """Put the nodes of two backwards side by side.

    A node is the same as another by operator, module, parameter, the text of its line, and how many such came before;
    between two that are, by these without the line, which another version of the program may have elsewhere.

    Parameters
    ----------
    left, right : sequence of NodeRecord
        In execution order.

    Examples
    --------
    >>> def node(index, name):
    ...     return NodeRecord(index, index, f"{name}Backward0", name, 0, "", "", None, (), norm=2.0)
    >>> nodes = [node(0, "Sum"), node(1, "Mul")]
    >>> pairs = node_pairs(nodes, nodes[1:])
    >>> [(pair.left is not None, pair.right is not None, pair.differs) for pair in pairs]
    [(True, False, True), (True, True, False)]
    """
    return _paired(left, right, (_identities, _kinds))


def _paired(left: Sequence[NodeRecord], right: Sequence[NodeRecord], identify: Sequence[_Identify]) -> list[NodePair]:
    """Pair nodes by the first of some identities, and what stands between two such pairs by the next."""
    if not (left and right and identify):
        return [*(NodePair(node, None) for node in left), *(NodePair(None, node) for node in right)]
    matcher = difflib.SequenceMatcher(None, identify[0](left), identify[0](right), autojunk=False)
    pairs: list[NodePair] = []
    for kind, first, last, begin, end in matcher.get_opcodes():
        if kind == "equal":
            pairs += map(NodePair, left[first:last], right[begin:end])
        else:
            pairs += _paired(left[first:last], right[begin:end], identify[1:])
    return pairs


def first_difference(pairs: Sequence[NodePair]) -> int:
    """Return the place of the first pair that differs; -1 if none does."""
    return next((place for place, pair in enumerate(pairs) if pair.differs), -1)


def comparison_text(pairs: Sequence[NodePair], left: str, right: str) -> str:
    """Write two backwards side by side, the first difference marked.

    Parameters
    ----------
    left, right : str
        What the two are called.

    Examples
    --------
    >>> def node(norm):
    ...     return NodeRecord(0, 0, "SumBackward0", "Sum", 0, "", "", None, (), norm=norm)
    >>> print(comparison_text(node_pairs([node(2.0)], [node(1.0)]), "backward 2", "backward 1"))
    backward 2 and backward 1: the first difference is at node 0
         node  left  right  right/left
    > 0  Sum      2      1         0.5
    """
    first = first_difference(pairs)
    known = sum(None not in pair.norms for pair in pairs)
    if first >= 0:
        where = f"the first difference is at node {pairs[first].node.index}"
    else:
        where = f"no difference in the {known} of {len(pairs)} nodes whose norms are known on both sides"
    rows = [("", "", "node", "left", "right", "right/left")]
    for place, pair in enumerate(pairs):
        norms = (_norm_text(pair.left), _norm_text(pair.right))
        ratio = ratio_text(pair.ratio)
        label = f"{pair.node.operator} {pair.node.parameter or pair.node.module}".rstrip()
        rows.append((">" if place == first else " ", str(pair.node.index), label, *norms, ratio))
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    lines = [
        f"{mark:<1} {number:>{widths[1]}}  {label:<{widths[2]}}  {one:>{widths[3]}}  {other:>{widths[4]}}  "
        f"{ratio:>{widths[5]}}".rstrip()
        for mark, number, label, one, other, ratio in rows
    ]
    return "\n".join([f"{left} and {right}: {where}", *lines])


def _norm_text(node: NodeRecord | None) -> str:
    if node is None:
        return "no node"
    return "?" if node.norm is None else f"{node.norm:.4g}"


def _identities(nodes: Sequence[NodeRecord]) -> list[Identity]:
    return node_identities((node.module, node.parameter, node.name, node.location) for node in nodes)


def _kinds(nodes: Sequence[NodeRecord]) -> list[Identity]:
    return node_identities((node.module, node.parameter, node.name, None) for node in nodes)
