"""Linear algebra under PyTorch's names: decompositions, equations, norms, determinants, inverses and products.

They are those that :mod:`gradscope.runtime.ops` declares for this module; their types are in ``linalg.pyi``, which
:mod:`gradscope.runtime.ops.declaration.stubs` writes.

Examples
--------
>>> import gradscope as gs
>>> gs.linalg.norm(gs.tensor([3.0, 4.0]))
tensor(5.)
>>> gs.linalg.inv(gs.tensor([[2.0, 0.0], [0.0, 4.0]]))
tensor([[0.5000, 0.0000],
        [0.0000, 0.2500]])
"""

from __future__ import annotations

from .runtime.ops.execution.array_errors import LinAlgError
from .runtime.ops.families import NAMESPACES

__all__ = ["LinAlgError", *sorted(NAMESPACES["linalg"])]

globals().update(NAMESPACES["linalg"])
