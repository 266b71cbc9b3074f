"""The targets that ``python`` can run: a file, a directory or zip file with a ``__main__``, a module."""

from __future__ import annotations

import builtins
import importlib.util
import io
import os
import pkgutil
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import CodeType, ModuleType
from typing import Any, NamedTuple, Protocol

__all__ = [
    "NOTEBOOK",
    "AppTarget",
    "FileTarget",
    "LoadedScript",
    "ModuleTarget",
    "Target",
    "as_main",
    "check_script",
    "execute",
    "find_target",
]

NOTEBOOK = ".ipynb"
"""How the name of a notebook ends."""

_RECORDING = b"SQLite format 3\0"
"""What the file of a recording begins with."""


class LoadedScript(NamedTuple):
    """The code to execute, and the globals of ``__main__`` that describe it."""

    code: CodeType
    facts: dict[str, Any]
    argv0: str


class Target(Protocol):
    """Something to run as ``__main__``.

    Attributes
    ----------
    filename : str
        The file of its code; that of a module is known when it has been loaded, and empty before.
    """

    title: str
    argv0: str
    path0: str
    filename: str

    def load(self) -> LoadedScript:
        """Compile it; its packages are imported for that, so their code runs here."""


class FileTarget:
    """A file of source code."""

    def __init__(self, path: str) -> None:
        self.title = self.argv0 = path
        # The path is absolute everywhere but in sys.argv, as python has it.
        self.filename = os.path.abspath(path)
        self.path0 = os.path.dirname(os.path.realpath(path))

    def load(self) -> LoadedScript:
        """Compile the file."""
        with io.open_code(self.filename) as file:
            source = file.read()
        facts = {
            "__file__": self.filename,
            "__cached__": None,
            "__loader__": SourceFileLoader("__main__", self.filename),
            "__package__": None,
        }
        return LoadedScript(compile(source, self.filename, "exec", dont_inherit=True), facts, self.argv0)


class _FoundTarget:
    """What the import system finds."""

    title: str
    argv0: str
    path0: str
    filename = ""

    def _loaded(self, spec: ModuleSpec, argv0: str) -> LoadedScript:
        get_code = getattr(spec.loader, "get_code", None)
        code = None if get_code is None else get_code(spec.name)
        if code is None:
            raise ImportError(f"No code object available for {spec.name}")
        self.filename = spec.origin or ""
        facts = {
            "__file__": spec.origin,
            "__cached__": spec.cached,
            "__loader__": spec.loader,
            "__package__": spec.parent,
            "__spec__": spec,
        }
        return LoadedScript(code, facts, argv0)


class AppTarget(_FoundTarget):
    """A directory or a zip file with a ``__main__``."""

    def __init__(self, path: str) -> None:
        self.title = self.argv0 = path
        self.path0 = os.path.abspath(path)

    def load(self) -> LoadedScript:
        """Compile its ``__main__``."""
        spec = PathFinder.find_spec("__main__", [self.path0])
        if spec is None:
            raise ImportError(f"can't find '__main__' module in {self.path0!r}")
        return self._loaded(spec, self.argv0)


class ModuleTarget(_FoundTarget):
    """A module, or a package with a ``__main__``, by its dotted name.

    Raises
    ------
    ModuleNotFoundError
        If there is no such module, as far as can be told without importing its packages.
    """

    def __init__(self, name: str) -> None:
        self.title = name
        self.argv0 = "-m"
        self.path0 = os.getcwd()
        with first_on_path(self.path0):
            found = all(part.isidentifier() for part in name.split(".")) and _find(name.partition(".")[0])
        if not found:
            raise ModuleNotFoundError(f"there is no module {name!r}")

    def load(self) -> LoadedScript:
        """Import the packages around the module, and compile it."""
        name = self.title
        spec = _find(name)
        if spec is not None and spec.submodule_search_locations is not None:
            name, package = f"{name}.__main__", name
            spec = _find(name)
            if spec is None:
                raise ImportError(f"No module named {name}; {package!r} is a package and cannot be directly executed")
        if spec is None:
            raise ModuleNotFoundError(f"No module named {name}", name=name)
        return self._loaded(spec, spec.origin or name)


def _find(name: str) -> ModuleSpec | None:
    try:
        return importlib.util.find_spec(name)
    except (ModuleNotFoundError, ValueError) as error:
        if isinstance(error, ModuleNotFoundError) and error.name is not None and not name.startswith(error.name):
            raise  # an import inside of a package has failed
        return None


@contextmanager
def first_on_path(entry: str) -> Iterator[None]:
    """Let imports look at `entry` first, in the place of the one that the interpreter put first."""
    kept = list(sys.path)
    if not sys.flags.safe_path:
        sys.path[0:1] = [entry]
    try:
        yield
    finally:
        sys.path[:] = kept


@contextmanager
def as_main(target: Target, arguments: Sequence[str]) -> Iterator[ModuleType]:
    """Put a script in the place of ``__main__``, with its ``sys.argv`` and ``sys.path``, for the length of the block.

    Yields
    ------
    module
        Empty, for :func:`execute`.
    """
    module = ModuleType("__main__")
    module.__dict__["__builtins__"] = builtins
    kept = sys.modules["__main__"], sys.argv
    sys.modules["__main__"] = module
    sys.argv = [target.argv0, *arguments]
    try:
        with first_on_path(target.path0):
            yield module
    finally:
        sys.modules["__main__"], sys.argv = kept


def execute(target: Target, module: ModuleType) -> None:
    """Execute a script in the module that is its ``__main__``; what it raises is raised here."""
    code, facts, sys.argv[0] = target.load()
    module.__dict__.update(facts)
    exec(code, module.__dict__)


def check_script(path: str) -> None:
    """Raise unless there is a script to run.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, OSError
        In words for a person; the last where it is a recording or a notebook.
    """
    if os.path.isdir(path):
        if PathFinder.find_spec("__main__", [os.path.abspath(path)]) is None:
            raise IsADirectoryError(f"{path!r} is a directory without a __main__.py, not a script")
    elif not os.path.exists(path):
        raise FileNotFoundError(f"there is no script {path!r}")
    elif not os.access(path, os.R_OK):
        raise PermissionError(f"the script {path!r} cannot be read")
    elif is_recording(path):
        raise OSError(f"{path!r} is a recording, not a script\n`gradscope view {path}` opens it.")
    elif path.endswith(NOTEBOOK):
        raise OSError(
            f"{path!r} is a notebook, not a script\n"
            "`%load_ext gradscope` has these commands for its cells; `jupyter nbconvert --to script` makes it a script."
        )


def is_recording(path: str) -> bool:
    """Whether a path is that of a recording."""
    return os.path.isfile(path) and os.access(path, os.R_OK) and _begins_with(path, _RECORDING)


def _begins_with(path: str, magic: bytes) -> bool:
    with open(path, "rb") as file:
        return file.read(len(magic)) == magic


def find_target(name: str, *, module: bool = False) -> Target:
    """Return what a name on the command line means.

    Parameters
    ----------
    name : str
        A path; or the dotted name of a module, where there is no such path.
    module : bool
        Take it for a module's name, as ``python -m`` does.

    Raises
    ------
    FileNotFoundError, IsADirectoryError, PermissionError, ModuleNotFoundError
        In words for a person.
    """
    if module:
        return ModuleTarget(name)
    if not os.path.exists(name) and name:
        try:
            return ModuleTarget(name)
        except ModuleNotFoundError:
            pass
    check_script(name)
    app = os.path.isdir(name) or pkgutil.get_importer(name) is not None
    return AppTarget(name) if app else FileTarget(name)
