"""Values of PyTorch tensors as NumPy arrays, whatever their dtype, layout and class, and tensors from arrays."""

from __future__ import annotations

import ctypes
import functools
import weakref
from collections.abc import Callable
from typing import Any

import numpy
import torch

from ...records.records import TensorSpec, dtype_name
from ...records.tensor_statistics import quick_norm
from .. import memory_fingerprint
from ..protocol import Converted
from .torch_spec import TorchSpec
from .transforms.dispatch_modes import modes_aside
from .transforms.functorch import innermost, is_wrapped, outside_of_transforms, unwrapped

__all__ = [
    "address_of",
    "bits_of",
    "bits_there",
    "few_elements",
    "from_host",
    "in_order_of_memory",
    "norm_at",
    "outputs_of",
    "reader",
    "region_of",
    "shape_of",
    "small_of",
    "spec_of",
    "storage_of",
    "to_host",
    "to_host_told",
    "without_repeats",
]

_MOST_ELEMENTS = 2**26  # a sparse tensor with more is not written out
_TENSOR = torch.Tensor
_UNREADABLE = (BufferError, KeyError, NotImplementedError, RuntimeError, TypeError)


def spec_of(tensor: torch.Tensor) -> TorchSpec:
    """Return shape, dtype and device of a tensor."""
    return TorchSpec(shape_of(tensor), dtype_name(tensor.dtype), str(tensor.device))


def outputs_of(node: Any) -> tuple[TorchSpec, ...]:
    """Return what the forward operator of a node returned; nothing where PyTorch (2.4) does not tell."""
    metadata = getattr(node, "_input_metadata", None)
    if metadata is None:
        leaf = getattr(node, "variable", None)
        return () if leaf is None else (spec_of(leaf),)
    if len(metadata) == 1:
        (only,) = metadata
        return _one_output(_told_shape(only), only.dtype, only.device)
    return tuple([_one_output(_told_shape(m), m.dtype, m.device)[0] for m in metadata])


@functools.lru_cache(maxsize=1 << 12)
def _one_output(shape: tuple[int, ...], dtype: torch.dtype, place: torch.device) -> tuple[TorchSpec]:
    """Return the outputs of a node that has one: they are the same object for nodes by the thousand."""
    return (TorchSpec(shape, dtype_name(dtype), str(place)),)


def _told_shape(metadata: Any) -> tuple[int, ...]:
    """Return the shape in what a node keeps of its result; of a nested tensor PyTorch tells jagged ones alone."""
    if metadata.is_cpp_nested_tensor:
        return (-1,)
    return tuple([n if isinstance(n, int) else -1 for n in metadata.shape])


def shape_of(tensor: torch.Tensor) -> tuple[int, ...]:
    """Return the shape; a ragged dimension of a nested tensor counts as -1."""
    if not tensor.is_nested:
        return tuple(int(n) for n in tensor.shape)
    if tensor.layout is torch.jagged:
        return tuple(n if isinstance(n, int) else -1 for n in tensor.shape)
    return (tensor.size(0), *([-1] * (tensor.dim() - 1)))


def to_host(tensor: torch.Tensor) -> numpy.ndarray:
    """Return the values as a NumPy array, which may share memory with the tensor.

    bfloat16 and the float8 types widen to float32, quantised tensors are dequantised, sparse ones written out (or their
    values given alone, when that would be huge), a nested tensor's parts joined. A tensor inside of functorch's
    transforms has the dimension of each ``vmap`` in front. One without values (on the meta device, or fake) gives an
    empty array.
    """
    with torch._C.DisableTorchFunction():
        if type(tensor) is torch.Tensor and not tensor.requires_grad:
            try:
                return _array_of(tensor)  # this holds for nearly every gradient on the CPU
            except _UNREADABLE:
                pass
        with torch.no_grad(), modes_aside(tensor):
            try:
                return _of_transforms(tensor) if is_wrapped(tensor) else _array_of(_plain(tensor.detach()))
            except _UNREADABLE:
                return numpy.empty(0, dtype=numpy.float32)


