"""Reports: what ``gradscope check --format`` writes, one file a format.

- :mod:`~.report_format_registry`: how a format is registered, by its own file
- :mod:`~.text_report`, :mod:`~.concise`: for people; every place of a finding, or one line each
- :mod:`~.json_report`: for programs, in a schema of this project's
- :mod:`~.sarif`: for code scanning and editors
- :mod:`~.github`: annotations in a pull request
- :mod:`~.junit`: what CI servers show as tests
- :mod:`~.paths`: what a file is called in a report
"""

from __future__ import annotations
