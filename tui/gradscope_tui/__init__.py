"""The terminal UI of gradscope: a face of `gradscope.inspect`, in Textual.

Only :func:`gradscope_tui.app.run_app` and :func:`gradscope_tui.app.view_recording` are meant for others; they block
until the person leaves.

- :mod:`~.app`: the app, and how it is started
- :mod:`~.actions`: what every key does; bindings, key bar, help and palette derive from it
- :mod:`~.panes`: the panes, one file each: graph, inspector, source, breakpoints, log, watches, modules
- :mod:`~.pane_layout`: which panes have room, and which one the keys go to
- :mod:`~.navigation`: the cursor of the graph, the filter and its matches, folds
- :mod:`~.run_verbs`: step, continue, run to, back: how the program goes on
- :mod:`~.pane_verbs`: break, switch, delete, copy, save, edit: what is under the cursor of a pane
- :mod:`~.command_line`: what is typed after ``:``, and the other questions of the prompt
- :mod:`~.commands`: ``:compare`` and ``:explain``, which take more than a line
- :mod:`~.sessions`: a program under the debugger or a recording, and how the app follows it
- :mod:`~.widgets`: what panes are made of; status bar, key bar, prompt
- :mod:`~.screens`: what lies over the panes: help, threads, what if, the question before quitting
- :mod:`~.terminal`: the terminal is kept for the app, and given back whatever happens
- :mod:`~.browser`: the screen in a browser
- :mod:`~.settings`: theme and keys, as a person has set them
- :mod:`~.tour`: a guided walk over a program with three mistakes
- :mod:`~.colors`: the styles in which widgets write
- :mod:`~.refusal`: why something cannot be done
- :mod:`~.worker_thread`: waiting for what blocks without stopping the screen
"""
