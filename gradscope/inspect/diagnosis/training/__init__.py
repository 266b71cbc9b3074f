"""Training: how the program sets it up, what its losses are given, and what its steps come to.

- :mod:`~.module_modes`: in which mode modules train and are validated
- :mod:`~.initial_weights`: how weights start
- :mod:`~.layer_weights`: the weights of linear layers and embeddings
- :mod:`~.update_sizes`: how far steps move the weights
- :mod:`~.gradient_clipping`: when gradients are clipped
- :mod:`~.random_seeds`: when the program seeds its random numbers
- :mod:`~.graph_calls`: which call has computed what another was given, inside of compiled regions too
"""
