"""The doctor's rules: a file for each code, the worst first.

Each is a :class:`~gradscope.inspect.diagnosis.rule_registry.Rule` that judges facts (:mod:`..program_facts`); all files
of the folder are rules. docs/architecture.md shows how one is added.
"""

from __future__ import annotations
