"""Modes of the program see what the program does, and nothing of what an instrument does."""

import pytest

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import gradscope.inspect as gi  # noqa: E402
from gradscope.check import Sanitizer  # noqa: E402
from gradscope.inspect.adapters.torch.transforms.dispatch_modes import modes_aside  # noqa: E402

pytestmark = pytest.mark.torch


class Counted(TorchDispatchMode):
    """Counts what is dispatched."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        self.names.append(func.__name__)
        return func(*args, **(kwargs or {}))


def slope(x):
    return torch.autograd.grad(x.requires_grad_().sin().sum(), x)[0]


def test_what_is_done_aside_is_not_dispatched():
    for tensor in (torch.ones(2), torch.nn.Parameter(torch.ones(2))):
        with Counted() as mode:
            with modes_aside(tensor):
                tensor.detach().add(1)
            tensor.neg()
        assert mode.names == ["neg.default"]


@pytest.mark.parametrize("instrument", [Sanitizer, gi.Doctor])
def test_what_make_fx_traces_is_the_same(instrument):
    plain = make_fx(slope)(torch.ones(2)).code
    with instrument():
        watched = make_fx(slope)(torch.ones(2)).code
    assert watched == plain
