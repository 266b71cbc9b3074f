"""Random numbers: generators, and what draws from them.

- :mod:`~.random`: ``Generator``, seeds, ``rand``, ``randn``, ``randperm``, ``multinomial`` and the like
- :mod:`~.random_distributions`: log-normal, geometric, Cauchy, binomial and gamma draws
"""
