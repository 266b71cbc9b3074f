"""Statistics that a device takes: beside those that the host takes of the same numbers, and in recordings."""

import contextlib
import math
import os
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch", reason="the adapter for PyTorch")
pytestmark = pytest.mark.torch

import gradscope.inspect as gi  # noqa: E402
from gradscope.inspect.adapters import event_guards  # noqa: E402
from gradscope.inspect.adapters.torch import TorchAdapter  # noqa: E402
from gradscope.inspect.adapters.torch.device import device_statistics as on_device  # noqa: E402
from gradscope.inspect.records.tensor_statistics import summarize  # noqa: E402

on_a_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
TENSORS = {
    "one number": lambda: torch.tensor(-2.5),
    "few": lambda: torch.randn(5),
    "several rows": lambda: torch.randn(300, 401),
    "transposed": lambda: torch.randn(70, 80).T,
    "permuted, of few": lambda: torch.randn(4, 6, 5)[:, ::2].permute(2, 0, 1),
    "of few columns": lambda: torch.randn(3, 4)[:, :1].T,
    "one number, repeated": lambda: torch.tensor(1 / 3).expand(30, 40),
    "a row, repeated": lambda: torch.randn(7).expand(5, 7),
    "a constant": lambda: torch.full((1001,), 1 / 3),
    "far from zero": lambda: torch.randn(5000) * 1e-3 + 1000,
    "half": lambda: torch.randn(100).half(),
    "bfloat16": lambda: torch.randn(100, 3).bfloat16(),
    "special": lambda: torch.tensor([0.0, -0.0, 1e-45, -3e-40, math.inf, -math.inf, math.nan, 3e38, -3e38]),
    "no finite one": lambda: torch.tensor([math.nan, math.inf]),
}


def same(found, values):
    """Hold the statistics of a device against those of the host."""
    wanted = summarize(values.float().numpy())
    assert tuple(zip(found.exponents.tolist(), found.counts.tolist(), strict=True)) == wanted.histogram
    assert (found.zeros, found.nans, found.infs) == (wanted.zeros, wanted.nans, wanted.infs)
    np.testing.assert_allclose(found.norm, wanted.norm, rtol=1e-12)
    for name in ("min", "max"):
        expected = getattr(wanted, name)
        np.testing.assert_array_equal(getattr(found, name), math.nan if expected is None else expected)
    # A mean may be the difference of large numbers, a deviation the root of one.
    size = 0.0 if wanted.max is None else max(wanted.max, -wanted.min)
    for name in ("mean", "std"):
        expected = getattr(wanted, name)
        np.testing.assert_allclose(
            getattr(found, name), math.nan if expected is None else expected, rtol=1e-9, atol=1e-7 * size
        )
    np.testing.assert_array_equal(found.first, values.float().reshape(-1)[:6].numpy())


@contextlib.contextmanager
def taken_on_the_cpu():
    """Tensors of the CPU count as tensors of a device that has no Triton."""

    def taken_of(tensor):
        return type(tensor) is torch.Tensor and tensor.dtype in on_device._DTYPES and tensor.numel() > 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(on_device, "are_taken_of", taken_of)
        patch.setattr(on_device, "_kernel", lambda dtype: None)
        patch.setattr(on_device, "_tables", {})
        yield


@pytest.fixture
def as_on_a_device():
    with taken_on_the_cpu():
        yield


@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_operators_count_what_the_host_counts(as_on_a_device, make):
    torch.manual_seed(0)
    values = make()
    same(on_device.statistics_of(values).read(), values)


@settings(deadline=None, max_examples=100)
@given(st.lists(st.floats(width=32) | st.sampled_from([0.0, -0.0, 1.0, math.nan, math.inf]), min_size=1, max_size=40))
def test_they_do_for_any_numbers(numbers):
    with taken_on_the_cpu():
        values = torch.tensor(numbers, dtype=torch.float32)
        same(on_device.statistics_of(values).read(), values)