def _of_transforms(tensor: torch.Tensor) -> numpy.ndarray:
    with outside_of_transforms():
        return _array_of(_plain(unwrapped(tensor)))


def _array_of(tensor: torch.Tensor) -> numpy.ndarray:
    """Return an array over the memory of a tensor, which the program can still resize: after ``numpy()`` it could not.

    Raises
    ------
    BufferError, NotImplementedError, RuntimeError, TypeError
        If it has no such memory, or not of a dtype that NumPy has.
    """
    if tensor.is_conj() or tensor.is_neg() or tensor._is_zerotensor():  # DLPack knows nothing of these bits
        if tensor._is_zerotensor():
            raise NotImplementedError("it has no memory: numpy() reads whatever is there, in PyTorch 2.8 too")
        return tensor.numpy()
    return _from_dlpack(_Exported(tensor))


class _Exported:
    """Hands out a tensor by DLPack, without the time that ``Tensor.__dlpack__`` takes for what holds here."""

    __slots__ = ("_tensor",)

    def __init__(self, tensor: torch.Tensor) -> None:
        self._tensor = tensor

    def __dlpack__(self, **options: Any) -> Any:
        return _to_dlpack(self._tensor)

    def __dlpack_device__(self) -> tuple[int, int]:
        return _ON_CPU


def _export_unseen(tensor: torch.Tensor) -> Any:
    """Hand out a tensor in a PyTorch that makes a view for it, which the program's modes would see."""
    with torch._C._DisableTorchDispatch():
        return torch._C._to_dlpack(tensor)


_from_dlpack = numpy.from_dlpack
_to_dlpack = _export_unseen if torch.__version__ < (2, 8) else torch._C._to_dlpack
_ON_CPU = (1, 0)


def norm_at(tensor: Any) -> float | None:
    """Return the 2-norm of a tensor, None of None or of one without values.

    Of one on a device, a number alone comes to the host.

    The caller has put modes aside.
    """
    if tensor is None:
        return None
    if _is_on_device(tensor) and tensor.layout is torch.strided and tensor.is_floating_point():
        return float(torch.linalg.vector_norm(tensor.detach(), dtype=torch.float32))
    host = to_host_told(tensor)
    if type(host) is not Converted:
        return quick_norm(host)
    return quick_norm(host.array) if host.array.size or 0 in host.spec.shape else None


def _is_on_device(tensor: Any) -> bool:
    return type(tensor) is _TENSOR and not tensor.is_cpu and not tensor.is_meta


def small_of(call: Any, most: int, taken: list[Any]) -> tuple[int, int] | None:
    """Take the gradients of a TorchCall as `Adapter.small` does.

    They are read at their address: NumPy takes longer to make an array than a small node to run. Of a gradient that
    goes straight on to the node that runs next only the version and the address are asked again.
    """
    task, begin = call.task, len(taken)
    sent, task.sent = task.sent, None
    try:
        with torch._C.DisableTorchFunction():
            for tensor in call.given:
                if tensor is None:
                    taken += _NOTHING
                    continue
                known = sent is not None and tensor is sent[0]() and (tensor._version, tensor.data_ptr()) == sent[1]
                read, address, dtype, shape = sent[2] if known else _small(tensor, most)
                taken += read(address).raw, dtype, shape
            for tensor in call.made:
                if tensor is None:
                    taken += _NOTHING
                    continue
                read, address, dtype, shape = small = _small(tensor, most)
                taken += read(address).raw, dtype, shape
                task.sent = weakref.ref(tensor), (tensor._version, address), small
    except _UNREADABLE:
        task.sent = None
        del taken[begin:]
        return None
    return len(call.given), len(call.made)


_DTYPES = {getattr(torch, name): numpy.dtype(name) for name in ("float16", "float32", "float64")}
_NOTHING = (None, None, None)


