"""Kernels that Numba compiles, where it is installed (``pip install 'gradscope[fast]'``), for float32 on the CPU.

Each is a loop over the elements of contiguous arrays, and writes to arrays that its caller made. What a kernel computes
stands in its NumPy form, beside which it is tested; which of both runs is chosen in
:mod:`gradscope.runtime.kernels.forms`. :mod:`gradscope.runtime.kernels.loading` alone imports these.

- :mod:`~.jit`: what they are made with: the decorators, and what kernels inline
- :mod:`~.activation_loops`: activation functions and their derivatives
- :mod:`~.softmax_loops`: softmax, its logarithm, the weights of attention, and their derivatives, row by row
- :mod:`~.recurrent_loops`: the gates of LSTM and GRU and their derivatives, of one step
- :mod:`~.recording`: statistics and checksums for the instruments
- :mod:`~.convolution_loops`: products of weights with rows of images
- :mod:`~.normalization_loops`: layer, batch and group norm, and their derivatives
- :mod:`~.arithmetic_loops`: rows beside one row, or a number for each
- :mod:`~.selection_loops`: elements of one array or of another
- :mod:`~.sum_loops`: sums of whole rows
- :mod:`~.distance_loops`: distances between rows, and their derivative
- :mod:`~.running_loops`: running sums, products and extremes along rows
- :mod:`~.index_loops`: rows and elements at indices
- :mod:`~.half_precision_loops`: half precision to single and back, and arithmetic
- :mod:`~.extremes_loops`: the few largest or smallest numbers of rows, the largest of each window
- :mod:`~.calculus_loops`: exp, tanh, arcs and the like, which NumPy has no vectors for with AVX2
- :mod:`~.error_function_loops`: the error function
- :mod:`~.special_function_loops`: its complement and inverse, Bessel functions, remainders
- :mod:`~.update_loops`: an optimizer's update of a parameter, in one pass
- :mod:`~.waiting_loops`: waiting for another thread
"""
