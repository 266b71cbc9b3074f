"""Settings that training scripts begin with. They are kept and read back: nothing in this runtime depends on them.

Results on the CPU are the same from run to run, products are computed in the operands' precision, and NumPy's BLAS
takes its number of threads from the environment (``OMP_NUM_THREADS``) when it is loaded.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "are_deterministic_algorithms_enabled",
    "attention",
    "get_float32_matmul_precision",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "set_float32_matmul_precision",
    "set_num_threads",
    "use_deterministic_algorithms",
]


class _Settings:
    threads = os.cpu_count() or 1
    deterministic = False
    warn_only = False
    precision = "highest"


attention_kernels = dict.fromkeys(("flash", "math", "mem_efficient", "cudnn"), True)
"""Which kernels of attention may be taken. There is one, which is taken in any case."""


@contextmanager
def attention(**kernels: bool) -> Iterator[None]:
    """Say which kernels of attention may be taken inside of a block."""
    before = dict(attention_kernels)
    attention_kernels.update(kernels)
    try:
        yield
    finally:
        attention_kernels.update(before)


def get_num_threads() -> int:
    """Return the number of threads that was set."""
    return _Settings.threads


def set_num_threads(num: int) -> None:
    """Keep a number of threads for :func:`get_num_threads`.

    Raises
    ------
    RuntimeError
        If it is not positive.
    """
    if num <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer\nIt was given {num}.")
    _Settings.threads = num


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Keep whether only deterministic algorithms are wanted."""
    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return what was asked for by :func:`use_deterministic_algorithms`."""
    return _Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return what was asked for by :func:`use_deterministic_algorithms`."""
    return _Settings.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """Keep the precision of products: "highest", "high" or "medium".

    Raises
    ------
    RuntimeError
        For another word.
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision!r} is no precision of products\nIt is one of: highest, high, medium.")
    _Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """Return what was set by :func:`set_float32_matmul_precision`."""
    return _Settings.precision
