"""Rules on modules: initial values, units that are dead or saturated, modes, dropout, normalisation, masks."""

from __future__ import annotations
