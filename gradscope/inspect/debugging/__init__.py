"""The debugger: stopping a program inside its backward passes, looking, changing, going on and back.

- :mod:`~.session`: a session: the program that runs and stops, and what is seen where it stands
- :mod:`~.stops`: breakpoints, conditions, watches: where a session stops
- :mod:`~.history`: the past of a session, time travel, what-if
- :mod:`~.prompt`: the debugger at a prompt
"""
