"""Random programs whose statements follow the live state, on PyTorch and on gradscope.

:mod:`tests.differential.programs` decides what to do before anything runs, and reads the backward graph and what it
saved. Here the next statement is written when the ones before it have run, for the tensors that PyTorch then has
(:class:`~tests.differential.statements.Writer`): mixed dtypes, ``out=``, indices, custom Functions, checkpoints,
modules, modes, ``set_()``, ``.data``. A program is a list of lines of Python; each runs with ``torch`` as PyTorch, and
with ``torch`` as gradscope. After each line are compared: whether it raised, and the class; of every tensor the values,
dtype, shape, strides, version, flags, the name of ``grad_fn``, the gradient; who shares memory with whom, and which
names are one object; and what the hooks were told. For a line that raised, nothing may have changed.

A long run, which prints each new divergence as the shortest program that still diverges so::

    python -m tests.differential.live --programs 20000 --seed 1

What it prints runs as it is, with ``import torch`` or ``import gradscope as torch``. Remaining differences that are
known stand in :data:`DIFFERENCES`, each with its reason; a program ends where one is met.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import random
import re
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy

from .machine import error_outcome
from .statements import PREAMBLE, Writer

__all__ = ["DIFFERENCES", "Divergence", "first_divergence", "live_program", "minimise"]

TOLERANCES = {"float16": 2e-2, "float32": 1e-4, "complex64": 1e-4, "float64": 1e-8, "complex128": 1e-8}
LARGEST = {"float16": 1e2, "float32": 1e4, "complex64": 1e4, "float64": 1e6, "complex128": 1e6}
"""Beyond these, rounding makes other numbers; a program ends there."""


class _NotComparableError(Exception):
    """The numbers have left the range in which rounding stays small."""


@dataclass(frozen=True)
class Divergence:
    """A program whose last line makes a difference: in what, and what there was expected and found.

    Whether histories were watched; of the tensor that differs, whether it has memory of its own, and its dtype; of the
    tensors that the last line names, whether two overlap with gaps, whether one has no elements or is a gradient.
    """

    lines: tuple[str, ...]
    what: str
    expected: Any
    found: Any
    watch: bool = False
    is_new_memory: bool = False
    dtype: str = ""
    overlaps: bool = False
    is_empty: bool = False
    of_gradient: bool = False

    def __str__(self) -> str:
        text = "\n".join(self.lines)
        needed = PREAMBLE if any(f"{name}" in text for name in _PREAMBLE_NAMES) else "\n"
        facts = f"# {self.what}\n#   torch:     {self.expected}\n#   gradscope: {self.found}"
        return f"import torch{needed}\n{text}\n{facts}"


_PREAMBLE_NAMES = (
    "note",
    "known(",
    "Cube",
    "Doubled",
    "Ranked",
    "Pair",
    "Same",
    "Row",
    "bent",
    "layer",
    "packed",
    "log",
)


Facts = list[tuple[str, Any]]


@dataclass(frozen=True)
class Difference:
    """A difference that stays: its name, why, and which divergences it is."""

    name: str
    reason: str
    is_it: Callable[[Divergence], bool]


_IMPROVABLE = "Could this error message be improved?"


def _outcome(divergence: Divergence, expected: str, found: str) -> bool:
    return divergence.what == f"outcome {expected} | {found}"


def _says(divergence: Divergence, expected: str = "", found: str = "") -> bool:
    return expected in str(divergence.expected) and found in str(divergence.found)


def _says_either(divergence: Divergence, text: str) -> bool:
    return _says(divergence, text) or _says(divergence, found=text)


def _of_two_faults(divergence: Divergence) -> bool:
    """Whether both refuse a line, one for its index and one for something else."""
    both = {"outcome RuntimeError | IndexError", "outcome IndexError | RuntimeError"}
    indexed = re.search(r"index|\[.*\]|select\(|scatter|gather|min\(|max\(", divergence.lines[-1])
    return divergence.what in both and bool(indexed)


def _agrees(divergence: Divergence, part: str, instead: str) -> bool:
    """Whether the program does not diverge with something else in place of a part of it."""
    lines = [line.replace(part, instead) for line in divergence.lines]
    return lines != list(divergence.lines) and first_divergence(lines, divergence.watch) is None


def _agrees_with_copied_indices(divergence: Divergence) -> bool:
    """Whether the program does not diverge where the indices of what its last line writes are copies."""
    *before, last = divergence.lines
    copied = re.sub(r"\[(v\d+)\] = ", r"[\1.clone()] = ", last)
    return copied != last and first_divergence([*before, copied], divergence.watch) is None


def _agrees_with_contiguous_operands(divergence: Divergence) -> bool:
    """Whether the program does not diverge where what its last line writes into an out= lies in NumPy's order."""
    *before, last = divergence.lines
    if "out=" not in last:
        return False
    contiguous = re.sub(r"(?<!out=)\b(v\d+)\b", r"\1.contiguous()", last)
    return first_divergence([*before, contiguous], divergence.watch) is None


