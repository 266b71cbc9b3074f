"""Explanations: why a parameter has no gradient, where a NaN comes from, what holds the memory, and others.

Each question is a function that returns frozen data with a sentence (``str()``), a Rich table (``table()``), a
dictionary (``to_dict()``) and, where people look rather than read, a picture (``plot()``). They are reached as names of
:mod:`gradscope.inspect`.

- :mod:`~.no_gradient`: why a tensor has no gradient
- :mod:`~.nan`: where NaN and Inf come from
- :mod:`~.flow`: how large gradients are on their way
- :mod:`~.memory`: what is kept in memory, and by whom
- :mod:`~.optimizers`: what optimizers do with gradients
- :mod:`~.training`: modes, losses and steps, as the program sets them up
- :mod:`~.functions`: custom Functions and failed backwards
- :mod:`~.doctor`: the doctor: all of them at once over a program that runs by itself
- :mod:`~.rules`: what it finds, a file a kind of finding
- :mod:`~.rule_registry`: how one is written and registered
- :mod:`~.program_facts`: what a rule may need to know
- :mod:`~.watch`: what looks for it, and keeps its own errors from the program
- :mod:`~.watch_table`: all watches as one observer
- :mod:`~.examination`: what is looked at in each backward
- :mod:`~.sampled_graphs`: the graphs that are looked into, walked once for all rules
- :mod:`~.finding_limits`: the numbers beyond which the doctor speaks
- :mod:`~.step_limit`: the end of a program that is run for some steps alone
- :mod:`~.explanation`: what all explanations are
- :mod:`~.plots`: explanations as pictures
- :mod:`~.explain_topics`: what ``gradscope explain TOPIC`` prints
"""
