"""Generators are put back for the second run."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.utils import checkpoint as module
from tests.utils.checkpoint.functions import leaf


def test_a_generator_that_replays_stands_where_it_stood() -> None:
    generator = gs.Generator().manual_seed(3)
    mark = generator.mark()
    first = gs.rand(3, generator=generator)
    with generator.replay(mark):
        again = gs.rand(3, generator=generator)
    after = gs.rand(3, generator=generator)
    generator.go_to(mark)
    assert gs.equal(gs.cat([again, gs.rand(6, generator=generator)]), gs.cat([first, first, after]))


class _Unreadable:
    """A bit generator as CuPy's: its state stays on the device."""


def test_a_generator_whose_state_cannot_be_read(monkeypatch: pytest.MonkeyPatch) -> None:
    generator = gs.Generator().manual_seed(3)
    monkeypatch.setattr(gs.Generator, "_has_state", lambda self: False)
    mark = generator.mark()
    first = gs.rand(3, generator=generator)
    with generator.replay(mark):
        again = gs.rand(3, generator=generator)
    assert isinstance(mark, int)
    assert gs.equal(first, again)
    with pytest.raises(RuntimeError, match="cannot be read or set"):
        generator.get_state()


def test_states_of_devices() -> None:
    places, states = module.get_device_states(leaf(), [leaf()])
    assert (places, states) == ([], [])
    module.set_device_states(places, states)
