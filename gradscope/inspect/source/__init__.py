"""The user's source: lines, syntax, variables.

- :mod:`~.call_sites`: where a call comes from, and how a place is written
- :mod:`~.variable_names`: what a value is called in the program
- :mod:`~.growing_lines`: the statements that make a variable longer
- :mod:`~.frame_variables`: variables of frames: read and set
- :mod:`~.source_syntax`: the syntax of a file or of a function
- :mod:`~.source_paths`: paths of files, as they are shown from where the program was started
"""
