"""What panes are made of, and the lines above and below them.

- :mod:`~.line_pane`: a pane of lines, of which only those on the screen are drawn; with a cursor or without
- :mod:`~.graph_rows`: the rows of the graph: all nodes, folded modules, or what a filter leaves
- :mod:`~.cut_branches`: the rows of what no gradient reaches
- :mod:`~.graph_columns`: the columns of the graph: which have room, and the order of rows by one
- :mod:`~.norm_columns`: a norm, its bar and its ratio, and the scale that they stand for
- :mod:`~.model_tree`: the rows of the modules pane: modules and parameters as a tree
- :mod:`~.lane_layout`: the lanes of the graph's edges, as ``git log --graph`` draws them
- :mod:`~.tensor_window`: the part of a tensor that is looked at
- :mod:`~.heat_map`: a matrix in colors, two elements to a cell
- :mod:`~.histogram`: counts over powers of two in block characters
- :mod:`~.labels`: the sign, word and color of each state; short numbers and paths
- :mod:`~.status_bar`: state, node and reason, and the timeline below
- :mod:`~.findings_bar`: the worst of what is wrong
- :mod:`~.key_bar`: the keys at the bottom
- :mod:`~.prompt_line`: the line where a person types
- :mod:`~.module_diagram`: which boxes and arrows pane 0 has, and the norms on them
- :mod:`~.diagram_drawing`: such boxes and arrows in characters
"""
