"""The backward graph: nodes, edges, saved tensors, and the hooks on them.

- :mod:`~.graph_node`: ``Node``
- :mod:`~.edges`: where the gradients of nodes and tensors go
- :mod:`~.saved_tensors`: what nodes save, and the check of its version
- :mod:`~.accumulate_grad`: the node at a leaf, which adds what arrives into ``grad``
- :mod:`~.hooks`: handles and ordered tables of hooks
"""
