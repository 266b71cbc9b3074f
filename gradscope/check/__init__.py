"""Judging a program: the in-place sanitizer behind ``gradscope check``.

- :mod:`~.sanitizer`: the ``with`` block under which a program is watched
- :mod:`~.script_runner`: a script under it, as ``gradscope check`` runs one
- :mod:`~.script_result`: how it ended
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

import lazy_loader

# The names stand in ``__init__.pyi``: what reads sources and runs nothing loads no runtime.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
