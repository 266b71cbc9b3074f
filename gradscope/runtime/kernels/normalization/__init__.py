"""Normalisation of large arrays. A part of the rows at a time goes through all steps in the processor's cache.

- :mod:`~.normalized_rows`: layer norm, by rows
- :mod:`~.channels`: the channels of images, as they lie in memory
- :mod:`~.planes`: channels that are a plane for each example: batch, instance and group norm
- :mod:`~.columns`: channels that are last in memory, as columns of a matrix: batch norm
- :mod:`~.row_blocks`: how many rows are taken at once, and which arrays the kernels are for
"""
