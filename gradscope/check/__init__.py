"""Judging a program: the in-place sanitizer behind ``gradscope check``.

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

from .finding_codes import CODES, Code, explain
from .finding_report import as_json, as_text, finding_as_text
from .findings import Finding, Site, TensorDescription
from .sanitizer import Sanitizer
from .script_runner import ScriptResult, check_script, run_script

__all__ = [
    "CODES",
    "Code",
    "Finding",
    "Sanitizer",
    "ScriptResult",
    "Site",
    "TensorDescription",
    "as_json",
    "as_text",
    "check_script",
    "explain",
    "finding_as_text",
    "run_script",
]
