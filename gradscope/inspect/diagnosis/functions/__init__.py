"""Custom Functions and failed backwards.

- :mod:`~.custom_derivatives`: ``gi.functions``: whether a backward is the derivative of its forward
- :mod:`~.failed_backward`: at which node a backward failed, and why
- :mod:`~.second_backward`: a backward through a graph that was freed
"""
