"""D302: NaN or Inf is in a result or a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from ...nan.nan_origin import NanOrigin
from ...program_facts import NAN
from ...rule_registry import Found, Rule

__all__ = ["NotFinite"]


class NotFinite(Rule):
    """NaN or Inf is in a result or a gradient."""

    code = "D302"
    title = "NaN or Inf in a result or a gradient"
    severity = "silent-wrong"
    needs = (NAN,)
    kind = "NaN"
    what = """
        An operator made a NaN or an Inf out of numbers, and everything behind it passes it on: a parameter whose
        gradient is NaN is NaN after the next step, and for ever. The finding names the operator that made the first
        one, forward or backward, and what it was given.

        A program without an optimizer that asks whether a result is finite, or compares it, and goes on without it, as
        a line search or a sampler does with a step that it rejects, has none.
        """
    bad = """
        x = gs.zeros(3, requires_grad=True)
        ((x * x).sum().sqrt() * 0).backward()
        """
    good = """
        x = gs.zeros(3, requires_grad=True)
        (((x * x).sum() + 1e-12).sqrt() * 0).backward()
        """
    topic = "nan"

    def judge(self, nan: NanOrigin) -> Iterator[Found]:
        """Yield what is found, and where."""
        if nan.first is not None and not nan.first.harmless and not nan.rejected:
            since = nan.first.backwards + (nan.first.direction == "forward")
            yield Found(str(nan), nan.first.location, tuple(name.strip("`") for name in nan.parameters), since)
