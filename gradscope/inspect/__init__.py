"""Understanding a running backward pass: the graph of a loss, and a debugger that steps through it.

- :mod:`~.graphs`: a loss as a networkx graph, drawn, folded and compared
- :mod:`~.debugging`: stop in a backward, look, change, go back
- :mod:`~.diagnosis`: why a gradient is missing, wrong, not finite or zero; the doctor
- :mod:`~.recording`: write backwards to a file, read and compare them
- :mod:`~.ranks`: programs of several processes
- :mod:`~.debuggee`: run a script under an instrument
- :mod:`~.wire`: debug a program in another process
- :mod:`~.dap`: debug from an editor
- :mod:`~.adapters`: gradscope's runtime and PyTorch, behind one protocol
- :mod:`~.records`: the immutable records that all of these return
- :mod:`~.source`: lines and variables of the program
- :mod:`~.output`: text for terminals, markup for pages
- :mod:`~.discovery`: rules, formats and commands that are there because their file is

Examples
--------
>>> import gradscope as gs
>>> import gradscope.inspect as gi
>>> x = gs.ones(3, requires_grad=True)
>>> loss = (x * 2).sum()
>>> [data["name"] for _, data in gi.graph(loss).nodes(data=True)]
['SumBackward0', 'MulBackward0', 'AccumulateGrad']
>>> session = gi.debug(loss)
>>> session.wait().value, session.node.name
('paused before', 'SumBackward0')
>>> session.cont()
>>> session.wait().value, x.grad
('finished', tensor([2., 2., 2.]))
"""

from __future__ import annotations

import lazy_loader

# The names stand in ``__init__.pyi``. What a module needs, networkx for the graph model, is loaded with the first name
# of it that is asked for.
__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
