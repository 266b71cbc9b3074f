"""D303: No backward has given a parameter a gradient."""

from __future__ import annotations

from collections.abc import Iterator

from ...examination import Examination
from ...program_facts import EXAMINATION
from ...rule_registry import Found, Rule

__all__ = ["ParametersWithoutGradient"]


class ParametersWithoutGradient(Rule):
    """No backward has given a parameter a gradient."""

    code = "D303"
    title = "a parameter without a gradient"
    severity = "silent-wrong"
    needs = (EXAMINATION,)
    kind = "no gradient"
    explains = ("D346",)
    what = """
        No backward reached a parameter of a model: its way to the loss ends at a detach(), under no_grad(), in an
        operator that has no derivative or in a copy of its values, or it has none. It stays as it was made, and
        nothing raises. The finding names the line that ends the way. Parameters with requires_grad=False are left
        out, and so are those that a model of an installed package has and its own forward does not use.
        """
    bad = """
        body, head = gs.nn.Linear(3, 4), gs.nn.Linear(4, 1)
        hidden = body(gs.ones(2, 3)).detach()      # the way to body ends here
        head(hidden).sum().backward()
        """
    good = """
        body, head = gs.nn.Linear(3, 4), gs.nn.Linear(4, 1)
        hidden = body(gs.ones(2, 3))
        head(hidden).sum().backward()
        """
    topic = "no-grad"

    def judge(self, examined: Examination) -> Iterator[Found]:
        """Yield what is found, and where."""
        missing = examined.missing
        if missing.parameters:
            names = tuple(filter(None, (entry.name for entry in missing.parameters)))
            yield Found(str(missing), missing.parameters[0].location, names, examined.missing_since)
