"""Statistics of gradients on a GPU, taken there while the backward goes on: the program waits for nothing.

A kernel of Triton, which PyTorch for CUDA brings along, reads a gradient once, in the order of its memory; without
Triton PyTorch's operators do, in several passes. What comes of it are some rows of a table on the device, which go to
the host when somebody asks, as a rule the thread that writes a recording.
"""

from __future__ import annotations

import bisect
import functools
import math
import threading
import warnings
import weakref
from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy
import torch

from ....records.moments import BINS, FIRST, INFINITE, LOWEST, NAN, SUMS, ZERO, Moments, decode
from ..numpy_conversion import in_order_of_memory, without_repeats
from ..transforms.functorch import is_wrapped

__all__ = ["DeviceStatistics", "RecentMoments", "are_taken_of", "count", "current_stream", "statistics_of"]

_DTYPES = frozenset({torch.float32, torch.float16, torch.bfloat16})  # those whose squares float64 holds
_CLASSES = torch.Tensor, torch.nn.Parameter
_ROWS = 2048  # of a table: 4.4 MB on the device, and on the host when it has been read
_WIDTH = BINS + 2 * SUMS  # of a row, in the 4 bytes of a count
_BLOCK = 2048  # elements that a program of the kernel reads at once
_EACH = 16 * _BLOCK  # elements of a row at least
_MOST = 256  # rows of a tensor at most
_KEPT = 16  # tensors whose statistics are remembered: a node is looked at by several
_PIECE = 1 << 24  # elements that PyTorch's operators are given at once: they make temporaries


def are_taken_of(tensor: Any) -> bool:
    """Whether the statistics of a tensor are taken on its device: a dense one of floats on a GPU, not in a transform.

    None are while a CUDA graph is captured, in which they would be taken at each replay.
    """
    return (
        type(tensor) in _CLASSES
        and tensor.is_cuda
        and tensor.dtype in _DTYPES
        and tensor.layout is torch.strided
        and not is_wrapped(tensor)
        and not tensor._is_zerotensor()
        and tensor.numel() > 0
        and not torch.cuda.is_current_stream_capturing()
    )


class DeviceStatistics:
    """The statistics of one tensor, on their way from a device."""

    __slots__ = ("_begin", "_end", "_repeats", "_shown", "_table")

    def __init__(self, table: _Table, begin: int, end: int, shown: int, repeats: int) -> None:
        self._table, self._begin, self._end = table, begin, end
        self._shown, self._repeats = shown, repeats

    def read(self) -> Moments:
        """Return the statistics; wait until the device has come to them."""
        bins, sums = self._table.read(self._begin, self._end)
        return decode(bins, sums, self._shown, self._repeats)


class _Table:
    """Rows of statistics on a device, filled in by one stream, and the copy of them on the host."""

    def __init__(self, device: torch.device, stream: torch.cuda.Stream | None) -> None:
        self._rows = torch.empty((_ROWS, _WIDTH), dtype=torch.int32, device=device)
        self.bins = self._rows[:, :BINS]
        self.sums = self._rows[:, BINS:].view(torch.float64)
        self.used = 0
        self._stream = stream  # None on the CPU, for tests
        self._lock = threading.Lock()
        self._copied = 0
        self._host: list[Any] = []
        self._begins: list[int] = []

    def read(self, begin: int, end: int) -> tuple[Any, Any]:
        """Return rows that the device has been told to fill in: of counts, and of sums."""
        with self._lock:
            if end > self._copied:
                self._copy(self.used)
            at = bisect.bisect_right(self._begins, begin) - 1
            rows = self._host[at][begin - self._begins[at] : end - self._begins[at]]
        return rows[:, :BINS], rows[:, BINS:].view(numpy.float64)

    def _copy(self, end: int) -> None:
        """Bring the rows from those that have been copied up to `end`; no tensor's rows are parted by that."""
        wanted = self._rows[self._copied : end]
        with torch.no_grad():
            if self._stream is None or torch.cuda.current_stream(wanted.device) == self._stream:
                host = wanted.cpu()
            else:
                with _after(self._stream):
                    host = wanted.cpu()
        self._host.append(host.numpy())
        self._begins.append(self._copied)
        self._copied = end


