"""The engine: backward passes over the graph.

- :mod:`~.backward`: ``backward()`` and ``grad()``: their arguments checked, and a graph task run for them
- :mod:`~.graph_task`: ``GraphTask``: dependencies, the ready queue, and one resumable step
- :mod:`~.specification`: what a graph task computes and in which order, in a loop of ten lines
- :mod:`~.gradient_validation`: what the engine asks of each gradient that a node or a hook returns
"""
