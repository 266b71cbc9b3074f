"""Questions about a tensor, as functions."""

from __future__ import annotations

from ...memory import device as devices
from ...memory import dtype as dtypes
from ...memory.memory_format import strided
from ...tensor.creation import number_of
from ...tensor.tensor import Tensor
from ..declaration.annotations import Argument, Array, Device, DType, Layout, Number, Operand
from ..declaration.registry import METHODS, OPERATORS, public
from ..execution.inplace_and_out import into

# --- questions --------------------------------------------------------------------------------------------------------


def _need_tensor(name: str, value: Argument) -> None:
    if not hasattr(value, "_array"):
        raise TypeError(
            f"{name}(): argument 'input' (position 1) must be Tensor, not {value.__class__.__name__}\n"
            "Wrap it: gradscope.tensor(...)."
        )


@public(method=False)
def numel(input: Tensor) -> int:
    """Return the number of elements.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.numel(gs.zeros(2, 3))
    6
    """
    _need_tensor("numel", input)
    return int(input._array.size)


@public(method=False)
def is_floating_point(input: Tensor) -> bool:
    """Whether the dtype is a floating-point one.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_floating_point(gs.tensor([1]))
    False
    """
    _need_tensor("is_floating_point", input)
    return input.is_floating_point()


@public(method=False)
def is_complex(input: Tensor) -> bool:
    """Whether the dtype is complex.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_complex(gs.tensor([1j]))
    True
    """
    _need_tensor("is_complex", input)
    return input.is_complex()


@public(method=False)
def is_inference(input: Tensor) -> bool:
    """Whether the tensor was made in inference mode.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_inference(gs.ones(1))
    False
    """
    _need_tensor("is_inference", input)
    return input.is_inference()


@public
def is_signed(self: Tensor) -> bool:
    """Whether the dtype has negative numbers.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1.0]).is_signed()
    True
    """
    return self.dtype.is_signed


@public
def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether both tensors have one shape.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2).is_same_size(gs.ones(2))
    True
    """
    return self._array.shape == other._array.shape


@public
def is_nonzero(self: Tensor) -> bool:
    """Return the truth of the only element.

    Raises
    ------
    RuntimeError
        If there is none, or more than one.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_nonzero(gs.tensor([2.0]))
    True
    """
    _need_tensor("is_nonzero", self)
    return bool(self)


@public(method=False)
def detach(input: Tensor) -> Tensor:
    """Return a tensor that shares memory and version with `input`, but no history.

    Examples
    --------
    >>> import gradscope as gs
    >>> x = gs.ones(2, requires_grad=True)
    >>> gs.detach(x * 2).requires_grad
    False
    """
    _need_tensor("detach", input)
    return input.detach()


@public(method=False)
def detach_(input: Tensor) -> Tensor:
    """Cut a tensor from its history, in place."""
    _need_tensor("detach_", input)
    return input.detach_()


@public(method=False)
def zero_(input: Tensor) -> Tensor:
    """Fill with zeros."""
    return METHODS["zero_"](input)


@public(method=False)
def result_type(tensor1: Operand, tensor2: Operand) -> dtypes.dtype:
    """Return the dtype of an arithmetic operation on two tensors or numbers.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.result_type(gs.tensor([1]), 1.5)
    gradscope.float32
    """
    given = [
        getattr(value, "_array", None) if hasattr(value, "_array") else number_of("result_type", "other", 2, value)
        for value in (tensor1, tensor2)
    ]
    return dtypes.BY_NUMPY[dtypes.result_numpy(given)]


@public(method=False)
def can_cast(from_: DType, to: DType) -> bool:
    """Whether PyTorch's rules allow a result of dtype `from_` to be written into a tensor of dtype `to`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.can_cast(gs.float32, gs.int64)
    False
    """
    if from_.category > to.category:
        return False
    return to.kind != "b" or from_.kind == "b"


@public
def isreal(self: Tensor) -> Tensor:
    """Say elementwise whether the imaginary part is 0.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.isreal(gs.tensor([1 + 0j, 1j]))
    tensor([ True, False])
    """
    if self._dtype.kind == "c":
        return METHODS["imag"].fget(self) == 0  # type: ignore[attr-defined]
    return self.__class__._wrap(devices.array_module(self._array).ones(self._array.shape, dtype=bool))


def _refuse_complex(name: str, tensor: Array) -> None:
    if tensor._dtype.kind == "c":
        raise RuntimeError(f"{name} does not support complex inputs.\nAsk isinf(), or the real and imaginary parts.")


@public
def isposinf(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Say elementwise whether it is positive infinity.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.isposinf(gs.tensor([float("inf"), 0.0]))
    tensor([ True, False])
    """
    _refuse_complex("isposinf", self)
    if out is not None:
        return into(out, "isposinf", [self], lambda: isposinf(self), exact=True)
    return OPERATORS["eq"].function(self, float("inf"))


