"""``gradscope check --static``: what a reader of the source can be sure of, without running it.

- :mod:`~.source_files`: the files, found and read
- :mod:`~.statements`: what rules ask of them: blocks, names, calls
- :mod:`~.source_rule`: what a rule inherits that finds something there; they stand in :mod:`gradscope.check.rules`
"""
