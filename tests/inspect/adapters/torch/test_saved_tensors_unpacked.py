"""Saved tensors where PyTorch does not show them: the same is told as where it does, and nothing is changed."""

import gc
import threading
import weakref

import pytest

torch = pytest.importorskip("torch")

from gradscope.inspect.adapters import Observer, adapter_for  # noqa: E402
from gradscope.inspect.adapters.torch import saved_tensors, saved_tensors_unpacked  # noqa: E402
from gradscope.inspect.adapters.torch.saved_tensors import held_of, saved_of, unpacked_of  # noqa: E402

SHOWN = saved_tensors_unpacked.SHOWN

pytestmark = pytest.mark.torch


@pytest.fixture(autouse=True)
def _hidden(monkeypatch):
    monkeypatch.setattr(saved_tensors, "SHOWN", False)
    monkeypatch.setattr(saved_tensors_unpacked, "SHOWN", False)


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, other):
        ctx.save_for_backward(other, x, None)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        other, x, _ = ctx.saved_tensors
        return 2 * x * grad * other, None


def graphs():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    w = torch.ones(2, 2, requires_grad=True)
    index = torch.tensor([0, 1])
    return {
        "leaf": x.sin(),
        "result": x.exp(),
        "inputs": (w * 2) @ w,
        "none": torch.nn.functional.layer_norm(w, (2,)),
        "list": x[index],
        "custom": Square.apply(x * 1, torch.ones(2)),
    }


@pytest.mark.parametrize("shown", [False, pytest.param(True, marks=pytest.mark.skipif(not SHOWN, reason="it is not"))])
@pytest.mark.parametrize("released", [False, True])
@pytest.mark.parametrize("name", graphs())
def test_what_a_node_holds_is_what_it_has_saved_and_not_released(monkeypatch, name, released, shown):
    monkeypatch.setattr(saved_tensors, "SHOWN", shown)
    result = graphs()[name]
    node = result.grad_fn
    saved = [(name, tensor.data_ptr()) for name, tensor in unpacked_of(node) if tensor is not None]
    assert [(name, tensor.data_ptr()) for name, tensor in held_of(node)] == saved != []
    if released:
        result.sum().backward()
        assert held_of(node) == []


@pytest.mark.skipif(not SHOWN, reason="PyTorch does not show them")
@pytest.mark.parametrize("name", graphs())
def test_what_is_told_is_what_pytorch_shows(monkeypatch, name):
    result = graphs()[name]  # kept: before 2.13 the node of a custom Function goes with it
    node = result.grad_fn
    hidden = saved_of(node)
    monkeypatch.setattr(saved_tensors, "SHOWN", True)
    shown = saved_of(node)
    assert [view.name for view in hidden] == [view.name for view in shown]
    assert hidden
    for mine, theirs in zip(hidden, shown):
        assert torch.equal(mine.data, theirs.data)
        assert mine.data.data_ptr() == theirs.data.data_ptr()
        for fact in ("shape", "dtype", "nbytes", "saved_version", "current_version", "released", "packed"):
            assert getattr(mine, fact) == getattr(theirs, fact)


def test_a_tensor_that_pytorch_refuses_to_unpack_is_seen_and_refused_as_before():
    y = torch.tensor([1.0, 2.0], requires_grad=True).exp()
    loss = y.sum()
    with torch.no_grad():
        y.mul_(3)
    (view,) = saved_of(y.grad_fn)
    assert (view.saved_version, view.current_version) == (0, 1)
    assert torch.equal(view.data, y)
    with torch.no_grad():
        y.mul_(2)
    (view,) = saved_of(y.grad_fn)
    assert (view.saved_version, view.current_version) == (0, 2)
    assert torch.equal(view.data, y)
    with pytest.raises(RuntimeError, match=r"is at version 2; expected version 0 instead"):
        loss.backward()


