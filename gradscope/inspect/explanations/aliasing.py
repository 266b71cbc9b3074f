"""Gradients that share memory: with each other, with a parameter, with a bucket, with a tensor of the program."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from ..adapters import Adapter
from .base import Explanation, adapter_of, count, format_bytes, named_tensors, storage_bytes

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
    text : str
    """

    kind: str
    first: str
    second: str
    overlap: bool
    text: str


@dataclass(frozen=True)
class GradientAliasing(Explanation):
    """Which gradients share memory.

    Attributes
    ----------
    shared : tuple of SharedMemory
    gradients : int
        How many gradients were looked at.
    """

    shared: tuple[SharedMemory, ...]
    gradients: int

    @property
    def dangerous(self) -> tuple[SharedMemory, ...]:
        """Those where writing one changes the other."""
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
    others : mapping of str to Tensor, optional
        Further tensors to compare with: the ``grad_output`` that was passed to backward(), a buffer.
    adapter : Adapter, optional

    Returns
    -------
    GradientAliasing

    Examples
    --------
    >>> import gradscope as gs
    >>> import gradscope.inspect as gi
    >>> a, b = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
    >>> a.grad = b.grad = gs.ones(3)
    >>> print(gi.aliasing({"a": a, "b": b}))
    the gradients of `a` and `b` share memory: writing one changes the other
    """
    if not hasattr(params, "named_parameters"):
        params = dict(params) if hasattr(params, "items") else list(params)
    sample = params if hasattr(params, "named_parameters") else _first(params)
    adapter = adapter_of(sample, adapter)
    pairs = named_tensors(adapter, params)
    grads = [(name, adapter.leaf_grad(tensor)) for name, tensor in pairs]
    grads = [(name, grad) for name, grad in grads if grad is not None]
    found = list(_between(adapter, grads))
    for name, grad in grads:
        found += _with(adapter, name, grad, pairs, "parameter", "the parameter")
        found += _with(adapter, name, grad, named_tensors(adapter, others), "tensor", "the tensor")
        size = storage_bytes(grad)
        if size > _nbytes(grad):
            text = f"the gradient of `{name}` is a view: {format_bytes(_nbytes(grad))} of {format_bytes(size)}"
            found.append(SharedMemory("bucket", name, "", False, text))
    return GradientAliasing(tuple(found), len(grads))


def _first(params: Any) -> Any:
    values = (
        list(params.values()) if isinstance(params, dict) else [p[1] if isinstance(p, tuple) else p for p in params]
    )
    return values[0] if values else None


def _between(adapter: Adapter, grads: Sequence[tuple[str, Any]]) -> Iterable[SharedMemory]:
    by_memory: dict[Any, list[tuple[str, Any]]] = {}
    for name, grad in grads:
        if _nbytes(grad):
            by_memory.setdefault(adapter.memory_key(grad), []).append((name, grad))
    for group in by_memory.values():
        for i, (first, a) in enumerate(group):
            for second, b in group[i + 1 :]:
                if _overlap(a, b):
                    text = f"the gradients of `{first}` and `{second}` share memory: writing one changes the other"
                    yield SharedMemory("gradients", first, second, True, text)


def _with(
    adapter: Adapter, name: str, grad: Any, others: Sequence[tuple[str, Any]], kind: str, what: str
) -> Iterable[SharedMemory]:
    for other_name, other in others:
        if _nbytes(grad) and adapter.memory_key(grad) == adapter.memory_key(other) and _overlap(grad, other):
            text = f"the gradient of `{name}` is in the memory of {what} `{other_name}`: writing one changes the other"
            yield SharedMemory(kind, name, other_name, True, text)


def _nbytes(tensor: Any) -> int:
    return int(tensor.numel()) * int(tensor.element_size())


def _span(tensor: Any) -> tuple[int, int]:
    """Return the addresses of the first byte of a tensor and of the first after it."""
    size, start = int(tensor.element_size()), int(tensor.data_ptr())
    reach = sum((n - 1) * step for n, step in zip(tensor.shape, tensor.stride()))
    return start, start + (int(reach) + 1) * size


def _overlap(a: Any, b: Any) -> bool:
    first, second = _span(a), _span(b)
    return first[0] < second[1] and second[0] < first[1]
