"""What the app looks at: a program under the debugger, or a recording, and how the app follows it.

- :mod:`~.session_protocol`: what the app asks of a session
- :mod:`~.session_snapshot`: what the panes show of it at one moment
- :mod:`~.session_watcher`: hears of changes, and has the panes show them
- :mod:`~.running_progress`: how a program that runs gets on
- :mod:`~.recorded_session`: a recording under the verbs of a debugger
- :mod:`~.recorded_nodes`: the nodes of a recorded backward, no more of which is read than is shown
- :mod:`~.recorded_parameters`: the parameters of a recording, with their norms over the latest backwards
- :mod:`~.traceback_line`: the line at which a program has failed
- :mod:`~.saved_breakpoints`: breakpoints from one session to the next
- :mod:`~.saved_view`: sizes of panes, theme and watches, likewise
"""
