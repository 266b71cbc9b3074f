"""No call reaches outside of a storage: programs of hostile views run between guard zones, here and on PyTorch."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.memory.storage import has_overlap
from tests.differential.machine import error_outcome

GUARD, COUNT = 64, 12
SENTINEL = np.float32(-7777.0)
MANY = 4096
"""Elements of a tensor that are still looked at; an expanded one may have any number."""

Step = tuple[Any, ...]

sizes = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 6, 12, 13, -1, 1 << 31, 1 << 40, 1 << 61, (1 << 63) - 1])
# PyTorch counts elements and bytes in 64 bits and does not notice where they are more, nor a negative size beside a 0.
countable = st.sampled_from([0, 1, 1, 2, 2, 3, 3, 4, 6, 12, 13, 1 << 18])
few_steps, few_offsets = [0, 1, 1, 1, 2, 3, 4, 6, 11, 12, 13, -1, -3, 1 << 31], [0, 0, 1, 2, 5, 11, 12, 13, 40, 64, -1]
steps, countable_steps = st.sampled_from([*few_steps, 1 << 61, (1 << 63) - 1]), st.sampled_from(few_steps)
offsets = st.sampled_from([*few_offsets, -64, 1 << 40, 1 << 61, (1 << 63) - 1])
countable_offsets = st.sampled_from([*few_offsets, -64, 1 << 40])
which = st.integers(0, 5)


@st.composite
def layouts(
    draw: st.DrawFn, sizes: st.SearchStrategy[int], steps: st.SearchStrategy[int]
) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sizes and strides, now and then of two lengths."""
    size = draw(st.lists(sizes, max_size=3))
    length = len(size) if draw(st.integers(0, 15)) else draw(st.integers(0, 3))
    stride = draw(st.lists(steps, min_size=length, max_size=length))
    # A step that is not taken may be negative for PyTorch's set_(), and where there are no elements slices multiply it.
    if 0 in size:
        return tuple(size), tuple(min(abs(step), COUNT) for step in stride)
    return tuple(size), tuple(abs(step) if size[axis : axis + 1] == [1] else step for axis, step in enumerate(stride))


small = st.integers(-3, 13)


def programs(
    sizes: st.SearchStrategy[int], steps: st.SearchStrategy[int], offsets: st.SearchStrategy[int]
) -> st.SearchStrategy[list[Step]]:
    """Return programs of up to 12 steps, whose tensors have such sizes and strides and lie at such offsets."""
    layout = layouts(sizes, steps)
    return st.lists(
        st.one_of(
            st.tuples(st.just("as_strided"), which, layout, st.none() | offsets),
            st.tuples(st.just("as_strided_"), which, layout, st.none() | offsets),
            st.tuples(st.just("slice"), which, small, small, st.integers(1, 4)),
            st.tuples(st.just("narrow"), which, st.integers(0, 1), small, small),
            st.tuples(st.just("select"), which, st.integers(0, 1), small),
            st.tuples(st.just("transpose"), which),
            st.tuples(st.just("expand"), which, st.integers(0, 3)),
            st.tuples(st.just("unfold"), which, st.integers(0, 1), small, st.integers(-1, 3)),
            st.tuples(st.just("diagonal"), which, st.integers(-3, 3)),
            st.tuples(st.just("view"), which, st.lists(st.integers(-1, 6), max_size=2)),
            st.tuples(
                st.just("dtype"),
                which,
                st.sampled_from(["int32", "float16", "float64", "uint8", "complex64", "float32"]),
            ),
            st.tuples(st.just("parts"), which),
            st.tuples(st.just("resize_"), which, st.lists(sizes, max_size=2)),
            st.tuples(st.just("resize_as_"), which, which),
            st.tuples(st.just("set_ tensor"), which, which),
            st.tuples(st.just("set_ storage"), which, which, offsets, layout, st.booleans()),
            st.tuples(st.just("set_ part"), which, which, offsets, layout),
            st.tuples(st.just("data"), which, which),
            st.tuples(st.just("detach"), which),
            st.tuples(st.just("fill_"), which, st.integers(0, 9)),
            st.tuples(st.just("mul_"), which),
            st.tuples(st.just("copy_"), which, which),
            st.tuples(st.just("zero part"), which, small, small),
            st.tuples(st.just("backward"), which, layout, st.none() | offsets),
            st.tuples(st.just("write and backward"), which, layout, st.none() | offsets),
            st.tuples(st.just("clone"), which),
        ),
        min_size=1,
        max_size=12,
    )


