"""Subclasses of Tensor, duck types and modes that override calls."""

from __future__ import annotations

import copy
import gc
import io
import pickle
from typing import Any

import pytest

import gradscope as gs
from gradscope import overrides
from gradscope.runtime import state


class Plain(gs.Tensor):
    """Keeps its class, and does nothing else."""


class Logged(gs.Tensor):
    """Notes what is called."""

    calls: list[str] = []

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        Logged.calls.append(func.__name__)
        return super().__torch_function__(func, types, args, kwargs)


@pytest.fixture(autouse=True)
def _nobody_looks_afterwards(own_objects: None) -> Any:
    yield
    gc.collect()
    assert not state.special


def kept(m: Any, base: Any) -> Any:
    """Return a tensor of a subclass that overrides nothing, in either module."""
    kind = type("Kept", (base,), {})
    return m.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(kind)


RESULTS = {
    "a sum": lambda m, x: x + 1,
    "a sum with it on the right": lambda m, x: m.ones(2, 2) + x,
    "a number and it": lambda m, x: 1 - x,
    "a product of matrices": lambda m, x: x @ m.ones(2, 2),
    "a function": lambda m, x: m.neg(x),
    "a method": lambda m, x: x.softmax(0),
    "a reduction": lambda m, x: m.mean(x, 0),
    "a view": lambda m, x: x.t(),
    "an item": lambda m, x: x[0],
    "rows": lambda m, x: next(iter(x)),
    "zeros like it": lambda m, x: m.zeros_like(x),
    "ones like it": lambda m, x: m.ones_like(x, dtype=m.float64),
    "full like it": lambda m, x: m.full_like(input=x, fill_value=3),
    "transposed": lambda m, x: x.T,
    "a real part": lambda m, x: x.real,
    "a grid": lambda m, x: m.meshgrid(m.ones(2), x[0], indexing="ij")[0],
    "a composed function": lambda m, x: m.nn.functional.normalize(x),
    "a list": lambda m, x: m.cat([m.ones(2, 2), x]),
    "parts": lambda m, x: x.split(1)[0],
    "a named tuple": lambda m, x: x.max(0).values,
    "of nn.functional": lambda m, x: m.nn.functional.relu(x),
    "a layer": lambda m, x: m.nn.functional.linear(x, m.ones(3, 2)),
    "a module": lambda m, x: m.nn.Linear(2, 3)(x),
    "a loss": lambda m, x: m.nn.functional.mse_loss(x, m.ones(2, 2)),
    "in place": lambda m, x: x.add_(1),
    "detached": lambda m, x: x.detach(),
    "data": lambda m, x: x.data,
    "another dtype": lambda m, x: x.double(),
    "a copy": lambda m, x: x.clone(),
    "new ones": lambda m, x: x.new_ones(2),
    "a comparison": lambda m, x: x > 1,
    "of no tensor": lambda m, x: x.tolist(),
    "a shape": lambda m, x: tuple(x.shape),
    "text": lambda m, x: repr(x).partition("(")[0],
    "a gradient": lambda m, x: m.autograd.grad((x.requires_grad_() * 2).sum(), x)[0],
    "an accumulated gradient": lambda m, x: ((x.requires_grad_() * x).sum().backward(), x.grad)[1],
    "stacked with a plain one": lambda m, x: m.where(m.ones(2, 2) > 0, x, m.zeros(2, 2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", RESULTS)
def test_results_are_of_the_class_that_pytorchs_are(torch: Any, name: str) -> None:
    def facts(m: Any) -> Any:
        result = RESULTS[name](m, kept(m, m.Tensor))
        value = result.detach().tolist() if hasattr(result, "tolist") else result
        return type(result).__name__, value if name not in ("a module",) else None

    assert facts(gs) == facts(torch)


CALLS = {
    "x + 1": lambda m, x: x + 1,
    "torch.add": lambda m, x: m.add(x, 1),
    "x.exp()": lambda m, x: x.exp(),
    "x.add_(1)": lambda m, x: x.add_(1),
    "torch.mean": lambda m, x: m.mean(x),
    "F.relu": lambda m, x: m.nn.functional.relu(x),
    "torch.cat": lambda m, x: m.cat([x, x]),
    "x.view": lambda m, x: x.view(4),
    "x.backward()": lambda m, x: x.requires_grad_().sum().backward(),
    "x.double()": lambda m, x: x.double(),
    "an item": lambda m, x: x[0],
    "writing an item": lambda m, x: x.__setitem__(0, 1.0),
    "1 // x": lambda m, x: 1 // x,
    "x.data": lambda m, x: x.data,
    "x.T": lambda m, x: x.T,
    "x.real": lambda m, x: x.real,
    "torch.einsum": lambda m, x: m.einsum("ij,ij->i", x, x),
    "torch.where": lambda m, x: m.where(x > 0, x, x),
    "torch.meshgrid": lambda m, x: m.meshgrid(x[0], x[1], indexing="ij"),
    "torch.zeros_like": lambda m, x: m.zeros_like(x),
    "torch.full_like": lambda m, x: m.full_like(x, 2),
    "torch.randn_like": lambda m, x: m.randn_like(x),
    "F.linear": lambda m, x: m.nn.functional.linear(x, m.ones(3, 2), m.ones(3)),
    "F.linear without bias": lambda m, x: m.nn.functional.linear(m.ones(3, 2), x),
    "F.cross_entropy": lambda m, x: m.nn.functional.cross_entropy(x, m.tensor([0, 1])),
    "F.nll_loss": lambda m, x: m.nn.functional.nll_loss(x, m.tensor([0, 1])),
    "F.l1_loss": lambda m, x: m.nn.functional.l1_loss(x, m.ones(2, 2)),
    "F.layer_norm": lambda m, x: m.nn.functional.layer_norm(x, (2,)),
    "F.rms_norm": lambda m, x: m.nn.functional.rms_norm(x, (2,)),
    "F.group_norm": lambda m, x: m.nn.functional.group_norm(x, 2),
    "F.conv1d": lambda m, x: m.nn.functional.conv1d(x, m.ones(3, 2, 1)),
    "F.dropout": lambda m, x: m.nn.functional.dropout(x),
    "F.softmax": lambda m, x: m.nn.functional.softmax(x, dim=-1),
    "F.embedding": lambda m, x: m.nn.functional.embedding(m.tensor([0, 1]), x),
    "F.pad": lambda m, x: m.nn.functional.pad(x, (1, 1)),
    "F.normalize": lambda m, x: m.nn.functional.normalize(input=x),
    "F.cosine_similarity": lambda m, x: m.nn.functional.cosine_similarity(x, m.ones(2, 2)),
    "F.pairwise_distance": lambda m, x: m.nn.functional.pairwise_distance(x, m.ones(2, 2)),
    "F.max_pool1d": lambda m, x: m.nn.functional.max_pool1d(x, 2),
    "F.unfold": lambda m, x: m.nn.functional.unfold(x.view(1, 1, 2, 2), 2),
    "F.interpolate": lambda m, x: m.nn.functional.interpolate(x.view(1, 1, 2, 2), scale_factor=2),
    "F.embedding_bag": lambda m, x: m.nn.functional.embedding_bag(m.tensor([[0, 1]]), x),
    "attention": lambda m, x: m.nn.functional.scaled_dot_product_attention(x, x, x),
    "nn.Linear": lambda m, x: m.nn.Linear(2, 3)(x),
    "nn.CrossEntropyLoss": lambda m, x: m.nn.CrossEntropyLoss()(x, m.tensor([0, 1])),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", CALLS)
def test_what_is_told_is_what_pytorch_tells(torch: Any, name: str) -> None:
    def told(m: Any) -> list[str]:
        names: list[str] = []

        def tell(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            names.append(func.__name__)
            return super(kind, cls).__torch_function__(func, types, args, kwargs)  # type: ignore[misc]

        kind = type("Told", (m.Tensor,), {"__torch_function__": classmethod(tell)})
        x = m.ones(2, 2).as_subclass(kind)
        names.clear()
        CALLS[name](m, x)
        return names

    assert told(gs) == told(torch)


READ = """
    H T mT mH data real shape dtype device layout ndim nbytes itemsize grad grad_fn grad_dtype requires_grad is_leaf
    retains_grad output_nr is_cuda is_sparse name _version _base _grad _grad_fn _backward_hooks
""".split()  # noqa: SIM905
ATTRIBUTES = {
    **{f"x.{name}": lambda m, x, name=name: getattr(x, name) for name in READ},
    "x.requires_grad = True": lambda m, x: setattr(x, "requires_grad", True),
    "x.grad = zeros": lambda m, x: setattr(x, "grad", m.zeros(2, 2)),
    "x.grad_dtype = None": lambda m, x: setattr(x, "grad_dtype", None),
    "x.data = zeros": lambda m, x: setattr(x, "data", m.zeros(2, 2)),
    "del x.grad": lambda m, x: delattr(x, "grad"),
    "of a result": lambda m, x: (x + 1).T.shape[0],
    "after a backward": lambda m, x: ((x.requires_grad_() * x).sum().backward(), x.grad)[1],
}


@pytest.mark.torch
@pytest.mark.parametrize("name", ATTRIBUTES)
def test_attributes_are_told_as_pytorch_tells_them(torch: Any, name: str) -> None:
    def told(m: Any) -> tuple[list[str], str]:
        calls = []

        def told(cls: Any, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            of = getattr(func, "__self__", None)
            names = [n for n in dir(m.Tensor) if of is not None and getattr(m.Tensor, n) is of]
            calls.append((max(names, default=""), func.__name__, len(args)))
            return super(kind, kind).__torch_function__(func, types, args, kwargs or {})

        kind = type("Told", (m.Tensor,), {"__torch_function__": classmethod(told)})
        result = ATTRIBUTES[name](m, m.tensor([[1.0, 2.0], [3.0, 4.0]]).as_subclass(kind))
        return calls, type(result).__name__

    assert told(gs) == told(torch)


@pytest.mark.slow
def test_what_gradscope_reads_itself_is_not_told() -> None:
    x = gs.ones(2, 2).as_subclass(Logged).requires_grad_()
    optimizer = gs.optim.SGD([x], 0.1)
    Logged.calls.clear()
    (x * x).sum().backward()
    optimizer.step()
    assert Logged.calls == ["mul", "sum", "backward"]


def test_an_attribute_can_be_answered_by_its_identity() -> None:
    class Tall(gs.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            if func == gs.Tensor.shape.__get__:
                return "tall"
            return super().__torch_function__(func, types, args, kwargs)

    assert (gs.ones(2).as_subclass(Tall).shape, gs.ones(2).shape) == ("tall", (2,))


def test_only_classes_with_a_say_have_attributes_of_their_own() -> None:
    class Narrow(gs.Tensor):
        shape = property(lambda self: "narrow")

    class Disabled(gs.Tensor):
        __torch_function__ = gs.nn.Parameter.__torch_function__

    assert gs.ones(2).as_subclass(Narrow).shape == "narrow"
    assert Disabled.shape is gs.Tensor.shape
    assert Disabled.dtype is not Narrow.dtype


def test_a_function_can_be_told_by_its_identity() -> None:
    handled = {gs.mean: lambda x: "a mean", gs.Tensor.exp: lambda x: "an exponential"}

    class Handled(gs.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            found = handled.get(func)
            return super().__torch_function__(func, types, args, kwargs) if found is None else found(*args)

    x = gs.ones(2).as_subclass(Handled)
    assert (gs.mean(x), x.exp(), type(x.sin())) == ("a mean", "an exponential", Handled)


def test_functions_of_nn_functional_are_told_by_their_identity() -> None:
    F = gs.nn.functional
    x = gs.ones(2, 2).as_subclass(Logged)
    told: list[Any] = []

    class Told(overrides.TorchFunctionMode):
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(func)
            return func(*args, **(kwargs or {}))

    with Told():
        F.linear(gs.ones(2, 2), x)
        F.normalize(x)
        F.layer_norm(x, (2,))
        F.unfold(gs.ones(1, 1, 2, 2), 2)
        gs.zeros_like(x)
    assert told == [F.linear, F.normalize, F.layer_norm, F.unfold, gs.zeros_like]


@pytest.mark.parametrize("name", ["linear", "conv2d", "layer_norm", "normalize", "relu", "softmax", "unfold"])
def test_pickle_finds_functions_of_nn_functional(name: str) -> None:
    function = getattr(gs.nn.functional, name)
    assert pickle.loads(pickle.dumps(function)) is function


def test_the_gradient_is_the_same() -> None:
    w = gs.randn(3, 3, requires_grad=True)
    x = gs.randn(3, 3)
    (expected,) = gs.autograd.grad((x @ w).relu().sum(), w)
    y = (x.as_subclass(Plain) @ w).relu().sum()
    assert type(y) is Plain
    (found,) = gs.autograd.grad(y, w)
    assert gs.equal(found, expected)


def test_a_second_derivative_asks_nobody() -> None:
    x = gs.tensor([2.0]).as_subclass(Logged).requires_grad_()
    y = x**3
    Logged.calls.clear()
    (first,) = gs.autograd.grad(y, x, create_graph=True)
    (second,) = gs.autograd.grad(first, x)
    assert Logged.calls == ["grad", "grad"]
    assert [first.item(), second.item()] == [12.0, 12.0]


def test_it_shares_memory_and_history() -> None:
    x = gs.ones(2, requires_grad=True)
    y = (x * 2).as_subclass(Plain)
    y.sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    z = gs.ones(2)
    z.as_subclass(Plain).mul_(3)
    assert (z.tolist(), z._version) == ([3.0, 3.0], 1)
    with pytest.raises(TypeError, match="must be a subclass of Tensor"):
        z.as_subclass(int)  # type: ignore[arg-type]


def test_a_conjugate_keeps_its_class_and_its_bit() -> None:
    x = gs.tensor([1 + 1j]).as_subclass(Plain)
    y = x.conj()
    assert (isinstance(y, Plain), y.is_conj(), (y * 2).tolist()) == (True, True, [2 - 2j])
    assert type(gs.ones(1) + gs.tensor([1j]).conj()) is gs.Tensor


def test_nothing_looks_while_there_is_no_instance() -> None:
    x = gs.ones(1).as_subclass(Plain)
    y = x * 2
    assert state.special
    del x
    assert state.special
    del y
    assert not state.special


def test_pickles_and_files() -> None:
    x = gs.tensor([1.0, 2.0]).as_subclass(Plain)
    x.label = "kept"  # type: ignore[attr-defined]
    file = io.BytesIO()
    gs.save(x, file)
    file.seek(0)
    for again in (pickle.loads(pickle.dumps(x)), gs.load(file, weights_only=False), copy.deepcopy(x)):
        assert (type(again), again.tolist(), again.label) == (Plain, [1.0, 2.0], "kept")


@pytest.mark.torch
def test_a_parameter_of_a_subclass(torch: Any) -> None:
    def facts(m: Any) -> Any:
        parameter = m.nn.Parameter(kept(m, m.Tensor))
        module = m.nn.Module()
        module.weight = parameter
        optimizer = m.optim.SGD(module.parameters(), lr=0.5)
        (module.weight * 2).sum().backward()
        optimizer.step()
        named = [name for name, _ in module.named_parameters()]
        return type(parameter).__name__, isinstance(parameter, m.nn.Parameter), named, parameter.tolist()

    assert facts(gs) == facts(torch)
    assert not isinstance(gs.ones(1), gs.nn.Parameter)


# --- others that take part --------------------------------------------------------------------------------------------


class Duck:
    """No tensor."""

    def __init__(self, value: float) -> None:
        self.value = value

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return func.__name__, [kind.__name__ for kind in types]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m, duck: m.add(duck, 1),
        lambda m, duck: m.add(m.ones(1), duck),
        lambda m, duck: m.mean(duck),
        lambda m, duck: m.cat([m.ones(1), duck]),
        lambda m, duck: m.matmul(duck, m.ones(2)),
    ],
)
def test_a_duck_has_its_say(torch: Any, use: Any) -> None:
    assert use(gs, Duck(1.0)) == use(torch, Duck(1.0))


def test_subclasses_are_asked_first_and_may_decline() -> None:
    asked: list[str] = []

    class Base(gs.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            asked.append(cls.__name__)
            return NotImplemented

    class Derived(Base):
        pass

    with pytest.raises(TypeError, match=r"no implementation found for 'gradscope\.add'"):
        gs.add(gs.ones(1).as_subclass(Base), gs.ones(1).as_subclass(Derived))
    assert asked == ["Derived", "Base"]


def test_a_function_of_ones_own_can_be_overridden() -> None:
    def twice(x: Any) -> Any:
        if overrides.has_torch_function((x,)):
            return overrides.handle_torch_function(twice, (x,), x)
        return x * 2

    assert twice(Duck(1.0)) == ("twice", ["Duck"])
    assert twice(gs.ones(1)).tolist() == [2.0]
    assert overrides.has_torch_function_unary(Duck(1.0))
    assert not overrides.has_torch_function_variadic(gs.ones(1), gs.nn.Parameter(gs.ones(1)))
    with pytest.raises(TypeError, match="no argument of twice"):
        overrides.handle_torch_function(twice, (1,), 1)


def test_nobody_has_a_say_in_a_block_without() -> None:
    x = gs.ones(1).as_subclass(Logged)
    Logged.calls.clear()
    with overrides.DisableTorchFunctionSubclass():
        assert type(x * 2) is gs.Tensor
        assert not overrides.has_torch_function((x,))
    assert Logged.calls == []
    assert overrides.is_tensor_like(Duck(1.0))
    assert not overrides.is_tensor_like(3)


def test_modes_are_nested() -> None:
    told: list[str] = []

    class Telling(overrides.TorchFunctionMode):
        def __init__(self, name: str) -> None:
            self.name = name

        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            told.append(f"{self.name} {func.__name__}")
            return func(*args, **(kwargs or {}))

    with Telling("outer"), Telling("inner"):
        gs.exp(gs.ones(1))
        with overrides.DisableTorchFunction():
            gs.sin(gs.ones(1))
    gs.cos(gs.ones(1))
    assert told == ["inner exp", "outer exp"]
    with pytest.raises(NotImplementedError, match="overrides nothing"), overrides.TorchFunctionMode():
        gs.ones(1).exp()


# --- tensors of two libraries in one call -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "call",
    [
        lambda torch, ours, theirs: torch.sum(ours),
        lambda torch, ours, theirs: torch.add(theirs, ours),
        lambda torch, ours, theirs: torch.stack([ours, ours]),
        lambda torch, ours, theirs: torch.nn.functional.softmax(ours, -1),
        lambda torch, ours, theirs: torch.nn.Linear(3, 2)(ours),
        lambda torch, ours, theirs: theirs.copy_(ours),
        lambda torch, ours, theirs: theirs.__setitem__(0, ours[0]),
    ],
    ids=["sum", "add", "stack", "softmax", "Linear", "copy_", "setitem"],
)
def test_a_function_of_pytorch_refuses_a_gradscope_tensor(torch, call):
    with pytest.raises(TypeError, match="of PyTorch was given a gradscope tensor\nCall gradscope's"):
        call(torch, gs.ones(3, requires_grad=True), torch.ones(3))


@pytest.mark.parametrize("ours", [gs.ones, lambda n: gs.ones(n).as_subclass(Plain)], ids=["a tensor", "a subclass"])
def test_a_function_of_gradscope_refuses_a_tensor_of_pytorch(torch, ours):
    x, theirs = ours(3), torch.ones(3)
    for call in (
        lambda: gs.add(x, theirs),
        lambda: gs.matmul(x, theirs),
        lambda: gs.nn.Linear(3, 2)(theirs),
        lambda: gs.cat([x, theirs]),
    ):
        with pytest.raises(TypeError, match=r"(not|got) torch\.Tensor"):
            call()
    for call in (lambda: x + theirs, lambda: theirs * x, lambda: theirs @ x):
        with pytest.raises(TypeError):
            call()
