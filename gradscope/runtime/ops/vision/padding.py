"""Padding with what is there: reflected, repeated at the border, or going round.

An index says for each place of the output which place of the input it shows; the adjoint adds what came from there. The
list of pads starts with the last dimension, as PyTorch's, and negative pads cut.
"""

from __future__ import annotations

from ..declaration.annotations import Array, Cases, Gradient, Index, Ints, Make, Namespace, Sizes
from ..declaration.references import adjoint, padded
from ..declaration.registry import operator
from ..declaration.samples import Samples
from ..execution.array_errors import refuse_kinds


def _key(axis: int, start: int, end: int) -> tuple[Index, ...]:
    """Return what selects a range along an axis that is counted from the end."""
    return (Ellipsis, slice(start, end)) + (slice(None),) * (-axis - 1)


def _sides(pad: Ints) -> list[tuple[int, int, int]]:
    """Return (axis, pad before, pad after), the last axis first."""
    return [(-1 - i, pad[2 * i], pad[2 * i + 1]) for i in range(len(pad) // 2)]


def _check(name: str, array: Array, pad: Ints) -> None:
    count = len(pad) // 2
    shape = list(array.shape)
    if array.ndim not in (count + 1, count + 2) or 0 in shape[array.ndim - count - 1 :]:
        raise RuntimeError(
            f"Expected {count + 1}D or {count + 2}D (batch mode) tensor with possibly 0 batch size and other non-zero "
            f"dimensions for input, but got: {shape}"
        )
    refuse_kinds(name, array, "b")
    if name.startswith("reflection"):
        for number, (axis, before, after) in enumerate(_sides(pad)):
            if max(before, after) >= shape[axis]:
                raise RuntimeError(
                    f"Argument #{4 + 2 * number}: Padding size should be less than the corresponding input dimension, "
                    f"but got: padding ({before}, {after}) at dimension {array.ndim + axis} of input {shape}"
                )
    sizes = [(axis, shape[axis], shape[axis] + before + after) for axis, before, after in _sides(pad)][::-1]
    if max(size for *_, size in sizes) < 1 or min(size for *_, size in sizes) < 0:
        names = "WHD"
        have = ", ".join(f"{names[-1 - axis]}: {size}" for axis, size, _ in sizes)
        found = " ".join(f"{names[-1 - axis]}: {size}" for axis, _, size in sizes)
        raise RuntimeError(f"input ({have}) is too small. Calculated output {found}\nThe pads are {list(pad)}.")


def _shown(xp: Namespace, reflect: bool, size: int, before: int, after: int) -> Array:
    """Return which place of a dimension each place of the padded one shows."""
    places = xp.arange(-before, size + after)
    if reflect:
        places = xp.absolute(places)
        return xp.where(places < size, places, 2 * (size - 1) - places)
    return xp.minimum(xp.maximum(places, 0), size - 1)


def _pad(xp: Namespace, self: Array, pad: Ints, reflect: bool) -> Array:
    result = self
    for axis, before, after in _sides(pad):
        if before or after:
            result = xp.take(result, _shown(xp, reflect, self.shape[axis], before, after), axis=axis)
    return result.copy() if result is self else result


def _fold(xp: Namespace, grad: Gradient, axis: int, size: int, before: int, after: int, reflect: bool) -> Array:
    """Add along one axis what the padding showed to where it came from."""
    shape = list(grad.shape)
    length, shape[axis] = shape[axis], size
    result = xp.zeros(tuple(shape), dtype=grad.dtype)
    low, high = max(-before, 0), size - max(-after, 0)
    if low < high:
        start = max(before, 0)
        result[_key(axis, low, high)] = grad[_key(axis, start, start + high - low)]
    if before > 0:
        count = min(before, length)
        _add_border(xp, result, axis, before - count + 1, grad[_key(axis, 0, count)], reflect, 0)
    if after > 0:
        border = grad[_key(axis, max(size + before, 0), length)]
        _add_border(xp, result, axis, size - 1 - after, border, reflect, size - 1)
    return result


def _add_border(xp: Namespace, result: Array, axis: int, start: int, border: Array, reflect: bool, edge: int) -> None:
    if reflect:
        back = (Ellipsis, slice(None, None, -1)) + (slice(None),) * (-axis - 1)
        result[_key(axis, start, start + border.shape[axis])] += border[back]
    else:
        result[_key(axis, edge, edge + 1)] += xp.add.reduce(border, axis=axis, keepdims=True)


def _unpad(xp: Namespace, grad: Gradient, input_size: Ints, pad: Ints, reflect: bool) -> Array:
    # In the opposite order of axes: the borders of one contain the borders of those before it.
    for axis, before, after in reversed(_sides(pad)):
        if before or after:
            grad = _fold(xp, grad, axis, input_size[axis], before, after, reflect)
    return grad


def _samples(count: int) -> Samples:
    def samples(make: Make) -> Cases:
        shape, pad = (1, 2, 4, 3, 5)[: count + 2], (2, 1, 1, 2, 3, 0)[: 2 * count]
        cut = (-1, 2, 0, 0, 1, -2)[: 2 * count]
        return [((make(*shape), pad), {}), ((make(*shape[1:]), pad), {}), ((make(*shape), cut), {})]

    return samples


def _declare(kind: str, count: int) -> None:
    """Declare the padding of the last dimensions by reflection or replication."""
    name, reflect = f"{kind}_pad{count}d", kind == "reflection"

    def forward(xp: Namespace, self: Array, padding: Ints) -> Array:
        _check(name, self, padding)
        return _pad(xp, self, padding, reflect)

    operator(
        f"{name}(Tensor self, int[] padding)",
        forward,
        images=1,
        method=False,
        public_name=False,
        node=f"{kind.capitalize()}Pad{count}DBackward0",
        derivatives={"self": lambda g, self_shape, padding, F: F.unpad(g, self_shape, padding, reflect)},
        doc=f"Pad the last {count} dimension(s) by {kind}.",
        samples=_samples(count),
        reference=lambda self, padding: padded(self, padding, "reflect" if reflect else "edge"),
    )


for _count in (1, 2, 3):
    _declare("reflection", _count)
    _declare("replication", _count)


def _pad_of_grad(g: Gradient, padding: Ints, reflect: bool, F: Namespace) -> Gradient:
    kind = "reflection" if reflect else "replication"
    return getattr(F, f"{kind}_pad{len(padding) // 2}d")(g, padding)


def _unpad_reference(self: Array, input_size: Sizes, padding: Ints, reflect: bool) -> Array:
    return adjoint(lambda x: padded(x, padding, "reflect" if reflect else "edge"), input_size, self)


operator(
    "unpad(Tensor self, int[] input_size, int[] padding, bool reflect)",
    _unpad,
    images=1,
    method=False,
    public_name=False,
    node="PadBackwardBackward0",
    derivatives={"self": _pad_of_grad},
    doc="The adjoint of padding by reflection or replication.",
    samples=lambda make: [((make(2, 5, 4), (2, 4, 3), (1, 0, -1, 2), reflect), {}) for reflect in (False, True)],
    reference=_unpad_reference,
)

# --- going round ------------------------------------------------------------------------------------------------------


def circular_pad(self: Array, pad: Ints) -> Array:
    """Pad the last dimensions with what stands at their other ends: an empty tensor, written part by part.

    Raises
    ------
    RuntimeError
        If a pad is larger than its dimension, or cuts more than there is.
    """
    shape = list(self._array.shape)
    sides = [(axis, shape[axis], before, after) for axis, before, after in _sides(pad)]
    for axis, size, before, after in sides:
        if before > size or after > size:
            raise RuntimeError(
                f"Padding value causes wrapping around more than once.\nThe pads are {list(pad)}, the shape is "
                f"{list(self._array.shape)}."
            )
        shape[axis] += before + after
        if shape[axis] < 0:
            raise RuntimeError(f"Negative padding value is resulting in an empty dimension\nThe pads are {list(pad)}.")
    result = self.new_empty(tuple(shape))
    middle, inside = result, self
    for axis, size, before, after in sides:
        middle = middle.narrow(axis, max(before, 0), size + min(before, 0) + min(after, 0))
        inside = inside.narrow(axis, max(-before, 0), size + min(before, 0) + min(after, 0))
    middle.copy_(inside)
    for axis, _, before, after in sides:
        length = shape[axis]
        if before > 0:
            result.narrow(axis, 0, before).copy_(result.narrow(axis, length - before - max(after, 0), before))
        if after > 0:
            result.narrow(axis, length - after, after).copy_(result.narrow(axis, max(before, 0), after))
    return result


del _count
