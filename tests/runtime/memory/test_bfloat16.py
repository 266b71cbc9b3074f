"""bfloat16: computed with in single precision, rounded once, and PyTorch's dtypes, values and refusals."""

from __future__ import annotations

import copy
import io
import pickle
import subprocess
import sys
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime.engine import backward
from gradscope.runtime.memory.bfloat16 import BFloat16Array, rounded
from gradscope.runtime.ops.declaration.registry import OPERATORS, Operator
from tests.runtime.ops import operator_cases as cases

VALUES = numpy.random.default_rng(0).normal(0, 3, 512).astype(numpy.float32)


def functional(m: Any) -> Any:
    return m.nn.functional


def host(tensor: Any) -> Any:
    """Return the values of a tensor of either module, in a dtype that NumPy has."""
    return cases.host(tensor.float() if str(tensor.dtype).endswith("bfloat16") else tensor)


def kind(tensor: Any) -> str:
    return str(tensor.dtype).partition(".")[2]


def steps(found: Any, expected: Any) -> float:
    """Return by how many steps of bfloat16 two arrays differ at most."""
    if found.dtype.kind != "f":
        return 0.0 if numpy.array_equal(found, expected) else numpy.inf
    same = (found == expected) | (numpy.isnan(found) & numpy.isnan(expected))
    size = numpy.maximum(numpy.maximum(abs(found), abs(expected)), 1e-30).astype("f8")
    with numpy.errstate(all="ignore"):
        apart = abs(found.astype("f8") - expected) / numpy.exp2(numpy.floor(numpy.log2(size)) - 7)
    return float(numpy.where(same, 0, apart).max(initial=0))


