"""TorchScript: questions are answered, what needs it is refused."""

from __future__ import annotations

import pytest

import gradscope as gs


def test_questions_are_answered() -> None:
    assert not gs.jit.is_scripting()
    assert not gs.jit.is_tracing()
    assert gs.jit.ignore(len) is gs.jit.ignore(drop=True)(len) is gs.jit.unused(len) is gs.jit.export(len) is len


@pytest.mark.parametrize("name", ["script", "trace", "load", "save", "freeze"])
def test_what_needs_it_is_refused(name: str) -> None:
    with pytest.raises(NotImplementedError, match=rf"gradscope.jit.{name}\(\) is not there"):
        getattr(gs.jit, name)(gs.nn.Linear(1, 1))