def _small(tensor: torch.Tensor, most: int) -> tuple[Callable[[int], Any], int, Any, tuple[int, ...]]:
    """Return what reads a small dense tensor on the host at an address, its address, dtype and shape.

    Raises
    ------
    KeyError, NotImplementedError, RuntimeError, TypeError
        If it is another.
    """
    dtype, size = _DTYPES[tensor.dtype], tensor.nbytes
    plain = size <= most and type(tensor) is _TENSOR and tensor.is_cpu and tensor.is_contiguous()
    address = tensor.data_ptr() if plain and not tensor.is_neg() else 0
    if not address:  # an empty tensor has none, and neither have zeros without memory
        raise TypeError("not a small dense tensor on the host")
    return reader(size), address, dtype, _shared_shape(tensor.shape)


# One tuple for each shape, which the garbage collector need not follow: a torch.Size it would for good.
_shared_shape = functools.lru_cache(4096)(tuple)


@functools.lru_cache(4096)  # what it makes is a type: programs have gradients of any number of sizes
def reader(size: int) -> Callable[[int], Any]:
    """Return a function that gives a number of bytes at an address, where they lie."""
    return (ctypes.c_char * size).from_address


def to_host_told(tensor: Any) -> Any:
    """Return the values of a tensor as `Adapter.hosts` does; the caller has put modes aside."""
    if tensor is None:
        return None
    if type(tensor) is _TENSOR:
        try:
            return _array_of(tensor)
        except _UNREADABLE:
            pass
    return Converted(to_host(tensor), spec_of(tensor))


def _plain(tensor: torch.Tensor) -> torch.Tensor:
    """Return the values as a dense tensor on the CPU, of a dtype that NumPy has."""
    if tensor.is_nested:
        return torch.cat([_plain(part).reshape(-1) for part in tensor.unbind()])
    if hasattr(tensor, "to_local"):  # a DTensor: this rank's part
        tensor = tensor.to_local()
    if tensor.layout is not torch.strided:
        tensor = _written_out(tensor)
    if tensor.is_quantized:
        tensor = tensor.dequantize()
    if any(name is not None for name in getattr(tensor, "names", ())):  # tensors have names until PyTorch 2.12
        tensor = tensor.rename(None)
    if tensor._is_zerotensor():  # these are zeros without memory
        tensor = tensor.clone()
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        raise NotImplementedError("a CUDA graph is captured, in which nothing can be read")
    if tensor.untyped_storage().device.type == "meta":  # a FakeTensor says that it is elsewhere
        raise NotImplementedError("it has no memory")
    if tensor.is_cpu and tensor.numel() and not tensor.data_ptr():  # NumPy would take any memory for it
        raise NotImplementedError("it is of a class that wraps others")
    tensor = tensor.cpu().resolve_conj().resolve_neg()
    if tensor.dtype is torch.bfloat16 or dtype_name(tensor.dtype).startswith("float8"):
        tensor = tensor.float()
    elif tensor.dtype is torch.complex32:
        tensor = tensor.to(torch.complex64)
    return tensor


def _written_out(tensor: torch.Tensor) -> torch.Tensor:
    if tensor.numel() <= _MOST_ELEMENTS:
        return tensor.to_dense()
    return tensor.coalesce().values() if tensor.layout is torch.sparse_coo else tensor.values()


_NO_DISPATCH = torch.Tensor.__torch_dispatch__


def address_of(tensor: torch.Tensor) -> int:
    """Return the address of the first element; 0 for a tensor without memory of its own.

    That is one that is sparse, nested, empty, on the meta device, inside a functorch transform, or of a class that
    wraps others or stands for what is not there.
    """
    if tensor.layout is not torch.strided or tensor.is_nested or type(tensor).__torch_dispatch__ is not _NO_DISPATCH:
        return 0
    try:
        return tensor.data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0


def storage_of(tensor: torch.Tensor) -> Any:
    """Return PyTorch's storage of a tensor, inside of a functorch transform too: there is one object of each.

    Returns
    -------
    UntypedStorage or None
        None of a tensor that is sparse, not yet initialised, or of a class that stands for what is not there.
    """
    try:
        return innermost(tensor).untyped_storage()
    except (RuntimeError, NotImplementedError, ValueError):
        return None


def region_of(tensor: torch.Tensor) -> memory_fingerprint.Region | None:
    """Return which bytes a tensor looks at; None if it has no memory of its own."""
    address = address_of(tensor)
    return _region_at(address, tensor) if address else None


