"""The graph of a backward as a networkx graph: making it, folding it, asking it.

:mod:`.graph_model` makes it; the others are functions of the finished model, which holds nothing of the program.

- :mod:`~.graph_model`: ``gi.graph``: the backward graph of a loss, with what is known of each node
- :mod:`~.graph_capture`: the graph of a backward that a program runs
- :mod:`~.record_interning`: equal records kept once, so that large graphs stay small
- :mod:`~.folding`: ``gi.fold``: modules, blocks and chains as one node
- :mod:`~.repeated_blocks`: numbered modules of the same structure
- :mod:`~.quotient`: nodes put together into groups, without cycles
- :mod:`~.node_selection`: ``gi.find_node`` and ``gi.subgraph``
- :mod:`~.graph_paths`: ``gi.paths``, ``gi.dominators``
- :mod:`~.graph_difference`: what has changed between two graphs
- :mod:`~.graph_statistics`: how many nodes of what, how deep, how wide
- :mod:`~.formats`: pictures and files, one module a format
"""

from __future__ import annotations
