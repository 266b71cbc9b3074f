"""Automatic mixed precision: operators in the precision that suits each, and the scaling of gradients.

- :mod:`~.autocast_mode`: the block in which operators run in lower precision, and Functions inside it
- :mod:`~.grad_scaler`: losses times a factor, and steps that are left out where gradients overflow

Examples
--------
>>> import gradscope as gs
>>> layer = gs.nn.Linear(2, 3)
>>> with gs.amp.autocast("cpu", dtype=gs.float16):
...     out = layer(gs.ones(1, 2))
>>> out.dtype, layer.weight.dtype
(gradscope.float16, gradscope.float32)

References
----------
P. Micikevicius and others, "Mixed precision training", ICLR 2018.
"""

from __future__ import annotations

from .autocast_mode import autocast, custom_bwd, custom_fwd, is_autocast_available
from .grad_scaler import GradScaler

__all__ = ["GradScaler", "autocast", "custom_bwd", "custom_fwd", "is_autocast_available"]
