"""Suppression: what silences a finding, and which suppressions have silenced none.

- :mod:`~.silences`: all of it together, which the sanitizer asks
- :mod:`~.code_selection`: ``--select`` and ``--ignore``
- :mod:`~.line_comments`: ``# gradscope: ignore[GS101]``
- :mod:`~.suppressions_file`: ``--suppressions``: by library, file and function
- :mod:`~.baseline`: ``--baseline``: what is known already
- :mod:`~.notices`: what is wrong with any of these
"""

from __future__ import annotations