class _after:  # noqa: N801 - a context like torch.cuda.stream()
    """What runs in the block comes after all that a stream has been given, and not after what others have."""

    def __init__(self, stream: torch.cuda.Stream) -> None:
        self._stream = stream

    def __enter__(self) -> None:
        given = torch.cuda.Event()
        given.record(self._stream)
        aside = _reading_stream(self._stream.device)
        aside.wait_event(given)
        self._aside = torch.cuda.stream(aside)
        self._aside.__enter__()

    def __exit__(self, *error: object) -> None:
        self._aside.__exit__(*error)


@functools.cache
def _reading_stream(device: torch.device) -> torch.cuda.Stream:
    return torch.cuda.Stream(device)


# --- taking them ------------------------------------------------------------------------------------------------------

_tables: dict[Any, _Table] = {}


def statistics_of(tensor: torch.Tensor) -> DeviceStatistics:
    """Begin to take the statistics of a tensor of which :func:`are_taken_of` holds, on the current stream.

    The caller has put modes aside, and has nothing recorded.
    """
    values = tensor.resolve_neg() if tensor.is_neg() else tensor
    shown = _first_of(values)
    flat = _in_order_of_memory(values)
    rows = count(flat.numel())
    table, begin = _rows_of_table(tensor, rows)
    kernel = _kernel(flat.dtype)
    if kernel is None:
        _by_operators(flat, shown, table, begin, rows)
    else:
        _by_kernel(kernel, flat, shown, table, begin, rows)
    table.used = begin + rows  # from here on the rows may be read
    return DeviceStatistics(table, begin, begin + rows, shown.numel(), values.numel() // flat.numel())


def count(size: int) -> int:
    """Return how many rows a tensor of so many elements takes.

    Examples
    --------
    >>> count(1), count(100_000), count(10**9)
    (1, 4, 256)
    """
    return min(-(-size // _EACH), _MOST)


def current_stream(device: torch.device) -> int:
    """Return the address of a device's current stream; an object of it costs ten times as much to make."""
    return torch._C._cuda_getCurrentRawStream(device.index)


def _rows_of_table(tensor: torch.Tensor, rows: int) -> tuple[_Table, int]:
    """Return a table that has so many rows left for what the current stream does, and the first of them.

    A thread has its own: it alone fills it in.
    """
    device = tensor.device
    key = threading.get_ident(), device, current_stream(device) if tensor.is_cuda else None
    table = _tables.get(key)
    if table is None or table.used + rows > _ROWS:
        table = _tables[key] = _Table(device, torch.cuda.current_stream(device) if tensor.is_cuda else None)
    return table, table.used


def _first_of(tensor: torch.Tensor) -> torch.Tensor:
    """Return the first elements, in the order of the dimensions."""
    if tensor.is_contiguous():
        return tensor.view(-1)[:FIRST]
    while tensor.dim() > 1 and tensor[0].numel() >= FIRST:
        tensor = tensor[0]
    return tensor[: -(-FIRST // tensor[0].numel())].reshape(-1)[:FIRST].contiguous()


def _in_order_of_memory(tensor: torch.Tensor) -> torch.Tensor:
    """Return the elements as a vector, each once; those of transposed matrices as they lie."""
    if tensor.is_contiguous():
        return tensor.view(-1)
    return in_order_of_memory(without_repeats(tensor)).reshape(-1).contiguous()


def _by_kernel(kernel: Any, flat: torch.Tensor, first: torch.Tensor, table: _Table, begin: int, rows: int) -> None:
    size = flat.numel()
    blocks = -(-size // (rows * _BLOCK))
    kernel[(rows,)](flat, first, table.bins, table.sums, begin, size, first.numel(), blocks, _BLOCK, num_warps=8)


@functools.cache
def _kernel(dtype: torch.dtype) -> Any:
    """Return the kernel, or None where there is no Triton, or none that can compile it for this device and `dtype`."""
    try:
        from .device_kernel import measure  # which imports Triton

        probe = torch.zeros(8, dtype=dtype, device="cuda")
        table = _Table(probe.device, torch.cuda.current_stream())
        with warnings.catch_warnings(action="ignore"):  # of what a later Triton will do
            measure[(1,)](probe, probe[:FIRST], table.bins, table.sums, 0, 8, FIRST, 1, _BLOCK, num_warps=8)
    except Exception:  # a compiler raises errors of every class; operators count as well
        return None
    return measure


def _by_operators(flat: torch.Tensor, first: torch.Tensor, table: _Table, begin: int, rows: int) -> None:
    """Do the same with PyTorch's operators, none of which waits for the device."""
    bins, sums = table.bins[begin : begin + rows], table.sums[begin : begin + rows]
    wide = first.double()
    shift = torch.where(wide[0].isfinite(), wide[0], 0.0)
    bins.zero_()
    sums.zero_()
    sums[:, 3], sums[:, 4], sums[:, 5] = math.inf, -math.inf, shift
    sums[0, 6 : 6 + first.numel()] = wide
    for row, part in enumerate(flat.split(-(-flat.numel() // rows))):
        for piece in part.split(_PIECE):
            _add_piece(piece.double(), shift, bins[row], sums[row])


def _add_piece(values: torch.Tensor, shift: torch.Tensor, bins: torch.Tensor, sums: torch.Tensor) -> None:
    finite, zero = values.isfinite(), values == 0
    places = torch.where(finite, torch.frexp(values).exponent.long() + (LOWEST - 1), INFINITE)
    places = torch.where(values.isnan(), NAN, torch.where(zero, ZERO, places))
    # Sorted, they can be counted without many threads that add to one number, and in the same order each time.
    ends = torch.searchsorted(
        places.short().sort().values, torch.arange(BINS + 1, dtype=torch.int16, device=bins.device)
    )
    bins += ends.diff()
    apart = torch.where(finite, values - shift, 0.0)
    known = torch.where(finite, values, 0.0)
    sums[:3] += torch.stack([apart.sum(), apart.dot(apart), known.dot(known)])
    torch.minimum(sums[3], torch.where(finite, values, math.inf).min(), out=sums[3])
    torch.maximum(sums[4], torch.where(finite, values, -math.inf).max(), out=sums[4])


# --- those of the latest tensors --------------------------------------------------------------------------------------


class RecentMoments:
    """The statistics of tensors on a device that are wanted at once: of the latest they are remembered.

    None of the tensors is kept alive.
    """

    def __init__(self) -> None:
        self._known: deque[tuple[weakref.ref[Any], int, Moments]] = deque(maxlen=_KEPT)

    def of(self, tensors: Sequence[Any]) -> list[Any]:
        """Return the Moments of each tensor, None of those on the host, and of None."""
        found: list[Any] = [None if tensor is None else self._known_of(tensor) for tensor in tensors]
        for nr, tensor in enumerate(tensors):
            if found[nr] is None and are_taken_of(tensor):
                found[nr] = statistics_of(tensor)
        for nr, statistics in enumerate(found):
            if type(statistics) is DeviceStatistics:
                found[nr] = statistics.read()
                self._known.appendleft((weakref.ref(tensors[nr]), tensors[nr]._version, found[nr]))
        return found

    def _known_of(self, tensor: torch.Tensor) -> Moments | None:
        now = tensor._version
        for known, version, moments in list(self._known):  # a backward on another thread may add to it
            if known() is tensor:
                return moments if version == now else None
        return None
