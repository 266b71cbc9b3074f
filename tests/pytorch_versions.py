"""What is compared with PyTorch's latest version, on an older one."""

from __future__ import annotations

from typing import Any

import pytest


def require_pytorch(torch: Any, version: str) -> None:
    """Skip a comparison with a PyTorch that is older than the first one known to do the same.

    Parameters
    ----------
    torch : module
    version : str
        ``"2.13"``, or ``"2.8"`` for what PyTorch 2.4 alone does not do; those between have not been tried.
    """
    if torch.__version__ < version:
        pytest.skip(f"PyTorch {version} does the same, {torch.__version__} does not")