def _meets_unbounded(divergence: Divergence) -> bool:
    """Whether a tensor that the last line names is infinite or NaN somewhere before it."""
    pair = Pair(divergence.watch)
    with quiet():
        for line in divergence.lines[:-1]:
            pair.run(line)
        named = set(re.findall(r"\w+", divergence.lines[-1]))
        tensors = pair.reference.tensors()
        return any(not numpy.isfinite(pair.reference.values(tensors[name])).all() for name in named & set(tensors))


def _agrees_on_the_same_numbers(divergence: Divergence) -> bool:
    """Whether the last line makes no difference where it meets PyTorch's very numbers, to the last bit."""
    pair = Pair(divergence.watch)
    with quiet():
        try:
            for line in divergence.lines[:-1]:
                if pair.run(line) is not None:
                    return False
            return pair.even() and pair.run(divergence.lines[-1]) is None
        except _NotComparableError:
            return False


def _other_elements(divergence: Divergence) -> tuple[Any, Any]:
    """Return those elements of PyTorch's and of gradscope's values that differ; none where no values do."""
    if not divergence.what.startswith("values of "):
        return numpy.zeros(0), numpy.zeros(0)
    expected, found = numpy.asarray(divergence.expected), numpy.asarray(divergence.found)
    if expected.shape != found.shape:
        return numpy.zeros(0), numpy.zeros(0)
    tolerance = TOLERANCES.get(expected.dtype.name, 0.0)
    other = ~numpy.isclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True)
    return expected[other], found[other]


def _is_nan_in_pytorch(divergence: Divergence) -> bool:
    """Whether values differ where PyTorch's are NaN, and nowhere else."""
    expected, _ = _other_elements(divergence)
    return bool(expected.size and numpy.isnan(expected).all())


def _is_nan_or_conjugate_in_pytorch(divergence: Divergence) -> bool:
    """Whether values differ where PyTorch's are NaN or the conjugates of these, and nowhere else."""
    expected, found = _other_elements(divergence)
    same = numpy.isnan(expected) | numpy.isclose(expected, numpy.conj(found), rtol=1e-4)
    return bool(expected.size and same.all())


_COMPARED = re.compile(r"\.(eq|ne|lt|le|gt|ge)_\(")


