"""Multi-head attention against PyTorch: projections, masks, extra keys, weights."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint

from .alike import assert_alike, pair

rng = numpy.random.default_rng(0)

MODULES = {
    "plain": {},
    "batch first": {"batch_first": True},
    "without bias": {"bias": False},
    "extra keys": {"add_bias_kv": True, "add_zero_attn": True},
    "other features": {"kdim": 5, "vdim": 3},
    "one other": {"vdim": 3, "bias": False, "add_bias_kv": True},
}
L, S, N, E, HEADS = 3, 4, 2, 6, 2


def sequences(options: dict[str, Any], *batch: int) -> tuple[Any, ...]:
    first = options.get("batch_first") and batch
    sizes = [(L, E), (S, options.get("kdim", E)), (S, options.get("vdim", E))]
    return tuple(rng.normal(size=(*batch, n, f) if first else (n, *batch, f)) for n, f in sizes)


BOOLS, PADDING = numpy.arange(L * S).reshape(L, S) % 3 == 1, numpy.array([[False, False, True, True], [False] * S])
CALLS = {
    "plain": {},
    "no weights": {"need_weights": False},
    "all weights": {"average_attn_weights": False},
    "bool mask": {"attn_mask": BOOLS},
    "number mask": {"attn_mask": rng.normal(size=(N * HEADS, L, S)), "need_weights": False},
    "padding": {"key_padding_mask": PADDING},
    "padding and mask": {"key_padding_mask": PADDING, "attn_mask": BOOLS, "need_weights": False},
}


def calling(options: dict[str, Any]) -> Any:
    def use(lib: Any, module: Any, query: Any, key: Any, value: Any) -> Any:
        given = {n: lib.tensor(o) if isinstance(o, numpy.ndarray) else o for n, o in options.items()}
        return module(query, key, value, **given)

    return use


@pytest.mark.torch
@pytest.mark.parametrize("name", MODULES)
@pytest.mark.parametrize("call", CALLS)
def test_attention_is_that_of_pytorch(torch: Any, name: str, call: str) -> None:
    def make(n: Any) -> Any:
        return n.MultiheadAttention(E, HEADS, **MODULES[name])

    mine, theirs = pair(torch, make)
    assert repr(mine) == repr(theirs)
    assert [(n, tuple(p.shape)) for n, p in mine.named_parameters()] == [
        (n, tuple(p.shape)) for n, p in theirs.named_parameters()
    ]
    inputs = sequences(MODULES[name], N)
    assert_alike(torch, make, calling(CALLS[call]), *inputs, twice=CALLS[call].get("need_weights", True))


@pytest.mark.torch
@pytest.mark.parametrize("need_weights", [True, False])
def test_attention_of_a_sequence_to_itself_or_to_one_other(torch: Any, need_weights: bool) -> None:
    """Tensors that are the same are projected in one product."""

    def make(n: Any) -> Any:
        return n.MultiheadAttention(E, HEADS, batch_first=True)

    x, y = rng.normal(size=(N, L, E)), rng.normal(size=(N, S, E))
    assert_alike(torch, make, lambda lib, m, x: m(x, x, x, need_weights=need_weights), x, twice=need_weights)
    assert_alike(torch, make, lambda lib, m, x, y: m(x, y, y, need_weights=need_weights), x, y, twice=need_weights)
    assert_alike(torch, make, lambda lib, m, x: m(x, x, x, need_weights=need_weights), x[0], twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("call", [c for c in CALLS if "padding" not in c and "number" not in c])
def test_attention_without_a_batch(torch: Any, call: str) -> None:
    assert_alike(torch, lambda n: n.MultiheadAttention(E, HEADS), calling(CALLS[call]), *sequences({}), twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("need_weights", [True, False])
def test_causal_attention(torch: Any, need_weights: bool) -> None:
    def use(lib: Any, module: Any, x: Any) -> Any:
        mask = lib.nn.Transformer.generate_square_subsequent_mask(4, dtype=lib.float64)
        return module(x, x, x, attn_mask=mask, is_causal=True, need_weights=need_weights)

    assert_alike(torch, lambda n: n.MultiheadAttention(E, HEADS), use, rng.normal(size=(4, N, E)), twice=False)


@pytest.mark.torch
def test_static_keys_and_values(torch: Any) -> None:
    def use(lib: Any, module: Any, query: Any, key: Any, static: Any) -> Any:
        return lib.nn.functional.multi_head_attention_forward(
            query,
            key,
            key,
            E,
            HEADS,
            module.in_proj_weight,
            module.in_proj_bias,
            None,
            None,
            False,
            0.0,
            module.out_proj.weight,
            module.out_proj.bias,
            static_k=static,
            static_v=static * 2,
        )

    static = rng.normal(size=(N * HEADS, S, E // HEADS))
    arrays = (rng.normal(size=(L, N, E)), rng.normal(size=(S, N, E)), static)
    assert_alike(torch, lambda n: n.MultiheadAttention(E, HEADS), use, *arrays, twice=False)


def test_gradients_are_those_of_finite_differences() -> None:
    attention = nn.MultiheadAttention(4, 2).double()
    q, k = (gs.randn(n, 1, 4, dtype=gs.float64, requires_grad=True) for n in (2, 3))
    parameters = list(attention.parameters())
    assert gs.autograd.gradcheck(lambda q, k, *_: attention(q, k, k), (q, k, *parameters))
    assert gs.autograd.gradgradcheck(lambda q, k, *_: attention(q, k, k)[0], (q, k, *parameters))


def test_dropout_of_weights_only_in_training() -> None:
    gs.manual_seed(0)
    attention, x = nn.MultiheadAttention(4, 2, dropout=0.5), gs.randn(10, 2, 4)
    assert int((attention(x, x, x, average_attn_weights=False)[1] == 0).sum()) > 100
    attention.eval()
    numpy.testing.assert_allclose(attention(x, x, x)[1].sum(-1).detach().numpy(), 1.0, rtol=1e-5)


def test_fresh_parameters() -> None:
    attention = nn.MultiheadAttention(64, 2, add_bias_kv=True)
    assert not attention.in_proj_bias.any()
    assert not attention.out_proj.bias.any()
    bound = (6 / (4 * 64)) ** 0.5
    assert bound * 0.9 < attention.in_proj_weight.detach().abs().max().item() <= bound
    assert attention.bias_k.detach().std().item() > 0


@pytest.mark.torch
def test_masks_of_two_kinds_warn(torch: Any) -> None:
    for lib in (gs, torch):
        attention, x = lib.nn.MultiheadAttention(E, HEADS), lib.zeros(S, N, E)
        with pytest.warns(UserWarning, match="mismatched key_padding_mask and attn_mask is deprecated"):
            attention(x, x, x, key_padding_mask=lib.tensor(PADDING), attn_mask=lib.zeros(S, S))


def z(lib: Any, *shape: int) -> Any:
    return lib.zeros(*shape)


WRONG = {
    "heads": lambda lib: lib.nn.MultiheadAttention(5, 2),
    "no heads": lambda lib: lib.nn.MultiheadAttention(5, 0),
    "query": lambda lib: attend(lib, (3,), (3,), (3,)),
    "batched key": lambda lib: attend(lib, (L, N, E), (S, E), (S, E)),
    "unbatched key": lambda lib: attend(lib, (L, E), (S, N, E), (S, E)),
    "value": lambda lib: attend(lib, (L, N, E), (S, N, E), (L, N, E)),
    "separate": lambda lib: attend(lib, (L, N, E), (S, N, 5), (L, N, E), kdim=5),
    "features": lambda lib: attend(lib, (L, N, 4), (S, N, 4), (S, N, 4)),
    "key features": lambda lib: attend(lib, (L, N, E), (S, N, 4), (S, N, E), kdim=5),
    "padding": lambda lib: attend(lib, *[(L, N, E)] * 3, key_padding_mask=(L,)),
    "padding's batch": lambda lib: attend(lib, *[(L, N, E)] * 3, key_padding_mask=(L, L)),
    "padding's keys": lambda lib: attend(lib, *[(L, N, E)] * 3, key_padding_mask=(N, S)),
    "unbatched padding": lambda lib: attend(lib, *[(L, E)] * 3, key_padding_mask=(1, L)),
    "mask": lambda lib: attend(lib, *[(L, N, E)] * 3, attn_mask=(L,)),
    "mask of two": lambda lib: attend(lib, *[(L, N, E)] * 3, attn_mask=(L, S)),
    "mask of three": lambda lib: attend(lib, *[(L, N, E)] * 3, attn_mask=(N, L, L)),
    "unbatched mask": lambda lib: attend(lib, *[(L, E)] * 3, attn_mask=(5, L, L)),
    "causal": lambda lib: attend(lib, *[(L, N, E)] * 3, is_causal=True),
    "integers": lambda lib: lib.nn.MultiheadAttention(E, 2)(
        *[z(lib, L, N, E)] * 3, attn_mask=z(lib, L, L).to(lib.int64)
    ),
}


def attend(lib: Any, *shapes: Any, kdim: int | None = None, **options: Any) -> Any:
    given = {name: z(lib, *o) if isinstance(o, tuple) else o for name, o in options.items()}
    return lib.nn.MultiheadAttention(E, HEADS, kdim=kdim)(*(z(lib, *shape) for shape in shapes), **given)


@pytest.mark.torch
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_arguments_raise_what_pytorch_raises(torch: Any, wrong: str) -> None:
    same_complaint(torch, WRONG[wrong])


@pytest.mark.torch
@pytest.mark.parametrize(
    "changed",
    [
        {"bias_k": (1, 1, E)},
        {"bias_v": (1, 1, E)},
        {"bias_k": (1, 1, E), "bias_v": (1, 1, E), "static_v": (N * HEADS, L, E // HEADS)},
        {"static_k": (N, L, E)},
        {"static_v": (N * HEADS, L, E)},
        {"in_proj_weight": None},
        {"use_separate_proj_weight": True},
        {"num_heads": 4},
    ],
    ids=str,
)
def test_wrong_arguments_of_the_function(torch: Any, changed: dict[str, Any]) -> None:
    usual: dict[str, Any] = {
        "embed_dim_to_check": E,
        "num_heads": HEADS,
        "in_proj_weight": (3 * E, E),
        "in_proj_bias": None,
        "bias_k": None,
        "bias_v": None,
        "add_zero_attn": False,
        "dropout_p": 0.0,
        "out_proj_weight": (E, E),
        "out_proj_bias": None,
    }

    def use(lib: Any) -> Any:
        given = {n: z(lib, *o) if isinstance(o, tuple) else o for n, o in {**usual, **changed}.items()}
        return lib.nn.functional.multi_head_attention_forward(*[z(lib, L, N, E)] * 3, **given)

    same_complaint(torch, use)


@pytest.mark.torch
@pytest.mark.parametrize("shape", [(0, 2, 8), (3, 0, 8)])
@pytest.mark.parametrize("need_weights", [True, False])
def test_nothing_attends_to_nothing(torch: Any, shape: tuple[int, ...], need_weights: bool) -> None:
    for lib in (gs, torch):
        attention, x = lib.nn.MultiheadAttention(8, 2), lib.ones(*shape)
        output, weights = attention(x, x, x, need_weights=need_weights)
        assert tuple(output.shape) == shape
        assert weights is None or tuple(weights.shape) == (shape[1], shape[0], shape[0])