@public
def isneginf(self: Tensor, *, out: Tensor | None = None) -> Tensor:
    """Say elementwise whether it is negative infinity.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.isneginf(gs.tensor([-float("inf"), 0.0]))
    tensor([ True, False])
    """
    _refuse_complex("isneginf", self)
    if out is not None:
        return into(out, "isneginf", [self], lambda: isneginf(self), exact=True)
    return OPERATORS["eq"].function(self, float("-inf"))


@public
def positive(self: Tensor) -> Tensor:
    """Return the tensor itself.

    Raises
    ------
    RuntimeError
        For a bool tensor.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.positive(gs.tensor([-1.0, 2.0]))
    tensor([-1.,  2.])
    """
    if self._dtype.kind == "b":
        raise RuntimeError("The `+` operator, on a bool tensor is not supported.\nConvert it with .int().")
    return self


@public
def float_power(self: Tensor, exponent: Number, *, out: Tensor | None = None) -> Tensor:
    """Raise in double precision.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.float_power(gs.tensor([2, 3]), 2)
    tensor([4., 9.], dtype=gradscope.float64)
    """
    if out is not None:
        return into(out, "float_power", [self, exponent], lambda: float_power(self, exponent), exact=True)
    wide = dtypes.complex128 if _is_complex(self) or _is_complex(exponent) else dtypes.float64
    base = self.to(wide) if hasattr(self, "_array") else self
    power = exponent.to(wide) if hasattr(exponent, "_array") else exponent
    return METHODS["pow"](base, power)


def _is_complex(value: Number) -> bool:
    return value.is_complex() if hasattr(value, "_array") else isinstance(value, complex)


@public
def float_power_(self: Tensor, exponent: Number) -> Tensor:
    """In-place form of :func:`float_power`, of a tensor that is double already."""
    wide = dtypes.complex128 if _is_complex(self) or _is_complex(exponent) else dtypes.float64
    if self.dtype is not wide:
        raise RuntimeError(
            f"the output given to float_power has dtype {self.dtype} but the operation's result requires dtype {wide}\n"
            "Use float_power()."
        )
    return METHODS["pow_"](self, exponent.to(wide) if hasattr(exponent, "_array") else exponent)


@public
def argwhere(self: Tensor) -> Tensor:
    """Return the indices of the elements that are not zero, one row each.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.argwhere(gs.tensor([[0, 1], [2, 0]]))
    tensor([[0, 1],
            [1, 0]])
    """
    return METHODS["nonzero"](self)


@public(method=False)
def isin(
    elements: Operand,
    test_elements: Operand,
    *,
    assume_unique: bool = False,
    invert: bool = False,
    out: Tensor | None = None,
) -> Tensor:
    """Say elementwise whether it is one of `test_elements`.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.isin(gs.tensor([1, 2, 3]), gs.tensor([2, 5]))
    tensor([False,  True, False])
    """
    tensors = [value for value in (elements, test_elements) if hasattr(value, "_array")]
    if not tensors:
        raise TypeError("isin(): one of the arguments must be a Tensor")
    if out is not None:
        return into(out, "isin", [], lambda: isin(elements, test_elements, invert=invert))
    xp = devices.array_module(tensors[0]._array)
    arrays = [getattr(value, "_array", value) for value in (elements, test_elements)]
    found = xp.isin(xp.asarray(arrays[0]), xp.asarray(arrays[1]), invert=invert)
    return tensors[0].__class__._wrap(xp.asarray(found))


