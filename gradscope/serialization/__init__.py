"""Saving and loading: ``gs.save`` and ``gs.load``, in the zip format of PyTorch's ``torch.save``.

A file is a zip archive: ``data.pkl`` is a pickle of the structure, in which tensors refer to memory by number, and
``data/0``, ``data/1``, ... are the raw bytes of each memory, so that tensors that shared memory share it again.
Tensors, dtypes and devices stand in the pickle under PyTorch's names: each library reads the other's state dicts.

- :mod:`~.saving`: objects to records
- :mod:`~.loading`: records to objects, on the device that is asked for
- :mod:`~.untrusted_archive`: the zip file, whose claims are checked before anything is unpacked
- :mod:`~.unpickler`: what a pickle may name: anything, or what is known to be harmless
- :mod:`~.names`: which of PyTorch's classes a tensor is written as
"""

from __future__ import annotations

from .loading import load
from .saving import save
from .unpickler import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals

__all__ = ["add_safe_globals", "clear_safe_globals", "get_safe_globals", "load", "safe_globals", "save"]