def test_of_several_the_one_that_has_been_written_is_told():
    x = torch.tensor([1.0, 2.0], requires_grad=True) * 1
    y = Square.apply(x, torch.ones(2))
    x.detach().mul_(3)
    other, mine = saved_of(y.grad_fn)
    assert (other.saved_version, other.current_version) == (0, 0)
    assert (mine.saved_version, mine.current_version) == (0, 1)
    assert torch.equal(mine.data, x)
    with pytest.raises(RuntimeError, match=r"is at version 1; expected version 0 instead"):
        y.sum().backward()


def test_what_has_been_released_is_said():
    y = torch.ones(2, requires_grad=True).exp()
    y.sum().backward()
    (view,) = saved_of(y.grad_fn)
    assert view.released
    assert view.shape is None
    with pytest.raises(RuntimeError, match="has been released"):
        _ = view.data


def test_nothing_is_kept_alive():
    y = torch.ones(2, requires_grad=True).exp()
    with torch.no_grad():
        y.mul_(3)
    (view,) = saved_of(y.grad_fn)
    assert view.current_version == 1
    stale = weakref.ref(view.data)
    del y, view
    gc.collect()
    assert stale() is None


@pytest.fixture
def counted(monkeypatch):
    monkeypatch.setattr(saved_tensors_unpacked, "_spans", [])
    undo = saved_tensors_unpacked.count_hooks() if SHOWN else lambda: None
    yield
    undo()


def unpack(packed):
    raise AssertionError("this runs the program")


def packing():
    return torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack)


def packed(*results):
    return [view.packed for result in results for view in saved_of(result.grad_fn)]


def test_what_a_hook_has_packed_is_left_alone(counted):
    x = torch.ones(2, requires_grad=True)
    before = x.exp()
    with packing():
        first = x.exp()
        with torch.autograd.graph.save_on_cpu():
            pass
        second = x.exp()
    assert packed(before, first, second, x.exp()) == [False, True, True, False]


def test_a_hook_that_was_entered_before_they_were_counted(monkeypatch):
    monkeypatch.setattr(saved_tensors_unpacked, "_spans", [])
    x = torch.ones(2, requires_grad=True)
    hooks = packing()
    hooks.__enter__()
    saved_tensors_unpacked._entered.count = 0
    saved_tensors_unpacked._spans.clear()
    undo = saved_tensors_unpacked.count_hooks() if SHOWN else lambda: None
    hooks.__exit__()
    after = x.exp()
    undo()
    assert (saved_tensors_unpacked._entered.count, packed(after)) == (0, [False])


def test_hooks_of_a_thread_go_with_its_own_count(counted):
    x = torch.ones(2, requires_grad=True)
    others = []

    def other():
        others.append(saved_tensors_unpacked._entered.count)
        with packing():
            others.append(saved_tensors_unpacked._entered.count)

    with packing():
        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert saved_tensors_unpacked._entered.count == 1
        inside = x.exp()
    assert others == [0, 1]
    assert packed(inside) == [True]


def test_hooks_of_one_thread_say_nothing_of_what_another_makes(counted):
    """Each thread counts its own sequence numbers, from 0 on."""
    x = torch.ones(2, requires_grad=True)
    made = []

    def under_hooks():
        with packing():
            made.append([x.exp() for _ in range(20)])

    def plain():
        made.append([x.exp() for _ in range(20)])

    with adapter_for(x).observe(Observer(), forward=True, backward=False):
        for work in (under_hooks, plain, under_hooks):
            thread = threading.Thread(target=work)
            thread.start()
            thread.join()
    assert [set(packed(*results)) for results in made] == [{True}, {False}, {True}]


def test_only_the_latest_are_kept(counted, monkeypatch):
    monkeypatch.setattr(saved_tensors_unpacked, "_KEPT_SPANS", 3)
    x = torch.ones(2, requires_grad=True)
    results = []
    for _ in range(5):
        with torch.autograd.graph.save_on_cpu():
            results.append(x.exp())
    assert packed(*results) == [False, False, True, True, True]