def _layout(self: Array) -> Layout:
    """How the elements are kept: always ``gradscope.strided``."""
    return strided


METHODS["layout"] = property(_layout)  # type: ignore[assignment]
METHODS["names"] = property(  # type: ignore[assignment]
    lambda self: (None,) * self._array.ndim, doc="The names of the dimensions: they have none."
)
METHODS["_cdata"] = property(id, doc="A number that tells living tensors apart.")  # type: ignore[assignment]


# --- where the elements are, and what they are not --------------------------------------------------------------------


def _never(doc: str) -> property:
    """Return an attribute of tensors that is False for all of them."""
    return property(lambda self: False, doc=doc)


for _name, _what in (
    ("is_sparse", "a sparse layout"),
    ("is_sparse_csr", "a compressed layout"),
    ("is_quantized", "quantized elements"),
    ("is_meta", "a shape without elements"),
    ("is_nested", "sizes that differ from row to row"),
    ("is_mkldnn", "MKL-DNN's layout"),
    ("is_mps", "elements on a device of Apple's"),
    ("is_xpu", "elements on a device of Intel's"),
    ("is_xla", "elements on a device of XLA's"),
    ("is_ipu", "elements on a device of Graphcore's"),
    ("is_mtia", "elements on a device of Meta's"),
    ("is_maia", "elements on a device of Microsoft's"),
    ("is_vulkan", "elements on a device of Vulkan's"),
    ("is_mlc", "elements on a device of ML Compute's"),
):
    METHODS[_name] = _never(f"Whether it has {_what}: False.")  # type: ignore[assignment]


@public
def get_device(self: Tensor) -> int:
    """Return the ordinal of the tensor's CUDA device, or -1 on the CPU.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2).get_device()
    -1
    """
    place = self.device
    return -1 if place.type == "cpu" else place.index or 0


@public
def is_conj(input: Tensor) -> bool:
    """Whether the elements are the conjugates of what lies in memory: views by :func:`conj` are lazy.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1j]).conj().is_conj()
    True
    """
    return bool(input._conjugated)


@public
def is_neg(input: Tensor) -> bool:
    """Whether the elements are the negatives of what lies in memory, as the imaginary part of a conjugate is.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1j]).conj().imag.is_neg()
    True
    """
    return bool(input._negated)


@public(arrays=lambda xp, input: input)
def resolve_conj(input: Tensor) -> Tensor:
    """Return a copy in whose memory the conjugates lie, or the tensor itself where its elements are no conjugates.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1j]).conj().resolve_conj().is_conj()
    False
    """
    return input.clone() if input._conjugated else input


@public(arrays=lambda xp, input: input)
def resolve_neg(input: Tensor) -> Tensor:
    """Return a copy in whose memory the negatives lie, or the tensor itself where its elements are no negatives.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.tensor([1j]).conj().imag.resolve_neg()
    tensor([-1.])
    """
    return input.clone() if input._negated else input


@public(function_too=False)
def to_dense(self: Tensor, dtype: DType = None, *, masked_grad: bool | None = None) -> Tensor:
    """Return the tensor itself, or in another dtype: all tensors are dense."""
    return self if dtype is None else self.to(dtype)


@public(function_too=False)
def is_pinned(self: Tensor, device: Device = None) -> bool:
    """Whether it lies in pinned memory: False."""
    return False


@public(function_too=False)
def pin_memory(self: Tensor, device: Device = None) -> Tensor:
    """Return the tensor itself: the host's memory is not pinned."""
    return self


@public(function_too=False)
def is_shared(self: Tensor) -> bool:
    """Whether it lies in memory that processes share, as all do on a CUDA device."""
    return self.device.type == "cuda"


@public(function_too=False)
def share_memory_(self: Tensor) -> Tensor:
    """Return the tensor itself: threads share it as it is, and other processes get a copy."""
    return self


@public(function_too=False)
def dim_order(self: Tensor) -> tuple[int, ...]:
    """Return the dimensions from the one with the longest steps in memory to the one with the shortest.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.zeros(2, 3).T.dim_order()
    (1, 0)
    """
    steps = self.stride()
    return tuple(sorted(range(len(steps)), key=lambda dim: (-steps[dim], dim)))


del _name, _what
