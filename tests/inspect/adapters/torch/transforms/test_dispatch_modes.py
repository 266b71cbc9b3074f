"""Modes of the program see what the program does, and nothing of what an instrument does."""

from collections import Counter

import pytest

from tests.inspect.sessions import debugging, wait

torch = pytest.importorskip("torch")

from torch.fx.experimental.proxy_tensor import make_fx  # noqa: E402
from torch.overrides import TorchFunctionMode  # noqa: E402
from torch.utils._python_dispatch import TorchDispatchMode  # noqa: E402

import gradscope.inspect as gi  # noqa: E402
from gradscope.check import Sanitizer  # noqa: E402
from gradscope.inspect.adapters.torch.transforms.dispatch_modes import modes_aside  # noqa: E402
from tests.pytorch_versions import require_pytorch  # noqa: E402

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


class Called(TorchFunctionMode):
    """Counts the functions of PyTorch that are called, and the attributes of tensors that are asked for."""

    def __init__(self):
        super().__init__()
        self.names = []

    def __torch_function__(self, func, types, args=(), kwargs=None):
        self.names.append(f"{func.__name__} {getattr(getattr(func, '__self__', None), '__name__', '')}")
        return func(*args, **(kwargs or {}))


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.BatchNorm1d(8), torch.nn.ReLU())
        self.head = torch.nn.Linear(8, 2)

    def forward(self, x):
        hidden = torch.utils.checkpoint.checkpoint(self.body, x, use_reentrant=False)
        return Square.apply(self.head(hidden))


def heard(kind):
    """Train, with a gradient that accumulates and hooks, under a mode; return how often it heard of what."""
    torch.manual_seed(0)
    model, weight = Net(), torch.ones(3, requires_grad=True)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    with kind() as mode:
        for step in range(4):
            result = model(torch.randn(16, 4)).clone()
            result += 1
            result.register_hook(lambda grad: grad * 2)
            loss = torch.nn.functional.cross_entropy(result, torch.zeros(16, dtype=torch.long))
            (loss + weight.exp().sum()).backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            if step % 2:
                optimizer.step()
                optimizer.zero_grad()
    return Counter(mode.names)


def under_doctor(program, tmp_path):
    with gi.Doctor():
        program()


def under_check(program, tmp_path):
    with Sanitizer():
        program()


def recorded(program, tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        program()


def running_free(program, tmp_path):
    with debugging(program) as session:
        session.cont()
        assert (wait(session), session.error) == ("finished", None)


def stepped(program, tmp_path):
    with debugging(program) as session:
        session.add_breakpoint("iter:4")
        for _ in range(40):
            session.step()
            wait(session)
        session.cont()
        assert wait(session) == "paused before"
        session.remove_breakpoint(1)
        session.cont()
        assert (wait(session), session.error) == ("finished", None)


@pytest.mark.parametrize("kind", [Called, Counted])
@pytest.mark.parametrize("instrument", [under_doctor, under_check, recorded, running_free, stepped])
def test_a_mode_of_the_program_hears_what_it_hears_without_an_instrument(kind, instrument, tmp_path):
    if kind is Counted and instrument in (under_doctor, under_check):
        require_pytorch(torch, "2.8")  # below a mode of ours, batch norm in 2.4 detaches its statistics again
    counts = []
    instrument(lambda: counts.append(heard(kind)), tmp_path)
    assert counts[0] == heard(kind)
