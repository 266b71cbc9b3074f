"""Random numbers under PyTorch's names: seeds, states, and a block after which nothing was drawn."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

from .runtime.memory import device as devices
from .runtime.ops.random.random import (
    Generator,
    default_generator,
    generator_for,
    get_rng_state,
    initial_seed,
    manual_seed,
    seed,
    set_rng_state,
)

__all__ = [
    "Generator",
    "default_generator",
    "fork_rng",
    "get_rng_state",
    "initial_seed",
    "manual_seed",
    "seed",
    "set_rng_state",
]


@contextmanager
def fork_rng(devices: Iterable[Any] | None = None, enabled: bool = True, device_type: str = "cuda") -> Iterator[None]:
    """Context manager: afterwards the default generators go on as if nothing had been drawn or seeded inside.

    Parameters
    ----------
    devices : iterable, optional
        Devices besides the CPU; all of `device_type` unless given.
    enabled : bool
        False to do nothing.

    See Also
    --------
    get_rng_state, manual_seed

    Examples
    --------
    >>> import gradscope as gs
    >>> state = gs.get_rng_state()
    >>> with gs.random.fork_rng():
    ...     _ = gs.manual_seed(0), gs.rand(3)
    >>> bool((state == gs.get_rng_state()).all())
    True
    """
    if not enabled:
        yield
        return
    with ExitStack() as stack:
        for generator in (default_generator, *_generators(devices, device_type)):
            stack.enter_context(generator.replay(generator.mark()))
        yield


def _generators(where: Iterable[Any] | None, device_type: str) -> list[Generator]:
    if where is None:
        where = range(devices.cuda_device_count()) if device_type == "cuda" else ()
    places = (devices.device(device_type, place) if isinstance(place, int) else place for place in where)
    return [generator_for(place) for place in places]
