"""Losses, and the distances that some are made of.

- :mod:`~.elementwise_losses`: squared, absolute and binary losses
- :mod:`~.cross_entropy`: losses of classes: ``nll_loss``, ``cross_entropy``
- :mod:`~.margin_losses`: losses of margins
- :mod:`~.ctc_loss`: connectionist temporal classification
- :mod:`~.distances`: distances and similarities of rows
"""
