"""The panes, one file each.

- :mod:`~.graph_pane`: the nodes in execution order, with lanes for their edges; the cursor that the others follow
- :mod:`~.inspector_pane`: gradients and saved tensors of the node under the cursor
- :mod:`~.source_pane`: the line that made it
- :mod:`~.breakpoints_pane`: breakpoints, and the switches for NaN, infinity, violations and exceptions
- :mod:`~.log_pane`: what the script has printed, and answers to commands
- :mod:`~.watches_pane`: watch expressions
- :mod:`~.modules_pane`: the tree of modules
"""
