"""The settings of a project: ``[tool.gradscope.check]`` in its pyproject.toml."""

from __future__ import annotations

import os
import tomllib
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from .formats.report_format_registry import format_named
from .suppression.baseline import Baseline
from .suppression.code_selection import CodeSelection, codes_of
from .suppression.notices import meant
from .suppression.silences import Silences
from .suppression.suppressions_file import SuppressionsFile

__all__ = ["Settings", "read_settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """The settings of a report. An option of the command line goes before a setting.

    Attributes
    ----------
    select, ignore : tuple of str
        Codes, and beginnings of codes.
    format : str
        ``'text'``, ``'sarif'`` and so on.
    output_file : str
        Where the report is written; standard output where it is empty.
    baseline, suppressions : str
        Files; empty for none.
    exit_zero : bool
        Whether findings are no failure.
    exact : bool
        Whether the program runs a second time, to find the lines of writes that nobody has heard of.
    first : bool
        Whether the program ends at the first finding.
    keep_going : bool
        Whether backward() computes with what was saved, where somebody has written over it.

    See Also
    --------
    read_settings : reads them from pyproject.toml.

    Examples
    --------
    >>> from gradscope.check import Settings
    >>> Settings(select=("GS101",), format="sarif").check().format
    'sarif'
    """

    select: tuple[str, ...] = ()
    ignore: tuple[str, ...] = ()
    format: str = "text"
    output_file: str = ""
    baseline: str = field(default="", metadata={"path": True})
    suppressions: str = field(default="", metadata={"path": True})
    exit_zero: bool = False
    exact: bool = False
    first: bool = False
    keep_going: bool = False

    def check(self) -> Settings:
        """Return the settings themselves.

        Raises
        ------
        ValueError
            If there is no such code, or no such format, or settings contradict each other.
        """
        if self.first and self.keep_going:
            raise ValueError("first and keep-going contradict each other: leave one out")
        codes_of((*self.select, *self.ignore))
        format_named(self.format)
        return self

    def silences(self, *, update_baseline: bool = False) -> Silences:
        """Return what silences findings by these settings, beside the comments in the sources.

        Parameters
        ----------
        update_baseline : bool
            The baseline is to be written: it knows nothing yet.

        Raises
        ------
        OSError, ValueError
            If suppressions or baseline cannot be read.
        """
        return Silences(
            CodeSelection(self.select, self.ignore),
            SuppressionsFile.read(self.suppressions) if self.suppressions else None,
            self._read_baseline(update_baseline),
        )

    def _read_baseline(self, update: bool) -> Baseline | None:
        filename = os.path.abspath(self.baseline) if self.baseline else ""
        if not filename:
            return None
        if update:
            return Baseline(filename)
        if not os.path.exists(filename):
            raise ValueError(f"there is no baseline {self.baseline!r}; --update-baseline writes one")
        return Baseline.read(filename)


def read_settings(directory: str) -> Settings:
    r"""Return the settings in the pyproject.toml of a directory, or of the nearest one above that has one.

    Raises
    ------
    ValueError
        If it is no TOML, or has a setting that there is not, or one of another type.
    OSError
        If it cannot be read.

    See Also
    --------
    Silences

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import read_settings
    >>> directory = tempfile.mkdtemp()
    >>> with open(os.path.join(directory, "pyproject.toml"), "w") as file:
    ...     _ = file.write('[tool.gradscope.check]\nselect = ["GS101"]')
    >>> read_settings(directory).select
    ('GS101',)
    """
    for folder in (Path(directory), *Path(directory).parents):
        filename = folder / "pyproject.toml"
        if filename.is_file():
            return _settings_in(filename)
    return Settings()


def _settings_in(filename: Path) -> Settings:
    try:
        facts: Any = tomllib.loads(filename.read_text(encoding="utf-8-sig"))
    except ValueError as error:
        raise ValueError(f"{filename}: {error}") from None
    except RecursionError:
        raise ValueError(f"{filename}: it is nested too deeply") from None
    for name in ("tool", "gradscope", "check"):
        if name == "check" and facts.keys() - {name}:
            unknown = min(facts.keys() - {name})
            raise ValueError(f"{filename}: [tool.gradscope]: no table {unknown!r}: there is check")
        facts = facts.get(name, {})
        if not isinstance(facts, dict):
            raise ValueError(f"{filename}: {name} is no table")
    try:
        return replace(
            Settings(), **{_key(name): _value(name, value, filename) for name, value in facts.items()}
        ).check()
    except ValueError as error:
        raise ValueError(f"{filename}: [tool.gradscope.check]: {error}") from None


_FIELDS = {setting.name.replace("_", "-"): setting for setting in fields(Settings)}


def _key(name: str) -> str:
    if name not in _FIELDS:
        raise ValueError(f"no setting {name!r}: {meant(name, _FIELDS)}")
    return _FIELDS[name].name


def _value(name: str, value: Any, filename: Path) -> Any:
    """Return a value as the setting has it; a path is relative to the file that it stands in."""
    setting = _FIELDS[name]
    default: Any = setting.default
    if isinstance(default, tuple):
        if not isinstance(value, list) or not all(isinstance(word, str) for word in value):
            raise ValueError(f"{name} wants a list of texts, got {value!r}")
        return tuple(value)
    if type(value) is not type(default):
        raise ValueError(f"{name} wants {'true or false' if isinstance(default, bool) else 'a text'}, got {value!r}")
    if value and setting.metadata.get("path"):
        return str(filename.parent / value)
    return value
