"""The past of a session, and other pasts.

- :mod:`~.history`: the backwards that were followed, in which order their nodes ran
- :mod:`~.history_policy`: how much of the past is kept
- :mod:`~.history_replay`: going through it, back and forth
- :mod:`~.time_travel`: the verbs for that
- :mod:`~.past_gradients`: gradients kept as values within a budget
- :mod:`~.norm_history`: the norms that the latest backwards have brought to their leaves
- :mod:`~.loss_history`: the values of the losses of the latest backwards
- :mod:`~.gradient_restore`: leaves as they were before a backward that does not end
- :mod:`~.what_if`: what parameters would get if one gradient were another
- :mod:`~.kept_reasons`: why a parameter has no gradient, of a program that has ended
"""
