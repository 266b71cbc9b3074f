"""Programs that must do the same in PyTorch and in gradscope.

A program takes the module (``torch`` or ``gradscope``) and returns plain facts, or raises. What it returns is written
beside it, so that it is checked without PyTorch too; where PyTorch is installed the same words are checked on PyTorch.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest

from tests.pytorch_versions import require_pytorch

Program = Callable[[Any], Any]


def plain(value: Any) -> Any:
    """Return tensors as lists, nodes by name, dtypes by name, tuples as lists; the rest as it is."""
    if hasattr(value, "next_functions"):
        return plain(value.name())
    if isinstance(value, str):
        return value.removeprefix("torch::autograd::")
    if hasattr(value, "detach"):
        return plain(value.detach().tolist())
    if isinstance(value, (tuple, list)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, float):
        return round(value, 4)
    if type(value).__name__ == "dtype":
        return str(value).rpartition(".")[2]
    return value


class Programs:
    """The programs of one test file; used as a decorator."""

    def __init__(self) -> None:
        self.found: list[Any] = []
        self._since: dict[Program, str] = {}

    def __call__(
        self, *, returns: Any = None, raises: tuple[type[BaseException], str] | None = None, since: str = "2.4"
    ) -> Any:
        """Register a program with what it returns, or which exception with which words it raises.

        It does so on PyTorch from version `since` on; see :func:`require_pytorch`.
        """

        def register(program: Program) -> Program:
            self._since[program] = since
            self.found.append(pytest.param(program, returns, raises, id=program.__name__))
            return program

        return register

    def check(self, module: Any, program: Program, returns: Any, raises: Any) -> None:
        """Run `program` with `module` and compare."""
        if module.__name__ == "torch":
            require_pytorch(module, self._since[program])
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if raises is None:
                result = plain(program(module))
                assert result == returns, f"{module.__name__}: {result}"
                return
            kind, words = raises
            with pytest.raises(kind) as caught:
                program(module)
        assert words in str(caught.value)


def custom(m: Any, forward: Program, backward: Any = None, *, name: str = "F", **more: Any) -> Any:
    """Return a Function of module `m` made of static functions."""
    members = {"forward": staticmethod(forward)}
    if backward is not None:
        members["backward"] = staticmethod(backward)
    for key, value in more.items():
        members[key] = staticmethod(value) if callable(value) else value
    return type(m.autograd.Function)(name, (m.autograd.Function,), members)


def leaf(m: Any, *values: float) -> Any:
    """Return a leaf that requires grad."""
    return m.tensor(list(values) or [1.0, 2.0, 3.0], requires_grad=True)
