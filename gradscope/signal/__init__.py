"""Signal processing under PyTorch's names: :mod:`gradscope.signal.windows`."""

from . import windows

__all__ = ["windows"]
