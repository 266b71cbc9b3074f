"""The oldest PyTorch whose programs are opened."""

from __future__ import annotations

__all__ = ["check_version"]

_OLDEST = (2, 4)


def check_version(version: str) -> None:
    """Raise ImportError for a PyTorch that is too old.

    Examples
    --------
    >>> check_version("2.13.0+cpu")
    >>> check_version("1.13.1")
    Traceback (most recent call last):
    ImportError: gradscope opens programs of PyTorch 2.4 and newer, this is PyTorch 1.13.1
    Install a newer one: pip install 'gradscope-debugger[torch]'
    """
    major, minor = (int(part) for part in version.split(".")[:2])
    if (major, minor) < _OLDEST:
        raise ImportError(
            f"gradscope opens programs of PyTorch {_OLDEST[0]}.{_OLDEST[1]} and newer, this is PyTorch {version}\n"
            "Install a newer one: pip install 'gradscope-debugger[torch]'"
        )
