"""Warnings stand at the program's own line, as those of PyTorch do where it is not inside of a module."""

import warnings

import pytest

import gradscope as gs
from gradscope.runtime.user_warnings import warn

F = gs.nn.functional


def hooked():
    layer = gs.nn.Linear(3, 1)
    layer.register_full_backward_hook(lambda *_: None)
    layer(gs.ones(2, 3)).sum().backward()


def stepped_out_of_order():
    optimizer = gs.optim.SGD([gs.nn.Parameter(gs.ones(1))], lr=1.0)
    gs.optim.lr_scheduler.StepLR(optimizer, 1).step()


def leaf():
    return gs.ones(2, 3, requires_grad=True)


WARN = {
    "a function": lambda: F.softmax(gs.ones(2, 3)),
    "a module": lambda: gs.nn.Softmax()(gs.ones(2, 3)),
    "a loss": lambda: gs.nn.MSELoss()(gs.ones(2, 3), gs.ones(3)),
    "an older argument": lambda: gs.nn.MSELoss(size_average=False),
    "an operator": lambda: gs.add(gs.ones(3), 1, out=gs.ones(2)),
    "an index": lambda: gs.ones(3)[gs.tensor([1, 0, 1], dtype=gs.uint8)],
    "an attribute": lambda: (leaf() * 2).grad,
    "a transpose": lambda: gs.ones(2, 3, 4).T,
    "a backward": lambda: leaf().sum().backward(create_graph=True),
    "a hook": hooked,
    "a schedule": stepped_out_of_order,
    "a former name": lambda: gs.nn.utils.clip_grad_norm([leaf()], 1.0),
    "gradcheck": lambda: gs.autograd.gradcheck(gs.sin, (leaf(),), raise_exception=False),
}


@pytest.mark.parametrize("case", WARN)
def test_a_warning_stands_at_the_line_of_the_program(case):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        WARN[case]()
    assert {warning.filename for warning in caught} == {__file__}


def test_where_nothing_is_but_gradscope_the_outermost_line_is_told():
    code = compile("warn('on its own')", gs.nn.__file__, "exec")
    with pytest.warns(UserWarning, match="on its own"):
        exec(code, {"warn": warn})