DIFFERENCES = (
    Difference(
        "layout of a result",
        "A result that is no view lies in memory as NumPy's does; PyTorch's order is followed where one copies.",
        lambda d: (
            (d.what.startswith("strides of ") and (d.is_new_memory or "out=" in d.lines[-1]))
            or (d.what.startswith("values of ") and _agrees_with_contiguous_operands(d))  # of what holds the out=
        ),
    ),
    Difference(
        "write to an expanded tensor",
        "PyTorch takes or deprecates some writes to elements that lie at one address (copy_, fill_, index_put_); here "
        "they are refused, as it refuses most.",
        lambda d: _outcome(d, "ok", "RuntimeError") and _says(d, found="more than one element of the written-to"),
    ),
    Difference(
        "which of two faults is told",
        "A line that is wrong in two ways raises for the one that is found first.",
        _of_two_faults,
    ),
    Difference(
        "memory that does not grow",
        "PyTorch refuses to resize the storage of torch.tensor(list), or resizes it under all its tensors; here out= "
        "gets new memory of its own.",
        lambda d: (
            (_outcome(d, "RuntimeError", "ok") and _says(d, "storage that is not resizable"))
            or (
                _outcome(d, "ok", "RuntimeError")
                and _says(d, found="out of bounds for storage")
                and "out=" in str(d.lines)
            )
            or (d.what.startswith("memory of ") and "out=" in d.lines[-1])
        ),
    ),
    Difference(
        "a dtype for which PyTorch has no kernel",
        "The operator computes here.",
        lambda d: _outcome(d, "RuntimeError", "ok") and _says(d, "not implemented for '"),
    ),
    Difference(
        "no elements of a dtype that is refused",
        "PyTorch looks at the dtype when it meets the first element.",
        lambda d: (
            _outcome(d, "ok", "RuntimeError")
            and _says(d, found="not implemented for '")
            and (d.is_empty or "(0,)" in str(d.lines) or _says(d, found="softmax_lastdim_kernel_impl"))
        ),
    ),
    Difference(
        "a derivative that PyTorch has not implemented",
        "The node has PyTorch's name for the other operand.",
        lambda d: (
            (d.what.startswith("grad_fn of ") and d.expected == "NotImplemented")
            or _says(d, "derivative for aten::remainder is not implemented")
            or (d.what == "names" and "%" in str(d.lines) and "autograd.grad(" in d.lines[-1])
        ),
    ),
    Difference(
        "Linear is one operator",
        "PyTorch folds the dimensions before the last of its input, and views the product in their shape.",
        lambda d: d.what.startswith("_is_view of ") and "torch.nn.Linear" in d.lines[-1] and d.expected is True,
    ),
    Difference(
        "writes to an alias of an inference tensor",
        "PyTorch lets .data and detach() of an inference tensor be written outside of inference mode.",
        lambda d: _outcome(d, "ok", "RuntimeError") and _says(d, found="Inplace update to inference tensor outside"),
    ),
    Difference(
        "versions of what is computed from inference tensors",
        "Outside of inference mode PyTorch's composite kernels count their own writes to such a result.",
        lambda d: d.what.startswith("version of ") and "inference_mode()" in str(d.lines) and d.found == 0,
    ),
    Difference(
        "a leaf that asks for gradients in inference mode",
        "It requires grad for itself alone: PyTorch records nothing of it, and detach_() does not change it.",
        lambda d: (
            (
                any("inference_mode()" in line and "requires_grad" in line for line in d.lines)
                and not d.what.startswith(("values of ", "dtype of ", "shape of ", "log["))
            )
            or (
                d.what.startswith("requires_grad of ")
                and "inference_mode()" in str(d.lines)
                and "detach_" in d.lines[-1]
            )
        ),
    ),
    Difference(
        "a value in the memory that it is written into",
        "PyTorch and gradscope compare the strides of dimensions of size 1 or of nothing otherwise; a number, and a "
        "mask with one, is filled in.",
        lambda d: _says_either(d, "some elements of the input tensor and the written-to tensor refer"),
    ),
    Difference(
        "out= of another dtype",
        "Some of PyTorch's kernels convert what they write, some do not; here it is others.",
        lambda d: (
            "out=" in d.lines[-1]
            and (
                (_outcome(d, "RuntimeError", "ok") and (_says(d, "Found dtype") or _says(d, "Expected out type")))
                or (_outcome(d, "ok", "RuntimeError") and _says(d, found="Expected out tensor to have dtype"))
            )
        ),
    ),
    Difference(
        "abs_() of complex tensors",
        "PyTorch refuses it.",
        lambda d: _outcome(d, "RuntimeError", "ok") and _says(d, "In-place abs is not supported for complex"),
    ),
    Difference(
        "integers that are compared with what requires grad, in place",
        "PyTorch makes the result one that requires grad, and fails at its next use; at once where the integers are a "
        "view that was made in inference mode.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and (
                _says(d, "Autograd not support dtype")
                or (_says(d, "A view was created in inference mode") and bool(_COMPARED.search(d.lines[-1])))
            )
        ),
    ),
    Difference(
        "what take(), gather(), masked_select() and index_add() save",
        "PyTorch saves the tensor and misses it when it is written; here its shape is enough.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and _says(d, "modified by an inplace operation")
            and bool(re.search(r"masked_select|index_add|\.(take|gather)\(", str(d.lines)))
        ),
    ),
    Difference(
        "save_on_cpu() of what is written",
        "On the CPU PyTorch keeps the tensor itself, and computes with what was written since; here it is a copy, and "
        "the gradient that of the saved numbers. With hooks that copy both give it.",
        lambda d: _agrees(
            d,
            "torch.autograd.graph.save_on_cpu()",
            "torch.autograd.graph.saved_tensors_hooks(packed, unpacked)",
        ),
    ),
    Difference(
        "versions of products",
        "PyTorch's kernels write a product of a matrix and a vector of one element twice, and count it.",
        lambda d: (
            d.what.startswith("version of ") and d.found == 0 and bool(re.search("@|matmul|addmm|Linear", d.lines[-1]))
        ),
    ),
    Difference(
        "einsum() is put together from other operators",
        "PyTorch views the product in another shape, and does not look at the dtypes of a product of nothing.",
        lambda d: (
            "einsum" in d.lines[-1]
            and (
                d.what.startswith(("_is_view of ", "grad_fn of ", "strides of "))
                or (d.is_empty and bool(re.search("same dtype|to be the same|not implemented for", str(d.found))))
            )
        ),
    ),
    Difference(
        "the operands that einsum() saves",
        "PyTorch saves views of them, which keep their memory when .data = gives the operand another.",
        lambda d: (
            d.what.startswith("values of ") and "einsum" in str(d.lines) and _agrees(d, ".data = ", ".clone().data = ")
        ),
    ),
    Difference(
        "complex powers of zero",
        "PyTorch's are what the C++ library makes of exp(y * log(0)), NaN for 0 ** 0; of a negative number the sign of "
        "the zero beside it tells which of two conjugate powers it has.",
        lambda d: (
            (_is_nan_in_pytorch(d) or _is_nan_or_conjugate_in_pytorch(d))
            and bool(re.search(r"pow|\*\*", str(d.lines)))
            and "complex" in str(d.lines)
        ),
    ),
    Difference(
        "products with infinite complex numbers",
        "cumprod() begins with a one, and add() and sub() multiply by their alpha: PyTorch makes NaN of both parts of "
        "a number of which one is infinite or NaN, times one.",
        lambda d: (
            _is_nan_in_pytorch(d)
            and bool(re.search(r"complex|\dj\b", str(d.lines)))
            and (not numpy.isfinite(_other_elements(d)[1]).any() or _meets_unbounded(d))
            and bool(re.search(r"cumprod|sub|add| [-+] |[-+]=", d.lines[-1]))
        ),
    ),
    Difference(
        "what PyTorch asserts",
        "It asks for a report.",
        lambda d: (
            _says(d, "INTERNAL ASSERT FAILED") or _says(d, _IMPROVABLE) or str(d.expected) == "RuntimeError: assertion"
        ),
    ),
    Difference(
        "the history of a real part whose base was written without grad mode",
        "Where the complex leaf is itself a view PyTorch fails an assertion when it is asked for the part's node; here "
        "the part keeps the one that it has.",
        lambda d: (
            d.what.startswith("is_leaf of ")
            and d.expected == "RuntimeError: assertion"
            and d.found is False
            and bool(re.search(r"\.real|\.imag|view_as_real", str(d.lines)))
        ),
    ),
    Difference(
        "bools in a backward",
        "PyTorch subtracts one from the exponent, and negates the operand of atan2(), which it refuses for bools.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and (_says(d, "with a bool tensor is not supported") or _says(d, "on a bool tensor is not supported"))
            and bool(re.search(r"pow|\*\*|atan2", str(d.lines)))
        ),
    ),
    Difference(
        "the second derivative of a norm, a power, an angle or a copied sign, at zero",
        "PyTorch's is NaN, as it differentiates the quotient, or the logarithm, before it is masked.",
        lambda d: (
            _is_nan_in_pytorch(d)
            and bool(re.search(r"norm|pow|\*\*|atan2|copysign", str(d.lines)))
            and "create_graph=True" in str(d.lines)
            and bool(re.search(r"grad\(|backward\(", d.lines[-1]))
        ),
    ),
    Difference(
        "what is saved and written through .data",
        "Nobody counts the write, and a derivative computes with what its formula reads of it; where the write goes "
        "elsewhere both agree.",
        lambda d: d.what.startswith("values of ") and _agrees(d, ".data.", ".detach().clone()."),
    ),
    Difference(
        "integers whose function is written into float64",
        "It is computed in float32, in which the last digit may differ, and converted.",
        lambda d: (
            d.what.startswith("values of ")
            and d.dtype in ("float64", "complex128")
            and "out=" in d.lines[-1]
            and numpy.allclose(d.found, d.expected, rtol=1e-6, atol=1e-7, equal_nan=True)
        ),
    ),
    Difference(
        "zeros without memory",
        "PyTorch's gradient of sgn() is one: a second backward cannot add to it, and infinity times it is zero. With "
        "sign(), whose gradient lies in memory, both give NaN.",
        lambda d: (
            (_outcome(d, "RuntimeError", "ok") and _says(d, "ZeroTensors are immutable"))
            or (
                d.what.startswith("values of ")
                and not numpy.isfinite(_other_elements(d)[1]).any()
                and _agrees(d, "sgn", "sign")
            )
        ),
    ),
    Difference(
        "a leaf that became a part of what is written",
        "PyTorch makes it a result of the write, and refuses the gradient of the leaf; here the leaf gets it.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and _says(d, "leaf variable has been moved into the graph interior")
            and "requires_grad" in str(d.lines)
        ),
    ),
    Difference(
        "a view of what requires grad that was made without grad mode",
        "It leads nowhere: where PyTorch saves for it, and refuses, nothing need be saved here; and where PyTorch "
        "saves nothing, so that a second backward passes, it is refused here. With grad mode both agree.",
        lambda d: (
            (
                _outcome(d, "RuntimeError", "ok")
                and _says(d, "Inference tensors cannot be saved for backward")
                and "inference_mode()" in str(d.lines)
            )
            or (
                _outcome(d, "RuntimeError", "ok")
                and _says(d, "A view was created in no_grad mode")
                and ".backward(" in d.lines[-1]
            )
            or (
                _outcome(d, "ok", "RuntimeError")
                and _says(d, found="through the graph a second time")
                and any(
                    _agrees(d, mode, "torch.enable_grad()")
                    for mode in ("torch.inference_mode()", "torch.no_grad()", "torch.set_grad_enabled(False)")
                )
            )
        ),
    ),
    Difference(
        "a leaf that got another shape while a graph holds its node",
        "PyTorch adds a gradient of the shape of then to the leaf in that of now, or fails to; here it stays as it is.",
        lambda d: (
            bool(re.search(r"\.data = |as_strided_|squeeze_|t_\(|swapaxes_|transpose_|out=", str(d.lines)))
            and bool(re.search(r"\.backward\(|autograd\.grad\(", d.lines[-1]))
            and (
                (_outcome(d, "RuntimeError", "ok") and _says(d, "doesn't match the broadcast shape"))
                or (_outcome(d, "RuntimeError", "ok") and _says(d, "must match the size of tensor b"))
                or (_outcome(d, "RuntimeError", "ok") and _says(d, "returned an invalid gradient at index"))
                or (d.what.startswith("shape of grad of ") and numpy.prod(d.expected) in (0, numpy.prod(d.found)))
                or (d.what.startswith("shape of grad of ") and d.expected[-len(d.found) :] == d.found)
                or d.what.startswith("requires_grad of grad of ")
            )
        ),
    ),
    Difference(
        "the gradient of what a Function writes",
        "PyTorch drops .grad of a tensor that mark_dirty() names.",
        lambda d: d.what.startswith("grad of ") and "Doubled.apply" in d.lines[-1] and d.found is True,
    ),
    Difference(
        "operands that overlap with gaps",
        "What a write reads of its own target is arbitrary, in PyTorch too, which may find a zero there to divide by.",
        lambda d: (
            (d.what.startswith("values of ") or (_outcome(d, "RuntimeError", "ok") and _says(d, "ZeroDivisionError")))
            and d.overlaps
        ),
    ),
    Difference(
        "an expanded tensor that has been written",
        "PyTorch's derivative writes into the gradient, which is expanded too, and refuses that; here it is computed.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and _says(d, "more than one element of the written-to tensor")
            and bool(re.search(r"grad\(|backward\(", d.lines[-1]))
            and bool(re.search(r"index_put_|\] = |fill_", str(d.lines)))
            and ".expand" in str(d.lines)
        ),
    ),
    Difference(
        "a saved tensor that detach_() has cut off",
        "PyTorch refuses its numbers too; here they make the gradient, and only the history that they lost is refused.",
        lambda d: (
            _outcome(d, "RuntimeError", "ok")
            and _says(d, "a saved tensor that has been detached in-place")
            and _agrees(d, ".detach_()", ".detach()")
        ),
    ),
    Difference(
        "derivatives that nobody asked for, of what has another shape",
        "PyTorch runs the node that inputs= names and computes nothing there; here the formulas run, and fail with "
        "what .data = has put in place of what they saved.",
        lambda d: (
            d.what in ("outcome ok | ValueError", "outcome ok | IndexError", "outcome ok | RuntimeError")
            and bool(re.search(r"inputs=|grad\(", d.lines[-1]))
            and _agrees(d, ".data = ", ".clone().data = ")
        ),
    ),
    Difference(
        "parts of nothing",
        "chunk() of a dimension of size 0 makes one part.",
        lambda d: "chunk" in d.lines[-1] and "SplitWithSizesBackward0" in str(d.expected),
    ),
    Difference(
        "a gradient that is a view",
        "PyTorch expands or permutes the gradient that came in, without grad mode; here it may be memory of its own.",
        lambda d: (
            d.of_gradient
            and (
                (
                    _outcome(d, "RuntimeError", "ok")
                    and (_says(d, "A view was created in no_grad mode") or _says(d, "Can't detach views in-place"))
                )
                or (d.what.startswith("requires_grad of ") and ".requires_grad" in d.lines[-1] and d.found is True)
            )
        ),
    ),
    Difference(
        "the layout of a gradient",
        "A derivative that is computed by other operators lies otherwise in memory.",
        lambda d: _says_either(d, "view size is not compatible with input tensor's size and stride") and d.of_gradient,
    ),
    Difference(
        "an index where there are no elements",
        "PyTorch does not look at indices where there is nothing to read or write; here one out of range is told.",
        lambda d: _outcome(d, "ok", "IndexError") and _says(d, found="out of bounds for dimension") and d.is_empty,
    ),
    Difference(
        "the place of what has no elements",
        "An array without elements lies nowhere; PyTorch's has an offset, from which as_strided() counts.",
        lambda d: "as_strided" in d.lines[-1] and d.is_empty,
    ),
    Difference(
        "products of stacks of matrices",
        "PyTorch folds or copies a stack that is broadcast, which its nodes tell.",
        lambda d: d.what.startswith(("grad_fn of ", "_is_view of ")) and bool(re.search("@|matmul", d.lines[-1])),
    ),
    Difference(
        "integers of a view that may not be used any more",
        "PyTorch does not ask for its history when it converts it to a dtype that has none.",
        lambda d: (
            _outcome(d, "ok", "RuntimeError")
            and _says(d, found="has been modified inplace")
            and bool(re.search(r"\.to\(torch\.(u?int|bool)|\.(int|long|bool)\(\)|\.type_as\(", d.lines[-1]))
        ),
    ),
    Difference(
        "set_() of a history",
        "PyTorch gives the tensor a node that no backward can pass; here it is refused at once.",
        lambda d: _outcome(d, "ok", "RuntimeError") and _says(d, found="derivative for aten::set_ is not implemented"),
    ),
    Difference(
        "an index in the memory that is written",
        "PyTorch reads it while it writes, and may find an index there that it has just written; with a copy of the "
        "index both agree.",
        lambda d: _outcome(d, "IndexError", "ok") and _agrees_with_copied_indices(d),
    ),
    Difference(
        "the negative of an unsigned integer",
        "The derivative of atan2() negates an operand; PyTorch does so in its own dtype, in which -3 is 253.",
        lambda d: (
            d.what.startswith("values of grad of ")
            and "uint8" in str(d.lines)
            and _agrees(d, "torch.uint8", "torch.int64")
        ),
    ),
    Difference(
        "bytes as a mask",
        "PyTorch deprecates uint8 masks, and takes them for some values only.",
        lambda d: _outcome(d, "RuntimeError", "ok") and _says(d, "masked_fill_ only supports boolean masks"),
    ),
    Difference(
        "what comes from inference mode",
        "An alias of an inference tensor, and a tensor that is given its data, is one here too and keeps no version; "
        "PyTorch gives it a version, and makes gradients and the results of some kernels anew.",
        lambda d: (
            "inference_mode()" in str(d.lines)
            and (
                (d.what.startswith("version of ") and type(d.expected) is int and d.found == "RuntimeError: other")
                or d.what.startswith(("_is_view of ", "is_inference of "))
                or (d.what.startswith("is_leaf of ") and str(d.expected).startswith("RuntimeError"))
                or (_outcome(d, "RuntimeError", "ok") and _says(d, "Inplace update to inference tensor"))
                or (_outcome(d, "RuntimeError", "ok") and ".data = " in str(d.lines) and _says(d, "nference tensor"))
                # An operator of it alone records nothing in PyTorch.
                or (d.what.startswith("requires_grad of ") and _agrees(d, ".data = ", ".clone().data = "))
            )
        ),
    ),
    Difference(
        "detach_() of a view in inference mode",
        "PyTorch does not look there; here it is refused as elsewhere.",
        lambda d: _outcome(d, "ok", "RuntimeError") and _says(d, found="Can't detach views in-place"),
    ),
    Difference(
        "integers filled with a number that requires grad",
        "PyTorch makes the tensor require grad, which no integer may, or refuses it as a view.",
        lambda d: (
            d.dtype.startswith(("int", "uint", "bool"))
            and (
                d.what.startswith("requires_grad of ")
                or (_outcome(d, "RuntimeError", "ok") and _says(d, "is the output of a function that returns multiple"))
                or (_outcome(d, "RuntimeError", "ok") and _says(d, "A view was created in no_grad mode"))
            )
        ),
    ),
    Difference(
        "a complex number put into real ones at a mask",
        "Its imaginary part is dropped, unless they are bools; PyTorch refuses it, unless they are.",
        lambda d: (
            _says_either(d, "value cannot be converted to type") and bool(re.search(r"\] = |masked_fill", d.lines[-1]))
        ),
    ),
    Difference(
        "the last digit, and the sign of a zero or a NaN",
        "A step, a pole or a branch cut makes much of it: with PyTorch's very numbers the line makes no difference.",
        _agrees_on_the_same_numbers,
    ),
)