def test_the_name_is_there_before_ml_dtypes_is_imported() -> None:
    program = (
        "import sys, gradscope as gs; known = gs.bfloat16, gs.bfloat16.itemsize, gs.bfloat16.is_floating_point;"
        "gs.ones(2) * 2; print(known, 'ml_dtypes' in sys.modules);"
        "print(gs.ones(2, dtype=gs.bfloat16).dtype, 'ml_dtypes' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout
    assert found.splitlines() == ["(gradscope.bfloat16, 2, True) False", "gradscope.bfloat16 True"]


def test_an_unpickled_tensor_may_be_the_first_one() -> None:
    program = (
        "import pickle, sys, gradscope as gs; x = pickle.loads(bytes.fromhex(sys.argv[1]));"
        "print(gs.cat([x, x]), gs.linalg.vector_norm(x, 3))"
    )
    x = gs.tensor([1.0, 2.0], dtype=gs.bfloat16)
    command = [sys.executable, "-c", program, pickle.dumps(x).hex()]
    found = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert found == f"{gs.cat([x, x])!r} {gs.linalg.vector_norm(x, 3)!r}\n"


# --- each operator ----------------------------------------------------------------------------------------------------


def brain(tensor: Any) -> Any:
    """Return a tensor of a sample in bfloat16 where it is float32."""
    converted = tensor.detach().bfloat16() if tensor.dtype is gs.float32 else tensor.detach()
    return converted.requires_grad_(tensor.requires_grad)


def to_torch(torch: Any, value: Any) -> Any:
    if isinstance(value, gs.Tensor) and value.dtype is gs.bfloat16:
        return torch.from_numpy(host(value)).bfloat16().requires_grad_(value.requires_grad)
    if isinstance(value, (list, tuple)):
        return type(value)(to_torch(torch, item) for item in value)
    if isinstance(value, dict):
        return {key: to_torch(torch, item) for key, item in value.items()}
    return cases.to_torch(torch, value)


# PyTorch refuses these, or rounds on the way (here they are rounded once), or has no bfloat16 in them at all.
ROUNDED_ON_THE_WAY = {
    *("_fft_c2c", "addr", "affine_grid_generator", "col2im", "grid_sampler_2d", "grid_sampler_3d", "kl_div"),
    *("linalg_cross", "linalg_matrix_exp", "logit", "sinc", "upsample_bicubic2d", "upsample_linear1d"),
    *("special_i0e", "upsample_trilinear3d"),
}
COMPUTED_HERE = {
    *("_fft_r2c", "_upsample_bicubic2d_aa", "_upsample_bicubic2d_aa_backward", "_upsample_bilinear2d_aa"),
    *("_upsample_bilinear2d_aa_backward", "_upsample_lanczos2d_aa", "affine_grid_generator", "avg_pool3d"),
    *("multi_margin_loss", "multilabel_margin_loss", "cdist.rows", "pdist.rows"),
}
REFUSED_WHERE_EMPTY = {"linalg_cholesky_ex", "linalg_eigh"}


def operators() -> list[Operator]:
    return [op for op in OPERATORS.values() if op.samples is not None and cases.has_counterpart(op)]


def _outcome(function: Any, sample: Any) -> Any:
    try:
        results = function(*sample[0], **sample[1])
    except (RuntimeError, TypeError, ValueError) as error:
        return error
    return [results] if hasattr(results, "dtype") else list(results)


@pytest.mark.torch
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("op", operators(), ids=lambda op: op.name)
def test_an_operator_gives_what_pytorch_gives(torch: Any, op: Operator) -> None:
    theirs, ours = cases.own(op, cases.counterpart(torch, op)), cases.own(op, op.function)
    for number, sample in enumerate(cases.samples(op, "float32")):
        sample = tuple(cases.convert(part, brain) for part in sample)
        same = tuple(to_torch(torch, part) for part in sample)
        expected, found = _outcome(theirs, same), _outcome(ours, sample)
        what = f"{op.name}, sample {number}"
        if isinstance(expected, Exception) or isinstance(found, Exception):
            if not op.name.startswith("special_") and op.name not in COMPUTED_HERE | REFUSED_WHERE_EMPTY:
                assert {isinstance(e, RuntimeError) for e in (expected, found)} == {True}, f"{what}: {found!r}"
            continue
        for a, b in zip(found, expected, strict=True):
            assert (kind(a), tuple(a.shape)) == (kind(b), tuple(b.shape)), what
            assert (type(a._array) is BFloat16Array) == (a.dtype is gs.bfloat16), what
            if op.name not in ROUNDED_ON_THE_WAY:
                assert steps(host(a), host(b)) <= 1, f"{what}: {a} instead of {b}"
        _compare_gradients(torch, op, sample, found, same, expected, what)


def _compare_gradients(torch: Any, op: Operator, sample: Any, found: Any, same: Any, expected: Any, what: str) -> None:
    """Gradients have the dtype of what they belong to, and agree to two steps, or two of the largest of them."""
    ends = [output for output in found if output.requires_grad]
    if not ends:
        return
    generator = numpy.random.default_rng(7)
    seeds = [gs.tensor(generator.uniform(-1, 1, tuple(o.shape))).to(o.dtype) for o in ends]
    inputs = cases.differentiable(sample)
    grads = backward.grad(ends, inputs, seeds, allow_unused=True, retain_graph=True)
    again = backward.grad(ends, inputs, seeds, allow_unused=True, create_graph=True)
    ends = [output for output in expected if output.requires_grad]
    wanted = _outcome(torch.autograd.grad, ((ends, cases.torch_leaves(same), [to_torch(torch, s) for s in seeds]), {
        "allow_unused": True}))  # fmt: skip
    for a, recorded, x in zip(grads, again, inputs, strict=True):
        assert (a is None) == (recorded is None), what
        assert a is None or a.dtype is recorded.dtype is x.dtype, what
    if isinstance(wanted, Exception) or op.name in ROUNDED_ON_THE_WAY:
        return
    for a, b in zip(grads, wanted, strict=True):
        if b is not None:
            most = 2**-7 * abs(host(b)).max(initial=0)
            numpy.testing.assert_allclose(host(a), host(b), rtol=2**-6, atol=most, err_msg=what)


# --- numbers and other dtypes -----------------------------------------------------------------------------------------

MIXED = {
    "a sum with a number": lambda m, x: x + 0.1,
    "a difference from a number": lambda m, x: 0.3 - x,
    "a product with a number": lambda m, x: x * 0.1,
    "a quotient by a number": lambda m, x: x / 0.3,
    "a number's quotient": lambda m, x: 0.3 / x,
    "a power": lambda m, x: x.abs() ** 0.3,
    "a number's power": lambda m, x: 1.7**x,
    "a remainder": lambda m, x: x % 0.3,
    "a comparison with a number": lambda m, x: x > 0.1,
    "with a 0-d float32": lambda m, x: x + m.tensor(0.1),
    "times a 0-d float32": lambda m, x: x * m.tensor(0.1),
    "times integers": lambda m, x: x * m.arange(512),
    "with bools": lambda m, x: x + (x > 0),
    "with float16": lambda m, x: x + x.to(m.float16),
    "with float32": lambda m, x: x + x.float(),
    "with float64": lambda m, x: x * x.double(),
    "with a complex number": lambda m, x: x * (1 + 1j),
    "in place with a number": lambda m, x: x.clone().mul_(0.1),
    "in place with float32": lambda m, x: x.clone().sub_(x.float() * 0.3),
    "into bfloat16": lambda m, x: m.add(x, 0.1, out=m.empty(512, dtype=m.bfloat16)),
    "into float32": lambda m, x: m.mul(x, x, out=m.empty(512)),
    "joined with float32": lambda m, x: m.cat([x, x.float()]),
    "chosen or a number": lambda m, x: m.where(x > 0, x, 0.1),
    "clamped": lambda m, x: x.clamp(-0.3, 0.7),
    "a sum asked for in float32": lambda m, x: x.sum(dtype=m.float32),
    "a sum of float32 asked for in bfloat16": lambda m, x: m.arange(300).sum(dtype=m.bfloat16),
    "a mean asked for in bfloat16": lambda m, x: m.arange(300).mean(dtype=m.bfloat16),
    "ones of another dtype": lambda m, x: m.ones_like(x, dtype=m.float32),
    "a layer norm with float32 weights": lambda m, x: functional(m).layer_norm(x.view(16, 32), (32,), x[:32].float()),
    "a norm with its own epsilon": lambda m, x: functional(m).rms_norm(x.view(16, 32), (32,)),
    "the next number": lambda m, x: m.nextafter(x, x * 2),
    "rounded from float64": lambda m, x: (x.double() * 1.00390625).bfloat16(),
    "copied from float64": lambda m, x: m.zeros(512, dtype=m.bfloat16).copy_(x.double() * 1.001),
    "too large": lambda m, x: m.tensor([0.1, 3.4e38, -1e39, 1e-41], dtype=m.bfloat16),
    "integers": lambda m, x: m.arange(500, dtype=m.bfloat16),
    "evenly spaced": lambda m, x: m.linspace(-4, 4, 9, dtype=m.bfloat16),
    "filled": lambda m, x: m.full((2,), 0.1, dtype=m.bfloat16),
    "written with a number": lambda m, x: (x.__setitem__(slice(0, 5), 0.1), x)[1],
    "bits": lambda m, x: x.view(m.int16),
    "of bits": lambda m, x: x.view(m.int16).view(m.bfloat16) * 2,
    "wider bits": lambda m, x: x.view(m.int32),
    "strided": lambda m, x: (x.as_strided((3, 4), (2, 5), 7).mul_(2), x)[1],
    "a matrix product": lambda m, x: x.view(16, 32) @ x.view(32, 16),
    "a convolution": lambda m, x: functional(m).conv2d(x.view(2, 4, 8, 8), x[:144].view(4, 4, 3, 3)),
    "what types make": lambda m, x: m.tensor(
        [
            m.result_type(x, 1.0) == m.bfloat16,
            m.promote_types(m.bfloat16, m.float16) == m.float32,
            m.promote_types(m.bfloat16, m.int64) == m.bfloat16,
            m.promote_types(m.bfloat16, m.complex64) == m.complex64,
            m.can_cast(m.bfloat16, m.int32),
        ]
    ),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", MIXED)
def test_numbers_and_other_dtypes_beside_it(torch: Any, name: str) -> None:
    found, expected = (MIXED[name](m, m.tensor(VALUES).to(m.bfloat16)) for m in (gs, torch))
    assert (kind(found), tuple(found.shape)) == (kind(expected), tuple(expected.shape))
    assert steps(host(found), host(expected)) <= (1 if found.dtype is gs.bfloat16 else 0)


REFUSED = {
    "a number too large": lambda m, x: m.full((2,), 3.395e38, dtype=m.bfloat16),
    "numpy()": lambda m, x: x.numpy(),
    "a product of other dtypes": lambda m, x: x.view(16, 32) @ x.float().view(32, 16),
    "bitwise": lambda m, x: x & x,
    "into integers": lambda m, x: m.arange(512).add_(x),
    "a transform": lambda m, x: m.fft.fft(x),
    "singular values": lambda m, x: m.linalg.svdvals(x.view(16, 32)),
    "complex numbers": lambda m, x: m.complex(x, x),
    "a quantile": lambda m, x: x.quantile(0.5),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_what_pytorch_refuses(torch: Any, name: str) -> None:
    cases.assert_same_refusal(torch, lambda m: REFUSED[name](m, m.tensor(VALUES).to(m.bfloat16)))


# --- the dtype --------------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_limits(torch: Any) -> None:
    names = ("bits", "eps", "max", "min", "tiny", "smallest_normal", "resolution", "dtype")
    assert all(getattr(gs.finfo(gs.bfloat16), n) == getattr(torch.finfo(torch.bfloat16), n) for n in names)


@pytest.mark.torch
def test_text(torch: Any) -> None:
    for values in (VALUES[:5], VALUES[:0], VALUES[0]):
        found, expected = (repr(m.tensor(values).to(m.bfloat16)) for m in (gs, torch))
        assert found == expected.replace("torch.", "gradscope.")


def test_names_of_the_type() -> None:
    x = gs.BFloat16Tensor([1.5, 2.5])
    assert (x.type(), x.tolist(), x[0].item()) == ("gradscope.BFloat16Tensor", [1.5, 2.5], 1.5)
    assert isinstance(x, gs.BFloat16Tensor)
    assert gs.ones(2).type("torch.BFloat16Tensor").dtype is x.dtype is gs.bfloat16
    assert gs.nn.Linear(2, 2).bfloat16().weight.dtype is gs.bfloat16


def test_views_share_memory_and_version() -> None:
    x = gs.zeros(2, 3, dtype=gs.bfloat16)
    row, turned = x[1], x.t()
    row.fill_(0.1)
    assert turned[:, 1].tolist() == [0.10009765625] * 3
    assert (x._version, turned._version, row._base is x) == (1, 1, True)


def test_a_write_after_saving_is_seen() -> None:
    x = gs.ones(3, dtype=gs.bfloat16, requires_grad=True)
    y = x.exp()
    z = y * y
    y.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError):
        z.sum().backward()


def test_a_gradient_accumulates_in_bfloat16() -> None:
    x = gs.ones(4096, dtype=gs.bfloat16, requires_grad=True)
    scale = gs.ones(1, dtype=gs.bfloat16, requires_grad=True)
    for _ in range(2):
        (x * scale).sum().backward()
    assert x.grad.dtype is scale.grad.dtype is gs.bfloat16
    assert x.grad.tolist() == [2.0] * 4096
    assert scale.grad.tolist() == [8192.0]  # a sum in bfloat16 would end at 256


def test_copies() -> None:
    x = gs.tensor(VALUES, dtype=gs.bfloat16, requires_grad=True)
    x.grad = gs.ones_like(x)
    for again in (copy.deepcopy(x), pickle.loads(pickle.dumps(x))):
        assert (again.dtype, again.requires_grad, again.tolist()) == (gs.bfloat16, True, x.tolist())
        assert type(again._array) is BFloat16Array
    assert copy.deepcopy(x).grad.dtype is gs.bfloat16


@pytest.mark.torch
def test_files_in_both_directions(torch: Any) -> None:
    ours, theirs = io.BytesIO(), io.BytesIO()
    x, other = gs.tensor(VALUES).bfloat16(), torch.tensor(VALUES).bfloat16()
    gs.save({"x": x, "row": x[3:5], "dtype": gs.bfloat16}, ours)
    torch.save({"x": other, "row": other[3:5], "dtype": torch.bfloat16}, theirs)
    ours.seek(0), theirs.seek(0)
    read, found = torch.load(ours), gs.load(theirs)
    assert (read["dtype"], found["dtype"]) == (torch.bfloat16, gs.bfloat16)
    assert torch.equal(read["x"], other)
    assert torch.equal(read["row"], other[3:5])
    assert gs.equal(found["x"], x)
    assert found["row"].tolist() == x[3:5].tolist()
    found["row"].zero_()
    assert found["x"][3:5].tolist() == [0.0, 0.0]


def test_an_array_of_ml_dtypes_becomes_a_tensor() -> None:
    array = numpy.asarray(rounded(VALUES)).view(numpy.ndarray)
    x = gs.from_numpy(array)
    x[0] = 7.0
    assert (x.dtype, float(array[0])) == (gs.bfloat16, 7.0)


def test_cuda_is_refused_in_words(monkeypatch: pytest.MonkeyPatch) -> None:
    from gradscope.runtime.memory import device

    with pytest.raises(TypeError, match="on the CPU only"):
        device.CudaBackend().from_host(gs.ones(2, dtype=gs.bfloat16)._array, None)


def test_other_libraries_get_it_as_floats() -> None:
    with pytest.raises(BufferError, match="no bfloat16 by DLPack"):
        gs.utils.dlpack.to_dlpack(gs.ones(2, dtype=gs.bfloat16))


# --- instruments ------------------------------------------------------------------------------------------------------


def test_a_recording_keeps_its_values(tmp_path: Any) -> None:
    x = gs.tensor([1.5, 2.5], dtype=gs.bfloat16, requires_grad=True)
    with gs.inspect.record(tmp_path / "run.gscope", keep="all"):
        (x * x).sum().backward()
    recording = gs.inspect.open_recording(tmp_path / "run.gscope")
    (task,) = recording.tasks()
    assert {given.dtype for node in task.nodes for given in node.grad_outputs} == {"bfloat16"}
    assert recording.value(task.id, 0).tolist() == 1.0


# --- training ---------------------------------------------------------------------------------------------------------


def _train(m: Any, optimizer: str, **options: Any) -> Any:
    torch_like = functional(m)
    weight = m.tensor(VALUES[:32].reshape(4, 8) / 8).to(m.bfloat16).requires_grad_()
    bias = m.zeros(4, dtype=m.bfloat16, requires_grad=True)
    steps = getattr(m.optim, optimizer)([weight, bias], **options)
    x = m.tensor(VALUES[64:192].reshape(16, 8)).to(m.bfloat16)
    for _ in range(5):
        steps.zero_grad()
        torch_like.cross_entropy(torch_like.linear(x, weight, bias), m.arange(16) % 4).backward()
        m.nn.utils.clip_grad_norm_([weight, bias], 1.0)
        steps.step()
    state = steps.state[weight]
    return host(weight), {n: kind(v) for n, v in state.items() if hasattr(v, "dtype") and getattr(v, "ndim", 0)}


@pytest.mark.torch
@pytest.mark.parametrize(
    ("name", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.01}),
        ("Adam", {"lr": 0.01}),
        ("AdamW", {"lr": 0.01, "amsgrad": True}),
        ("RMSprop", {"lr": 0.01}),
        ("Adagrad", {"lr": 0.01}),
        ("Adafactor", {"lr": 0.01}),
    ],
)
def test_optimizers(torch: Any, name: str, options: dict[str, Any]) -> None:
    (found, mine), (expected, theirs) = _train(gs, name, **options), _train(torch, name, **options)
    assert mine == theirs
    numpy.testing.assert_allclose(found, expected, rtol=0.05, atol=5e-3)


