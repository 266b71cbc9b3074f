"""The terminal: kept for the app, lent to an editor, and given back whatever happens.

- :mod:`~.terminal_output`: what others write to file descriptors 1 and 2 becomes lines of the log
- :mod:`~.terminal_emulator`: what a terminal would show of what the program has written
- :mod:`~.ascii_text`: the screen in ASCII, where the locale has no more
- :mod:`~.changed_cells`: no more is sent than what has changed on the screen
- :mod:`~.style_changes`: cells as escape sequences, of each style what differs from the one before it
- :mod:`~.paint_delay`: one painting for what one key changes
- :mod:`~.pixel_graphics`: pictures, where the terminal says that it draws some
- :mod:`~.raster`: a picture of dots, as Kitty's protocol and Sixel write it
- :mod:`~.shutdown_signals`: SIGTERM, SIGHUP and SIGINT end the script as ``q`` does
- :mod:`~.external_editor`: the person's own editor
"""
