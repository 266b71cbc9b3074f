"""Trainings whose tensors are of a kind of their own: no instrument fails on one, or changes a number."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from tests.inspect.sessions import debugging, wait

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch


def not_initialised():
    model = torch.nn.Sequential(torch.nn.LazyLinear(4), torch.nn.ReLU(), torch.nn.LazyLinear(1))
    return model, lambda: model(torch.ones(2, 5)).sum()


def sparse_rows():
    model = torch.nn.Sequential(torch.nn.EmbeddingBag(6, 3, mode="sum", sparse=True), torch.nn.Linear(3, 1))
    return model, lambda: model(torch.tensor([[1, 2], [3, 3]])).sum()


def sparse_operand():
    model = torch.nn.Linear(3, 2, bias=False)
    return model, lambda: torch.sparse.mm(torch.eye(3).to_sparse_csr(), model.weight.t()).sum()


def jagged():
    rows = torch.nested.nested_tensor([torch.ones(2, 3), torch.ones(1, 3)], layout=torch.jagged)
    model = torch.nn.Linear(3, 2)
    return model, lambda: model(rows).values().sum()


def complex_numbers():
    model = torch.nn.Linear(3, 2, dtype=torch.cfloat)
    return model, lambda: model(torch.ones(1, 3, dtype=torch.cfloat)).abs().sum()


def without_values():
    model = torch.nn.Linear(3, 2, device="meta")
    return model, lambda: model(torch.ones(1, 3, device="meta")).sum()


def without_elements():
    model = torch.nn.Linear(0, 2)
    return model, lambda: model(torch.ones(1, 0)).sum()


def under_a_constraint():
    model = torch.nn.utils.parametrizations.orthogonal(torch.nn.Linear(3, 3))
    return model, lambda: model(torch.ones(1, 3)).sum()


class Tagged(torch.Tensor):
    """A subclass that adds nothing."""


def of_a_subclass():
    model = torch.nn.Linear(3, 2)
    return model, lambda: model(torch.ones(1, 3).as_subclass(Tagged)).sum()


KINDS = (
    not_initialised, sparse_rows, sparse_operand, jagged, complex_numbers, without_values, without_elements,
    under_a_constraint, of_a_subclass,
)  # fmt: skip


def train(kind):
    """Run two steps; return what the parameters and their gradients are then."""
    torch.manual_seed(0)
    model, loss = kind()
    loss().backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss().backward()
        optimizer.step()
    found = [tensor for parameter in model.parameters() for tensor in (parameter.detach(), parameter.grad)]
    return [str(tensor) if tensor.is_meta else tensor.to_dense().tolist() for tensor in found]


@contextmanager
def recorded(path):
    """Record everything, and read it."""
    with gi.record(path, keep="all"):
        yield
    with gi.open_recording(path) as recording:
        assert len(recording.tasks()) == 3


@pytest.mark.filterwarnings("ignore:Sparse CSR tensor support", "ignore:Initializing zero-element tensors")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_every_instrument_leaves_a_training_as_it_is(kind, tmp_path):
    plain = train(kind)
    for instrument in (gi.Doctor(), Sanitizer(), recorded(tmp_path / "run.gscope")):
        with instrument:
            assert train(kind) == plain
    seen = []
    with debugging(lambda: seen.append(train(kind))) as session:
        session.start()
        while wait(session) == "paused before":
            session.inspect(session.current)
            session.step()
        assert session.state.value == "finished", session.traceback
    assert seen == [plain]
