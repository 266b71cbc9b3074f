"""Special functions.

- :mod:`~.error_function`: the error function and its relatives
- :mod:`~.gamma`: the gamma function, its logarithm and their derivatives
- :mod:`~.bessel`: Bessel functions and the Airy function
- :mod:`~.normal_integrals`: the distribution function of the normal distribution, entropies
- :mod:`~.orthogonal_polynomials`: Chebyshev, Hermite, Laguerre and Legendre polynomials
"""