# --- one side ---------------------------------------------------------------------------------------------------------


@functools.cache
def _compiled(line: str) -> Any:
    return compile(line, f"<{line}>", "exec")


class Side:
    """The names of a program on one module."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.names: dict[str, Any] = {"torch": module}
        exec(_compiled(PREAMBLE), self.names)

    def run(self, line: str) -> str:
        """Run one line; return "ok", or the built-in class of the error."""
        try:
            exec(_compiled(line), self.names)
        except Exception as error:
            self.error = error.with_traceback(None)  # whose frames hold nodes that PyTorch's do not
            label = error_outcome(error).label.partition(":")[0]
            return "RuntimeError" if label == "NotImplementedError" else label  # which is one too
        return "ok"

    def tensors(self) -> dict[str, Any]:
        """Return the living tensors by name."""
        return {name: value for name, value in self.names.items() if isinstance(value, self.module.Tensor)}

    def facts(self, watch: bool, gradients: set[str]) -> Iterator[tuple[str, Any]]:
        """Yield what is compared; the history, which looking at makes anew, only where it is watched.

        Of what a backward computed neither the place in memory is compared nor how it was made there: both write the
        same derivatives in other operators.
        """
        tensors = self.tensors()
        yield "names", sorted(tensors)
        first: dict[Any, str] = {}
        for name, tensor in tensors.items():
            yield f"{name} is", first.setdefault(id(tensor), name)
        for name, tensor in tensors.items():
            if tensor.numel() and name not in gradients:
                yield f"memory of {name}", first.setdefault(("memory", tensor.untyped_storage().data_ptr()), name)
        for name, tensor in tensors.items():
            for what, fact in self.facts_of(tensor, watch, name in gradients):
                yield f"{what} of {name}", fact
        for number, entry in enumerate(self.names["log"]):
            yield f"log[{number}]", self.shown(entry)

    def facts_of(self, tensor: Any, watch: bool, gradient: bool) -> Iterator[tuple[str, Any]]:
        """Yield the facts of one tensor, which may be a gradient."""
        yield "dtype", str(tensor.dtype).rpartition(".")[2]
        yield "shape", tuple(tensor.shape)
        yield "values", self.values(tensor)
        yield "requires_grad", tensor.requires_grad
        yield "is_inference", tensor.is_inference()
        if not gradient:
            yield "version", asked(lambda: tensor._version)
            yield "_is_view", tensor._is_view()
        if tensor.numel() and not gradient:
            yield "strides", [step for size, step in zip(tensor.shape, tensor.stride(), strict=True) if size > 1]
            yield "storage_offset", tensor.storage_offset()
        grad = tensor.grad
        yield "grad", grad is not None
        if grad is not None:
            yield "dtype of grad", str(grad.dtype).rpartition(".")[2]
            yield "shape of grad", tuple(grad.shape)
            yield "requires_grad of grad", grad.requires_grad
            yield "values of grad", self.values(grad)
        if watch:
            yield "is_leaf", asked(lambda: tensor.is_leaf)
        if watch and not gradient:
            yield "grad_fn", asked(lambda: node_of(tensor))

    def values(self, tensor: Any) -> numpy.ndarray:
        """Return a copy of the elements."""
        array = getattr(tensor, "_array", None)
        if array is None:
            array = tensor.numpy(force=True) if str(tensor.dtype) != "torch.complex32" else 0
        return numpy.array(array)

    def shown(self, entry: Any) -> Any:
        """Return an entry of the log with arrays for tensors."""
        if isinstance(entry, (tuple, list)):
            return [self.shown(item) for item in entry]
        return self.values(entry) if isinstance(entry, self.module.Tensor) else entry


def asked(question: Callable[[], Any]) -> Any:
    """Return an answer, or the class of the error."""
    try:
        return question()
    except RuntimeError as error:
        return error_outcome(error).label


def node_of(tensor: Any) -> Any:
    """Return the name of a tensor's node."""
    node = tensor.grad_fn
    return node and node.name().rpartition("::")[2]


