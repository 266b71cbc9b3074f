"""Output: text for terminals and markup for pages, made safe for both.

- :mod:`~.terminal_text`: ``say()``: what a terminal would obey is shown instead
- :mod:`~.markup`: pages and pictures whose templates escape what they are given
- :mod:`~.rich_tables`: explanations as tables
- :mod:`~.notebook_html`: tables and small pictures for the cells of a notebook
- :mod:`~.error_text`: what an exception says, which may fail to
- :mod:`~.number_format`: how numbers are written in a sentence
- :mod:`~.terminal_restore`: the terminal is usable again even where the process is killed
- :mod:`~.sparkline`: norms over time in one line
"""
