"""Writes in place of PyTorch's tensors.

- :mod:`~.inplace_writes`: which arguments an operator writes, and who hears of it
- :mod:`~.refused_writes`: which rule PyTorch refused a write by
- :mod:`~.suspicious_writes`: what may have spoilt a gradient in silence, seen without listening to operators
- :mod:`~.unversioned_writes`: memory that others can write, and whether they did
"""