def test_large_tensors_are_counted_in_pieces(as_on_a_device, monkeypatch):
    monkeypatch.setattr(on_device, "_PIECE", 1000)
    values = torch.randn(50_000)
    same(on_device.statistics_of(values).read(), values)


@pytest.mark.skipif(os.environ.get("TRITON_INTERPRET") != "1", reason="Triton interprets kernels if TRITON_INTERPRET=1")
@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_the_kernel_counts_the_same(as_on_a_device, monkeypatch, make):
    from gradscope.inspect.adapters.torch.device.device_kernel import measure

    monkeypatch.setattr(on_device, "_kernel", lambda dtype: measure)
    torch.manual_seed(0)
    values = make()
    same(on_device.statistics_of(values).read(), values)


@pytest.mark.parametrize("dtype", ["*fp32", "*fp16", "*bf16"])
def test_the_kernel_compiles_without_a_gpu(dtype):
    triton = pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("Triton interprets kernels")
    from triton.backends.compiler import GPUTarget
    from triton.compiler import ASTSource

    from gradscope.inspect.adapters.torch.device.device_kernel import measure

    numbers = dict.fromkeys(("row", "size", "shown", "blocks"), "i32")
    types = {"flat": dtype, "first": dtype, "bins": "*i32", "sums": "*fp64", **numbers, "BLOCK": "constexpr"}
    source = ASTSource(measure, types, {"BLOCK": on_device._BLOCK})
    with warnings.catch_warnings(action="ignore"):
        compiled = triton.compile(source, target=GPUTarget("cuda", 80, 32), options={"num_warps": 8})
    assert ".visible .entry measure" in compiled.asm["ptx"]


def test_rows_are_read_while_others_are_filled_in(as_on_a_device):
    values = [torch.randn(40_000) for _ in range(5)]
    begun = [on_device.statistics_of(v) for v in values[:3]]
    same(begun[2].read(), values[2])
    begun += [on_device.statistics_of(v) for v in values[3:]]
    for statistics, v in zip(begun, values, strict=True):
        same(statistics.read(), v)


def test_a_table_that_is_full_is_followed_by_another(as_on_a_device, monkeypatch):
    monkeypatch.setattr(on_device, "_ROWS", 3)
    values = [torch.randn(40_000) for _ in range(4)]  # two rows each
    begun = [on_device.statistics_of(v) for v in values]
    assert len({id(statistics._table) for statistics in begun}) == 4
    for statistics, v in zip(begun, values, strict=True):
        same(statistics.read(), v)


# --- recordings -------------------------------------------------------------------------------------------------------


def model(device="cpu"):
    torch.manual_seed(0)
    layers = torch.nn.Linear(20, 40), torch.nn.GELU(), torch.nn.LayerNorm(40), torch.nn.Linear(40, 3)
    return torch.nn.Sequential(*layers).to(device)


def recorded(path, device="cpu", hook=None, keep=None):
    """Record three backwards; return of each node its name, and the summaries of its gradients."""
    net = model(device)
    x = torch.randn(64, 20, generator=torch.Generator().manual_seed(1)).to(device)
    with gi.record(path, *([] if keep is None else [keep])):
        for _ in range(3):
            h = net[0](x)
            if hook is not None:
                h.register_hook(hook)
            h = net[1:](h)
            (h.T.reshape(-1) * h.view(-1) + h.sum()).mean().backward()
    with gi.open_recording(path) as recording:
        nodes = [node for task in recording.tasks() for node in task.nodes]
    return [(node.name, [s for s in (*node.grad_outputs, *node.grad_inputs) if s is not None]) for node in nodes]


