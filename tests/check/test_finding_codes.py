import pytest

import gradscope as gs
from gradscope.check import CODES, Sanitizer, explain


@pytest.mark.parametrize("code", CODES)
def test_explanation_is_complete(code):
    text = explain(code.lower())
    entry = CODES[code]
    assert text.startswith(f"{code}: {entry.title} ({entry.severity})\n")
    assert entry.what in text
    assert entry.bad.splitlines()[0] in text
    assert entry.good.splitlines()[0] in text
    assert max(map(len, text.splitlines())) <= 88


def test_unknown_code():
    with pytest.raises(KeyError):
        explain("GS999")


class Optimizer:
    """Stands for the example's optimizer."""

    def __init__(self, w):
        self.w = w

    def step(self):
        with gs.no_grad():
            self.w.sub_(0.1)


def names():
    """Return what the examples use without defining it."""
    w = gs.ones(3, requires_grad=True)
    (w * w).sum().backward()
    return {
        "gs": gs,
        "w": w,
        "lr": 0.1,
        "x": gs.ones(2, 3, requires_grad=True) * 2,
        "y": gs.zeros(2, 3),
        "skip": gs.ones(2, 3),
        "optimizer": Optimizer(w),
        "model": lambda x: x * w * w,
        "criterion": lambda output, target: (output - target).sum(),
        "sequence": [gs.ones(3), gs.ones(3)],
        "hidden": gs.zeros(3),
        "cell": lambda x, hidden: (x * w + hidden).tanh(),
    }


@pytest.mark.parametrize("code", CODES)
def test_the_bad_example_has_it_and_the_good_one_has_not(code):
    for source, expected in ((CODES[code].bad, [code]), (CODES[code].good, [])):
        scope = names()
        with Sanitizer() as sanitizer:
            try:
                exec(source, scope)
            except RuntimeError:
                assert expected
        assert [f.code for f in sanitizer.findings] == expected
