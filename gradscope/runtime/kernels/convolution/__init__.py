"""Convolution and its adjoints on the host.

- :mod:`~.convolution_kernels`: both as products of matrices
- :mod:`~.im2col`: windows of images as columns of a matrix, and back
- :mod:`~.image_grid`: how images lie in one flat grid, with zeros between them
"""
