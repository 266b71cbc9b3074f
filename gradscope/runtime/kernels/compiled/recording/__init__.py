"""Kernels of the instruments, on what a recording or a comparison of ranks reads.

- :mod:`~.statistics_loops`: what a recording tells of a tensor: moments, and how many numbers have each exponent
- :mod:`~.checksum_loops`: checksums of many tensors
"""
