"""Formulas on bare arrays that the engine and the operators share.

- :mod:`~.row_sums`: sums along rows and down columns, faster than NumPy's own
- :mod:`~.broadcasting`: which shapes broadcast to which, and the sum that undoes it
"""
