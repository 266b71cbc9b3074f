"""Rules on the step: what an optimizer holds, its constants, clearing, clipping, schedules, sizes of updates."""

from __future__ import annotations
