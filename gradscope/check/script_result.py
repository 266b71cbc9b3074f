"""How a script ended, whoever ran it."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["ScriptResult"]


@dataclass(frozen=True, slots=True)
class ScriptResult:
    """How a script ended.

    Attributes
    ----------
    error : BaseException or None
        What it raised and did not catch; not SystemExit.
    exit_code : int
        What python's exit status would be: what it passed to ``sys.exit()``, 0 when it came to its end, 1 after an
        error, 130 after a KeyboardInterrupt.
    directory : str
        The working directory it was started in; empty when not known.
    unseen : str
        Which processes it has started, that nobody looked into; empty for none.
    filename : str
        The file that ran as ``__main__``; empty when not known.

    See Also
    --------
    run_script : returns it.

    Examples
    --------
    >>> import os, tempfile
    >>> from gradscope.check import run_script
    >>> path = os.path.join(tempfile.mkdtemp(), "leave.py")
    >>> with open(path, "w") as file:
    ...     _ = file.write("raise SystemExit(3)")
    >>> run_script(path).exit_code
    3
    """

    path: str
    arguments: tuple[str, ...]
    error: BaseException | None
    exit_code: int
    directory: str = ""
    unseen: str = ""
    filename: str = ""
