"""Tensor types from before there were dtypes, ``gs.FloatTensor`` and its like, and the names of types."""

from __future__ import annotations

from typing import Any

from ..memory import dtype as dtypes
from . import creation
from .tensor import Size, Tensor

__all__ = [
    "BFloat16Tensor",
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DoubleTensor",
    "FloatTensor",
    "HalfTensor",
    "IntTensor",
    "LongTensor",
    "ShortTensor",
    "set_default_tensor_type",
    "typename",
]


class TensorType(type):
    """The class of the tensor types: what has their dtype, on the CPU, is their instance."""

    element_type: dtypes.dtype

    @property
    def dtype(cls) -> dtypes.dtype:
        """The dtype of its instances."""
        return cls.element_type

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Tensor) and value.dtype is cls.element_type and value.device.type == "cpu"

    def __call__(cls, *data: Any, device: Any = "cpu") -> Tensor:
        if len(data) == 1 and isinstance(data[0], Tensor):
            if data[0].dtype is not cls.element_type:
                raise TypeError(
                    f"expected a tensor of {cls.element_type.name} (got {data[0].dtype.name})\n"
                    f"Convert it: tensor.to(gradscope.{cls.element_type.name})."
                )
            return Tensor(data[0])
        if len(data) == 1 and hasattr(data[0], "__len__") and not isinstance(data[0], (str, Size)):
            return creation.tensor(data[0], dtype=cls.element_type, device=device)
        return Tensor(*data, device=device).to(cls.element_type)

    def __repr__(cls) -> str:
        return f"<class 'gradscope.{cls.__name__}'>"


_DOC = """Tensors of {dtype} on the CPU, made of sizes or of data as PyTorch's legacy constructors do.

Parameters
----------
*data : int or array_like
    Sizes of an uninitialised tensor, or nested lists; a tensor has to be of {dtype} already.

Raises
------
TypeError
    If it is given a tensor of another dtype.

See Also
--------
gradscope.tensor : takes the dtype as an argument.

Examples
--------
>>> import gradscope as gs
>>> x = gs.{legacy}([{number}, {number}])
>>> x.dtype, isinstance(x, gs.{legacy}), gs.{legacy}(2, 3).shape
(gradscope.{dtype}, True, gradscope.Size([2, 3]))
"""


def _tensor_type(kind: dtypes.dtype) -> Any:
    number = 1.0 if kind.is_floating_point else kind is dtypes.bool_ or 1
    doc = _DOC.format(legacy=kind.legacy_name, dtype=kind.name, number=number)
    return TensorType(kind.legacy_name, (), {"element_type": kind, "__doc__": doc, "__module__": "gradscope"})


BoolTensor = _tensor_type(dtypes.bool_)
ByteTensor = _tensor_type(dtypes.uint8)
CharTensor = _tensor_type(dtypes.int8)
ShortTensor = _tensor_type(dtypes.int16)
IntTensor = _tensor_type(dtypes.int32)
LongTensor = _tensor_type(dtypes.int64)
BFloat16Tensor = _tensor_type(dtypes.bfloat16)
HalfTensor = _tensor_type(dtypes.float16)
FloatTensor = _tensor_type(dtypes.float32)
DoubleTensor = _tensor_type(dtypes.float64)


def set_default_tensor_type(t: Any) -> None:
    """Set the default dtype by a tensor type, or by its name.

    Raises
    ------
    TypeError
        If it is no floating-point type.

    See Also
    --------
    gradscope.set_default_dtype : does this by a dtype.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_default_tensor_type(gs.DoubleTensor)
    >>> gs.tensor([0.5]).dtype
    gradscope.float64
    >>> gs.set_default_tensor_type("gradscope.FloatTensor")
    """
    if isinstance(t, str):
        t = globals().get(t.rpartition(".")[2])
    kind = getattr(t, "element_type", None)
    if kind is None or not kind.is_floating_point:
        raise TypeError("only floating-point types are supported as the default type\nTake gradscope.FloatTensor.")
    dtypes.set_default_dtype(kind)


def typename(obj: Any) -> str:
    """Return the name of an object's type, with its module; of a tensor's, that of the legacy type.

    See Also
    --------
    Tensor.type

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.typename(gs.ones(2)), gs.typename(3)
    ('gradscope.FloatTensor', 'int')
    """
    if isinstance(obj, Tensor):
        return obj.type()
    kind = obj if hasattr(obj, "__qualname__") else type(obj)
    module = getattr(kind, "__module__", "") or ""
    return kind.__qualname__ if module in ("", "builtins", "__main__") else f"{module}.{kind.__qualname__}"
