"""Understanding a running backward pass: the graph of a loss, and a debugger that steps through it.

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
