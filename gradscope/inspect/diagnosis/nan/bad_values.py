"""Whether a node has made the NaN or infinity that came out of it, or hands it on from the forward pass."""

from __future__ import annotations

from collections.abc import Iterable
from operator import attrgetter

from ...records.records import NodeRecord, TensorSummary

__all__ = ["bad_value_text", "inherited_in", "produced_bad"]

_WORDS = {"nan": "a NaN", "inf": "an infinity"}


def produced_bad(node: NodeRecord) -> str:
    """Return what came out of a node that was given nothing of the kind, as far as its gradients are known.

    Returns
    -------
    str
        ``'NaN'``, ``'Inf'`` or nothing.
    """
    for name, count in (("NaN", attrgetter("nans")), ("Inf", attrgetter("infs"))):
        given, produced = (_has(group or (), count) for group in (node.grad_outputs, node.grad_inputs))
        if produced and not given:
            return name
    return ""


def _has(group: Iterable[TensorSummary | None], count: attrgetter[int]) -> bool:
    return any(summary is not None and count(summary) for summary in group)


def inherited_in(node: NodeRecord) -> str | None:
    """Return the saved tensor from which a node has the NaN or infinity that came out of it.

    Returns
    -------
    str or None
        Empty where the node has made it, None where what it saved is not known.
    """
    if node.inherited is not None:
        return node.inherited
    if node.grad_inputs is None:
        return None
    known = [(saved.name, saved.summary) for saved in node.saved if saved.summary is not None]
    tainted = next((name for name, summary in known if summary.nans or summary.infs), "")
    return tainted if tainted or len(known) == len(node.saved) else None


def bad_value_text(name: str, kind: str, inherited: str | None = "") -> str:
    """Say that a NaN or an infinity came out of a node which was given nothing of the kind.

    Parameters
    ----------
    name : str
        Of the node.
    kind : str
        ``'nan'`` or ``'inf'``.
    inherited : str or None
        The saved tensor that it is from, where that has had one since the forward pass; None where that is not known.

    Examples
    --------
    >>> bad_value_text("PowBackward0", "nan", "self")
    'PowBackward0 hands on a NaN: its saved `self` has not been finite since the forward pass'
    >>> bad_value_text("PowBackward0", "nan", None)
    'a NaN comes out of PowBackward0, which was given none'
    """
    word = _WORDS[kind]
    if inherited is None:
        return f"{word} comes out of {name}, which was given none"
    if inherited:
        return f"{name} hands on {word}: its saved `{inherited}` has not been finite since the forward pass"
    return f"{name} produced {word} from gradients without one"
