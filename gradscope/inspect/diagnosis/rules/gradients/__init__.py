"""Rules on what a backward computes: no gradient, a wrong, constant, zero, vanishing or exploding one, NaN."""

from __future__ import annotations
