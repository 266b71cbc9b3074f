"""Arithmetic of single precision for which NumPy takes long.

- :mod:`~.broadcast_arithmetic`: an array with a row, or with a number for each row
- :mod:`~.division`: remainders and rounded quotients
"""
