"""Sequences of several lengths: padded to one length, or packed without padding for recurrent networks."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise
from typing import Any, NamedTuple

from ...runtime.memory import dtype as dtypes
from ...runtime.ops.families import METHODS, OPERATORS, PUBLIC
from ...runtime.ops.nn.packed_sequence import batch_sizes_of, blocks_of
from ...runtime.tensor.creation import arange, as_tensor, empty_like, full
from ...runtime.tensor.tensor import Tensor

__all__ = [
    "PackedSequence",
    "invert_permutation",
    "pack_padded_sequence",
    "pack_sequence",
    "pad_packed_sequence",
    "pad_sequence",
    "unpack_sequence",
    "unpad_sequence",
]


class _Packed(NamedTuple):
    data: Tensor
    batch_sizes: Tensor
    sorted_indices: Tensor | None
    unsorted_indices: Tensor | None


class PackedSequence(_Packed):
    """Sequences of several lengths, time after time, as :func:`pack_padded_sequence` and :func:`pack_sequence` make.

    Attributes
    ----------
    data : Tensor
        The elements of all sequences: those of time 0, then those of time 1, and so on, longer sequences first.
    batch_sizes : Tensor
        How many sequences reach each time; on the CPU.
    sorted_indices, unsorted_indices : Tensor or None
        How the sequences were put into order of length, and the inverse.

    See Also
    --------
    pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> packed = gs.nn.utils.rnn.pack_sequence([gs.tensor([1, 2, 3]), gs.tensor([4])])
    >>> packed.batch_sizes
    tensor([2, 1, 1])
    """

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        """Make a packed sequence of its parts; the first may be the pair (data, batch_sizes)."""
        if batch_sizes is None:
            if not (isinstance(data, (list, tuple)) and len(data) == 2):
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        elif batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually.\n"
                "pack_sequence() and pack_padded_sequence() make them."
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Convert the data as ``Tensor.to`` does; the indices go to its device."""
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        indices = (None if t is None else t.to(data.device) for t in (self.sorted_indices, self.unsorted_indices))
        return type(self)(data, self.batch_sizes, *indices)

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the data to a CUDA device."""
        return self.to(*args, **kwargs) if args or "device" in kwargs else self.to(device="cuda", **kwargs)

    def cpu(self) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to("cpu")

    def double(self) -> PackedSequence:
        """Convert the data to float64."""
        return self.to(dtypes.float64)

    def float(self) -> PackedSequence:
        """Convert the data to float32."""
        return self.to(dtypes.float32)

    def half(self) -> PackedSequence:
        """Convert the data to float16."""
        return self.to(dtypes.float16)

    def long(self) -> PackedSequence:
        """Convert the data to int64."""
        return self.to(dtypes.int64)

    def int(self) -> PackedSequence:
        """Convert the data to int32."""
        return self.to(dtypes.int32)

    def short(self) -> PackedSequence:
        """Convert the data to int16."""
        return self.to(dtypes.int16)

    def char(self) -> PackedSequence:
        """Convert the data to int8."""
        return self.to(dtypes.int8)

    def byte(self) -> PackedSequence:
        """Convert the data to uint8."""
        return self.to(dtypes.uint8)

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return self.data.is_cuda


def invert_permutation(permutation: Any) -> Any:
    """Return the permutation that undoes `permutation`; None for None.

    See Also
    --------
    argsort

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.rnn.invert_permutation(gs.tensor([2, 0, 1]))
    tensor([1, 2, 0])
    """
    if permutation is None:
        return None
    places = arange(permutation.numel(), device=permutation.device)
    return empty_like(permutation).scatter_(0, permutation, places)


def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack padded sequences: leave the padding out.

    Parameters
    ----------
    input : Tensor
        Of shape (time, batch, ...).
    lengths : Tensor or list of int
        The length of each sequence; a tensor is on the CPU.
    batch_first : bool
        `input` is (batch, time, ...).
    enforce_sorted : bool
        The sequences come in order of decreasing length; otherwise they are sorted.

    See Also
    --------
    pad_packed_sequence, pack_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> padded = gs.tensor([[1, 2, 3], [4, 0, 0]])
    >>> packed = gs.nn.utils.rnn.pack_padded_sequence(padded, [3, 1], batch_first=True)
    >>> packed.data, packed.batch_sizes
    (tensor([1, 4, 2, 3]), tensor([2, 1, 1]))
    """
    lengths = lengths.to(dtypes.int64) if isinstance(lengths, Tensor) else as_tensor(lengths, dtype=dtypes.int64)
    order = None
    if not enforce_sorted:
        lengths, order = PUBLIC["sort"](lengths, descending=True)
        order = order.to(input.device)
        input = input.index_select(0 if batch_first else 1, order)
    ends = _checked_lengths(input, lengths, batch_first)
    data = OPERATORS["pack_padded_sequence"].function(input, ends, batch_first)
    return PackedSequence(data, as_tensor(batch_sizes_of(ends)), order)


