"""The devices other than the host that the same tests run on: the strict stand-in, and CUDA where there is a device."""

from __future__ import annotations

from gradscope.runtime.memory import device
from tests import strict_arrays

__all__ = ["OTHER_DEVICES"]

# Importing strict_arrays has made its device known.
OTHER_DEVICES = [strict_arrays.strict.__name__, *(["cuda"] if device.cuda_is_available() else [])]
