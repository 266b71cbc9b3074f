"""The rules of ``gradscope check``: a file for each code; :mod:`gradscope.check.findings.finding_codes` has all.

Each is a :class:`~gradscope.inspect.diagnosis.rule_registry.Rule` that judges what the watches tell: one type of
:mod:`gradscope.check.watching.violation_facts`.
"""

from __future__ import annotations
