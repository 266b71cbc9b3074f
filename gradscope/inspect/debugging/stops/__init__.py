"""Where a session stops.

- :mod:`~.breakpoints`: breakpoints and logpoints: where, on what condition, how often
- :mod:`~.breakpoint_specs`: what a person types to name nodes
- :mod:`~.stop_decision`: whether a node is a place to stop
- :mod:`~.inherited_nan`: since when what a node has saved is not finite
- :mod:`~.left_out_step`: what a GradScaler will do about a gradient that is not finite
- :mod:`~.stop_settings`: a session's breakpoints, watches and threads
- :mod:`~.stop_verbs`: those of its verbs that a recording has too
- :mod:`~.run_targets`: what a program was told when it was let go, and whether it has got there
- :mod:`~.condition_names`: what an expression knows at a stop
- :mod:`~.last_iteration`: ``last.norm`` and ``changed(norm)``
- :mod:`~.watches`: watch expressions
"""
