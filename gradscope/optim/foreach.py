"""Small parameters that are updated together, as PyTorch's ``foreach`` does.

An update is a dozen calls of NumPy, which take the same time for ten numbers as for a thousand. So small parameters are
copied into one vector, and so are their gradients and what the optimizer keeps of them; the update runs on the vectors
and is copied back. Each number goes through the same operations as without, so all are the same to the last bit.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

from ..runtime.memory import device as devices

__all__ = ["Bundle", "bundles"]

SMALL = 1 << 11
"""Elements up to which a parameter is copied: from about twice as many on the copies cost more than the calls."""

FEWEST = 3
"""How many parameters are worth a bundle."""

SCALARS = frozenset(["step", "eta", "mu", "mu_product"])
"""What of the state is one number, whatever shape the parameter has."""

_FULL = 1 << 16  # elements of a bundle, which stays in the cache

_KINDS = frozenset([devices.numpy.dtype("f"), devices.numpy.dtype("d")])


class _Joined:
    """Stands where an update expects a tensor: several of them, one after another in one vector."""

    __slots__ = ("_array", "_arrays", "_views", "tensors")

    def __init__(self, vector: Any, views: list[Any], tensors: list[Any]) -> None:
        self._array, self._views, self.tensors = vector, views, tensors
        self._arrays = [tensor._array for tensor in tensors]
        for view, array in zip(views, self._arrays, strict=True):
            view[...] = array

    def write_back(self) -> None:
        """Put what the vector holds into the tensors."""
        for view, array in zip(self._views, self._arrays, strict=True):
            array[...] = view

    def _bump(self, operator: str) -> None:
        for tensor in self.tensors:
            tensor._bump(operator)


class _Shared:
    """Stands where an update expects a scalar of the state: that of several parameters, all of one value."""

    __slots__ = ("_array", "_tensors")

    def __init__(self, tensors: list[Any]) -> None:
        self._array, self._tensors = tensors[0]._array.copy(), tensors

    def write_back(self) -> None:
        """Give all of them the value."""
        value = self._array
        for tensor in self._tensors:
            tensor._array[...] = value


class Bundle(_Joined):
    """Several parameters in the place of one.

    Parameters
    ----------
    parameters : list of Tensor
        Small ones of one dtype, with gradients and states, of which the scalars are the same.
    states : list of dict
        What the optimizer keeps of each.
    layout : Layout
        The vectors that are needed, and the views of them that stand for the parameters' arrays.

    Attributes
    ----------
    grad : object
        Their gradients, as one.
    state : dict
        Their states, as one.
    """

    __slots__ = ("grad", "state")

    def __init__(self, parameters: list[Any], states: list[dict[str, Any]], layout: Layout) -> None:
        super().__init__(*layout.vector(0), parameters)
        self.grad = _Joined(*layout.vector(1), [one._meta.grad for one in parameters])
        self.state: dict[str, Any] = {}
        number = 2
        for name in states[0]:
            tensors = [state[name] for state in states]
            if name in SCALARS:
                self.state[name] = _Shared(tensors)
            else:
                self.state[name] = _Joined(*layout.vector(number), tensors)
                number += 1

    def write_back(self) -> None:
        """Put the updated numbers into the parameters and their states; gradients stay as they are."""
        super().write_back()
        for held in self.state.values():
            held.write_back()


class Layout:
    """Where parameters of some shapes lie in the vectors of a bundle.

    Parameters
    ----------
    shapes : list of tuple of int
        Theirs.
    buffer : callable
        Takes a number, and returns the work array of that number.
    """

    def __init__(self, shapes: list[tuple[int, ...]], buffer: Callable[[int], Any]) -> None:
        self._shapes, self._buffer = shapes, buffer
        self._vectors: list[tuple[Any, list[Any]]] = []

    def vector(self, number: int) -> tuple[Any, list[Any]]:
        """Return a vector and its views of the parameters' shapes; what it holds is what an earlier bundle left."""
        while number >= len(self._vectors):
            whole, views, start = self._buffer(len(self._vectors)), [], 0
            for shape in self._shapes:
                size = devices.numpy.prod(shape, dtype=int)
                views.append(whole[start : start + size].reshape(shape))
                start += size
            self._vectors.append((whole[:start], views))
        return self._vectors[number]


def bundles(
    group: dict[str, Any], states: Any, layout_of: Callable[[Any, list[Any]], Layout]
) -> Iterator[tuple[Any, Any]]:
    """Yield the parameters of a group that have a gradient, and it; small ones that were updated before as bundles.

    Parameters
    ----------
    states : dict
        The optimizer's.
    layout_of : callable
        Takes a dtype and shapes.

    Notes
    -----
    Memory that parameters or gradients share is updated in the order of the parameters, as without: what may share
    memory with a parameter that waits for its bundle comes after that.
    """
    waiting: dict[int, Any] = {}  # by the identity of its memory
    size = 0
    kind = None
    for parameter in group["params"]:
        meta = parameter._meta
        if meta is None or (grad := meta.grad) is None:
            continue
        array, given = parameter._array, grad._array
        whole = type(array) is type(given) is devices.ndarray and array.base is None and _is_whole(given)
        joins = whole and array.size <= SMALL and grad._dtype is parameter._dtype and grad._shape == parameter._shape
        if waiting and (
            not whole
            or id(array) in waiting
            or id(given) in waiting
            or id(given.base) in waiting
            or (joins and (parameter._dtype is not kind or size > _FULL))
        ):
            yield from _bundled(list(waiting.values()), states, layout_of)
            waiting, size = {}, 0
        if joins and parameter._dtype in _KINDS and states.get(parameter):
            waiting[id(array)] = parameter
            size += array.size
            kind = parameter._dtype
        else:
            yield parameter, grad
    yield from _bundled(list(waiting.values()), states, layout_of)


def _is_whole(given: Any) -> bool:
    """Whether an array is all of its memory."""
    base = given.base
    return base is None or (type(base) is devices.ndarray and base.nbytes == given.nbytes)


def _bundled(
    parameters: list[Any], states: Any, layout_of: Callable[[Any, list[Any]], Layout]
) -> Iterator[tuple[Any, Any]]:
    """Yield parameters in bundles of those whose states have the same scalars; those that no bundle fits one by one."""
    alike = defaultdict(list)
    for parameter in parameters:
        alike[_kind_of(parameter, states[parameter])].append(parameter)
    for kind, some in alike.items():
        if kind is None or len(some) < FEWEST:
            yield from ((parameter, parameter._meta.grad) for parameter in some)
            continue
        layout = layout_of(some[0]._dtype, [parameter._shape for parameter in some])
        bundle = Bundle(some, [states[parameter] for parameter in some], layout)
        yield bundle, bundle.grad


def _kind_of(parameter: Any, state: dict[str, Any]) -> tuple[Any, ...] | None:
    """Return the names of a state and its scalars; None where it does not hold arrays like the parameter."""
    kind: list[Any] = []
    for name, held in state.items():
        kind.append(name)
        if name in SCALARS:
            kind.append(held._array.item())
        elif held is None or held._shape != parameter._shape or held._dtype is not parameter._dtype:
            return None
    return tuple(kind)
