"""The overloads of PyTorch 0.1 with numbers between the tensors compute what the present ones do, and warn."""

import pytest

import gradscope as gs

EYE, ONES, VECTOR, BATCH = gs.eye(2), gs.ones(2, 2), gs.ones(2), gs.ones(3, 2, 2)

# How it was called, and how it is now.
SAME = {
    "add": (lambda: gs.add(EYE, 2, ONES), lambda: gs.add(EYE, ONES, alpha=2)),
    "x.add": (lambda: EYE.add(2.5, ONES), lambda: EYE.add(ONES, alpha=2.5)),
    "x.add_": (lambda: EYE.clone().add_(-2, ONES), lambda: EYE.clone().add_(ONES, alpha=-2)),
    "sub": (lambda: gs.sub(EYE, 2, ONES), lambda: gs.sub(EYE, ONES, alpha=2)),
    "addcmul": (lambda: gs.addcmul(EYE, 2, ONES, ONES), lambda: gs.addcmul(EYE, ONES, ONES, value=2)),
    "x.addcdiv_": (lambda: EYE.clone().addcdiv_(-1, ONES, ONES), lambda: EYE.clone().addcdiv_(ONES, ONES, value=-1)),
    "addmm": (lambda: gs.addmm(2, EYE, 3, ONES, EYE), lambda: gs.addmm(EYE, ONES, EYE, beta=2, alpha=3)),
    "addmm, one factor": (lambda: gs.addmm(2, EYE, ONES, EYE), lambda: gs.addmm(EYE, ONES, EYE, beta=2)),
    "x.addmm": (lambda: EYE.addmm(2, 3, ONES, EYE), lambda: EYE.addmm(ONES, EYE, beta=2, alpha=3)),
    "x.addmm_": (lambda: EYE.clone().addmm_(2, ONES, EYE), lambda: EYE.clone().addmm_(ONES, EYE, beta=2)),
    "addmv": (lambda: gs.addmv(2, VECTOR, 3, EYE, VECTOR), lambda: gs.addmv(VECTOR, EYE, VECTOR, beta=2, alpha=3)),
    "addr": (lambda: gs.addr(2, EYE, 3, VECTOR, VECTOR), lambda: gs.addr(EYE, VECTOR, VECTOR, beta=2, alpha=3)),
    "baddbmm": (
        lambda: gs.baddbmm(2, BATCH, 3, BATCH, BATCH),
        lambda: gs.baddbmm(BATCH, BATCH, BATCH, beta=2, alpha=3),
    ),
    "addbmm": (lambda: gs.addbmm(2, EYE, 3, BATCH, BATCH), lambda: gs.addbmm(EYE, BATCH, BATCH, beta=2, alpha=3)),
    "out": (lambda: gs.add(EYE, 2, ONES, out=gs.empty(2, 2)), lambda: gs.add(EYE, ONES, alpha=2)),
}


@pytest.mark.parametrize("name", SAME)
def test_numbers_between_the_tensors_are_the_keywords_of_today(name):
    older, now = SAME[name]
    with pytest.warns(UserWarning, match=r"This overload of \w+ is deprecated") as caught:
        found = older()
    assert gs.equal(found, now())
    assert caught[0].filename == __file__


def test_the_warning_shows_both_forms():
    with pytest.warns(UserWarning, match="overload") as caught:
        EYE.clone().add_(1, ONES)
    assert str(caught[0].message).splitlines() == [
        "This overload of add_ is deprecated:",
        "\tadd_(Tensor input, Number alpha, Tensor other)",
        "Consider using one of the following signatures instead:",
        "\tadd_(Tensor input, Tensor other, *, Number alpha = 1)",
    ]


@pytest.mark.filterwarnings("ignore:This overload")
def test_it_is_recorded_and_counts_as_a_write():
    weight = gs.ones(2, requires_grad=True)
    gs.add(weight, 3, weight).sum().backward()
    assert weight.grad.tolist() == [4.0, 4.0]
    before = weight._version
    weight.data.add_(-0.5, weight.grad)
    assert (weight.tolist(), weight._version) == ([-1.0, -1.0], before)  # .data has a version of its own


@pytest.mark.parametrize(
    "call",
    [
        lambda: gs.add(EYE, ONES, ONES),
        lambda: EYE.add_(1, 2, ONES),
        lambda: gs.addmm(EYE, ONES, 3, ONES, EYE),
        lambda: gs.addcmul(EYE, ONES, ONES, 2),
    ],
)
def test_arguments_of_no_overload_are_refused(call):
    with pytest.raises(TypeError, match=r"add\w*\(\) takes \d positional arguments but \d were given"):
        call()
