"""Rules on data: samples and labels that are mixed, exchanged, shuffled apart or scaled twice, repeated noise."""

from __future__ import annotations
