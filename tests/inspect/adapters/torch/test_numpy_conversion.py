"""Values on the host: every dtype, layout and kind of tensor, and none makes it fail."""

from types import SimpleNamespace

import numpy as np
import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records.snapshots import tensor_summary

torch = pytest.importorskip("torch")

from gradscope.inspect.adapters.torch.observed_backward import TorchCall  # noqa: E402 - PyTorch is there
from tests.inspect.adapters.test_unusual_tensors import Pair  # noqa: E402
from tests.pytorch_versions import require_pytorch  # noqa: E402

pytestmark = pytest.mark.torch

VALUES = [[1.0, -2.0], [0.5, 0.0]]
FLOATS = ("float16", "float32", "float64", "bfloat16")


@pytest.fixture
def adapter():
    return adapter_for(torch.ones(()))


@pytest.mark.parametrize("dtype", ["float64", "float32", "float16", "bfloat16", "int64", "uint8", "bool", "complex64"])
def test_dense_tensors_of_every_dtype(adapter, dtype):
    tensor = torch.tensor(VALUES).abs().to(getattr(torch, dtype))
    assert np.array_equal(adapter.to_host(tensor), torch.tensor(VALUES).abs().to(tensor.dtype).to(torch.complex64))
    assert adapter.spec(tensor).dtype == dtype
    assert adapter.to_host(torch.ones((), dtype=tensor.dtype)).shape == ()


def float8():
    return torch.tensor(VALUES).to(torch.float8_e4m3fn)


def half_complex():
    return torch.tensor(VALUES, dtype=torch.complex64).to(torch.complex32)


ODD = {
    "requires grad": lambda: torch.tensor(VALUES, requires_grad=True) * 1,
    "transposed": lambda: torch.tensor(VALUES).t().contiguous().t(),
    "conjugate": lambda: torch.tensor(VALUES, dtype=torch.complex64).conj(),
    "negated view": lambda: torch.tensor([[v * -1j for v in row] for row in VALUES]).conj().imag,
    "sparse": lambda: torch.tensor(VALUES).to_sparse(),
    "sparse, not coalesced": lambda: torch.sparse_coo_tensor(
        [[0, 0, 1, 0], [0, 1, 0, 0]], [0.5, -2.0, 0.5, 0.5], (2, 2), check_invariants=False
    ),
    "csr": lambda: torch.tensor(VALUES).to_sparse_csr(),
    "float8": float8,
    "complex32": half_complex,
    "parameter": lambda: torch.nn.Parameter(torch.tensor(VALUES)),
    "inference": lambda: torch.inference_mode()(lambda: torch.tensor(VALUES))(),
}


@pytest.mark.filterwarnings("ignore:Sparse CSR:UserWarning", "ignore:ComplexHalf:UserWarning")
@pytest.mark.filterwarnings("ignore:Sparse invariant checks are implicitly disabled:UserWarning")
@pytest.mark.parametrize("kind", ODD)
def test_tensors_of_every_kind(adapter, kind):
    tensor = ODD[kind]()
    assert np.array_equal(adapter.to_host(tensor), VALUES)
    assert adapter.spec(tensor).shape == (2, 2)
    assert tensor_summary(adapter, tensor, "t").numel == 4


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
def test_quantised_and_nested_tensors(adapter):
    quantised = torch.quantize_per_tensor(torch.tensor(VALUES), 0.5, 10, torch.quint8)
    assert np.array_equal(adapter.to_host(quantised), VALUES)
    nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)])
    assert adapter.to_host(nested).tolist() == [1.0, 1.0, 0.0]
    assert adapter.spec(nested).shape == (2, -1)
    jagged = torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)], layout=torch.jagged)
    assert adapter.to_host(jagged).tolist() == [1.0, 1.0, 0.0]


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_made_a_nested_tensor_tells_no_more_than_pytorch_does(adapter):
    require_pytorch(torch, "2.8")  # 2.4 does not tell what gradients its nodes expect
    nested = torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)], requires_grad=True) * 2
    (spec,) = adapter.outputs(nested.grad_fn)
    assert (spec.shape, spec.dtype) == ((-1,), "float32")
    assert adapter.region(nested.detach()) is None


def test_a_tensor_without_values_gives_none(adapter):
    tensor = torch.ones(3, 4, device="meta")
    assert adapter.to_host(tensor).size == 0
    summary = tensor_summary(adapter, tensor, "m")
    assert (summary.shape, summary.numel, summary.device, summary.preview) == ((3, 4), 0, "meta", "[]")


def test_a_tensor_of_a_class_that_wraps_others_gives_none(adapter):
    """It has no memory; what NumPy would take for it holds anything, NaN at times."""
    tensor = Pair(torch.ones(3, 4), torch.zeros(3, 4))
    assert adapter.to_host(tensor).size == 0
    assert tensor_summary(adapter, tensor, "pair").numel == 0


def test_a_tensor_inside_of_vmap_has_the_values_of_all_samples(adapter):
    seen, values = [], torch.arange(6.0).reshape(2, 3)
    torch.func.vmap(lambda t: seen.append(adapter.to_host(t).tolist()) or t * 2, 1)(values)
    assert seen == [values.T.tolist()]


def test_a_subclass_is_read_as_what_it_holds(adapter):
    class Logged(torch.Tensor):
        @classmethod
        def __torch_function__(cls, func, types, args=(), kwargs=None):
            raise AssertionError("a subclass's code must not run because somebody looks")

    assert adapter.to_host(torch.tensor(VALUES).as_subclass(Logged)).tolist() == VALUES


