"""autocast: dtypes and graphs beside PyTorch's, the cache, nesting, Functions, other devices."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.runtime import state
from gradscope.runtime.autocast import settings
from gradscope.utils.checkpoint import checkpoint
from tests.side_by_side import same_complaint

HALF = gs.float16


def data(lib: Any, *shape: int, kind: str = "float32") -> Any:
    values = numpy.random.RandomState(sum(shape)).uniform(0.1, 0.9, shape)
    return lib.tensor(values.astype(kind), requires_grad=True)


def half(lib: Any, *shape: int) -> Any:
    return data(lib, *shape, kind="float16")


def spread(lib: Any) -> Any:
    return lib.tensor(numpy.array([[3, 1], [1, 2]], dtype="float16"), requires_grad=True)


Case = Callable[[Any, Any], Any]

# Name, and the call in terms of the library and its nn.functional.
CASES: dict[str, Case] = {
    "mm": lambda lib, F: lib.mm(data(lib, 2, 3), data(lib, 3, 4)),
    "matmul": lambda lib, F: data(lib, 2, 3) @ data(lib, 3, 4),
    "matmul of vectors": lambda lib, F: lib.matmul(data(lib, 3), data(lib, 3)),
    "matmul of batches": lambda lib, F: lib.matmul(data(lib, 2, 2, 3), data(lib, 3, 2)),
    "mv": lambda lib, F: lib.mv(data(lib, 2, 3), data(lib, 3)),
    "dot": lambda lib, F: lib.dot(data(lib, 3), data(lib, 3)),
    "bmm": lambda lib, F: lib.bmm(data(lib, 2, 3, 2), data(lib, 2, 2, 3)),
    "baddbmm": lambda lib, F: lib.baddbmm(data(lib, 2, 3, 3), data(lib, 2, 3, 2), data(lib, 2, 2, 3)),
    "addmm": lambda lib, F: lib.addmm(data(lib, 2, 2), data(lib, 2, 3), data(lib, 3, 2)),
    "addmv": lambda lib, F: lib.addmv(data(lib, 2), data(lib, 2, 3), data(lib, 3)),
    "linear": lambda lib, F: F.linear(data(lib, 2, 2, 3), data(lib, 4, 3)),
    "linear in float64": lambda lib, F: F.linear(data(lib, 2, 3, kind="float64"), data(lib, 4, 3, kind="float64")),
    "conv1d": lambda lib, F: F.conv1d(data(lib, 2, 3, 5), data(lib, 4, 3, 2), data(lib, 4)),
    "conv2d": lambda lib, F: F.conv2d(data(lib, 2, 3, 5, 5), data(lib, 4, 3, 2, 2), data(lib, 4)),
    "conv_transpose2d": lambda lib, F: F.conv_transpose2d(data(lib, 2, 3, 5, 5), data(lib, 3, 4, 2, 2)),
    "prelu": lambda lib, F: F.prelu(data(lib, 2, 3), data(lib, 1)),
    "vecdot": lambda lib, F: lib.linalg.vecdot(data(lib, 2, 3), data(lib, 2, 3)),
    "mse_loss": lambda lib, F: F.mse_loss(half(lib, 2, 3), data(lib, 2, 3)),
    "l1_loss": lambda lib, F: F.l1_loss(half(lib, 2, 3), half(lib, 2, 3)),
    "smooth_l1_loss": lambda lib, F: F.smooth_l1_loss(half(lib, 2, 3), half(lib, 2, 3)),
    "huber_loss": lambda lib, F: F.huber_loss(half(lib, 2, 3), half(lib, 2, 3)),
    "binary_cross_entropy": lambda lib, F: F.binary_cross_entropy(half(lib, 2, 3), lib.ones(2, 3)),
    "with_logits": lambda lib, F: F.binary_cross_entropy_with_logits(half(lib, 2, 3), lib.ones(2, 3)),
    "cross_entropy": lambda lib, F: F.cross_entropy(half(lib, 2, 3), lib.tensor([0, 1])),
    "nll_loss": lambda lib, F: F.nll_loss(half(lib, 2, 3), lib.tensor([0, 1])),
    "soft_margin_loss": lambda lib, F: F.soft_margin_loss(half(lib, 3), lib.tensor([1.0, -1.0, 1.0])),
    "multi_margin_loss": lambda lib, F: F.multi_margin_loss(half(lib, 2, 3), lib.tensor([1, 2])),
    "poisson_nll_loss": lambda lib, F: F.poisson_nll_loss(half(lib, 3), lib.ones(3)),
    "softmax": lambda lib, F: lib.softmax(half(lib, 2, 3), 0),
    "layer_norm": lambda lib, F: F.layer_norm(half(lib, 2, 3), (3,)),
    "sum": lambda lib, F: half(lib, 2, 3).sum(),
    "prod": lambda lib, F: half(lib, 2, 3).prod(),
    "prod along": lambda lib, F: half(lib, 2, 3).prod(0),
    "exp": lambda lib, F: half(lib, 2, 3).exp(),
    "pow": lambda lib, F: half(lib, 2, 3) ** 2,
    "add": lambda lib, F: half(lib, 2, 3) + data(lib, 2, 3),
    "cat": lambda lib, F: lib.cat([half(lib, 2, 3), data(lib, 2, 3)]),
    "cat of halves": lambda lib, F: lib.cat([half(lib, 2, 3), half(lib, 2, 3)]),
    "stack": lambda lib, F: lib.stack([half(lib, 2, 3), data(lib, 2, 3)]),
    "index_copy": lambda lib, F: lib.index_copy(data(lib, 2, 3), 0, lib.tensor([0]), half(lib, 1, 3)),
    "trace": lambda lib, F: half(lib, 2, 2).trace(),
    "fft": lambda lib, F: lib.fft.fft(half(lib, 4)),
    "irfft": lambda lib, F: lib.fft.irfft(lib.fft.rfft(half(lib, 4))),
    "inverse": lambda lib, F: lib.inverse(spread(lib)),
    "cholesky": lambda lib, F: lib.linalg.cholesky(spread(lib)),
    "svdvals": lambda lib, F: lib.linalg.svdvals(spread(lib)),
    "solve": lambda lib, F: lib.linalg.solve(spread(lib), half(lib, 2, 3)),
    "view_as_complex": lambda lib, F: lib.view_as_complex(half(lib, 3, 2)),
    "avg_pool3d": lambda lib, F: F.avg_pool3d(half(lib, 1, 1, 2, 2, 2), 2),
    "max_pool3d": lambda lib, F: F.max_pool3d(half(lib, 1, 1, 2, 2, 2), 2),
    "max_pool2d": lambda lib, F: F.max_pool2d(half(lib, 1, 1, 2, 2), 2),
    "grid_sample": lambda lib, F: F.grid_sample(half(lib, 1, 1, 3, 3), lib.zeros(1, 2, 2, 2), align_corners=False),
    "reflection_pad1d": lambda lib, F: F.pad(half(lib, 1, 3, 4), (1, 1), mode="reflect"),
    "replication_pad2d": lambda lib, F: F.pad(half(lib, 1, 3, 4, 4), (1, 1, 1, 1), mode="replicate"),
}

# Where the operators that a composed function is made of have other names here.
VALUES: dict[str, Case] = {
    "linear with a bias": lambda lib, F: F.linear(data(lib, 2, 3), data(lib, 4, 3), data(lib, 4)),
    "attention": lambda lib, F: F.scaled_dot_product_attention(
        data(lib, 1, 2, 3), data(lib, 1, 2, 3), data(lib, 1, 2, 3)
    ),
    "einsum": lambda lib, F: lib.einsum("ij,jk->ik", data(lib, 2, 3), data(lib, 3, 2)),
    "tensordot": lambda lib, F: lib.tensordot(data(lib, 2, 3), data(lib, 3, 2), 1),
    "multi_dot": lambda lib, F: lib.linalg.multi_dot([data(lib, 2, 3), data(lib, 3, 2), data(lib, 2, 2)]),
    "bilinear": lambda lib, F: F.bilinear(data(lib, 2, 3), data(lib, 2, 3), data(lib, 4, 3, 3)),
    "kl_div": lambda lib, F: F.kl_div(half(lib, 2, 3), lib.ones(2, 3), reduction="sum"),
    "hinge": lambda lib, F: F.hinge_embedding_loss(half(lib, 3), lib.tensor([1.0, -1.0, 1.0])),
    "cosine": lambda lib, F: F.cosine_embedding_loss(half(lib, 2, 3), half(lib, 2, 3), lib.tensor([1.0, -1.0])),
    "ranking": lambda lib, F: F.margin_ranking_loss(half(lib, 3), half(lib, 3), lib.tensor([1.0, -1.0, 1.0])),
    "triplet": lambda lib, F: F.triplet_margin_loss(half(lib, 2, 3), half(lib, 2, 3) * 2, half(lib, 2, 3) * 3),
    "ctc": lambda lib, F: F.ctc_loss(
        lib.log_softmax(half(lib, 5, 2, 4), -1), lib.tensor([[1, 2], [1, 3]]), (5, 5), (2, 2)
    ),
    "class probabilities": lambda lib, F: F.cross_entropy(half(lib, 2, 3), data(lib, 2, 3).detach()),
    "quantile": lambda lib, F: lib.quantile(half(lib, 5), 0.5),
    "cdist": lambda lib, F: lib.cdist(half(lib, 30, 3), half(lib, 40, 3)),
    "matrix_rank": lambda lib, F: lib.linalg.matrix_rank(spread(lib)),
    "pinverse": lambda lib, F: lib.pinverse(spread(lib)),
    "stft": lambda lib, F: lib.stft(half(lib, 16), 4, window=lib.ones(4), return_complex=True),
    "lstm_cell": lambda lib, F: lib.lstm_cell(
        data(lib, 2, 3), (data(lib, 2, 4),) * 2, data(lib, 16, 3), data(lib, 16, 4)
    )[1],
    "out=": lambda lib, F: lib.mm(lib.ones(2, 3), lib.ones(3, 4), out=lib.empty(2, 4)),
    "in place": lambda lib, F: lib.ones(2, 2).addmm_(lib.ones(2, 3), lib.ones(3, 2)),
}


def graph(node: Any) -> Any:
    if node is None:
        return None
    return node.name().removeprefix("torch::autograd::"), [graph(n) for n, _ in node.next_functions if n is not None]


def run(lib: Any, case: Case) -> tuple[str, Any, numpy.ndarray]:
    with lib.autocast("cpu", dtype=lib.float16):
        result = case(lib, lib.nn.functional)
    return str(result.dtype).partition(".")[2], graph(result.grad_fn), result.detach().numpy()


@pytest.mark.torch
@pytest.mark.parametrize("name", CASES)
def test_operators_run_in_the_precision_that_they_have_in_pytorch_and_record_the_same_casts(
    torch: Any, name: str
) -> None:
    mine, theirs = run(gs, CASES[name]), run(torch, CASES[name])
    assert mine[:2] == theirs[:2]
    numpy.testing.assert_allclose(mine[2], theirs[2], rtol=4e-3, atol=4e-3)


@pytest.mark.torch
@pytest.mark.parametrize("name", VALUES)
def test_composed_functions_have_the_precision_that_they_have_in_pytorch(torch: Any, name: str) -> None:
    mine, theirs = run(gs, VALUES[name]), run(torch, VALUES[name])
    assert mine[0] == theirs[0]
    numpy.testing.assert_allclose(mine[2], theirs[2], rtol=4e-3, atol=4e-3)


# --- the block --------------------------------------------------------------------------------------------------------


def losses(lib: Any, steps: int = 5) -> list[float]:
    """Train a small network in mixed precision."""
    model = lib.nn.Sequential(lib.nn.Linear(3, 8), lib.nn.Tanh(), lib.nn.LayerNorm(8), lib.nn.Linear(8, 2))
    with lib.no_grad():
        for number, p in enumerate(model.parameters()):
            values = numpy.random.RandomState(number).uniform(-0.5, 0.5, tuple(p.shape))
            p.copy_(lib.tensor(values.astype("float32")))
    optimizer = lib.optim.SGD(model.parameters(), lr=0.5)
    x, target = data(lib, 4, 3).detach(), lib.tensor([0, 1, 1, 0])
    found = []
    for _ in range(steps):
        with lib.autocast(device_type="cpu", dtype=lib.float16):
            loss = lib.nn.functional.cross_entropy(model(x), target)
        optimizer.zero_grad()
        loss.backward()
        assert all(p.grad.dtype is lib.float32 for p in model.parameters())
        optimizer.step()
        found.append(loss.item())
    return found


@pytest.mark.torch
def test_a_network_trains_as_in_pytorch(torch: Any) -> None:
    mine = losses(gs)
    assert mine[-1] < mine[0]
    numpy.testing.assert_allclose(mine, losses(torch), rtol=2e-3)


def test_blocks_nest_and_end_with_an_error() -> None:
    a = gs.ones(2, 2)
    block = gs.autocast("cpu", dtype=HALF)
    with block:
        assert gs.is_autocast_enabled("cpu")
        assert not gs.is_autocast_enabled()
        with gs.autocast("cpu", enabled=False):
            assert (a @ a).dtype is gs.float32
            with block:  # the same block again
                assert (a @ a).dtype is HALF
        assert (a @ a).dtype is HALF
    with pytest.raises(RuntimeError, match="same dtype"), block:
        gs.mm(a.double(), a.half())
    assert not gs.is_autocast_enabled("cpu")
    assert (a @ a).dtype is gs.float32
    assert not state.special
    assert state.casting == 0


def test_it_decorates_functions() -> None:
    @gs.autocast("cpu", dtype=HALF)
    def product(a: gs.Tensor) -> gs.Tensor:
        """Multiply."""
        return a @ a

    assert product(gs.ones(2, 2)).dtype is HALF
    assert product.__doc__ == "Multiply."


def test_the_settings_are_those_of_a_thread() -> None:
    seen = []

    def look() -> None:
        seen.append((gs.is_autocast_enabled("cpu"), (gs.ones(2, 2) @ gs.ones(2, 2)).dtype))

    with gs.autocast("cpu", dtype=HALF):
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen == [(False, gs.float32)]


def test_a_weight_is_cast_once_a_block() -> None:
    layer, x = gs.nn.Linear(3, 2), gs.ones(1, 3)
    with gs.autocast("cpu", dtype=HALF):
        first, second = layer(x), layer(x)
        with gs.autocast("cpu", dtype=HALF):
            inner = layer(x)
    with gs.autocast("cpu", dtype=HALF):
        later = layer(x)
    with gs.autocast("cpu", dtype=HALF, cache_enabled=False):
        pair = layer(x), layer(x)
    casts = [out.grad_fn.next_functions[1][0] for out in (first, second, inner, later, *pair)]
    assert casts[0] is casts[1] is casts[2]
    assert len({id(c) for c in casts}) == 4
    assert not settings.cache


def test_a_cast_made_without_recording_is_not_used_where_gradients_are_wanted() -> None:
    layer, x = gs.nn.Linear(3, 2), gs.ones(1, 3)
    with gs.autocast("cpu", dtype=HALF):
        with gs.no_grad():
            layer(x)
        layer(x).sum().backward()
    assert layer.weight.grad is not None


def test_instruments_see_the_casts() -> None:
    found = []
    with gs.autograd.graph.saved_tensors_hooks(lambda t: found.append(t.dtype) or t, lambda t: t):
        with gs.autocast("cpu", dtype=HALF):
            y = data(gs, 2, 3) @ data(gs, 3, 2)
    assert found == [HALF, HALF]
    y.sum().backward()


def test_forward_mode_goes_through_the_casts() -> None:
    a, b = data(gs, 2, 3).detach(), data(gs, 3, 2).detach()

    def product(x: gs.Tensor) -> gs.Tensor:
        with gs.autocast("cpu", dtype=HALF):
            return x @ b

    value, tangent = gs.func.jvp(product, (a,), (gs.ones(2, 3),))
    assert value.dtype is tangent.dtype is HALF
    numpy.testing.assert_allclose(tangent.float().numpy(), (gs.ones(2, 3) @ b).numpy(), rtol=2e-3)


@pytest.mark.parametrize("use_reentrant", [False, True])
def test_a_checkpoint_computes_again_in_the_same_precision(use_reentrant: bool) -> None:
    layer, x = gs.nn.Linear(3, 2), data(gs, 4, 3)
    kinds = []

    def run_layer(t: gs.Tensor) -> gs.Tensor:
        out = layer(t)
        kinds.append(out.dtype)
        return out.tanh()

    with gs.autocast("cpu", dtype=HALF):
        y = checkpoint(run_layer, x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert kinds == [HALF, HALF]
    assert x.grad.dtype is gs.float32


# --- settings ---------------------------------------------------------------------------------------------------------


@pytest.fixture
def fresh_settings() -> Iterator[None]:
    yield
    settings.dtypes = {"cpu": gs.bfloat16}


@pytest.mark.usefixtures("fresh_settings")
def test_the_dtype_of_a_device_can_be_set() -> None:
    assert gs.get_autocast_dtype("cpu") is gs.bfloat16
    gs.set_autocast_dtype("cpu", HALF)
    with gs.autocast("cpu"):
        assert (gs.ones(2, 2) @ gs.ones(2, 2)).dtype is HALF
    assert gs.get_autocast_dtype("cpu") is gs.get_autocast_dtype("cuda") is HALF


@pytest.mark.usefixtures("fresh_settings")
def test_it_is_switched_on_by_hand() -> None:
    gs.set_autocast_dtype("cpu", HALF)
    gs.set_autocast_enabled("cpu", True)
    assert gs.autocast_increment_nesting() == 1
    try:
        assert (gs.ones(2, 2) @ gs.ones(2, 2)).dtype is HALF
    finally:
        gs.set_autocast_enabled("cpu", False)
        assert gs.autocast_decrement_nesting() == 0
        gs.clear_autocast_cache()
    assert not state.special


def test_another_dtype_switches_it_off_with_a_warning() -> None:
    with pytest.warns(UserWarning, match="In CPU autocast, but the target dtype is not supported. Disabling autocast."):
        block = gs.autocast("cpu", dtype=gs.float64)
    with block:
        assert (gs.ones(2, 2) @ gs.ones(2, 2)).dtype is gs.float32


def test_without_cuda_it_is_off_with_a_warning(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gradscope.runtime.memory.device.cuda_is_available", lambda: False)
    with pytest.warns(UserWarning, match=r"CUDA is not available\. Disabling autocast"), gs.autocast("cuda"):
        assert not gs.is_autocast_enabled("cuda")
    with (
        pytest.warns(FutureWarning, match="Please use `gradscope.amp.autocast"),
        pytest.warns(UserWarning, match="CUDA"),
    ):
        gs.cuda.amp.autocast()


@pytest.mark.torch
@pytest.mark.parametrize(
    "call",
    [
        lambda lib: lib.autocast("cpu", dtype=lib.float16)(3),
        lambda lib: lib.autocast(),
    ],
)
def test_wrong_calls_raise_as_in_pytorch(torch: Any, call: Any) -> None:
    same_complaint(torch, call)


def test_an_unknown_device_is_refused() -> None:
    with pytest.raises(RuntimeError, match="device type at start of device string: abacus"):
        gs.is_autocast_enabled("abacus")
    with pytest.raises(RuntimeError, match="unsupported autocast device_type 'cuda:0'"):
        gs.autocast("cuda:0")


@pytest.mark.parametrize("call", [gs.autocast, lambda kind: gs.amp.custom_fwd(device_type=kind)])
def test_a_device_is_named_by_a_string(call: Any) -> None:
    with pytest.raises(ValueError, match="Expected `device_type` of type `str`, got: "):
        call(gs.device("cpu"))


# --- Functions --------------------------------------------------------------------------------------------------------


def product_function(lib: Any, seen: list[Any], **options: Any) -> Any:
    class Product(lib.autograd.Function):
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", **options)
        def forward(ctx: Any, a: Any, b: Any) -> Any:
            ctx.save_for_backward(a, b)
            out = a @ b
            seen.append((str(a.dtype).partition(".")[2], str(out.dtype).partition(".")[2]))
            return out

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            a, b = ctx.saved_tensors
            seen.append((lib.is_autocast_enabled("cpu"), str((g @ b.T).dtype).partition(".")[2]))
            return (g @ b.T).to(a.dtype), (a.T @ g).to(b.dtype)

    return Product


@pytest.mark.torch
@pytest.mark.parametrize("cast", [None, "float32", "float16"])
@pytest.mark.parametrize("enabled", [True, False])
def test_functions_choose_their_precision_as_in_pytorch(torch: Any, cast: str | None, enabled: bool) -> None:
    found = []
    for lib in (gs, torch):
        seen: list[Any] = []
        options = {} if cast is None else {"cast_inputs": getattr(lib, cast)}
        function = product_function(lib, seen, **options)
        a, b = data(lib, 2, 3), data(lib, 3, 2)
        with lib.autocast("cpu", dtype=lib.float16, enabled=enabled):
            out = function.apply(a, b)
        out.sum().backward()
        found.append((seen, str(out.dtype).partition(".")[2], a.grad.numpy()))
    assert found[0][:2] == found[1][:2]
    numpy.testing.assert_allclose(found[0][2], found[1][2], rtol=2e-3)


# --- other devices ----------------------------------------------------------------------------------------------------


@pytest.fixture
def far(other_device: str) -> Any:
    """Return what makes tensors on another device."""

    def make(*shape: int, kind: str = "float32") -> gs.Tensor:
        return data(gs, *shape, kind=kind).detach().to(other_device).requires_grad_()

    return make


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda F, far: far(2, 3) @ far(3, 2), HALF),
        (lambda F, far: far(3).dot(far(3)), gs.float32),
        (lambda F, far: gs.mv(far(2, 3), far(3)), HALF),
        (lambda F, far: gs.einsum("ij,jk->ik", far(2, 3), far(3, 2)), HALF),
        (lambda F, far: far(2, 3, kind="float16").exp(), gs.float32),
        (lambda F, far: far(2, 3, kind="float16").sum(), gs.float32),
        (lambda F, far: far(2, 3, kind="float16").sum(0, dtype=HALF), HALF),
        (lambda F, far: far(2, 3, kind="float16").softmax(0), gs.float32),
        (lambda F, far: far(2, 3, kind="float16") ** 2, gs.float32),
        (lambda F, far: F.layer_norm(far(2, 3, kind="float16"), (3,)), gs.float32),
        (lambda F, far: F.rms_norm(far(2, 3, kind="float16"), (3,)), gs.float32),
        (lambda F, far: F.cosine_similarity(far(2, 3, kind="float16"), far(2, 3, kind="float16")), gs.float32),
        (lambda F, far: gs.addcmul(far(2, 3), far(2, 3, kind="float16"), far(2, 3, kind="float16")), gs.float32),
        (lambda F, far: far(2, 3, kind="float16") * 2, HALF),
        (lambda F, far: gs.lstm_cell(far(2, 3), (far(2, 4), far(2, 4)), far(16, 3), far(16, 4))[1], HALF),
    ],
)
def test_devices_have_the_table_of_cuda(call: Any, wanted: Any, far: Any, other_device: str) -> None:
    with gs.autocast(other_device):
        result = call(gs.nn.functional, far)
        assert (gs.ones(2, 2) @ gs.ones(2, 2)).dtype is gs.float32
    assert result.dtype is wanted
    assert result.device.type == other_device
    result.sum().backward()


def test_an_operator_with_a_dtype_of_its_own_is_asked_for_float32_and_not_given_a_cast(
    far: Any, other_device: str
) -> None:
    with gs.autocast(other_device):
        assert graph(far(2, 3, kind="float16").sum().grad_fn) == ("SumBackward0", [("AccumulateGrad", [])])


def test_networks_are_of_the_lower_precision_throughout_on_other_devices(far: Any, other_device: str) -> None:
    lstm = gs.nn.LSTM(3, 4).to(other_device)
    with gs.autocast(other_device):
        out, (h, c) = lstm(far(5, 2, 3))
    assert out.dtype is h.dtype is c.dtype is HALF
    out.float().sum().backward()
    assert lstm.weight_ih_l0.grad.dtype is gs.float32


def test_binary_cross_entropy_is_refused_on_other_devices(far: Any, other_device: str) -> None:
    with gs.autocast(other_device), pytest.raises(RuntimeError, match="BCELoss are unsafe to autocast"):
        gs.nn.functional.binary_cross_entropy(far(2, 3), far(2, 3).detach())
