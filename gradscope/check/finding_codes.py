"""The finding codes: what each means, with a program that has it and one that does not.

``gradscope check --explain GS101`` prints what stands in the rule's file, in :mod:`gradscope.check.rules`; ``gradscope
explain`` knows the doctor's rules as well (:mod:`gradscope.inspect.diagnosis.rules`).
"""

from __future__ import annotations

from functools import cache

from ..inspect.diagnosis.rule_registry import Rule, explanation, load_rules

__all__ = ["CODES", "Code", "all_codes", "explain"]

Code = Rule
"""A kind of finding."""

CODES: dict[str, Rule] = {rule.code: rule for rule in load_rules(f"{__package__}.rules")}
"""What ``gradscope check`` finds."""


@cache
def all_codes() -> dict[str, Rule]:
    """Return all kinds of findings by code: those of ``check`` and those of the doctor.

    Examples
    --------
    >>> all_codes()["D303"].title
    'a parameter without a gradient'
    """
    return {**CODES, **{rule.code: rule for rule in load_rules("gradscope.inspect.diagnosis.rules")}}


def explain(code: str) -> str:
    """Return what a code means, as text to print.

    Parameters
    ----------
    code : str
        Upper or lower case.

    Raises
    ------
    KeyError
        If there is no such code.

    Examples
    --------
    >>> print(explain("GS103").splitlines()[0])
    GS103: leaf that requires grad written in place (error)
    """
    known = CODES if code.upper() in CODES else all_codes()
    return explanation(known[code.upper()])
