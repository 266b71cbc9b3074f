"""The debugger at a prompt (``--line``), from ``-c`` and from a file.

- :mod:`~.line_mode`: the prompt, for any terminal, a pipe, or a string of commands
- :mod:`~.prompt_verbs`: the verbs: their names, what they take, and how a line is taken apart
- :mod:`~.prompt_output`: what the verbs stand on: saying something, page by page
- :mod:`~.inspect_verbs`: verbs about what is there
- :mod:`~.break_verbs`: verbs about where to stop and what to show
- :mod:`~.completion`: tab completion and history
- :mod:`~.plain_text`: records as plain text
"""
