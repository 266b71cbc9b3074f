"""The finding codes: what each means, with a program that has it and one that does not.

``gradscope check --explain GS101`` prints what stands in the rule's file, in :mod:`gradscope.check.rules`; ``gradscope
explain`` knows the doctor's rules as well (:mod:`gradscope.inspect.diagnosis.rules`).
"""

from __future__ import annotations

from functools import cache

from ...inspect.diagnosis.rule_registry import Rule, explanation, load_rules

__all__ = ["CODES", "Code", "all_codes", "explain", "find_code"]

Code = Rule
"""A kind of finding."""

CODES: dict[str, Rule] = {rule.code: rule for rule in load_rules("gradscope.check.rules")}
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


def find_code(word: str) -> Rule | None:
    """Return the kind of finding that a word is the code of, None where it is none.

    The doctor's rules are imported only for a word that may be one.

    Parameters
    ----------
    word : str
        Upper or lower case.

    Examples
    --------
    >>> find_code("gs103").title, find_code("nan")
    ('leaf that requires grad written in place', None)
    """
    code = word.upper()
    known = all_codes() if code[-1:].isdigit() and code not in CODES else CODES
    return known.get(code)


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

    See Also
    --------
    Code

    Examples
    --------
    >>> print(explain("GS103").splitlines()[0])
    GS103: leaf that requires grad written in place (error)
    """
    rule = find_code(code)
    if rule is None:
        raise KeyError(code)
    return explanation(rule)
