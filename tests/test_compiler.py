"""compile() hands back what it was given, and says so once."""

from __future__ import annotations

import warnings

import pytest

import gradscope as gs
from gradscope import compiler


def test_compile_says_once_that_nothing_is_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_state", {"told": False})
    model = gs.nn.Linear(2, 1)
    with pytest.warns(UserWarning, match="compiles nothing"):
        assert gs.compile(model, mode="max-autotune") is model

    with warnings.catch_warnings():
        warnings.simplefilter("error")

        @gs.compile(fullgraph=True)
        def double(x: gs.Tensor) -> gs.Tensor:
            return x * 2

        assert double(gs.ones(1)).tolist() == [2.0]


def test_nothing_is_said_where_compiling_is_disabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler, "_state", {"told": False})
    assert gs.compile(len, disable=True) is len
    assert gs.compiler.disable(len) is len
    assert gs.compiler.disable(recursive=False)(len) is len
    assert not gs.compiler.is_compiling()
