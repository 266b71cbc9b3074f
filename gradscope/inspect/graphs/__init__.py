"""The graph of a backward as a networkx graph: making it, folding it, asking it.

:mod:`.model` makes it; :mod:`.folding`, :mod:`.paths`, :mod:`.selection`, :mod:`.difference` and :mod:`.statistics` are
functions of the finished model, which holds nothing of the program. Pictures and files are made by
:mod:`gradscope.inspect.export`.
"""

from __future__ import annotations
