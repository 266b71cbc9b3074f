"""Gradients that share memory: with each other, with a parameter, with a bucket, with a tensor of the program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ...adapters import Adapter
from ...adapters.memory_fingerprint import Region
from ...output.number_format import count, format_bytes
from ...records.naming import named_tensors
from ..explanation import Explanation, element_bytes, parameters_of, storage_bytes

__all__ = ["GradientAliasing", "SharedMemory", "aliasing"]


@dataclass(frozen=True)
class SharedMemory:
    """Two tensors in one memory.

    Attributes
    ----------
    kind : str
        ``'gradients'`` (of two parameters), ``'parameter'`` (a gradient in a parameter's memory), ``'tensor'`` (in
        that of another tensor that was given) or ``'bucket'`` (a gradient is a view of larger memory).
    first, second : str
        What they are called; `second` is empty for a bucket.
    overlap : bool
        Whether they have bytes in common, so that writing one changes the other.
    """

    kind: str
    first: str
    second: str
    overlap: bool
    text: str


@dataclass(frozen=True, repr=False)
class GradientAliasing(Explanation):
    """Which gradients share memory.

    Attributes
    ----------
    gradients : int
        How many gradients were looked at.

    See Also
    --------
    aliasing

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> type(gi.aliasing(gs.nn.Linear(2, 1))).__name__
    'GradientAliasing'
    """

    shared: tuple[SharedMemory, ...]
    gradients: int

    @property
    def dangerous(self) -> tuple[SharedMemory, ...]:
        """The pairs in which writing one changes the other."""
        return tuple(entry for entry in self.shared if entry.overlap)

    def __bool__(self) -> bool:
        return bool(self.shared)

    def __str__(self) -> str:
        if not self.shared:
            return f"No two of {count(self.gradients, 'gradient')} share memory."
        return "\n".join(entry.text for entry in self.shared)

    def _title(self) -> str:
        return "Gradients that share memory"

    def _columns(self) -> Sequence[str]:
        return ("kind", "gradient", "shares with", "overlap", "what it means")

    def _rows(self) -> Iterable[Sequence[str]]:
        for entry in self.shared:
            yield (entry.kind, entry.first, entry.second, "yes" if entry.overlap else "no", entry.text)


def aliasing(params: Any, *, others: Any = None, adapter: Adapter | None = None) -> GradientAliasing:
    """Say which gradients share memory with something that may be written.

    An optimizer that scales a shared gradient, or clipping in place, then changes two things at once.

    Parameters
    ----------
    params : Module, mapping of str to Tensor, or iterable of (str, Tensor) or Tensor
        Whose ``.grad`` are compared, with each other, with the parameters and with `others`.
    others : mapping of str to Tensor, optional
        Further tensors to compare with: the ``grad_output`` that was passed to backward(), a buffer.

    See Also
    --------
    check.Sanitizer

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> a, b = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
    >>> a.grad = b.grad = gs.ones(3)
    >>> print(gi.aliasing({"a": a, "b": b}))
    the gradients of `a` and `b` share memory: writing one changes the other
    """
    adapter, pairs = parameters_of(params, None, adapter)
    once = {id(tensor): (name, tensor) for name, tensor in reversed(pairs)}  # a tied parameter goes by its first name
    pairs = list(reversed(once.values()))
    found = [(name, adapter.leaf_grad(tensor)) for name, tensor in pairs]
    grads = [(name, grad) for name, grad in found if grad is not None and element_bytes(grad)]
    shared = list(_between(adapter, grads))
    shared += _with(adapter, grads, pairs, "parameter", "the parameter")
    shared += _with(adapter, grads, named_tensors(adapter, others), "tensor", "the tensor")
    for name, grad in grads:
        size = storage_bytes(grad)
        if size > element_bytes(grad):
            text = f"the gradient of `{name}` is a view: {format_bytes(element_bytes(grad))} of {format_bytes(size)}"
            shared.append(SharedMemory("bucket", name, "", False, text))
    return GradientAliasing(tuple(shared), sum(grad is not None for _, grad in found))


def _by_memory(adapter: Adapter, pairs: Iterable[tuple[str, Any]]) -> dict[Any, list[tuple[str, Any]]]:
    groups: dict[Any, list[tuple[str, Any]]] = {}
    for name, tensor in pairs:
        groups.setdefault(adapter.memory_key(tensor), []).append((name, tensor))
    return groups


def _between(adapter: Adapter, grads: Sequence[tuple[str, Any]]) -> Iterable[SharedMemory]:
    for group in _by_memory(adapter, grads).values():
        regions = [_region(adapter, tensor) for _, tensor in group]
        for i, j in _meeting(regions):
            if not regions[i].apart(regions[j]):
                first, second = group[i][0], group[j][0]
                text = f"the gradients of `{first}` and `{second}` share memory: writing one changes the other"
                yield SharedMemory("gradients", first, second, True, text)


def _meeting(regions: Sequence[Region]) -> list[tuple[int, int]]:
    """Return the pairs of places whose ranges of bytes meet: of the views of a bucket, which are many, few or none."""
    bounds = [region.bounds() for region in regions]
    found: list[tuple[int, int]] = []
    reaching: list[int] = []
    for place in sorted(range(len(regions)), key=bounds.__getitem__):
        reaching = [other for other in reaching if bounds[other][1] > bounds[place][0]]
        found += [(min(place, other), max(place, other)) for other in reaching]
        reaching.append(place)
    return sorted(found)


def _with(
    adapter: Adapter, grads: Sequence[tuple[str, Any]], others: Sequence[tuple[str, Any]], kind: str, what: str
) -> Iterable[SharedMemory]:
    there = _by_memory(adapter, others)
    for name, grad in grads:
        for other_name, other in there.get(adapter.memory_key(grad), ()):
            if not _region(adapter, grad).apart(_region(adapter, other)):
                text = f"the gradient of `{name}` is in the memory of {what} `{other_name}`"
                yield SharedMemory(kind, name, other_name, True, f"{text}: writing one changes the other")


def _region(adapter: Adapter, tensor: Any) -> Region:
    """Return the bytes of a tensor; one that has no memory of its own, as a sparse one, shares with itself alone."""
    return adapter.region(tensor) or Region(id(tensor), (1,), (1,), 1)
