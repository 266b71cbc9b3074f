"""The screen of the panes, and what lies over it.

- :mod:`~.main_screen`: that screen, for the terminal's size
- :mod:`~.help_screen`: every key, command and sign
- :mod:`~.confirm_screen`: the question before quitting or restarting
- :mod:`~.comparison_screen`: two backwards side by side
- :mod:`~.columns_screen`: which columns the graph has, and what sorts its rows
- :mod:`~.ranks_screen`: where all ranks are, and which to look at
- :mod:`~.threads_screen`: nested backwards, and which thread to follow
- :mod:`~.tensor_screen`: a tensor as a table, heat map or histogram
- :mod:`~.what_if_screen`: what the parameters would get from another gradient
"""