@pytest.mark.torch
def test_autocast_is_in_bfloat16_on_the_cpu(torch: Any) -> None:
    def kinds(m: Any, **options: Any) -> list[str]:
        x = m.ones(2, 2, requires_grad=True)
        with m.autocast("cpu", **options):
            y = x @ x
            loss = functional(m).mse_loss(y, x)
        loss.backward()
        return [kind(y), kind(loss), kind(x.grad), str(m.get_autocast_dtype("cpu")).partition(".")[2]]

    assert kinds(gs) == kinds(torch) == ["bfloat16", "float32", "float32", "bfloat16"]
    assert kinds(gs, dtype=gs.bfloat16) == kinds(gs)


def test_the_scaler_divides_gradients_of_bfloat16() -> None:
    w = gs.ones(3, dtype=gs.bfloat16, requires_grad=True)
    optimizer, scaler = gs.optim.SGD([w], lr=1.0), gs.amp.GradScaler("cpu", init_scale=1024.0)
    scaler.scale((w * 0.25).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert w.tolist() == [0.75] * 3


@pytest.mark.parametrize(
    "make",
    [
        lambda x: x.bfloat16(),
        lambda x: x.to(gs.bfloat16),
        lambda x: x.sum(dtype=gs.bfloat16),
        lambda x: x.new_zeros(2, dtype=gs.bfloat16),
        lambda x: gs.full_like(x, 1.0, dtype=gs.bfloat16),
        lambda x: x.half().view(gs.bfloat16),
        lambda x: gs.nn.Linear(2, 2).to(x.device).bfloat16(),
    ],
)
def test_other_devices_are_refused_in_words(other_device: str, make: Any) -> None:
    with pytest.raises(TypeError, match=r"bfloat16 is here on the CPU only.*\nConvert it first"):
        make(gs.zeros(2, device=other_device))
