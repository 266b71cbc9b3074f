import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

import gradscope as gs
from gradscope.check import Sanitizer
from gradscope.check.watching.saved_values import SavedValues
from gradscope.inspect.adapters import NativeAdapter, adapter_for
from gradscope.inspect.records.write_account import WriteAccount


def changes(write, saved=(3, 4)):
    """Return the names of what has changed when `write` has had what exp() saved."""
    values = SavedValues(NativeAdapter(), WriteAccount())
    y = gs.ones(*saved, requires_grad=True).exp()
    values.note(y.grad_fn)
    write(y)
    return [found.name for found, _ in values.changed(y.grad_fn)]


@given(st.integers(0, 2), st.integers(0, 3), st.floats(-5, 5, width=32))
def test_a_write_is_seen_if_and_only_if_it_changes_a_bit(row, column, value):
    def write(y):
        y.data[row, column] = value

    before = gs.ones(1).exp().item()
    assert changes(write) == ([] if value == before else ["result"])


def test_bits_count_not_values():
    def negative_zero(y):
        y.data.copy_(gs.full((3, 4), -0.0))

    values = SavedValues(NativeAdapter(), WriteAccount())
    y = gs.zeros(3, 4, requires_grad=True) * gs.ones(3, 4, requires_grad=True)
    z = y * y
    values.note(z.grad_fn)
    negative_zero(y)
    assert [found.name for found, _ in values.changed(z.grad_fn)] == ["other", "self"]


def test_what_counts_a_version_is_the_runtimes_own_affair():
    assert changes(lambda y: y.mul_(2)) == []


def test_a_released_tensor_is_not_looked_at():
    assert changes(lambda y: y.sum().backward()) == []


def test_what_a_hook_has_packed_is_not_unpacked_to_look_at_it():
    unpacked = []
    with gs.autograd.graph.saved_tensors_hooks(lambda t: t, lambda t: unpacked.append(t) or t):
        assert changes(lambda y: y.data.zero_()) == []
    assert unpacked == []


def test_a_write_to_all_of_a_large_tensor_is_seen():
    assert changes(lambda y: y.data.add_(1), saved=(600, 600)) == ["result"]


FRAMEWORKS = ["gradscope", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.mark.parametrize("framework", FRAMEWORKS)
def test_the_checksum_does_not_depend_on_how_a_tensor_is_looked_at(framework):
    module = pytest.importorskip(framework)
    x = module.arange(24.0).view(4, 6)
    adapter = adapter_for(x)

    def bits(tensor):
        return numpy.frombuffer(memoryview(adapter.bits(tensor)).cast("B"), numpy.float32).tolist()

    assert bits(x) == bits(x.t()) == list(range(24))
    assert sorted(bits(x[:, ::2])) == sorted(x[:, ::2].reshape(-1).tolist())
    assert bits(x[1:2].expand(3, 6)) == [6, 7, 8, 9, 10, 11]
    assert adapter.region(x[1]).apart(adapter.region(x[2]))
    assert adapter.region(x[:, 0]).apart(adapter.region(x[:, 1]))
    assert not adapter.region(x[:, 0]).apart(adapter.region(x[2]))


def test_running_statistics_that_move_on_spoil_nothing_in_gradscope():
    gs.manual_seed(0)
    norm, x = gs.nn.BatchNorm1d(2), gs.randn(8, 2, requires_grad=True)
    with Sanitizer() as sanitizer:
        alone = norm.eval()(x).pow(2).sum()
        (expected,) = gs.autograd.grad(alone, x)
        y = norm(x).pow(2).sum()
        norm.train()(x)
        y.backward()
    assert sanitizer.findings == []
    assert x.grad.equal(expected)


@pytest.mark.torch
def test_tensors_without_memory_of_their_own_are_passed_over():
    torch = pytest.importorskip("torch")
    adapter, seen = adapter_for(torch.ones(1)), []

    def inside(x):
        seen.append((adapter.bits(x), adapter.region(x)))
        return (x.data * x).sum()

    with Sanitizer() as sanitizer:
        torch.func.grad(inside)(torch.ones(2))
        for tensor in (torch.ones(2, device="meta"), torch.eye(2).to_sparse(), torch.ones(0)):
            seen.append((adapter.bits(tensor), adapter.region(tensor)))
            assert tensor.data is not None
    assert seen == [(None, None)] * 4
    assert sanitizer.findings == []


@pytest.mark.parametrize("layout", ["plain", "transposed", "strided", "expanded", "empty", "scalar", "bfloat16"])
def test_a_fingerprint_does_not_depend_on_how_it_is_taken(layout):
    made = {
        "plain": lambda: gs.arange(12.0).reshape(3, 4).clone(),
        "transposed": lambda: gs.arange(12.0).reshape(3, 4).t(),
        "strided": lambda: gs.arange(24.0).reshape(4, 6)[:, ::2],
        "expanded": lambda: gs.arange(3.0).expand(4, 3),
        "empty": lambda: gs.zeros(0, 3),
        "scalar": lambda: gs.tensor(3.0),
        "bfloat16": lambda: gs.arange(4.0).to(gs.bfloat16),
    }
    other = made[layout]()
    node = (gs.ones(*other.shape, dtype=other.dtype, requires_grad=True) * other).grad_fn
    adapter = NativeAdapter()
    assert adapter.fingerprints(node) == adapter._fingerprints_by_view(node)
    assert [part is not None for part in adapter.fingerprints(node)] == [True, True] * len(adapter.saved(node))