def _checked_lengths(input: Any, lengths: Any, batch_first: bool) -> list[int]:
    if lengths.ndim != 1 or lengths.device.type != "cpu":
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device.type} Long "
            "tensor"
        )
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if input.ndim < 2:
        raise IndexError(
            "Dimension out of range (expected to be in range of [-1, 0], but got 1)\n"
            "The input has dimensions for time and batch."
        )
    batch, time = input.shape[:2] if batch_first else reversed(input.shape[:2])
    ends = lengths.tolist()
    if len(ends) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(ends)} (batch_size={batch})\n"
            "The dimensions of the input are time and batch, with batch_first=True batch and time."
        )
    if min(ends) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if any(a < b for a, b in pairwise(ends)):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    if ends[0] > time:
        raise RuntimeError(f"Expected lengths of at most {time}, but got {ends[0]}\nThe input has {time} time steps.")
    return ends


def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Undo :func:`pack_padded_sequence`: return padded sequences and their lengths.

    Parameters
    ----------
    batch_first : bool
        Return (batch, time, ...) instead of (time, batch, ...).
    total_length : int, optional
        Pad to this length; to that of the longest sequence unless given.

    See Also
    --------
    pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> packed = gs.nn.utils.rnn.pack_sequence([gs.tensor([1, 2, 3]), gs.tensor([4])])
    >>> gs.nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
    (tensor([[1, 2, 3],
            [4, 0, 0]]), tensor([3, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    longest = len(sizes) if total_length is None else total_length
    if longest < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    data: Any = sequence.data
    ends = [sum(size > k for size in sizes) for k in range(sizes[0])]
    shape = (longest, sizes[0], *data.shape[1:])
    padded: Any = full(shape, padding_value, dtype=data.dtype, device=data.device)
    done = 0
    for start, end, count in blocks_of(ends):
        size = (end - start) * count
        padded[start:end, :count] = data.narrow(0, done, size).view(end - start, count, *shape[2:])
        done += size
    lengths: Any = as_tensor(ends)
    if batch_first:
        padded = padded.transpose(0, 1)
    order: Any = sequence.unsorted_indices
    if order is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, order), lengths[order.cpu()]


def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Pad sequences to the length of the longest, as one tensor.

    Parameters
    ----------
    sequences : iterable of Tensor
        Each of shape (length, ...).
    batch_first : bool
        Return (batch, time, ...) instead of (time, batch, ...).
    padding_side : {"right", "left"}

    See Also
    --------
    unpad_sequence, pack_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.rnn.pad_sequence([gs.tensor([1, 2, 3]), gs.tensor([4])], batch_first=True)
    tensor([[1, 2, 3],
            [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    parts: list[Any] = list(sequences)
    if not parts:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    if any(not part.ndim for part in parts):
        raise RuntimeError("pad_sequence: a sequence has no dimensions\nThe first dimension of each is its length.")
    longest = max(part.shape[0] for part in parts)
    first = parts[0]
    shape = (len(parts), longest) if batch_first else (longest, len(parts))
    padded: Any = full((*shape, *first.shape[1:]), padding_value, dtype=first.dtype, device=first.device)
    for k, part in enumerate(parts):
        start = longest - part.shape[0] if padding_side == "left" else 0
        row = METHODS["select"](padded, 0 if batch_first else 1, k)
        METHODS["narrow"](row, 0, start, part.shape[0]).copy_(part)
    return padded


def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Undo :func:`pad_sequence`: return the sequences as a list.

    See Also
    --------
    pad_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.rnn.unpad_sequence(gs.tensor([[1, 4], [2, 0]]), gs.tensor([2, 1]))
    [tensor([1, 2]), tensor([4])]
    """
    rows = padded_sequences if batch_first else padded_sequences.transpose(0, 1)
    times = arange(rows.shape[1], device=lengths.device)
    return [row[times < length] for row, length in zip(rows, lengths, strict=True)]


def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences, see :func:`pack_padded_sequence`.

    Parameters
    ----------
    sequences : list of Tensor
        Each of shape (length, ...).
    enforce_sorted : bool
        They come in order of decreasing length; otherwise they are sorted.

    See Also
    --------
    unpack_sequence, pack_padded_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.nn.utils.rnn.pack_sequence([gs.tensor([1, 2, 3]), gs.tensor([4])]).data
    tensor([1, 4, 2, 3])
    """
    lengths = as_tensor([part.shape[0] for part in sequences])
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Undo :func:`pack_sequence`: return the sequences as a list.

    See Also
    --------
    pack_sequence

    Examples
    --------
    >>> import gradscope as gs
    >>> packed = gs.nn.utils.rnn.pack_sequence([gs.tensor([1, 2, 3]), gs.tensor([4])])
    >>> gs.nn.utils.rnn.unpack_sequence(packed)
    [tensor([1, 2, 3]), tensor([4])]
    """
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)
