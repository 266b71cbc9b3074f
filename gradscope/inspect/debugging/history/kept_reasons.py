"""Why a parameter has no gradient, of a program that has ended: by what was kept of its backwards."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...output.number_format import several
from ..session.session_errors import SessionError
from ..session.session_records import BackwardFinding, ParameterRecord

if TYPE_CHECKING:
    from ...diagnosis.no_gradient.no_grad_reasons import GradientReport, NoGradient

__all__ = ["kept_reason", "path_called"]


def path_called(name: str, paths: Sequence[str]) -> str:
    """Return the path of a parameter that is called so, or the only one that ends so; empty if there is none.

    Examples
    --------
    >>> path_called("fc1.weight", ["net.fc1.weight", "net.fc2.weight"]), path_called("weight", ["a.weight", "b.weight"])
    ('net.fc1.weight', '')
    """
    if name in paths:
        return name
    ends = [path for path in paths if name and path.endswith(f".{name}")]
    return ends[0] if len(ends) == 1 else ""


def kept_reason(
    subject: str, parameters: Sequence[ParameterRecord], findings: Sequence[BackwardFinding]
) -> NoGradient | GradientReport:
    """Return what is known of the gradient of a parameter, or of those of a module.

    Parameters
    ----------
    subject : str
        A path, or the end of one alone; what follows a comma, the loss, cannot be told from another any more.
    parameters : sequence of ParameterRecord
        With what the last backward and those before brought them.
    findings : sequence of BackwardFinding
        Of the last backward: those about parameters that it does not reach name the line.

    Raises
    ------
    SessionError
        If no parameter or module is called so.
    """
    # The diagnosis loads when it is asked for.
    from ...diagnosis.no_gradient.no_grad_reasons import GradientReport

    name = subject.partition(",")[0].strip()
    paths = [one.path for one in parameters]
    path = path_called(name, paths)
    if path:
        return _reason(parameters[paths.index(path)], findings)
    inside = [one for one in parameters if one.path.startswith(f"{name}.")]
    if not inside:
        known = f"Known are {several(paths)}." if paths else "None is known."
        raise SessionError(f"the program has ended: no parameter or module of it is called {name!r}\n{known}")
    return GradientReport(tuple(_reason(one, findings) for one in inside), len(inside))


def _reason(one: ParameterRecord, findings: Sequence[BackwardFinding]) -> NoGradient:
    # The diagnosis loads when it is asked for.
    from ...diagnosis.no_gradient.no_grad_reasons import NoGradient, Reason

    def answer(reason: Reason, message: str, way_out: str = "") -> NoGradient:
        return NoGradient(one.path, one.shape, reason, message, help=way_out)

    if not one.requires_grad:
        way_out = "Call requires_grad_(True) on it before the forward pass, if it is to be trained."
        return answer(Reason.FROZEN, "frozen: its requires_grad is False", way_out)
    if one.unreached:
        found = next((finding for finding in findings if one.path in finding.parameters), None)
        if found is None:
            way_out = "`restart`, and ask at its first stop: the line that cuts it off is looked for there."
            return answer(Reason.NOT_REACHED, "not reached: no backward has brought it a gradient", way_out)
        locations = () if found.location is None else (found.location,)
        return NoGradient(one.path, one.shape, Reason.NOT_REACHED, found.text, locations)
    if one.index < 0:
        latest = f"; the latest that did brought one of norm {one.recent[-1]:.4g}" if one.recent else ""
        return answer(Reason.HAS_GRADIENT, f"the last backward did not reach it{latest}")
    if one.norm is None:
        return answer(Reason.HAS_GRADIENT, f"reached, at node {one.index} of the last backward; its norm was not kept")
    if one.norm == 0:
        return answer(Reason.ZERO, "its gradient is zero everywhere in the last backward")
    bad = "" if math.isfinite(one.norm) else "; `findings` tells where that began"
    return answer(Reason.HAS_GRADIENT, f"the last backward brought it a gradient, of norm {one.norm:.4g}{bad}")
