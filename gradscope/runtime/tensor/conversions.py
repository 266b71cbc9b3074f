"""Conversions of a tensor: to numbers, lists, NumPy arrays, text, copies and pickles."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from .. import dispatch, state
from ..memory import device as devices
from ..memory.dtype import NUMBERS
from ..memory.storage import (
    contiguous_strides,
    element_strides,
    is_dense,
    memory_copy,
    memory_of,
    offset_of,
    strided_view,
)
from .formatting import tensor_repr
from .math_bits import mark, plain_type

if TYPE_CHECKING:
    from .tensor import Tensor

__all__ = ["Convertible"]


class Convertible:
    """The part of a tensor that Python, NumPy and other libraries see."""

    __slots__ = ()

    _array: Any
    _memory: Any
    _conjugated: ClassVar[bool]
    _negated: ClassVar[bool]
    _dtype: Any
    _flags: int
    _meta: Any
    shape: Any
    device: Any
    requires_grad: Any
    is_leaf: Any
    unbind: Callable[..., Any]
    _tell_shared: Callable[[str], None]

    # --- numbers, lists, arrays, text ---

    def item(self) -> Any:
        """Return the value of a one-element tensor as a Python number.

        Raises
        ------
        RuntimeError
            If it has another number of elements.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.tensor([2.5]).item()
        2.5
        """
        if self._array.size != 1:
            raise RuntimeError(
                f"a Tensor with {self._array.size} elements cannot be converted to Scalar\n"
                f"Its shape is {list(self.shape)}; use tolist(), or reduce it first."
            )
        return devices.to_host(self._array).item()

    def tolist(self) -> Any:
        """Return the values as nested lists.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
        """
        return devices.to_host(self._array).tolist()

    def numpy(self, *, force: bool = False) -> np.ndarray:
        """Return the values as a NumPy array that shares the memory.

        Raises
        ------
        RuntimeError
            If the tensor requires grad, grad mode is on and `force` is false.
        TypeError
            If it is not on the CPU and `force` is false.

        Examples
        --------
        >>> import gradscope as gs
        >>> gs.tensor([1.0, 2.0]).numpy()
        array([1., 2.], dtype=float32)
        """
        if force and self._dtype.kind != "V":
            return devices.to_host(self._array).view()
        if state.local.grad_enabled and self.requires_grad:
            raise RuntimeError("Can't call numpy() on Tensor that requires grad. Use tensor.detach().numpy() instead.")
        if self._dtype.kind == "V":
            raise TypeError("Got unsupported ScalarType BFloat16\nNumPy has no such dtype: convert it with .float().")
        if type(self._array) is not devices.ndarray:
            raise TypeError(
                f"can't convert {self.device} device type tensor to numpy. Use Tensor.cpu() to copy the tensor to host "
                "memory first."
            )
        self._tell_shared("numpy()")
        return self._array.view()  # the caller may set its shape and flags

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = self.numpy()
        if dtype is not None and array.dtype != dtype:
            return array.astype(dtype)
        return array.copy() if copy else array

    def __dlpack__(self, **kwargs: Any) -> Any:
        if self.requires_grad:
            raise BufferError("Can't export tensors that require gradient, use tensor.detach()")
        if self._dtype.kind == "V":
            raise BufferError("NumPy exports no bfloat16 by DLPack\nConvert it with .float(), or view it as int16.")
        self._tell_shared("__dlpack__()")
        return self._array.__dlpack__(**kwargs)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._array.__dlpack_device__()

    def __bool__(self) -> bool:
        if self._array.size != 1:
            what = "no values" if self._array.size == 0 else "more than one value"
            raise RuntimeError(f"Boolean value of Tensor with {what} is ambiguous\nUse .any() or .all().")
        return bool(self.item())

    def _only_element(self) -> Any:
        if self._array.size != 1:
            raise ValueError(
                "only one element tensors can be converted to Python scalars\n"
                f"Its shape is {list(self.shape)}; use tolist(), or reduce it first."
            )
        return self.item()

    def __float__(self) -> float:
        return float(self._only_element())

    def __int__(self) -> int:
        return int(self._only_element())

    def __complex__(self) -> complex:
        return complex(self._only_element())

    def __index__(self) -> int:
        if self._array.size != 1 or self._dtype.kind not in "biu":
            raise TypeError("only integer tensors of a single element can be converted to an index")
        return int(self.item())

    def __len__(self) -> int:
        if self._array.ndim == 0:
            raise TypeError("len() of a 0-d tensor")
        return self._array.shape[0]

    def __iter__(self) -> Iterator[Tensor]:
        if self._array.ndim == 0:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __delitem__(self, index: Any) -> None:
        raise TypeError("Tensor does not support deleting items\nIndex what is to stay, e.g. x[mask].")

    def __contains__(self, element: Any) -> bool:
        if not isinstance(element, (Convertible, *NUMBERS)):
            raise RuntimeError(
                f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.\n"
                "Compare elements yourself: (x == value).any()."
            )
        return bool(devices.to_host((self._array == getattr(element, "_array", element)).any()))

    def __format__(self, spec: str) -> str:
        if self._array.ndim == 0 and (spec or plain_type(self) is dispatch.tensor_type):
            return format(self.item(), spec)
        if spec:
            raise TypeError(
                f"unsupported format string passed to {type(self).__name__}.__format__\n"
                f"Its shape is {list(self.shape)}: format its items, or print it as it is."
            )
        return str(self)

    def __repr__(self: Any) -> str:
        return tensor_repr(self)

    # --- copies ---

    def __deepcopy__(self: Any, memo: dict[int, Any]) -> Tensor:
        if not self.is_leaf:
            raise RuntimeError(
                "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the "
                "moment.\nUse tensor.detach().clone()."
            )
        if id(self) in memo:
            return memo[id(self)]
        result = type(self)._wrap(self._copied_memory(memo))
        result._flags = self._flags & state.GRAD
        memo[id(self)] = result
        if self._meta is not None and self._meta.grad is not None:
            result._extras().grad = copy.deepcopy(self._meta.grad, memo)
        result.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return result

    def _copied_memory(self, memo: dict[int, Any]) -> Any:
        """Return a copy of the array; tensors that share memory share it in the copy too."""
        array, owner = self._array, memory_of(self._array)
        if id(owner) not in memo:
            memo[id(owner)] = owner.copy(order="K") if is_dense(owner) else memory_copy(array, 0)
        if array is owner and is_dense(owner):
            return memo[id(owner)]
        geometry = (array.shape, element_strides(array), offset_of(array))
        return strided_view(memo[id(owner)], geometry, array.dtype)

    def __reduce_ex__(self, protocol: Any) -> Any:
        host = devices.to_host(self._memory)
        dense = is_dense(host)
        geometry = (host.shape, element_strides(host) if dense else contiguous_strides(host.shape), 0)
        flat = np.array(host.ravel(order="K" if dense else "C"))
        facts = (str(self.device), self.requires_grad, self.__dict__ or None)
        bits = ((self._conjugated, self._negated),) if self._flags & state.MATH_BITS else ()
        return _rebuild, (plain_type(self), flat, geometry, *facts, *bits)


def _rebuild(
    cls: type[Tensor],
    flat: Any,
    geometry: Any,
    place: str,
    requires_grad: bool,
    attributes: Any,
    bits: tuple[bool, bool] = (False, False),
) -> Tensor:
    """Return a tensor from its elements in the order of their memory, and how they lie there."""
    tensor = cls._wrap(strided_view(devices.to_device(flat, place), geometry))
    tensor._flags = state.GRAD if requires_grad else 0
    mark(tensor, *bits)
    if attributes:
        tensor.__dict__.update(attributes)
    return tensor
