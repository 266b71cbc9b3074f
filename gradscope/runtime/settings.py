"""Settings that training scripts begin with.

The number of threads counts, whether a recurrent layer is one node, and whether one warns each time; the others are
kept and read back alone.

Results on the CPU are the same from run to run, and products are computed in the operands' precision.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .kernels import threads

__all__ = [
    "are_deterministic_algorithms_enabled",
    "attention",
    "get_float32_matmul_precision",
    "get_mkldnn_enabled",
    "get_num_interop_threads",
    "get_num_threads",
    "is_deterministic_algorithms_warn_only_enabled",
    "is_warn_always_enabled",
    "set_float32_matmul_precision",
    "set_mkldnn_enabled",
    "set_num_interop_threads",
    "set_num_threads",
    "set_warn_always",
    "use_deterministic_algorithms",
]


class _Settings:
    deterministic = False
    warn_only = False
    precision = "highest"
    mkldnn = True
    interop_threads: int | None = None
    warn_always = False


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
    """Return how many threads share the work on large arrays.

    Until it is set, as many as ``OMP_NUM_THREADS`` says, or as there are processors for this process.

    See Also
    --------
    set_num_threads

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_num_threads() >= 1
    True
    """
    return threads.count()


def set_num_threads(num: int) -> None:
    """Set how many threads share the work on large arrays: kernels, operators, and products in the loaded BLAS.

    Parameters
    ----------
    num : int
        With 1, nothing is shared.

    Raises
    ------
    RuntimeError
        If it is not positive.

    See Also
    --------
    get_num_threads : how many there are.

    Examples
    --------
    >>> import gradscope as gs
    >>> before = gs.get_num_threads()
    >>> gs.set_num_threads(1)
    >>> gs.get_num_threads()
    1
    >>> gs.set_num_threads(before)
    """
    if num <= 0:
        raise RuntimeError(f"set_num_threads expects a positive integer\nIt was given {num}.")
    # threadpoolctl loads when a number is set, which few programs do.
    from threadpoolctl import threadpool_limits

    threadpool_limits(num, user_api="blas")
    threads.set_count(num)


def get_num_interop_threads() -> int:
    """Return what was set by :func:`set_num_interop_threads`; at first, the number of threads.

    See Also
    --------
    get_num_threads

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_num_interop_threads() >= 1
    True
    """
    return threads.count() if _Settings.interop_threads is None else _Settings.interop_threads


def set_num_interop_threads(num: int) -> None:
    """Keep how many operators of a scripted program may run at once; here each waits for the one before.

    Raises
    ------
    RuntimeError
        If it is no positive integer.

    See Also
    --------
    get_num_interop_threads, set_num_threads

    Examples
    --------
    >>> import gradscope as gs
    >>> before = gs.get_num_interop_threads()
    >>> gs.set_num_interop_threads(4)
    >>> gs.get_num_interop_threads()
    4
    >>> gs.set_num_interop_threads(before)
    """
    if isinstance(num, bool) or not isinstance(num, int):
        raise RuntimeError(f"set_num_interop_threads expects an int, but got {type(num).__name__}")
    if num <= 0:
        raise RuntimeError(f"set_num_interop_threads expects a positive integer\nIt was given {num}.")
    _Settings.interop_threads = num


def set_warn_always(b: bool) -> None:
    """Say whether what is warned of once in a program is warned of each time.

    Of most things gradscope warns each time, and Python's filters show the first of a line.

    Raises
    ------
    RuntimeError
        If it is no bool.

    See Also
    --------
    is_warn_always_enabled

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_warn_always(True)
    >>> gs.is_warn_always_enabled()
    True
    >>> gs.set_warn_always(False)
    """
    if not isinstance(b, bool):
        raise RuntimeError(f"setWarnOnlyOnce expects a bool, but got {type(b).__name__}")
    _Settings.warn_always = b


def is_warn_always_enabled() -> bool:
    """Return what was said by :func:`set_warn_always`.

    See Also
    --------
    set_warn_always

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.is_warn_always_enabled()
    False
    """
    return _Settings.warn_always


def use_deterministic_algorithms(mode: bool, *, warn_only: bool = False) -> None:
    """Keep whether only deterministic algorithms are wanted.

    See Also
    --------
    are_deterministic_algorithms_enabled, manual_seed

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.use_deterministic_algorithms(True)
    >>> gs.are_deterministic_algorithms_enabled()
    True
    >>> gs.use_deterministic_algorithms(False)
    """
    _Settings.deterministic, _Settings.warn_only = bool(mode), bool(mode and warn_only)


def are_deterministic_algorithms_enabled() -> bool:
    """Return what was asked for by :func:`use_deterministic_algorithms`.

    See Also
    --------
    use_deterministic_algorithms

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.are_deterministic_algorithms_enabled()
    False
    """
    return _Settings.deterministic


def is_deterministic_algorithms_warn_only_enabled() -> bool:
    """Return what was asked for by :func:`use_deterministic_algorithms`.

    See Also
    --------
    use_deterministic_algorithms

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.use_deterministic_algorithms(True, warn_only=True)
    >>> gs.is_deterministic_algorithms_warn_only_enabled()
    True
    >>> gs.use_deterministic_algorithms(False)
    """
    return _Settings.warn_only


def set_float32_matmul_precision(precision: str) -> None:
    """Keep the precision of products: "highest", "high" or "medium".

    Raises
    ------
    RuntimeError
        For another word.

    See Also
    --------
    get_float32_matmul_precision : returns it.

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.set_float32_matmul_precision("high")
    >>> gs.get_float32_matmul_precision()
    'high'
    >>> gs.set_float32_matmul_precision("highest")
    """
    if precision not in ("highest", "high", "medium"):
        raise RuntimeError(f"{precision!r} is no precision of products\nIt is one of: highest, high, medium.")
    _Settings.precision = precision


def get_float32_matmul_precision() -> str:
    """Return what was set by :func:`set_float32_matmul_precision`.

    See Also
    --------
    set_float32_matmul_precision

    Examples
    --------
    >>> import gradscope as gs
    >>> gs.get_float32_matmul_precision()
    'highest'
    """
    return _Settings.precision


def get_mkldnn_enabled() -> bool:
    """Return whether a direction of a recurrent layer is one node, which PyTorch's switch of oneDNN decides."""
    return _Settings.mkldnn


def set_mkldnn_enabled(enabled: bool) -> None:
    """Say whether a direction of a recurrent layer is one node; otherwise each of its steps is some ten nodes."""
    _Settings.mkldnn = bool(enabled)
