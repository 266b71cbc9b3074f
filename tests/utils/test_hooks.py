"""Hooks that a pickle leaves out."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.utils.hooks import RemovableHandle, unserializable_hook, warn_if_has_hooks


def test_hooks_that_a_pickle_leaves_out_are_told() -> None:
    x = gs.ones(1, requires_grad=True)
    warn_if_has_hooks(x)
    x.register_hook(unserializable_hook(lambda grad: grad))
    warn_if_has_hooks(x)
    handle = x.register_hook(lambda grad: grad)
    assert isinstance(handle, RemovableHandle)
    with pytest.warns(UserWarning, match="will not be serialized"):
        warn_if_has_hooks(x)
