"""Rules on the loss: what stands before it, the order and the range of its arguments, its sign."""

from __future__ import annotations