# --- both -------------------------------------------------------------------------------------------------------------


TURNED_ONTO_ITSELF = r"\b(v\d+)\.(?:t\(\)|T|transpose\([^()]*\)|swapaxes\([^()]*\))\.\w+_\(.*\b\1\b"


class Pair:
    """PyTorch and gradscope at the same point of a program."""

    def __init__(self, watch: bool) -> None:
        import torch

        import gradscope

        self.reference, self.candidate = Side(torch), Side(gradscope)
        self.watch = watch
        self.lines: list[str] = []
        self.gradients: set[str] = set()
        self.before: tuple[Facts, Facts] = ([], [])
        self.coarsest = 0.0  # of all tolerances of dtypes that were met: what was computed in one may be in another now

    def run(self, line: str) -> Divergence | None:
        """Run a line on both; return the first difference."""
        self.lines.append(line)
        words = set(re.findall(r"\w+", line))
        if {"grad", "g"} & words or self.gradients & words:
            self.gradients |= {word for word in words if re.fullmatch(r"g|v\d+", word) and f"{word} = " in line}
        expected, found = self.reference.run(line), self.candidate.run(line)
        if expected != found:
            told, also = (
                f"{o}: {s.error}" if o != "ok" else o for o, s in ((expected, self.reference), (found, self.candidate))
            )
            return Divergence(tuple(self.lines), f"outcome {expected} | {found}", told, also, **self.of_line(words))
        if any(t._is_zerotensor() for name, t in self.reference.tensors().items() if name not in self.gradients):
            raise _NotComparableError  # a gradient that has no memory was given to another tensor by .data =
        reference, candidate = (
            list(side.facts(self.watch, self.gradients)) for side in (self.reference, self.candidate)
        )
        if expected != "ok" and self.parted(self.before[0], reference):
            raise _NotComparableError  # PyTorch has done a part of what it refused
        difference = self.parted(reference, candidate)
        if difference is None:
            self.before = reference, candidate
            return None
        # Gradscope refuses the line as well, for a fault of the program's.
        if expected != "ok" and _IMPROVABLE in str(self.reference.error):
            difference = (difference[0], f"{expected}: {self.reference.error}", difference[2])
        of_line = self.of_line(words)
        tensor = self.reference.tensors().get(difference[0].rpartition(" of ")[2])
        if tensor is not None:
            of_line |= {"is_new_memory": not tensor._is_view(), "dtype": str(tensor.dtype).partition(".")[2]}
        return Divergence(tuple(self.lines), *difference, **of_line)

    def of_line(self, words: set[str]) -> dict[str, Any]:
        """Return what a divergence tells of the tensors that its last line names."""
        named = [t for name, t in self.reference.tensors().items() if name in words and not t._is_zerotensor()]
        full = [tensor for tensor in named if tensor.numel()]
        memories = {tensor.untyped_storage().data_ptr() for tensor in full}
        target = self.reference.tensors().get(re.split(r"\W", self.lines[-1], maxsplit=1)[0])
        turned = re.search(TURNED_ONTO_ITSELF, self.lines[-1])  # one name, and two views that overlap
        sparse = turned is not None and not is_dense(self.reference.tensors()[turned[1]])
        return {
            "watch": self.watch,
            "dtype": "" if target is None else str(target.dtype).partition(".")[2],
            "overlaps": sparse or self.overwrites() or (len(memories) < len(full) and not all(map(is_dense, full))),
            "is_empty": len(full) < len(named),
            "of_gradient": bool({"grad", "g"} & words or self.gradients & words),
        }

    def overwrites(self) -> bool:
        """Whether the last line assigns to a part, with gaps, of memory that it reads; the part has no name."""
        assigned = re.search(r"^ *(v\d+)(\[.*\]) = (.*)", self.lines[-1], re.MULTILINE)
        if assigned is None:
            return False
        tensors = self.reference.tensors()
        target = tensors[assigned[1]]
        read = [tensors[word] for word in re.findall(r"\w+", assigned[3]) if word in tensors]
        with contextlib.suppress(Exception):  # an index that is refused, a tensor without memory
            memory = target.untyped_storage().data_ptr()
            if any(tensor.untyped_storage().data_ptr() == memory for tensor in read):
                return not (is_dense(target) and is_dense(eval(assigned[1] + assigned[2], self.reference.names)))
        return False

    def even(self) -> bool:
        """Give gradscope's tensors and gradients PyTorch's very numbers; return whether there were others."""
        changed = False
        for name, tensor in self.reference.tensors().items():
            other = self.candidate.names[name]
            for source, target in ((tensor, other), (tensor.grad, other.grad)):
                array = None if target is None else target._array
                if array is None or not array.flags.writeable:
                    continue
                numbers = self.reference.values(source)
                changed |= numbers.tobytes() != array.tobytes()
                array[...] = numbers
        return changed

    def parted(self, facts: Facts, others: Facts) -> tuple[str, Any, Any] | None:
        """Return the first fact in which two differ, and both sides of it."""
        dtypes = {fact for what, fact in facts if what.startswith("dtype of")}
        if "complex32" in dtypes:
            raise _NotComparableError  # for which PyTorch has few kernels
        coarsest = self.coarsest = max([self.coarsest, *(TOLERANCES.get(dtype, 0.0) for dtype in dtypes)])
        for (what, fact), (also, other) in zip(facts, others, strict=False):
            if what != also or not same(fact, other, coarsest):
                return what if what == also else f"{what} | {also}", fact, other
        return None


