"""Trainings whose tensors are of a kind of their own: no instrument fails on one, or changes a number."""

from __future__ import annotations

from contextlib import contextmanager

import pytest

import gradscope.inspect as gi
from gradscope.check import Sanitizer
from gradscope.inspect import Debugger
from tests.inspect.sessions import debugging, wait

torch = pytest.importorskip("torch")
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode  # noqa: E402 - it is there where PyTorch is

from tests.pytorch_versions import require_pytorch  # noqa: E402

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


def complex_sums():
    model = torch.nn.Sequential(torch.nn.Linear(3, 8, dtype=torch.cfloat), torch.nn.Linear(8, 4, dtype=torch.cfloat))
    return model, lambda: model(torch.ones(2, 3, dtype=torch.cfloat)).sum().abs()


def without_values():
    model = torch.nn.Linear(3, 2, device="meta")
    return model, lambda: model(torch.ones(1, 3, device="meta")).sum()


def fake():
    with FakeTensorMode():
        model = torch.nn.Linear(3, 2)
        inputs = torch.ones(1, 3)
    return model, lambda: model(inputs).sum()


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


class Pair(torch.Tensor):
    """A subclass that has no memory: it wraps two tensors, and computes with both."""

    @staticmethod
    def __new__(cls, one, two):
        return torch.Tensor._make_wrapper_subclass(cls, one.shape, dtype=one.dtype)

    def __init__(self, one, two):
        self.both = one, two

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        def of(index):
            return torch.utils._pytree.tree_map_only(cls, lambda pair: pair.both[index], (args, kwargs or {}))

        one, two = (func(*given, **named) for given, named in map(of, (0, 1)))
        if func._schema.name.endswith("_"):
            return args[0]
        return cls(one, two) if isinstance(one, torch.Tensor) else one


def without_memory():
    model = torch.nn.Linear(3, 2, bias=False)
    model.weight = torch.nn.Parameter(Pair(torch.ones(2, 3), torch.zeros(2, 3)))
    return model, lambda: (torch.ones(1, 3) @ model.weight.t()).relu().sum()


KINDS = (
    not_initialised, sparse_rows, sparse_operand, jagged, complex_numbers, complex_sums, without_values, fake,
    without_elements, under_a_constraint, of_a_subclass, without_memory,
)  # fmt: skip


def train(kind):
    """Run two steps; return what the parameters and their gradients are then."""
    torch.manual_seed(0)
    model, loss_of_step = kind()
    loss_of_step().backward()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(2):
        optimizer.zero_grad()
        loss = loss_of_step()  # the instruments read what has this name
        loss.backward()
        optimizer.step()
    found = [tensor for parameter in model.parameters() for tensor in (parameter.detach(), parameter.grad)]
    return [numbers_of(tensor) for tensor in found]


def numbers_of(tensor):
    """Return the elements; of a tensor without values what it prints as."""
    if isinstance(tensor, Pair):
        return [numbers_of(each) for each in tensor.both]
    absent = tensor.is_meta or isinstance(tensor, FakeTensor)
    return str(tensor) if absent else tensor.to_dense().tolist()


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
    if kind.__name__ == "jagged":
        require_pytorch(torch, "2.8")  # 2.4 brings such a parameter no gradient
    plain = train(kind)
    for instrument in (gi.Doctor(), Sanitizer(), recorded(tmp_path / "run.gscope")):
        with instrument:
            assert train(kind) == plain
    seen = []
    for go_on in (Debugger.step, Debugger.cont):  # node by node, and free, with NaN and infinities caught
        with debugging(lambda: seen.append(train(kind))) as session:
            session.start()
            while wait(session) == "paused before":
                session.inspect(session.current)
                go_on(session)
            assert session.state.value == "finished", session.traceback
    assert seen == [plain, plain]


def test_reading_a_model_passes_by_the_modes_of_the_program():
    real = torch.nn.Linear(3, 2)
    with gi.Doctor() as doctor:
        for _ in range(2):
            real(torch.ones(1, 3)).sum().backward()
            with FakeTensorMode():  # it refuses tensors that are not fake
                model = torch.nn.Linear(3, 2)
                loss = model(torch.ones(1, 3)).sum()
                loss.backward()
    assert isinstance(model.weight.grad, FakeTensor)
    assert not [symptom for symptom in doctor.diagnosis.symptoms if symptom.code == "D302"]
