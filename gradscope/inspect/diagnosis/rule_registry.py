"""Findings are rules: each kind stands in one file, as a class that is registered when it is written down.

A file of :mod:`gradscope.inspect.diagnosis.rules` (what the doctor finds, ``D301`` and so on) or of
:mod:`gradscope.check.rules` (violations in place, ``GS101`` and so on) holds one class: its code, what it needs to
know, the judgement, and the texts. All files of the two folders are rules; no list names them. A code keeps its meaning
for ever; a new kind of finding gets a new code.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from textwrap import dedent, fill
from typing import Any, ClassVar, NamedTuple

from ..discovery import import_all, subpackages
from .explain_topics import with_examples

__all__ = ["LEVELS", "RULES", "Found", "Rule", "explanation", "load_rules", "metadata"]

LEVELS = {"error": "error", "silent-wrong": "error", "warning": "warning"}
"""The level that machines are told, SARIF's for one, by severity."""

RULES: dict[str, Rule] = {}
"""Every rule that has been imported, by code."""

_WIDTH = 88
_CODE = re.compile(r"[A-Z]+[1-9]\d\d")


class Found(NamedTuple):
    """What a rule of the doctor's yields; a tuple of the first two will do.

    Attributes
    ----------
    text : str
        What is wrong, the evidence, and what to do.
    location : Location or None
        The line that is to blame.
    concerns : tuple of str
        The paths of the parameters or modules that it is about; empty where that is the whole program, or not known.
    since : int
        The number, from 1, of the backward pass with which it was first seen; 0 where that is not known.
    """

    text: str
    location: Any
    concerns: tuple[str, ...] = ()
    since: int = 0

    def leads_to(self, other: Found) -> bool:
        """Whether it may be why there is another finding: they meet, and it is not seen much later.

        After the first few backward passes every 2**k-th is looked into: what is seen first in one of them may have
        begun just after the one before.

        Examples
        --------
        >>> from gradscope.inspect.diagnosis.rule_registry import Found
        >>> cause = Found("too large a step", None, ("body",), since=8)
        >>> [cause.leads_to(Found("", None, ("body.weight",), since)) for since in (2, 5, 9, 0)]
        [False, True, True, True]
        """
        return self.meets(other) and (not other.since or self.since <= 2 * other.since)

    def meets(self, other: Found) -> bool:
        """Whether both are about one parameter, or a module and a parameter in it.

        Examples
        --------
        >>> from gradscope.inspect.diagnosis.rule_registry import Found
        >>> one = Found("dead units", None, ("body.0",))
        >>> [one.meets(Found("", None, paths)) for paths in (("body.0.weight",), ("body.01.weight",), ())]
        [True, False, True]
        """
        if not self.concerns or not other.concerns:
            return True
        return any(_holds(one, two) or _holds(two, one) for one in self.concerns for two in other.concerns)


def _holds(module: str, path: str) -> bool:
    return path == module or path.startswith(f"{module}.")


