"""The doctor's rules: a file for each code, in a folder for each part of a training step.

Each is a :class:`~gradscope.inspect.diagnosis.rule_registry.Rule` that judges facts (:mod:`..program_facts`); all files
of these folders are rules. docs/architecture.md shows how one is added.

- :mod:`~.gradients`: what a backward computes
- :mod:`~.losses`: the loss and its arguments
- :mod:`~.optimizers`: the step
- :mod:`~.layers`: modules
- :mod:`~.batches`: data
"""

from __future__ import annotations