def test_a_new_tensor_like_a_spec(adapter):
    spec = adapter.spec(torch.ones(2, dtype=torch.bfloat16))
    made = adapter.tensor_like(3, spec)
    assert (made.dtype, made.tolist(), made.requires_grad) == (torch.bfloat16, [3.0, 3.0], False)
    kept = torch.tensor([1.0, 2.0])
    adapter.tensor_like(kept, adapter.spec(kept)).mul_(0)
    assert kept.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="cannot take a value of shape"):
        adapter.tensor_like([1, 2, 3], spec)
    with pytest.raises(TypeError, match="complex"):
        adapter.tensor_like(1j, spec)
    with pytest.raises(TypeError, match="got str"):
        adapter.tensor_like("much", spec)


def test_memory_can_be_resized_after_its_values_were_read():
    """numpy() forbids that for good; a sharded program frees its parameters so."""
    tensor = torch.arange(4.0, requires_grad=True)
    for read in (tensor, tensor.detach()):
        assert adapter_for(tensor).to_host(read).tolist() == [0.0, 1.0, 2.0, 3.0]
    assert tensor.untyped_storage().resizable()


def test_a_program_resizes_what_was_recorded(tmp_path):
    w = torch.ones(4, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        hidden = w * 2
        hidden.register_hook(lambda grad: grad.untyped_storage().resize_(64) and None)
        hidden.sum().backward()
        w.grad.resize_(8)
    assert w.grad.shape == (8,)
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert [len(task.nodes) for task in recording.tasks()] == [3]


@pytest.mark.parametrize("made", [lambda t: t.conj(), lambda t: t.conj().imag], ids=["conj", "neg"])
def test_values_that_are_stored_otherwise(adapter, made):
    tensor = made(torch.tensor([1 + 2j, 3 - 4j]))
    assert adapter.to_host(tensor).tolist() == tensor.tolist()
    assert adapter.to_host(torch._efficientzerotensor(2)).tolist() == [0, 0]


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::DeprecationWarning")
@pytest.mark.parametrize(
    "make",
    [
        *(
            lambda d=d: torch.tensor(VALUES).to(getattr(torch, d))
            for d in ("float16", "float32", "float64", "bfloat16")
        ),
        *ODD.values(),
        lambda: torch.ones(()).expand(2, 2),
        lambda: torch.ones(0, 2),
        lambda: torch.ones(100, 100),
        lambda: torch.ones(2, device="meta"),
        lambda: torch._efficientzerotensor(2),
        lambda: torch.nested.nested_tensor([torch.ones(2), torch.zeros(1)]),
        lambda: None,
    ],
)
def test_a_gradient_that_is_read_at_its_address_has_the_values_that_numpy_sees(adapter, make):
    tensor = make()
    task = SimpleNamespace(sent=None)
    call = TorchCall(task, None, (tensor, None), (tensor,))
    taken = ["what was there"]
    counts = adapter.small(call, 512, taken)
    hosts, given = adapter.hosts(call)
    if counts is None:
        assert taken == ["what was there"]
        assert task.sent is None
        return
    assert counts == (given, len(hosts) - given) == (2, 1)
    for host, found in zip(hosts, (taken[at : at + 3] for at in range(1, 10, 3)), strict=True):
        assert found == ([None] * 3 if host is None else [host.tobytes(), host.dtype, host.shape])
        assert host is None or type(found[2]) is tuple


def test_common_gradients_are_read_at_their_address(adapter):
    call = TorchCall(SimpleNamespace(sent=None), None, (torch.ones(3),), (torch.ones(2, 2), None))
    assert adapter.small(call, 12, []) is None  # 16 bytes
    assert adapter.small(call, 16, []) == (1, 2)


def test_what_a_hook_writes_unseen_by_versions_is_read(tmp_path):
    x = torch.ones(3, requires_grad=True)
    with gi.record(tmp_path / "run.gscope"):
        y = x.exp()
        y.register_hook(lambda grad: (grad.data.mul_(10), None)[1])
        (y * torch.ones(3) * torch.ones(3)).sum().backward()  # what sum() gives is no dense gradient
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (task,) = recording.tasks()
        nodes = {node.operator: node for node in task.nodes}
    assert nodes["Mul"].grad_inputs[0].norm == pytest.approx(3**0.5)
    assert nodes["Exp"].grad_outputs[0].norm == pytest.approx(10 * 3**0.5)


@pytest.mark.parametrize("made", ["strided", "dense"])
def test_what_a_hook_lays_out_anew_in_place_is_read_so(tmp_path, made):
    x = torch.ones((2, 2) if made == "strided" else (2, 1), requires_grad=True)
    with gi.record(tmp_path / "run.gscope", keep="summaries"):
        y = x.exp() if made == "strided" else x.expand(2, 2)
        y.register_hook(lambda grad: (grad.t_(), None)[1])
        (y * torch.tensor([[1.0, 2.0], [3.0, 4.0]]) * torch.ones(2, 2)).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        (task,) = recording.tasks()
        *_, last_mul, behind, _leaf = task.nodes
    assert (last_mul.operator, behind.operator) == ("Mul", "Exp" if made == "strided" else "Expand")
    assert last_mul.grad_inputs[0].preview == "[1, 2, 3, 4]"
    assert behind.grad_outputs[0].preview == "[1, 3, 2, 4]"
