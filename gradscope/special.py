"""Special functions under PyTorch's names: those that :mod:`gradscope.runtime.ops` declares for this module.

Their types are in ``special.pyi``, which :mod:`gradscope.runtime.ops.declaration.stubs` writes.

Examples
--------
>>> import gradscope as gs
>>> gs.special.expit(gs.tensor(0.0))
tensor(0.5000)
>>> gs.special.ndtr(gs.tensor([-1.0, 0.0, 1.0]))
tensor([0.1587, 0.5000, 0.8413])
"""

from __future__ import annotations

from .runtime.ops.families import NAMESPACES

__all__ = sorted(NAMESPACES["special"])

globals().update(NAMESPACES["special"])