class Rule:
    """A kind of finding. A subclass with a `code` is registered, and stands in a file of its own.

    Attributes
    ----------
    code : str
        ``'GS101'``.
    title : str
        A few words.
    severity : str
        ``'error'``: the program raises; ``'silent-wrong'``: it goes on with a wrong gradient; ``'warning'``: its
        gradients are right, and of no use.
    needs : tuple
        What the judgement is given: of the doctor's rules, facts (:mod:`.program_facts`); of those of ``check``, the
        type of what its watches tell (:mod:`gradscope.check.watching.violation_facts`).
    what : str
        What happens, and why.
    bad, good : str
        A program that has it, and the same program mended; ``gs`` is gradscope or PyTorch.
    kind : str
        What the doctor calls it, in front of the text.
    topic : str
        Of ``gradscope explain``, which says more; empty where there is none.
    explains : tuple of str
        The codes of findings that are what this one leads to: the doctor leaves them out where it has found this one,
        both are about the same parameters, and this one was not seen much later; ``check`` names them below it where
        the same write is to blame.
    opt_in : bool
        Whether ``check`` looks for it only where its whole code is selected: what is seen is often meant.
    certainty : str
        ``'certain'``, or ``'likely'`` where what is seen may be meant. A rule that needs the limits is never certain.

    See Also
    --------
    explain, Finding

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import CODES
    >>> CODES["GS101"].code
    'GS101'
    """

    code: ClassVar[str]
    title: ClassVar[str]
    severity: ClassVar[str] = "error"
    needs: ClassVar[tuple[Any, ...]]
    what: ClassVar[str]
    bad: ClassVar[str]
    good: ClassVar[str]
    kind: ClassVar[str] = ""
    topic: ClassVar[str] = ""
    explains: ClassVar[tuple[str, ...]] = ()
    opt_in: ClassVar[bool] = False
    certainty: ClassVar[str] = "certain"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if "code" not in vars(cls):
            return
        if not _CODE.fullmatch(cls.code) or cls.severity not in LEVELS:
            raise ValueError(f"{cls.__qualname__}: no code {cls.code!r}, or no severity {cls.severity!r}")
        if cls.code in RULES:
            raise ValueError(f"{cls.code} is {type(RULES[cls.code]).__qualname__}, and not {cls.__qualname__} as well")
        paragraphs = dedent(cls.what).strip().split("\n\n")
        cls.what = "\n\n".join(fill(paragraph, _WIDTH) for paragraph in paragraphs)
        cls.bad, cls.good = dedent(cls.bad).strip(), dedent(cls.good).strip()
        RULES[cls.code] = cls()

    def judge(self, *facts: Any) -> Iterable[Any]:
        """Yield what is found.

        Parameters
        ----------
        *facts : object
            What the rule `needs`, in that order.

        Yields
        ------
        object
            For the doctor a :class:`Found`, or its text and :class:`~gradscope.inspect.Location` alone; for ``check`` a
            :class:`~gradscope.check.Finding`.
        """
        raise NotImplementedError


def load_rules(package: str) -> tuple[Rule, ...]:
    """Import all files of a folder of rules and of the folders in it, and return them in the order of their codes.

    Parameters
    ----------
    package : str
        Its full name.

    Examples
    --------
    >>> [rule.code for rule in load_rules("gradscope.inspect.diagnosis.rules")][0]
    'D301'
    """
    names = {module.__name__ for folder in (package, *subpackages(package)) for module in import_all(folder)}
    return tuple(rule for _, rule in sorted(RULES.items()) if type(rule).__module__ in names)


def explanation(rule: Rule) -> str:
    """Return what a rule finds, as text to print."""
    more = f"More: gradscope explain {rule.topic}" if rule.topic else ""
    title = f"{rule.code}: {rule.title} ({rule.severity})"
    return with_examples(title, rule.what, rule.bad, rule.good, more)


def metadata(rules: Iterable[Rule]) -> list[dict[str, Any]]:
    """Return the rules for machines: ``reportingDescriptor`` objects of SARIF 2.1.0, section 3.49.

    Returns
    -------
    list of dict
        ``id``, ``name``, ``shortDescription``, ``fullDescription``, ``help`` and ``defaultConfiguration`` of each.

    References
    ----------
    OASIS, "Static Analysis Results Interchange Format (SARIF) Version 2.1.0", 2020.

    Examples
    --------
    >>> from gradscope.check import CODES
    >>> found = metadata([CODES["GS103"]])[0]
    >>> found["id"], found["name"], found["defaultConfiguration"]
    ('GS103', 'LeafWritten', {'level': 'error'})
    """
    return [
        {
            "id": rule.code,
            "name": type(rule).__name__,
            "shortDescription": {"text": rule.title},
            "fullDescription": {"text": " ".join(rule.what.split())},
            "help": {"text": explanation(rule), "markdown": _markdown(rule)},
            "defaultConfiguration": {"level": LEVELS[rule.severity]},
        }
        for rule in rules
    ]


def _markdown(rule: Rule) -> str:
    return f"{rule.what}\n\nInstead of\n\n```python\n{rule.bad}\n```\n\nwrite\n\n```python\n{rule.good}\n```\n"
