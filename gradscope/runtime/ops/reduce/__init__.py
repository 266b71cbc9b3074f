"""Reductions, and what orders or counts elements.

- :mod:`~.reductions`: sums, products, means, extrema
- :mod:`~.variance_and_norm`: variance, standard deviation, norms
- :mod:`~.sort_and_cumulate`: sorting, ``topk``, medians, running sums and products
- :mod:`~.quantiles`: quantiles, and medians that skip NaN
- :mod:`~.histograms`: histograms of one and of several variables
- :mod:`~.searchsorted`: places among sorted numbers, runs of equal elements
- :mod:`~.diff_and_trapezoid`: differences of neighbours, integrals by the trapezoidal rule
"""
