"""Elementwise operators.

- :mod:`~.arithmetic`: sums, products, quotients, powers
- :mod:`~.unary`: functions of one tensor: a table of calculus
- :mod:`~.binary`: functions of two tensors: ``maximum``, ``atan2``, ``hypot`` and others
- :mod:`~.logic`: comparisons, logical and bitwise operators
- :mod:`~.equality`: comparisons of whole tensors, and ``unique``
- :mod:`~.where_and_clamp`: ``where``, masks, ``clamp``
- :mod:`~.fused_arithmetic`: ``lerp``, ``addcmul``, ``addcdiv``
- :mod:`~.complex_numbers`: conjugates, real and imaginary parts, polar form
- :mod:`~.python_operators`: ``+``, ``@``, ``<<`` and the like
"""
