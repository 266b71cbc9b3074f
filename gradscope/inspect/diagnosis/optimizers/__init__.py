"""Optimizers: what they do with gradients, and the parameters that none of them holds.

- :mod:`~.optimizer_updates`: ``gi.updates``: gradients used before, by nobody, of parameters that nobody changes
- :mod:`~.parameters_without_optimizer`: parameters with gradients that no optimizer holds
- :mod:`~.idle_optimizers`: optimizers that never step
"""
