"""What torch.jit.trace keeps under an instrument: the operators and the lines that it keeps without one."""

import re
import warnings

import pytest

torch = pytest.importorskip("torch")

from gradscope.inspect.adapters import Observer, adapter_for  # noqa: E402
from gradscope.inspect.adapters.torch.transforms.jit_tracing import TRACED  # noqa: E402

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:`torch.jit:DeprecationWarning")]

_ALL = {"forward": True, "backward": True, "operators": True, "writes": True}


class Meddler(Observer):
    """Looks at values with operators of PyTorch, as an instrument may, and keeps what it was told."""

    def __init__(self):
        self.told, self.blind = [], []

    def operator_ran(self, call):
        self.told += [call.name for output in call.outputs if output.sum() > -1]

    def module_returned(self, module, inputs, output):
        self.told += [type(module).__name__ for value in [output] if torch.is_tensor(value) and value.sum() > -1e9]

    def tensor_written(self, write):
        self.told.append(write.operator)

    def blind_call(self, reason):
        self.blind.append(reason)

    blind_region = blind_call


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * grad * ctx.saved_tensors[0]


class Layers(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        y = self.first(x).relu_()
        mask = torch.zeros_like(y)
        mask[0] = 1
        return self.second(y + mask)


def differentiated(x):
    """A function with operators on numbers, a custom Function, memory of somebody else's, and a backward inside."""
    y = torch.sub(Square.apply(x), 0.5, alpha=2)
    y += torch.as_tensor([1.0, 2.0])
    (slope,) = torch.autograd.grad(y.sum(), x)
    return torch.nn.functional.dropout(y, 0.0) * slope


def traced_graphs():
    """Return what each way to trace keeps, as text."""
    torch.manual_seed(0)
    layers, x = Layers(), torch.ones(2, 3)
    leaf = torch.ones(2, requires_grad=True)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", torch.jit.TracerWarning)
        function = torch.jit.trace(differentiated, leaf, check_trace=False)
    return [
        _text(torch.jit.trace(layers, x).inlined_graph),
        str(torch.jit.trace(lambda x: x.mul(2).add_(1), x).graph),
        _text(torch.jit.trace_module(layers, {"forward": x}).inlined_graph),
        str(torch.jit._get_trace_graph(layers, x)[0]),
        str(function.graph),
        [(w.filename, w.lineno, str(w.message)) for w in told],
    ]


def _text(graph):
    """Return a graph without the numbers that PyTorch gives to classes of one name."""
    return re.sub(r"\.___torch_mangle_\d+", "", str(graph))


def test_a_trace_is_what_it_is_without_an_observer():
    plain = traced_graphs()
    observer = Meddler()
    with adapter_for(torch.ones(1)).observe(observer, **_ALL):
        assert traced_graphs() == plain
        observer.told.clear()
        torch.ones(2).add_(1)
    assert set(observer.blind) == {TRACED}
    assert observer.told == ["ones", "add_", "add_"]


def test_what_was_traced_trains_under_an_observer():
    with adapter_for(torch.ones(1)).observe(Meddler(), **_ALL):
        layers = Layers()
        traced = torch.jit.trace(layers, torch.ones(2, 3))
        traced(torch.ones(2, 3)).sum().backward()
    other = Layers()
    other.load_state_dict(layers.state_dict())
    other(torch.ones(2, 3)).sum().backward()
    assert [p.grad.tolist() for p in layers.parameters()] == [p.grad.tolist() for p in other.parameters()]


def test_a_tracing_that_fails_leaves_the_observer_listening():
    def fails(x):
        raise ValueError("on purpose")

    observer = Meddler()
    with adapter_for(torch.ones(1)).observe(observer, **_ALL):
        with pytest.raises(ValueError, match="on purpose"):
            torch.jit.trace(fails, torch.ones(1))
        observer.told.clear()
        torch.as_tensor([1.0]).mul_(2)
    assert observer.told[-1] == "mul_"


def test_the_tracers_are_put_back():
    before = torch._C._create_function_from_trace, torch.as_tensor
    with adapter_for(torch.ones(1)).observe(Observer(), **_ALL):
        assert torch._C._create_function_from_trace is not before[0]
        torch.jit.trace(torch.exp, torch.ones(1))
    assert (torch._C._create_function_from_trace, torch.as_tensor) == before
