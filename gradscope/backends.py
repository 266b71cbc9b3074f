"""PyTorch's switches of libraries that this runtime does not use: scripts may set them, and nothing changes.

Examples
--------
>>> import gradscope as gs
>>> gs.backends.cudnn.benchmark = False
>>> gs.backends.mps.is_available()
False
"""

from __future__ import annotations

from typing import Any

from .cuda import is_available as _cuda_is_available

__all__ = ["cuda", "cudnn", "mkl", "mkldnn", "mps", "openmp"]


class Backend:
    """A library that is not there, and the switches that scripts set on it.

    Parameters
    ----------
    **switches
        Their values before a script sets them.
    """

    def __init__(self, **switches: Any) -> None:
        self.__dict__.update(switches)

    def is_available(self) -> bool:
        """Return whether the library is used: False."""
        return False

    def is_built(self) -> bool:
        """Return whether the runtime was built for it: False."""
        return False

    def version(self) -> None:
        """Return its version: None."""


class CudaBackend(Backend):
    """CUDA, which is there where CuPy is."""

    def is_built(self) -> bool:
        """Return whether CuPy finds a device."""
        return _cuda_is_available()


cuda = CudaBackend(matmul=Backend(allow_tf32=False))
cudnn = Backend(enabled=True, benchmark=False, deterministic=False, allow_tf32=True)
mkl = Backend()
mkldnn = Backend(enabled=True)
mps = Backend()
openmp = Backend()
