"""Signal processing under PyTorch's names: :mod:`gradscope.signal.windows`.

- :mod:`~.windows`: Hann, Hamming, Kaiser and others
"""

from . import windows

__all__ = ["windows"]
