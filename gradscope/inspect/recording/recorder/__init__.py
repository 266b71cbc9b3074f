"""Making a recording while a program runs.

- :mod:`~.recorder`: ``gi.record``
- :mod:`~.recording_names`: which file it writes, where there are many ranks
- :mod:`~.keep_policy`: what of each tensor is kept
- :mod:`~.size_and_age`: ``200MB`` and ``7d``, as a person types them
- :mod:`~.recorded_events`: what is heard, turned into rows on the program's thread
- :mod:`~.gradient_capture`: each gradient, captured once
- :mod:`~.gradient_statistics`: statistics of many tensors at once
- :mod:`~.plan_cache`: what is the same in every backward, worked out once
- :mod:`~.iteration_marks`: what an iteration is
- :mod:`~.hang_watch`: where a rank is when nothing more comes from it
- :mod:`~.writer_thread`: the thread that puts rows on the disk
"""