def _region_at(address: int, tensor: torch.Tensor) -> memory_fingerprint.Region:
    size = tensor.element_size()
    return memory_fingerprint.Region(
        address, tuple(tensor.shape), tuple([step * size for step in tensor.stride()]), size
    )


def bits_of(tensor: torch.Tensor) -> Any:
    """Return the bits of a tensor as they lie in memory, evenly spaced ones of a large one.

    Of a tensor on another device few are copied, and none while a CUDA graph is captured, which would forbid it.

    Returns
    -------
    buffer or None
        Valid while the tensor lives; None if it has no memory of its own.
    """
    address = address_of(tensor)
    if not address:
        return None
    if tensor.is_cpu:
        if (
            tensor.is_contiguous() and tensor.nbytes <= memory_fingerprint.WHOLE_BYTES
        ):  # without what NumPy does to make an array
            return (ctypes.c_char * tensor.nbytes).from_address(address)
        return memory_fingerprint.bits_of(_region_at(address, tensor).array())
    if tensor.is_cuda and torch.cuda.is_current_stream_capturing():
        return None
    few = few_elements(tensor.detach()).clone(memory_format=torch.contiguous_format)
    return few.cpu().view(torch.uint8).numpy()


def bits_there(tensor: torch.Tensor) -> Callable[[], Any]:
    """Return a function that reads the bits of a tensor on the host as :func:`bits_of` does, as they are by then.

    It keeps nothing alive, and is valid while the memory is.
    """
    address = address_of(tensor)
    if tensor.is_contiguous() and tensor.nbytes <= memory_fingerprint.WHOLE_BYTES:
        return functools.partial(reader(tensor.nbytes), address)
    region = _region_at(address, tensor)
    return lambda: memory_fingerprint.bits_of(region.array())


def without_repeats(tensor: torch.Tensor) -> torch.Tensor:
    """View one of the elements that lie at one address along each dimension of stride 0."""
    return tensor[tuple([slice(1) if step == 0 else slice(None) for step in tensor.stride()])]


def in_order_of_memory(tensor: torch.Tensor) -> torch.Tensor:
    """View a tensor with its dimensions in the order of their strides."""
    if tensor.is_contiguous():
        return tensor
    strides = tensor.stride()
    return tensor.permute(sorted(range(tensor.dim()), key=lambda axis: -strides[axis]))


def few_elements(tensor: torch.Tensor) -> torch.Tensor:
    """Return evenly spaced elements of a tensor, on its own device."""
    tensor = without_repeats(tensor)
    count = tensor.numel()
    if count <= memory_fingerprint.DEVICE_ELEMENTS:
        return tensor.reshape(-1)
    step = memory_fingerprint.spacing(count, memory_fingerprint.DEVICE_ELEMENTS)
    laid = in_order_of_memory(tensor)
    if laid.is_contiguous():
        return laid.view(-1)[::step]
    return tensor[torch.unravel_index(torch.arange(0, count, step, device=tensor.device), tensor.shape)]


def from_host(values: Any, spec: TensorSpec) -> torch.Tensor:
    """Return a new tensor of shape, dtype and device `spec`.

    Parameters
    ----------
    values : array_like
        Numbers that broadcast to the shape.

    Raises
    ------
    TypeError, ValueError
        If they are no numbers, complex where the dtype is real, or of another shape.
    """
    array = numpy.asarray(values)
    if array.dtype.kind not in "biufc":
        raise TypeError(f"a gradient is a number, an array or a tensor, got {type(values).__name__}")
    if array.dtype.kind == "c" and not spec.dtype.startswith("complex"):
        raise TypeError(f"a gradient of dtype {spec.dtype} cannot take complex values")
    try:
        filled = numpy.broadcast_to(array, spec.shape)
    except ValueError:
        raise ValueError(
            f"a gradient of shape {list(spec.shape)} cannot take a value of shape {list(array.shape)}"
        ) from None
    with torch.no_grad(), torch._C.DisableTorchFunction():
        return torch.from_numpy(numpy.array(filled)).to(dtype=getattr(torch, spec.dtype), device=spec.device)
