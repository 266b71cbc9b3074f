"""What a file may name: other globals are refused, and pickles that are up to something."""

from __future__ import annotations

import fractions
import operator
import pickle
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.serialization import add_safe_globals, clear_safe_globals, get_safe_globals, safe_globals
from tests.serialization.checkpoints import archive, network, rebuilt, through


class Harmful:
    def __reduce__(self) -> Any:
        return print, ("run by a pickle",)


@pytest.mark.parametrize("value", [fractions.Fraction(1, 2), Harmful(), [gs.nn.Linear(1, 1)], print])
def test_other_globals_are_refused(value: Any, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(
        pickle.UnpicklingError, match=r"Weights only load failed\..* not allowed by default\.\n.*add_safe"
    ):
        through(value)
    assert capsys.readouterr().out == ""


def test_the_error_names_all_of_them() -> None:
    with pytest.raises(pickle.UnpicklingError, match=r"container\.Sequential \(and .*BatchNorm1d, .*linear\.Linear\)"):
        through(network(gs))


def test_globals_can_be_allowed() -> None:
    value = fractions.Fraction(1, 2)
    with safe_globals([fractions.Fraction]):
        assert get_safe_globals() == [fractions.Fraction]
        assert through(value) == value
    assert get_safe_globals() == []
    with safe_globals([gs.nn.Linear]):
        assert through(gs.nn.Linear(2, 3)).out_features == 3
    add_safe_globals([(operator.truediv, "fractions.Fraction")])
    try:
        assert through((1, value)) == (1, 0.5)
    finally:
        clear_safe_globals()
    with pytest.raises(TypeError, match="a class or function is wanted, got 3"):
        add_safe_globals([3])


@pytest.mark.parametrize("geometry", [(0, 5, 1), (1, 4, 1), (-1, 2, 1), (0, 2, 4), (3, 2, -1), (2**62, 2, 2**62)])
def test_a_tensor_outside_its_memory_is_refused(geometry: tuple[int, int, int]) -> None:
    data = numpy.arange(4, dtype=numpy.float32).tobytes()
    assert gs.load(archive(rebuilt(0, 2, 3), data_0=data)).tolist() == [0.0, 3.0]
    with pytest.raises(pickle.UnpicklingError, match="does not lie within its memory of 4 elements"):
        gs.load(archive(rebuilt(*geometry), data_0=data))


@pytest.mark.parametrize(
    ("pickled", "said"),
    [
        (b"ctorch\nfloat32\n)R.", "the pickle calls gradscope.float32"),
        (b"\x80\x02ctorch\nfloat32\n}(V_x\nI1\nub.", "the pickle sets attributes of <class"),
        (b"\x80\x02ctorch\nTensor\n)\x81.", "the pickle makes <class"),
        (b"(ccollections\nOrderedDict\no.", "an instruction that no state dict needs"),
        (b"Vxy", "is damaged"),
        (b"\x80\x02}q", "is damaged"),
        (b"Vstorage\nQ.", "refers to memory by 'storage'"),
    ],
)
def test_a_pickle_that_is_up_to_something(pickled: bytes, said: str) -> None:
    with pytest.raises(pickle.UnpicklingError, match=said):
        gs.load(archive(pickled))
