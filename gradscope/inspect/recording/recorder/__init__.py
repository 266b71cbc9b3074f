"""Making a recording while a program runs.

- :mod:`~.recorder`: ``gi.record``
- :mod:`~.keep_policy`: what of each tensor is kept
- :mod:`~.recorded_events`: what is heard, turned into rows on the program's thread
- :mod:`~.gradient_capture`: what is taken of each gradient, once
- :mod:`~.gradient_statistics`: statistics of many tensors at once
- :mod:`~.plan_cache`: the nodes of a backward, known from the one before
- :mod:`~.iteration_marks`: what an iteration is
- :mod:`~.writer_thread`: the thread that puts rows on the disk
"""
