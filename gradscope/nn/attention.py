"""Settings of the kernel of ``scaled_dot_product_attention``: they are kept, and change nothing, for there is one."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from enum import IntEnum

from ..runtime import settings

__all__ = ["SDPBackend", "sdpa_kernel"]


class SDPBackend(IntEnum):
    """PyTorch's kernels of attention."""

    ERROR = -1
    MATH = 0
    FLASH_ATTENTION = 1
    EFFICIENT_ATTENTION = 2
    CUDNN_ATTENTION = 3
    OVERRIDEABLE = 4


_SWITCHES = {
    "math": SDPBackend.MATH,
    "flash": SDPBackend.FLASH_ATTENTION,
    "mem_efficient": SDPBackend.EFFICIENT_ATTENTION,
    "cudnn": SDPBackend.CUDNN_ATTENTION,
}


@contextmanager
def sdpa_kernel(backends: Sequence[SDPBackend] | SDPBackend, set_priority: bool = False) -> Iterator[None]:
    """Say which kernels of attention may be taken inside of a block.

    It changes what ``backends.cuda.flash_sdp_enabled()`` and its like return, and nothing else: attention is computed
    by its formula in any case.

    Parameters
    ----------
    set_priority : bool
        Taken for PyTorch's sake.

    Raises
    ------
    AssertionError
        If something else is given, as in PyTorch.

    Examples
    --------
    >>> import gradscope as gs
    >>> with sdpa_kernel([SDPBackend.MATH]):
    ...     gs.backends.cuda.flash_sdp_enabled()
    False
    """
    chosen = [backends] if isinstance(backends, SDPBackend) else backends
    if not isinstance(chosen, Sequence) or not all(isinstance(backend, SDPBackend) for backend in chosen):
        raise AssertionError(
            "Backend must be an instance of SDPBackend or a list of SDPBackend instances\n"
            f"It is {backends!r}: give SDPBackend.MATH, or others of {[kind.name for kind in SDPBackend]}."
        )
    with settings.attention(**{name: backend in chosen for name, backend in _SWITCHES.items()}):
        yield