def same(expected: Any, found: Any, coarsest: float = 0.0) -> bool:
    """Whether two facts agree; arrays up to rounding, NaN with NaN."""
    if isinstance(expected, list) and isinstance(found, list):
        return len(expected) == len(found) and all(same(a, b, coarsest) for a, b in zip(expected, found, strict=True))
    if not isinstance(expected, numpy.ndarray):
        return bool(type(expected) is type(found) and expected == found)
    if not isinstance(found, numpy.ndarray) or expected.dtype != found.dtype or expected.shape != found.shape:
        return False
    tolerance = TOLERANCES.get(expected.dtype.name)
    if tolerance is None:
        return bool(numpy.array_equal(expected, found))
    tolerance = max(tolerance, coarsest)
    finite = numpy.abs(expected[numpy.isfinite(expected)])
    if finite.size and finite.max() > LARGEST[expected.dtype.name]:
        raise _NotComparableError
    return bool(numpy.allclose(found, expected, rtol=tolerance, atol=tolerance, equal_nan=True))


def is_dense(tensor: Any) -> bool:
    """Whether the elements of a tensor of PyTorch lie without gaps, each at an address of its own."""
    extent = 1 + sum((size - 1) * step for size, step in zip(tensor.shape, tensor.stride(), strict=True))
    return bool(0 not in tensor.stride() and extent == tensor.numel())


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Leave out what either says about numbers and old calls."""
    with warnings.catch_warnings(), numpy.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        yield


def live_program(seed: int) -> tuple[list[str], Divergence | None, bool]:
    """Write and run the program of a seed; return its lines, where it diverged, and whether histories were watched."""
    choices = random.Random(seed)
    pair = Pair(watch=choices.random() < 0.5)
    writer = Writer(pair.reference.module, choices)
    with quiet():
        for _ in range(choices.randint(6, 24)):
            try:
                divergence = pair.run(writer.statement(pair.reference.tensors()))
            except _NotComparableError:
                break
            if divergence is not None:
                return pair.lines, divergence, pair.watch
    return pair.lines, None, pair.watch


def first_divergence(lines: Sequence[str], watch: bool) -> Divergence | None:
    """Run given lines; return where they diverge."""
    pair = Pair(watch)
    with quiet():
        for line in lines:
            try:
                divergence = pair.run(line)
            except _NotComparableError:
                return None
            if divergence is not None:
                return divergence
    return None


def minimise(divergence: Divergence, watch: bool) -> Divergence:
    """Return a divergence in the same fact, of a program from which no line can be dropped."""
    best = divergence
    size = max(len(best.lines) // 2, 1)
    while size:
        start, dropped = 0, False
        while start < len(best.lines):
            shorter = first_divergence(best.lines[:start] + best.lines[start + size :], watch)
            if shorter is not None and is_alike(shorter, divergence) and len(shorter.lines) < len(best.lines):
                best, dropped = shorter, True
            else:
                start += size
        size = size if dropped else size // 2
    return best


def is_alike(divergence: Divergence, other: Divergence) -> bool:
    """Whether two differ in the same, and are known by the same name."""
    return kind_of(divergence) == kind_of(other) and known(divergence) is known(other)


def kind_of(divergence: Divergence) -> str:
    """Return what differs, without the name of the tensor."""
    return divergence.what.rpartition(" of ")[0] or divergence.what


def known(divergence: Divergence) -> Difference | None:
    """Return the known difference that a divergence is."""
    return next((difference for difference in DIFFERENCES if difference.is_it(divergence)), None)


# --- a long run -------------------------------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """Run many programs; print the divergences that are not known; return 1 if there were any."""
    parser = argparse.ArgumentParser(prog="python -m tests.differential.live", description="A long run.")
    parser.add_argument("--programs", type=int, default=1000, help="how many")
    parser.add_argument("--seed", type=int, default=0, help="of the first program; the next has the next")
    parser.add_argument("--show", type=int, default=20, help="how many divergences to print, minimised")
    options = parser.parse_args(arguments)
    found, met = 0, dict.fromkeys((difference.name for difference in DIFFERENCES), 0)
    for seed in range(options.seed, options.seed + options.programs):
        _, divergence, watch = live_program(seed)
        if divergence is None:
            continue
        difference = known(divergence)
        if difference is not None:
            met[difference.name] += 1
            continue
        found += 1
        if found <= options.show:
            print(f"--- program {seed}\n{minimise(divergence, watch)}\n", flush=True)
    print(f"{options.programs} programs, {found} divergences; known ones: {met}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
