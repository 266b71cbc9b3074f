"""Two nodes side by side: what comes to them, what they produce and what they have saved, in numbers."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ...records.records import NodeRecord, TensorSummary
from .backward_comparison import ratio_text, same_number

__all__ = ["FactPair", "fact_pairs", "fact_text", "node_comparison_text", "node_title"]

Fact = str | float | None

_STATISTICS = ("norm", "mean", "std", "min", "max")

_KINDS = ("grad in", "grad out", "saved")

_ABSENT: dict[str, Fact] = {}
_BRIEFLY = ("shape", "norm")
"""What is told of a tensor that only one of the nodes has, as far as is known."""


class FactPair(NamedTuple):
    """Something that is known of a tensor of one node, and the same of another.

    Parameters
    ----------
    tensor : str
        What the tensor is to the node: ``'grad in'``, ``'grad out 0'``, ``'saved weight'``.
    name : str
        What is known: ``'shape'``, ``'norm'``.
    left, right : str, float or None
        None where it is not known, or a node has no such tensor.
    """

    tensor: str
    name: str
    left: Fact
    right: Fact

    @property
    def ratio(self) -> float | None:
        """By what the right norm is larger than the left one; None where that says nothing, and of other facts."""
        left, right = self.left, self.right
        if self.name != "norm" or not isinstance(left, float) or not isinstance(right, float) or not left:
            return None
        ratio = right / left
        return ratio if math.isfinite(ratio) else None

    @property
    def differs(self) -> bool:
        """Whether both are known, and not the same, or only one is."""
        left, right = self.left, self.right
        if isinstance(left, (int, float)) and isinstance(right, (int, float)):
            return not same_number(left, right)
        return left != right


def fact_pairs(left: NodeRecord, right: NodeRecord) -> list[FactPair]:
    """Put two nodes side by side: gradients that come in, gradients that go out, saved tensors by their names.

    Parameters
    ----------
    left, right : NodeRecord
        With all that is known of them, as :meth:`gradscope.inspect.Debugger.inspect` returns them.

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> session = gi.debug((gs.ones(3, requires_grad=True) * 2).sum())
    >>> state = session.wait()
    >>> session.step()
    >>> state = session.wait()
    >>> pairs = fact_pairs(session.inspect(0), session.inspect(1))
    >>> [(pair.tensor, pair.left, pair.right) for pair in pairs if pair.name == "norm"][:1]
    [('grad in', 1.0, 1.7320508075688772)]
    >>> session.abort()
    """
    sides = _tensors(left), _tensors(right)
    tensors = dict.fromkeys(name for kind in _KINDS for side in sides for name in side if name.startswith(kind))
    pairs = []
    for tensor in tensors:
        one, other = (side.get(tensor, _ABSENT) for side in sides)
        names = dict.fromkeys([*one, *other] if tensor in sides[0] and tensor in sides[1] else _BRIEFLY)
        label = tensor.removesuffix(" 0") if f"{tensor[:-1]}1" not in tensors else tensor
        pairs += [FactPair(label, name, one.get(name), other.get(name)) for name in names]
    return pairs


def node_title(node: NodeRecord) -> str:
    """Return what a node is called above its numbers: its place, operator, and module or parameter.

    Examples
    --------
    >>> node_title(NodeRecord(3, 3, "MulBackward0", "Mul", 0, "fc", "", None, ()))
    '#3 Mul fc'
    """
    return f"#{node.index} {node.operator} {node.parameter or node.module}".rstrip()


def node_comparison_text(left: NodeRecord, right: NodeRecord) -> str:
    """Write two nodes side by side, the first difference marked.

    Examples
    --------
    >>> def node(index, norm):
    ...     return NodeRecord(index, index, "MulBackward0", "Mul", 0, "", "", None, (), norm=norm)
    >>> print(node_comparison_text(node(0, 2.0), node(4, 1.0)))
    #0 Mul and #4 Mul
                    left  right  right/left
    > grad in norm     2      1         0.5
    """
    pairs = fact_pairs(left, right)
    first = next((place for place, pair in enumerate(pairs) if pair.differs), -1)
    rows = [("", "", "left", "right", "right/left")]
    for place, pair in enumerate(pairs):
        facts = fact_text(pair.left), fact_text(pair.right)
        rows.append((">" if place == first else "", f"{pair.tensor} {pair.name}", *facts, ratio_text(pair.ratio)))
    widths = [max(len(row[column]) for row in rows) for column in range(5)]
    lines = [
        f"{mark:<1} {label:<{widths[1]}}  {one:>{widths[2]}}  {other:>{widths[3]}}  {ratio:>{widths[4]}}".rstrip()
        for mark, label, one, other, ratio in rows
    ]
    return "\n".join([f"{node_title(left)} and {node_title(right)}", *lines])


def fact_text(fact: Fact) -> str:
    """Write what is known; a dash where nothing is.

    Examples
    --------
    >>> fact_text(0.123456), fact_text("2,3"), fact_text(None)
    ('0.123', '2,3', '-')
    """
    return "-" if fact is None else fact if isinstance(fact, str) else f"{fact:.3g}"


def _tensors(node: NodeRecord) -> dict[str, dict[str, Fact]]:
    """Return the tensors of a node by what they are to it, each with what is known of it."""
    gradients = node.grad_outputs
    found = dict(_gradients("grad in", gradients))
    if gradients is None and node.norm is not None:  # it ran free: no more was kept
        found["grad in 0"] = {"norm": node.norm}
    found.update(_gradients("grad out", node.grad_inputs))
    for saved in node.saved:
        if saved.shape is not None:
            found[f"saved {saved.name}"] = {"shape": _shape(saved.shape), **_numbers(saved.summary)}
    return found


def _gradients(title: str, gradients: Sequence[TensorSummary | None] | None) -> Iterator[tuple[str, dict[str, Fact]]]:
    for slot, summary in enumerate(gradients or ()):
        facts: dict[str, Fact] = {"shape": "None" if summary is None else _shape(summary.shape)}
        yield f"{title} {slot}", {**facts, **_numbers(summary)}


def _numbers(summary: TensorSummary | None) -> dict[str, Fact]:
    if summary is None:
        return {}
    found: dict[str, Fact] = {"dtype": summary.dtype, **{name: getattr(summary, name) for name in _STATISTICS}}
    found["zeros"] = f"{summary.zeros / summary.numel:.0%}" if summary.numel else None
    bad = {"NaN": summary.nans, "Inf": summary.infs}
    return {**found, **{name: count for name, count in bad.items() if count}}


def _shape(shape: Sequence[int]) -> str:
    return f"({','.join(map(str, shape))})"
