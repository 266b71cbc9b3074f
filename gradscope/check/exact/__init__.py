"""``gradscope check --exact``: the line of a write that nobody hears of, by a second run.

- :mod:`~.second_run`: the program once more, in a process of its own
- :mod:`~.line_finder`: looks there at what the first run has found changed
- :mod:`~.line_trace`: calls it after each line
"""
