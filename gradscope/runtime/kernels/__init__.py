"""Formulas on bare arrays that the engine and the operators share.

- :mod:`~.row_sums`: sums along rows and down columns, faster than NumPy's own
- :mod:`~.running`: running sums, products and extremes along an axis
- :mod:`~.row_buffers`: NumPy's buffer, fitted to rows beside a number each
- :mod:`~.forms`: which form of a kernel runs, the compiled one or NumPy's, and elementwise formulas in one pass
- :mod:`~.loading`: loads the compiled forms, or says why there are none
- :mod:`~.compiled`: the forms that Numba compiles, where it is installed
- :mod:`~.cuda_kernels`: the hot ones in CUDA C, for arrays on a GPU
- :mod:`~.attention_kernels`: scaled dot-product attention and its derivative, a block of scores at a time
- :mod:`~.threads`: parts of large arrays at a time on several threads
- :mod:`~.casts`: conversions between dtypes
- :mod:`~.copies`: transposed matrices in row-major order
- :mod:`~.elementwise`: elementwise functions of large arrays, in such parts
- :mod:`~.normalization`: layer, batch and group norm of large arrays
- :mod:`~.selection`: elements of one array or of another
- :mod:`~.arithmetic`: arithmetic of single precision, beside a row or number for each row, and remainders
- :mod:`~.error_function_kernel`: erf in single precision
- :mod:`~.updates`: steps of optimizers in one pass
- :mod:`~.recurrent_kernels`: all steps of a recurrent layer, forwards and backwards
- :mod:`~.convolution`: convolution and its adjoints, as products with rows or columns of images
- :mod:`~.broadcasting`: which shapes broadcast to which, and the sum that undoes it
"""