def compare(one, other, *, rtol=1e-9, devices=()):
    """Hold two recordings against each other."""
    assert [name for name, _ in one] == [name for name, _ in other]
    for (name, found), (_, wanted) in zip(one, other, strict=True):
        assert len(found) == len(wanted), name
        for a, b in zip(found, wanted, strict=True):
            assert (a.shape, a.dtype, a.numel, a.zeros, a.nans, a.infs) == (
                b.shape,
                b.dtype,
                b.numel,
                b.zeros,
                b.nans,
                b.infs,
            )
            size = max(abs(b.max), abs(b.min), 1e-30)
            for fact in ("norm", "min", "max", "mean", "std"):
                assert getattr(a, fact) == pytest.approx(getattr(b, fact), rel=rtol, abs=rtol * size), (name, fact)
            if not devices:
                assert (a.histogram, a.preview, a.device) == (b.histogram, b.preview, b.device), name
            else:
                assert (a.device, b.device) == devices


def doubled(gradient):
    return gradient * 2


def doubled_in_place(gradient):
    gradient.mul_(2)


@pytest.mark.parametrize("hook", [None, doubled, doubled_in_place])
def test_a_recording_holds_what_the_host_would_have_counted(tmp_path, hook):
    plain = recorded(tmp_path / "plain.gscope", hook=hook)
    with taken_on_the_cpu():
        compare(recorded(tmp_path / "device.gscope", hook=hook), plain, rtol=1e-5)


def test_values_that_are_kept_are_those_of_the_host(tmp_path):
    plain = recorded(tmp_path / "plain.gscope", keep="all")
    with taken_on_the_cpu():
        compare(recorded(tmp_path / "device.gscope", keep="all"), plain)


def test_a_gradient_that_is_passed_on_is_counted_once(tmp_path, monkeypatch):
    counted = []
    with taken_on_the_cpu():
        take = on_device.statistics_of
        monkeypatch.setattr(on_device, "statistics_of", lambda tensor: counted.append(tensor.shape) or take(tensor))
        x = torch.ones(60, 40, requires_grad=True)
        with gi.record(tmp_path / "run.gscope"):
            (x * 2).view(2400).view(40, 60).exp().sum().backward()
        with gi.open_recording(tmp_path / "run.gscope") as recording:
            ran = [(node.name, node.grad_inputs[0].shape) for node in recording.tasks()[0].nodes[1:4]]
    # What sum() expands, what exp() makes, which two views pass on, and what mul() makes, which the leaf is given. The
    # seed is a number, which is read as it is.
    assert counted == [(), (40, 60), (40, 60), (60, 40)]
    assert ran == [("ExpBackward0", (40, 60)), ("ViewBackward0", (2400,)), ("ViewBackward0", (60, 40))]


OUT_OF_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB."),
    RuntimeError("CUDA error: out of memory"),
    RuntimeError("Triton Error [CUDA]: out of memory"),
]


def failing(error):
    def fail(tensor):
        raise error

    return fail


@pytest.mark.parametrize("error", OUT_OF_MEMORY, ids=str)
def test_a_device_without_memory_leaves_the_counting_to_the_host(tmp_path, monkeypatch, error):
    plain = recorded(tmp_path / "plain.gscope")
    with taken_on_the_cpu():
        monkeypatch.setattr(on_device, "statistics_of", failing(error))
        compare(recorded(tmp_path / "device.gscope"), plain)
        assert TorchAdapter().moments([torch.ones(3), None]) == [None, None]


@pytest.mark.parametrize(
    "error", [RuntimeError("CUDA error: device-side assert triggered"), TypeError("a defect of ours")], ids=str
)
def test_what_else_a_device_reports_is_told(tmp_path, monkeypatch, capfd, error):
    monkeypatch.setattr(event_guards, "raising", False)
    with taken_on_the_cpu():
        monkeypatch.setattr(on_device, "statistics_of", failing(error))
        recorded(tmp_path / "device.gscope")
        with pytest.raises(type(error), match=str(error)):
            TorchAdapter().moments([torch.ones(3), None])
    told = f"{type(error).__name__}: {error}"
    if isinstance(error, TypeError):
        told = f"gradscope's own code failed; please report it: {told} ("
    assert f"recording has stopped: {told}" in capfd.readouterr().err


