"""The backward graph: nodes, edges, saved tensors, and the hooks on them.

- :mod:`~.graph_node`: ``Node``, edges, saved tensors and their version check
- :mod:`~.accumulate_grad`: the node at a leaf, which adds what arrives into ``grad``
- :mod:`~.hooks`: handles and ordered tables of hooks
"""
