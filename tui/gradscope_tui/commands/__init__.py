"""What single commands of the prompt do; which there are, and what is typed after them, is in `command_line`.

- :mod:`~.compare_command`: the nodes of a recording, for ``:compare FILE``
- :mod:`~.explain_command`: why it has stopped here, and the texts of ``:explain``
"""
