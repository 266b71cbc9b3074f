"""Findings of the sanitizer: immutable records, without a tensor or a node in them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from ...inspect.diagnosis.rule_registry import RULES
from ...inspect.records.records import Location

__all__ = ["Finding", "Fix", "Site", "TensorDescription"]


@dataclass(frozen=True, slots=True)
class TensorDescription:
    """The tensor a finding is about.

    Attributes
    ----------
    name : str
        Its parameter path (``'model.fc1.weight'``) or the variable it was written through; empty when not known.
    producer : str
        The node that computed it; empty for a leaf.
    saved_as : str
        Under which name the reading node saved it; empty where nothing was saved.
    parameter : bool
        Whether it is the memory of a leaf that requires grad.

    See Also
    --------
    Finding

    Examples
    --------
    >>> from gradscope.check import TensorDescription
    >>> print(TensorDescription("y", (3,), "float32", "ExpBackward0"))
    `y` (float32 [3], output of ExpBackward0)
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    producer: str = ""
    saved_as: str = ""
    parameter: bool = False

    def __str__(self) -> str:
        origin = f", output of {self.producer}" if self.producer else ""
        return f"{f'`{self.name}`' if self.name else 'a tensor'} ({self.dtype} {list(self.shape)}{origin})"


@dataclass(frozen=True, slots=True)
class Site:
    """One of the places that make up a finding.

    Attributes
    ----------
    role : str
        ``'written'``, ``'saved'`` and ``'read'`` for GS101 and GS102; ``'written'`` for GS103; ``'read'``, ``'freed'``
        (the first backward) and ``'saved'`` for GS104; ``'written'`` and ``'viewed'`` for GS105; ``'written'``,
        ``'shared'`` (where its memory was handed out), ``'saved'`` and ``'read'`` for GS106; ``'made'`` (what
        works in place), ``'written'`` and ``'read'`` for GS107; ``'written'`` and ``'read'`` for GS108; ``'written
        again'`` for further writes since the save; ``'source'``, what stands there, for what was read and not run.
    text : str
        What happened there.
    frames : tuple of Location
        The calls by which the user's line came there, where it went through a library: from the one that the user's
        line made to the library's line that did it.

    See Also
    --------
    Finding

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer
    >>> x = gs.ones(3, requires_grad=True)
    >>> with Sanitizer() as sanitizer:
    ...     y = x.exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> [site.role for site in sanitizer.findings[0].sites]
    ['written', 'saved', 'read']
    """

    role: str
    location: Location
    text: str
    frames: tuple[Location, ...] = ()


@dataclass(frozen=True, slots=True)
class Fix:
    """A change of the source that mends a finding.

    Attributes
    ----------
    filename : str
        The file.
    start, end : tuple of int
        Line and column, both from 1, of what is replaced; the end is that of the first character after it.
    text : str
        What takes its place.

    See Also
    --------
    Finding

    Examples
    --------
    >>> from gradscope.check import Fix
    >>> Fix("train.py", (4, 1), (4, 10), "y = y + 1")
    Fix(filename='train.py', start=(4, 1), end=(4, 10), text='y = y + 1')
    """

    filename: str
    start: tuple[int, int]
    end: tuple[int, int]
    text: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A misuse, with the places that make it up.

    Attributes
    ----------
    code : str
        A key of ``gradscope.check.CODES``.
    message : str
        One sentence.
    sites : tuple of Site
        The primary one, where the program should be changed, first.
    node : str
        The node that needs the tensor; empty for what is refused in the forward pass.
    saved_version, current_version : int or None
        Versions of the memory when it was saved, and when it was needed.
    spared : bool
        Whether the writes touched none of the saved bytes: only the version, which is that of the whole memory, makes
        backward() fail.
    help : str
        The smallest change that mends it.
    fix : Fix or None
        The same as a change of the source, where it is one statement.
    occurrences : int
        How often the same sites were met.
    also : tuple of Finding
        What else the same write has spoilt, in the order met: other tensors, and other nodes that need this one.

    See Also
    --------
    Sanitizer, Code

    Examples
    --------
    >>> import gradscope as gs
    >>> from gradscope.check import Sanitizer
    >>> with Sanitizer() as sanitizer:
    ...     x = gs.ones(2, requires_grad=True)
    ...     y = x.exp()
    ...     _ = y.add_(1)
    ...     try:
    ...         y.sum().backward()
    ...     except RuntimeError:
    ...         pass
    >>> [finding.code for finding in sanitizer.findings]
    ['GS101']
    """

    code: str
    message: str
    sites: tuple[Site, ...]
    tensor: TensorDescription | None = None
    node: str = ""
    saved_version: int | None = None
    current_version: int | None = None
    spared: bool = False
    help: str = ""
    fix: Fix | None = None
    occurrences: int = 1
    also: tuple[Finding, ...] = ()

    @property
    def severity(self) -> str:
        """``'error'``: the program raises; ``'silent-wrong'``: it goes on with a wrong gradient."""
        return RULES[self.code].severity

    @property
    def primary(self) -> Location | None:
        """Where the program should be changed."""
        return self.sites[0].location if self.sites else None

    @property
    def frames(self) -> tuple[Location, ...]:
        """The primary place, and the calls of libraries by which the program came there."""
        return (self.sites[0].location, *self.sites[0].frames) if self.sites else ()

    def at(self, role: str) -> Location | None:
        """Return the place with the given role, if it is known."""
        return next((site.location for site in self.sites if site.role == role), None)

    @property
    def written(self) -> Location | None:
        """Where the tensor was written."""
        return self.at("written")

    @property
    def saved(self) -> Location | None:
        """Where the tensor was saved for backward."""
        return self.at("saved")

    @property
    def read(self) -> Location | None:
        """Where backward needed the tensor."""
        return self.at("read")

    @property
    def cause(self) -> tuple[Any, ...]:
        """Equal for findings of one cause: the code and the write; where that is not known, the key."""
        written = next((site for site in self.sites if site.role == "written"), None)
        return self.key if written is None else (self.code, *_lines(written))

    @property
    def key(self) -> tuple[Any, ...]:
        """Equal for a finding that is met again: the code and the places."""
        places = tuple((s.role, *_lines(s)) for s in self.sites if s.role != "written again")
        return (self.code, *places) if places else (self.code, self.message)

    def again(self) -> Finding:
        """Return the finding with its count raised by one."""
        return replace(self, occurrences=self.occurrences + 1)

    def written_at(self, line: Location) -> Finding:
        """Return the finding with the line of the write, which it did not know."""
        written = Site("written", line, "written here, which counts no version of it")
        return replace(self, sites=(written, *self.sites), help="write into a copy, or after backward()")

    def joined(self, other: Finding) -> Finding:
        """Return the finding with another of the same cause."""
        if other.key == self.key:
            return self.again()
        for index, known in enumerate(self.also):
            if known.key == other.key:
                return replace(self, also=(*self.also[:index], known.again(), *self.also[index + 1 :]))
        return replace(self, also=(*self.also, other))


def _lines(site: Site) -> tuple[tuple[str, int], ...]:
    """Return the line of a site, and the library's where it was reached through one."""
    return tuple((place.filename, place.lineno) for place in (site.location, *site.frames[-1:]))
