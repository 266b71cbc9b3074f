"""Memory: what a graph holds, what grows and leaks, and which variable keeps it.

- :mod:`~.graph_memory`: ``gi.memory``: saved tensors by module, operator, line
- :mod:`~.graph_growth`: ``gi.growth``: graphs that grow from iteration to iteration
- :mod:`~.tensor_leaks`: ``gi.leaks``: tensors that outlive the code that made them
- :mod:`~.reference_cycles`: cycles through the graph
- :mod:`~.reference_paths`: the way from a variable to an object
- :mod:`~.gradient_aliasing`: gradients that share memory
"""
