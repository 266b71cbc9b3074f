"""Checks of the arguments of functions of matrices, in PyTorch's words."""

from __future__ import annotations

from collections.abc import Sequence

from ...memory import device as devices
from ...memory.dtype import INEXACT, scalar_type
from ..declaration.annotations import Array, Namespace
from ..execution.array_errors import LinAlgError, broadcast_mismatch
from ..execution.bare_functions import conj

__all__ = [
    "adjoint",
    "batch_of",
    "check_infos",
    "epsilon",
    "first_failure",
    "is_vector",
    "need_fitting",
    "need_float",
    "need_matrices",
    "need_one_dtype",
    "need_square",
    "refuse_low",
    "sizes",
]


def need_matrices(name: str, array: Array, argument: str = "A") -> None:
    """Raise for what has less than two dimensions."""
    if array.ndim < 2:
        raise RuntimeError(
            f"{name}: The input tensor {argument} must have at least 2 dimensions.\nIts shape is {list(array.shape)}."
        )


def need_square(name: str, array: Array) -> None:
    """Raise for what are not square matrices."""
    need_matrices(name, array)
    rows, columns = array.shape[-2:]
    if rows != columns:
        raise RuntimeError(f"{name}: A must be batches of square matrices, but they are {rows} by {columns} matrices")


def need_float(name: str, array: Array) -> None:
    """Raise for integers and bools."""
    if array.dtype.kind not in INEXACT:
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {scalar_type(array.dtype)}\n"
            "Convert it with .float()."
        )


def refuse_low(kernel: str, array: Array) -> None:
    """Raise for the dtypes that the routine `kernel` does not take: half precision, integers and bools."""
    if array.dtype.kind not in "fc" or array.dtype.itemsize < 4:
        raise NotImplementedError(
            f"\"{kernel}\" not implemented for '{scalar_type(array.dtype)}'\nConvert the tensor first, with .float()."
        )


def need_one_dtype(message: str, first: Array, second: Array) -> None:
    """Raise `message`, into which both scalar types are put, where two arrays differ in their dtype."""
    if first.dtype != second.dtype:
        text = message.format(scalar_type(first.dtype), scalar_type(second.dtype))
        raise RuntimeError(f"{text}\nConvert one of them with .to().")


def sizes(array: Array) -> str:
    """Return ``'2x3'`` for matrices of two rows and three columns."""
    return "x".join(str(size) for size in array.shape[-2:])


def need_fitting(name: str, A: Array, B: Array, left: bool = True) -> None:
    """Raise where A and B do not fit in the equation AX = B, or XA = B."""
    if A.shape[-2] != B.shape[-2 if left else -1]:
        equation = "AX = B" if left else "XA = B"
        raise RuntimeError(
            f"{name}: Incompatible shapes of A and B for the equation {equation} ({sizes(A)} and {sizes(B)})"
        )
    mismatch = broadcast_mismatch([A.shape[:-2], B.shape[:-2]])
    if mismatch is not None:
        raise RuntimeError(f"{mismatch}\nThese are the batch dimensions of {list(A.shape)} and {list(B.shape)}.")


def is_vector(A_shape: Sequence[int], B_shape: Sequence[int]) -> bool:
    """Whether the right-hand sides of equations are vectors: one, or one for each matrix."""
    return len(B_shape) == 1 or tuple(B_shape) == tuple(A_shape[:-1])


def batch_of(xp: Namespace, *arrays: Array) -> list[Array]:
    """Return matrices broadcast to one batch shape."""
    shapes = {array.shape[:-2] for array in arrays}
    if len(shapes) == 1:
        return list(arrays)
    batch = xp.broadcast_shapes(*shapes)
    return [xp.broadcast_to(array, (*batch, *array.shape[-2:])) for array in arrays]


def adjoint(x: Array, F: Namespace) -> Array:
    """Return the conjugate transposes of matrices."""
    return conj(F.transpose(x, -1, -2))


def epsilon(xp: Namespace, array: Array) -> float:
    """Return the distance from 1 to the next number of an array's dtype."""
    return float(xp.finfo(array.dtype).eps)


# --- failures ---------------------------------------------------------------------------------------------------------


def first_failure(infos: Array) -> tuple[str, int] | None:
    """Return PyTorch's prefix for the first matrix whose info is not 0, and that info; None if all are 0."""
    found = devices.to_host(infos)
    if not found.any():
        return None
    if not found.ndim:
        return "", int(found)
    place = int((found.reshape(-1) != 0).argmax())
    return f"(Batch element {place}): ", int(found.reshape(-1)[place])


def check_infos(name: str, infos: Array, message: str, hint: str) -> None:
    """Raise LinAlgError with `message`, into which the info is put, for the first matrix that failed."""
    failed = first_failure(infos)
    if failed is not None:
        raise LinAlgError(f"{name}: {failed[0]}{message.format(failed[1])}\n{hint}")
