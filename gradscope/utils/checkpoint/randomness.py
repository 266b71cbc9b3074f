"""The same random numbers again: where the generators stand, and going back there for a while."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

from ...runtime.ops.random.random import Generator, generator_for
from ...runtime.tensor.tensor import Tensor

__all__ = ["RandomNumbers", "get_device_states", "set_device_states"]


def devices_of(args: Iterable[Any]) -> list[Any]:
    """Return the devices other than the CPU of the tensors in arguments, in tuples, lists and dicts too."""
    found: dict[Any, None] = {}
    stack = list(args)
    while stack:
        item = stack.pop()
        if isinstance(item, Tensor):
            if item.device.type != "cpu":
                found[item.device] = None
        elif isinstance(item, (tuple, list)):
            stack += item
        elif isinstance(item, dict):
            stack += item.values()
    return list(found)


class RandomNumbers:
    """The random numbers that are drawn from now on, on the CPU and on the devices of some arguments."""

    def __init__(self, args: Iterable[Any]) -> None:
        generators = [generator_for(None), *map(generator_for, devices_of(args))]
        self._points: list[tuple[Generator, Any]] = [(g, g.mark()) for g in generators]

    @contextmanager
    def again(self) -> Iterator[None]:
        """Draw them again inside; afterwards the generators stand where they stood before."""
        with ExitStack() as stack:
            for generator, point in self._points:
                stack.enter_context(generator.replay(point))
            yield


def get_device_states(*args: Any) -> tuple[list[Any], list[Any]]:
    """Return the devices of the tensors in `args`, and the states of their generators.

    Returns
    -------
    devices : list of device
        Without the CPU.
    states : list
        For :func:`set_device_states`.

    See Also
    --------
    set_device_states : takes both.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import get_device_states
    >>> get_device_states(gs.ones(2), "no tensor")
    ([], [])
    """
    places = devices_of(args)
    return places, [generator_for(place).mark() for place in places]


def set_device_states(devices: Sequence[Any], states: Sequence[Any]) -> None:
    """Put the generators of devices into states from :func:`get_device_states`.

    See Also
    --------
    get_device_states : returns both.

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.utils.checkpoint import get_device_states, set_device_states
    >>> set_device_states(*get_device_states(gs.ones(2)))
    """
    for place, state in zip(devices, states, strict=True):
        generator_for(place).go_to(state)
