"""Where NaN and Inf come from.

- :mod:`~.nan_origin`: ``gi.nan_origin`` and ``gi.watch_nan``
- :mod:`~.nan_producers`: who produced a NaN or Inf, and who passed it on
- :mod:`~.nan_inside`: who produced one inside of what torch.compile has compiled
- :mod:`~.nan_causes`: what arithmetic makes them: an operator and its elements as a sentence
- :mod:`~.nan_records`: producers, the steps that passed bad values on, and the whole
- :mod:`~.nan_stops`: who made the NaN at this stop
- :mod:`~.bad_values`: whether a node has made the NaN or infinity that came out of it, or hands it on
- :mod:`~.forward_origin`: where the forward pass has a NaN from that a node has saved
- :mod:`~.infinite_slopes`: derivatives that will be infinite, before their nodes run
"""