def test_what_a_device_has_lost_is_told_as_unknown(tmp_path, monkeypatch):
    def lost(statistics):
        raise RuntimeError("CUDA error: device-side assert triggered")

    monkeypatch.setattr(on_device.DeviceStatistics, "read", lost)
    with taken_on_the_cpu():
        nodes = recorded(tmp_path / "run.gscope")
    assert [name for name, _ in nodes][:1] == ["MeanBackward0"]
    norms = [summary.norm for _, summaries in nodes for summary in summaries]
    assert any(math.isnan(norm) for norm in norms)


def test_gradients_of_a_backward_live_no_longer_than_without(tmp_path):
    """The memory of a gradient becomes that of the leaf's, as PyTorch does where nobody holds it."""
    made = []
    with taken_on_the_cpu():
        x = torch.ones(5000, requires_grad=True)
        with gi.record(tmp_path / "run.gscope"):
            y = x * 2
            y.grad_fn.register_hook(lambda inputs, outputs: made.append(inputs[0].data_ptr()))
            y.sum().backward()
    assert made == [x.grad.data_ptr()]


# --- on a GPU ---------------------------------------------------------------------------------------------------------


@on_a_gpu
@pytest.mark.parametrize("kernel", [True, False])
@pytest.mark.parametrize("make", TENSORS.values(), ids=TENSORS)
def test_a_gpu_counts_what_the_host_counts(monkeypatch, make, kernel):
    torch.manual_seed(0)
    values = make()
    there = values.cuda()  # of the same strides, but for what repeats
    if kernel:
        pytest.importorskip("triton", reason="comes with PyTorch for CUDA")
        assert on_device._kernel(values.dtype) is not None
    else:
        monkeypatch.setattr(on_device, "_kernel", lambda dtype: None)
        monkeypatch.setattr(on_device, "_tables", {})
    assert on_device.are_taken_of(there)
    same(on_device.statistics_of(there).read(), values)


@on_a_gpu
def test_a_recording_of_a_gpu_is_that_of_the_cpu(tmp_path):
    plain = recorded(tmp_path / "plain.gscope")
    compare(recorded(tmp_path / "device.gscope", "cuda"), plain, rtol=1e-3, devices=("cuda:0", "cpu"))


@on_a_gpu
def test_nothing_waits_for_the_gpu(tmp_path):
    x = torch.ones(50, 60, device="cuda", requires_grad=True)
    y = (x * 2).T.exp().sum()
    begun = on_device.statistics_of(x.detach())
    begun.read()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch calls the mode a prototype
        try:
            torch.cuda.set_sync_debug_mode("error")
            for values in (x.detach(), x.detach().T, x.detach().expand(3, 50, 60)):
                on_device.statistics_of(values)
        finally:
            torch.cuda.set_sync_debug_mode("default")
    y.backward()


@on_a_gpu
def test_streams_have_their_own_tables(tmp_path):
    values, aside = torch.randn(300_000, device="cuda"), torch.cuda.Stream()
    begun = [on_device.statistics_of(values)]
    aside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(aside):
        begun.append(on_device.statistics_of(values))
    assert begun[0]._table is not begun[1]._table
    for statistics in begun:
        same(statistics.read(), values.cpu())


@on_a_gpu
def test_what_is_captured_is_left_alone(tmp_path):
    x = torch.ones(8, device="cuda", requires_grad=True)
    graph = torch.cuda.CUDAGraph()
    with gi.record(tmp_path / "run.gscope"):
        (x * 2).sum().backward()
        torch.cuda.synchronize()
        with torch.cuda.graph(graph):
            x.grad = None
            (x * 3).sum().backward()
    graph.replay()
    assert x.grad.tolist() == [3.0] * 8
