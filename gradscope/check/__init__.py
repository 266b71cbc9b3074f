"""Judging a program: the in-place sanitizer behind ``gradscope check``.

- :mod:`~.sanitizer`: the ``with`` block under which a program is watched
- :mod:`~.script_runner`: a script under it, as ``gradscope check`` runs one
- :mod:`~.watcher`: which writes, saved tensors and nodes a program's forward and backward have
- :mod:`~.continuing_watcher`: the same where the program goes on after a violation
- :mod:`~.shared_writes`: what watchers share: each write, its line and who it spoils
- :mod:`~.function_calls`: tensors that custom Functions keep on ``ctx`` or write silently
- :mod:`~.saved_values`: whether memory holds what was saved, where no version tells
- :mod:`~.kept_values`: copies of what is about to be overwritten
- :mod:`~.wrong_gradients`: how far off gradients would have been
- :mod:`~.task_nodes`: which node of a backward got which gradient
- :mod:`~.tensor_names`: what the program calls a tensor
- :mod:`~.violation_facts`: what watchers state, for rules to judge
- :mod:`~.rules`: the judgements, one file each
- :mod:`~.static`: what is judged in sources that do not run
- :mod:`~.exact`: the line of a write that nobody hears of, by a second run
- :mod:`~.findings`: what a rule has found: records without a tensor in them
- :mod:`~.finding_codes`: GS101 and the others, each with a bad and a good program
- :mod:`~.finding_parts`: sentences and places that several rules use
- :mod:`~.source_fixes`: the smallest change of the user's line
- :mod:`~.suppression`: comments, baselines and files that silence a finding
- :mod:`~.report`: the outcome of a run
- :mod:`~.formats`: that as text, SARIF, JUnit, JSON
- :mod:`~.settings`: ``[tool.gradscope.check]`` in pyproject.toml

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
from .findings import Finding, Fix, Site, TensorDescription
from .formats.format_registry import format_named, formats
from .formats.text import finding_as_text
from .report import Report, make_report, make_static_report
from .sanitizer import Sanitizer
from .script_runner import ScriptResult, check_script, run_script
from .settings import Settings, read_settings
from .static.source_files import StaticCheck, check_sources
from .suppression.silences import Silences

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
]