class Guarded:
    """A storage of COUNT float32 elements between two guard zones, and the tensors that were made of it."""

    def __init__(self, module: Any) -> None:
        self.module = module
        self.buffer = np.full(COUNT + 2 * GUARD, SENTINEL, np.float32)
        self.buffer[GUARD : GUARD + COUNT] = np.arange(COUNT)
        self.tensors = [module.from_numpy(self.buffer[GUARD : GUARD + COUNT])]
        self.memory = self.tensors[0].untyped_storage().data_ptr()

    def run(self, step: Step) -> Any:
        """Do one step; return what is to be the same on both modules."""
        name, index, *args = step
        x = self.tensors[index % len(self.tensors)]
        try:
            result = getattr(self, "_" + name.replace(" ", "_"))(x, *args)
        except Exception as error:
            return error_outcome(error).label.partition(":")[0]
        if isinstance(result, list):
            return result
        if result is not None and result.numel() <= MANY and result is not x:
            self.tensors = [*self.tensors[-5:], result]
        return "ok"

    def places(self) -> list[Any]:
        """Return dtype and shape of all tensors, and where they lie in their storage."""
        return [
            (
                str(x.dtype).rpartition(".")[2],
                tuple(x.shape),
                x.numel() and x.storage_offset(),
                [step for size, step in zip(x.shape, x.stride(), strict=True) if x.numel() and size > 1],
                len(x.untyped_storage()),
            )
            for x in self.tensors
        ]

    def values(self) -> list[str]:
        """Return the elements of all tensors, as text: NaN is NaN."""
        return [str(x.reshape(-1).tolist()) for x in self.tensors if x.numel() <= MANY]

    def check_guards(self) -> None:
        """Raise if a guard zone was written, or a tensor can see into one."""
        assert (self.buffer[:GUARD] == SENTINEL).all()
        assert (self.buffer[GUARD + COUNT :] == SENTINEL).all()
        start = self.buffer.ctypes.data
        inside = range(start + GUARD * 4, start + (GUARD + COUNT) * 4 + 1)
        for x in self.tensors:
            first = x.data_ptr()
            last = first + sum((n - 1) * step for n, step in zip(x.shape, x.stride(), strict=True)) * x.element_size()
            if x.numel() and start <= first < start + self.buffer.nbytes:
                assert first in inside
                assert last + x.element_size() in inside

    def _is_written_here(self, x: Any) -> bool:
        """Whether both write into `x`: PyTorch also writes unfolded elements at one address, in some order."""
        count = x.numel()
        return count <= MANY and (not count or 0 in x.stride() or not has_overlap(tuple(x.shape), x.stride()))

    def _other(self, index: int) -> Any:
        return self.tensors[index % len(self.tensors)]

    def _from(self, x: Any, offset: int | None) -> int | None:
        return 0 if offset is None and not x.numel() else offset  # an empty tensor has kept no offset

    def _as_strided(self, x: Any, layout: Any, offset: int | None) -> Any:
        return x.as_strided(*layout, self._from(x, offset))

    def _as_strided_(self, x: Any, layout: Any, offset: int | None) -> Any:
        return x.as_strided_(*layout, self._from(x, offset))

    def _slice(self, x: Any, start: int, stop: int, step: int) -> Any:
        return x[start:stop:step]

    def _narrow(self, x: Any, dim: int, start: int, length: int) -> Any:
        return x.narrow(dim, start, length)

    def _select(self, x: Any, dim: int, index: int) -> Any:
        return x.select(dim, index)

    def _transpose(self, x: Any) -> Any:
        return x.transpose(0, -1)

    def _expand(self, x: Any, size: int) -> Any:
        return x.expand(size, *x.shape)

    def _unfold(self, x: Any, dim: int, size: int, step: int) -> Any:
        return x.unfold(dim, size, step)

    def _diagonal(self, x: Any, offset: int) -> Any:
        return x.diagonal(offset)

    def _view(self, x: Any, shape: list[int]) -> Any:
        return x.view(shape)

    def _dtype(self, x: Any, dtype: str) -> Any:
        if not x.numel() or x.shape[-1:] == (1,):
            return None  # what is not stepped over has kept no stride
        return x.view(getattr(self.module, dtype))

    def _parts(self, x: Any) -> Any:
        if not x.numel():
            return None
        return self.module.view_as_real(x) if x.is_complex() else self.module.view_as_complex(x)

    def _resize_(self, x: Any, shape: list[int]) -> Any:
        return self._resized(x, shape, lambda: x.resize_(shape))

    def _resize_as_(self, x: Any, index: int) -> Any:
        template = self._other(index)
        return self._resized(x, template.shape, lambda: x.resize_as_(template))

    def _resized(self, x: Any, shape: Any, resize: Any) -> Any:
        private = x.untyped_storage().data_ptr() != self.memory
        if private and (math.prod(shape) > x.numel() or not x.numel()):
            return None  # growing memory leaves what it shares, unlike PyTorch's
        return x.clone() if not x.numel() else resize()

    def _set__tensor(self, x: Any, index: int) -> Any:
        return x.set_(self._other(index))

    def _set__storage(self, x: Any, index: int, offset: int, layout: Any, strided: bool) -> Any:
        other = self._other(index)
        if other.untyped_storage().data_ptr() != self.memory:
            return None
        return x.set_(other.untyped_storage(), offset, *layout[: 1 + strided])

    def _set__part(self, x: Any, index: int, offset: int, layout: Any) -> Any:
        other = self._other(index)
        if not other.numel() or other.untyped_storage().data_ptr() != self.memory:
            return None
        return x.set_(other, offset, *layout)

    def _data(self, x: Any, index: int) -> Any:
        made = x.detach()
        made.data = self._other(index)
        return made

    def _detach(self, x: Any) -> Any:
        return x.detach()

    def _clone(self, x: Any) -> Any:
        return x.clone()

    def _fill_(self, x: Any, value: int) -> Any:
        return None if x.numel() > MANY else x.fill_(value)

    def _mul_(self, x: Any) -> Any:
        return None if x.is_complex() or not self._is_written_here(x) else x.remainder_(50).mul_(2)

    def _copy_(self, x: Any, index: int) -> Any:
        other = self._other(index).clone()
        return None if x.is_complex() is not other.is_complex() or not self._is_written_here(x) else x.copy_(other)

    def _zero_part(self, x: Any, start: int, stop: int) -> Any:
        x[start:stop] = 0

    def _backward(self, x: Any, layout: Any, offset: int | None) -> Any:
        """The gradient of a view by sizes and strides of a leaf that views the storage."""
        leaf = x.detach().requires_grad_()
        return self._gradient(leaf, leaf.as_strided(*layout, self._from(x, offset)))

    def _write_and_backward(self, x: Any, layout: Any, offset: int | None) -> Any:
        """The gradient of a base that was written through such a view."""
        leaf = x.clone().requires_grad_()
        base = leaf * 2
        part = base.as_strided(*layout, self._from(x, offset))
        if not self._is_written_here(part):
            return None
        part.mul_(3)
        return self._gradient(leaf, base)

    def _gradient(self, leaf: Any, result: Any) -> Any:
        if result.numel() > MANY or leaf.dtype is not self.module.float32:
            return None
        weights = self.module.arange(1.0, 1 + result.numel()).reshape(result.shape)
        (grad,) = self.module.autograd.grad((result * weights).sum(), leaf)
        return grad.tolist() if grad.dim() else [grad.item()]


