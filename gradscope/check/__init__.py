"""Judging a program: the in-place sanitizer behind ``gradscope check``.

- :mod:`~.sanitizer`: the ``with`` block under which a program is watched
- :mod:`~.script_runner`: a script under it, as ``gradscope check`` runs one
- :mod:`~.watching`: the writes, saved tensors and nodes of the program while it runs
- :mod:`~.rules`: the judgements, one file each
- :mod:`~.static`: what is judged in sources that do not run
- :mod:`~.exact`: the line of a write that nobody hears of, by a second run
- :mod:`~.findings`: the records of what was found, their codes, the fix of the user's line
- :mod:`~.suppression`: comments, baselines and files that silence a finding
- :mod:`~.symptoms`: what was found, as the doctor tells it
- :mod:`~.check_report`: the outcome of a run
- :mod:`~.formats`: that as text, SARIF, JUnit, JSON
- :mod:`~.project_settings`: ``[tool.gradscope.check]`` in pyproject.toml

Examples
--------
>>> import gradscope as gs
>>> from gradscope.check import Sanitizer
>>> w = gs.ones(2, requires_grad=True)
>>> with Sanitizer() as sanitizer:
...     loss = (w * w).sum()
...     with gs.no_grad():
...         _ = w.sub_(0.1)
...     try:
...         loss.backward()
...     except RuntimeError:
...         pass
>>> print(sanitizer.findings[0].message)
parameter `w` (float32 [2]) was modified by sub_() between forward and backward
"""

from __future__ import annotations

from .check_report import Report, make_report, make_static_report
from .findings.finding_codes import CODES, Code, explain
from .findings.finding_records import Finding, Fix, Site, TensorDescription
from .formats.report_format_registry import format_named, formats
from .formats.text_report import finding_as_text
from .project_settings import Settings, read_settings
from .sanitizer import Sanitizer
from .script_runner import ScriptResult, check_script, run_script
from .static.source_files import StaticCheck, check_sources
from .suppression.silences import Silences
from .symptoms import symptoms_of

__all__ = [
    "CODES",
    "Code",
    "Finding",
    "Fix",
    "Report",
    "Sanitizer",
    "ScriptResult",
    "Settings",
    "Silences",
    "Site",
    "StaticCheck",
    "TensorDescription",
    "check_script",
    "check_sources",
    "explain",
    "finding_as_text",
    "format_named",
    "formats",
    "make_report",
    "make_static_report",
    "read_settings",
    "run_script",
    "symptoms_of",
]
