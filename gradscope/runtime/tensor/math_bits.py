"""The conjugate bit and the negative bit: tensors whose elements are not what lies in their memory.

A tensor holds a bare array and a view is an array view, but no strides make a conjugate. ``x.conj()`` shares the memory
of `x` all the same, and so does the imaginary part of a conjugate: a bit says that the elements are the conjugates (the
negatives) of what lies there. PyTorch calls these math bits, and the conjugation lazy. A slot has two names for it:

==========  ================================================================================================
``_memory`` the array as it lies in memory: what shares it, addresses, strides, views, and what is written
``_array``  the elements, which everything else reads
==========  ================================================================================================

Without a bit, both names are one slot of :class:`~gradscope.runtime.tensor.tensor.Tensor`. A tensor with a bit belongs
to a subclass of its class, made here, in which ``_array`` is computed. So whoever reads an array gets the elements
without knowing of bits, for nothing where there are none. What is computed is a read-only copy: who writes into it
instead of calling ``_write()`` is refused. Code that has to do with where elements lie takes ``_memory``. Views keep
the bits of what they view (:meth:`MathBits._make_view`); the operators that change them say so in their declaration
(``reads=``).

The flag ``state.MATH_BITS`` leads written-out fast paths to the general ones, as other rare flags do. The class itself
shows: ``type(x.conj())`` is the subclass, so ask ``isinstance(x, Tensor)``.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any, ClassVar

from .. import state
from ..dispatch import TENSOR_OPERATORS as F
from ..memory import device
from .overrides import disabled, has_say

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["MathBits", "mark", "plain_type", "share_bits", "resolve_bits", "view_with_bits", "without_bits"]


def resolve_bits(array: Any, conj: bool, neg: bool) -> Any:
    """Return the elements of memory with these bits, or what is to lie in memory for these elements."""
    xp = device.array_module(array)
    if conj:
        array = xp.conjugate(array)
    if neg:
        array = xp.negative(array)
    return array if device.is_array(array) else xp.asarray(array)  # NumPy makes scalars of what has no dimensions


def view_with_bits(tensor: Tensor, conj: bool, neg: bool) -> Tensor:
    """Return the view of `tensor` whose elements are conjugated and negated, as is asked for."""
    if conj:
        tensor = F.conj(tensor)
    return F._neg_view(tensor) if neg else tensor


class MathBits:
    """Methods that tensors with a bit override; :func:`mark` makes the class that has it before the tensor's own."""

    __slots__ = ()

    _conjugated: ClassVar[bool]
    _negated: ClassVar[bool]
    _plain: ClassVar[type[Tensor]]
    _memory: Any
    _meta: Any

    @property
    def _array(self) -> Any:
        elements = resolve_bits(self._memory, self._conjugated, self._negated)
        if isinstance(elements, device.ndarray):  # CuPy has no such flag
            elements.flags.writeable = False
        return elements

    @classmethod
    def _wrap(cls, array: Any, shape: tuple[int, ...] | None = None) -> Tensor:
        """Return a fresh tensor around elements: one without bits."""
        return cls._plain._wrap(array, shape)

    def _around(self, memory: Any) -> Tensor:
        tensor = self._plain._wrap(memory)
        mark(tensor, self._conjugated, self._negated)
        return tensor

    def _write(self, values: Any) -> None:
        device.copy_to(self._memory, values)
        xp = device.array_module(self._memory)
        if self._conjugated:
            xp.conjugate(self._memory, out=self._memory)
        if self._negated:
            xp.negative(self._memory, out=self._memory)

    def _make_view(self, output: Tensor, creation: str, operator: str) -> None:
        super()._make_view(output, creation, operator)  # type: ignore[misc]
        mark(output, self._conjugated, self._negated)

    def numpy(self: Any, *, force: bool = False) -> Any:
        """Refuse, as the memory is not what the tensor stands for; with `force` return a copy.

        Raises
        ------
        RuntimeError
            If `force` is false.
        """
        if force:
            return device.to_host(self._array).copy()
        if self.requires_grad:
            return super().numpy()  # type: ignore[misc]
        bit, resolve = self._bit()
        raise RuntimeError(
            f"Can't call numpy() on Tensor that has {bit} bit set. Use tensor.{resolve}().numpy() instead."
        )

    @classmethod
    def _bit(cls) -> tuple[str, str]:
        """Return what messages call the bit, and the method that returns a tensor without it."""
        return ("conjugate", "resolve_conj") if cls._conjugated else ("negative", "resolve_neg")

    def __dlpack__(self: Any, **kwargs: Any) -> Any:
        if not self.requires_grad:
            bit, resolve = self._bit()
            raise BufferError(f"Can't export tensors with the {bit} bit set\nExport tensor.{resolve}().")
        return super().__dlpack__(**kwargs)  # type: ignore[misc]

    def _copied_memory(self, memo: dict[int, Any]) -> Any:
        """Return the elements for a deep copy, which has no bits and shares memory with nothing, as in PyTorch."""
        return self._array.copy()


@cache
def _class_with(plain: type[Tensor], conj: bool, neg: bool) -> type[Tensor]:
    body = {
        "__slots__": (),
        "__module__": plain.__module__,
        "__qualname__": plain.__qualname__,
        "__doc__": plain.__doc__,
        "_plain": plain,
        "_conjugated": conj,
        "_negated": neg,
    }
    if not has_say(plain):
        body["__torch_function__"] = disabled
    make: Any = type(plain)
    made: type[Tensor] = make(plain.__name__, (MathBits, plain), body)
    return made


def without_bits(kind: Any) -> type[Tensor]:
    """Return the class that `kind` is for tensors without bits."""
    plain: type[Tensor] = getattr(kind, "_plain", kind)
    return plain


def plain_type(tensor: Any) -> type[Tensor]:
    """Return the class of `tensor`, as it is without bits."""
    return without_bits(type(tensor))


def mark(tensor: Tensor, conj: bool, neg: bool) -> None:
    """Say how the elements of a fresh tensor (one that holds no edge) follow from its memory."""
    plain: Any = plain_type(tensor)
    if conj or neg:
        tensor.__class__ = _class_with(plain, conj, neg)
        tensor._flags |= state.MATH_BITS
    else:
        tensor.__class__ = plain
        tensor._flags &= ~state.MATH_BITS


def share_bits(tensor: Tensor, source: Tensor) -> Tensor:
    """Give `tensor`, which shares the memory of `source`, its bits as well; return it."""
    if source._flags & state.MATH_BITS:
        mark(tensor, source._conjugated, source._negated)
    return tensor
