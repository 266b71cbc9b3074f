"""Running a program under an instrument: a script, a module or a function, as python runs it.

- :mod:`~.program`: what a session runs: a function, or a script
- :mod:`~.main_thread`: a script on the main thread of its process, as python runs it
- :mod:`~.script`: a script on a thread of the debugger's process, for sessions that are made in Python
- :mod:`~.script_targets`: a file, a directory or zip file with a ``__main__``, a module
- :mod:`~.pause_gate`: the gate at which a program waits while its debugger thinks
- :mod:`~.waiters`: threads that wait for a change, which Ctrl-C may interrupt
- :mod:`~.program_thread`: the thread that a program takes for its main thread
- :mod:`~.streams`: its standard streams, on a thread
- :mod:`~.ordered_output`: stdout and stderr in order, where they are two pipes
- :mod:`~.signals`: its signals, on a thread
- :mod:`~.whereabouts`: where the main thread is while it runs
- :mod:`~.interrupts`: Ctrl-C
- :mod:`~.fork_warning`: Python's warning of a fork, where it is of gradscope's threads
- :mod:`~.exits`: how it ends: ``os._exit``; its own ``atexit``, on a thread
- :mod:`~.processes`: processes that it starts
- :mod:`~.broadcast`: what a session tells its listeners
"""
