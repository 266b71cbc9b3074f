"""``gradscope check --static``: what a reader of the source can be sure of, without running it.

:mod:`.source_files` finds and reads the files, :mod:`.statements` has what the rules ask of them, and
:mod:`.source_rule` is what a rule inherits that finds something there; the rules stand beside the others, in
:mod:`gradscope.check.rules`.
"""