@settings(max_examples=400, derandomize=True, suppress_health_check=[*HealthCheck])
@given(programs(sizes, steps, offsets))
@example([("slice", 0, 4, 12, 1), ("as_strided", 1, ((2,), (1,)), 0), ("fill_", 2, 1)])
@example([("slice", 0, 11, 12, 1), ("as_strided", 1, ((11,), (1,)), 0), ("fill_", 2, 1)])
@example([("set_ storage", 0, 0, -1, ((2,), (1,)), True)])
@example([("expand", 0, 3), ("backward", 1, ((3, 2), (1, 1)), 0)])
def test_nothing_reaches_outside_of_its_storage(program: list[Step]) -> None:
    memory = Guarded(gs)
    for step in program:
        memory.run(step)
        memory.check_guards()
        assert not any(str(SENTINEL) in values for values in memory.values())


@pytest.mark.torch
@settings(max_examples=400, derandomize=True, suppress_health_check=[*HealthCheck])
@given(programs(countable, countable_steps, countable_offsets))
@example([("slice", 0, 4, 12, 1), ("as_strided", 1, ((2,), (1,)), 0), ("fill_", 2, 1)])
@example([("expand", 0, 3), ("backward", 1, ((3, 2), (1, 1)), 0)])
@example([("as_strided", 0, ((3, 3), (1, 1)), 2), ("backward", 1, ((2,), (2,)), 1)])
@example([("slice", 0, 4, 12, 1), ("backward", 1, ((2, 3), (1, 2)), 1)])
def test_hostile_views_are_pytorchs(torch: Any, program: list[Step]) -> None:
    expected, actual = Guarded(torch), Guarded(gs)
    for number, step in enumerate(program):
        outcome = actual.run(step)
        assert outcome == expected.run(step), program[: number + 1]
        if outcome != "ok" and step[0].startswith(("as_strided_", "resize_", "set_")):
            break  # PyTorch's tensor has the new shape by now, beyond its storage
        assert actual.places() == expected.places(), program[: number + 1]  # PyTorch reads wherever it was told to
        assert actual.values() == expected.values(), program[: number + 1]
    actual.check_guards()
