"""The Transformer against PyTorch: layers, stacks, masks."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint

from .alike import assert_alike, pair

pytestmark = pytest.mark.filterwarnings("ignore:enable_nested_tensor is True:UserWarning")

rng = numpy.random.default_rng(0)
SRC, TGT = rng.normal(size=(5, 2, 4)), rng.normal(size=(3, 2, 4))
PADDING = numpy.array([[False] * 5, [False, False, False, True, True]])


def model(n: Any, **options: Any) -> Any:
    return n.Transformer(4, 2, 2, 2, 6, dropout=0.0, **options)


MODELS = {
    "plain": {},
    "gelu": {"activation": "gelu"},
    "normalised first": {"norm_first": True},
    "batch first": {"batch_first": True},
    "without bias": {"bias": False, "layer_norm_eps": 1e-3},
}


@pytest.mark.torch
@pytest.mark.parametrize("name", MODELS)
def test_transformer_is_that_of_pytorch(torch: Any, name: str) -> None:
    def make(n: Any) -> Any:
        return model(n, **MODELS[name])

    mine, theirs = pair(torch, make)
    assert repr(mine) == repr(theirs)
    assert [(n, tuple(p.shape)) for n, p in mine.named_parameters()] == [
        (n, tuple(p.shape)) for n, p in theirs.named_parameters()
    ]
    swap = MODELS[name].get("batch_first")
    src, tgt = (SRC.swapaxes(0, 1).copy(), TGT.swapaxes(0, 1).copy()) if swap else (SRC, TGT)
    assert_alike(torch, make, lambda lib, m, src, tgt: m(src, tgt), src, tgt, twice=False)
    assert_alike(torch, make, masked, src, tgt, twice=False)
    theirs.eval()
    mine.eval()
    outputs = [m(lib.tensor(src), lib.tensor(tgt)).detach().numpy() for lib, m in ((gs, mine), (torch, theirs))]
    numpy.testing.assert_allclose(*outputs, rtol=1e-7)


def masked(lib: Any, module: Any, src: Any, tgt: Any) -> Any:
    causal = module.generate_square_subsequent_mask
    padding = lib.zeros(2, 5, dtype=lib.float64).masked_fill(lib.tensor(PADDING), -numpy.inf)
    return module(
        src,
        tgt,
        src_mask=causal(5, dtype=lib.float64),
        tgt_mask=causal(3, dtype=lib.float64),
        memory_mask=lib.zeros(3, 5, dtype=lib.float64),
        src_key_padding_mask=padding,
        memory_key_padding_mask=padding,
    )


@pytest.mark.torch
def test_sequences_without_a_batch(torch: Any) -> None:
    assert_alike(torch, model, lambda lib, m, src, tgt: m(src, tgt), SRC[:, 0], TGT[:, 0], twice=False)


@pytest.mark.torch
def test_bool_masks(torch: Any) -> None:
    def use(lib: Any, module: Any, src: Any, tgt: Any) -> Any:
        later = lib.ones(3, 3, dtype=lib.bool).triu(1)
        memory = module.encoder(src, src_key_padding_mask=lib.tensor(PADDING))
        return module.decoder(tgt, memory, tgt_mask=later, memory_key_padding_mask=lib.tensor(PADDING))

    assert_alike(torch, model, use, SRC, TGT, twice=False)


@pytest.mark.torch
@pytest.mark.parametrize("activation", ["module", "function"])
def test_an_activation_of_the_users(torch: Any, activation: str) -> None:
    def make(n: Any) -> Any:
        chosen = n.Tanh() if activation == "module" else lambda x: x.sigmoid()
        return n.TransformerEncoderLayer(4, 2, 6, 0.0, chosen)

    mine, theirs = pair(torch, make)
    assert repr(mine) == repr(theirs)
    assert_alike(torch, make, lambda lib, m, x: m(x), SRC, twice=False)


def test_gradients_are_those_of_finite_differences() -> None:
    layer = nn.TransformerDecoderLayer(2, 1, 3, 0.0, "gelu").double()
    x, memory = (gs.randn(n, 1, 2, dtype=gs.float64, requires_grad=True) for n in (2, 3))
    assert gs.autograd.gradcheck(lambda x, memory, *_: layer(x, memory), (x, memory, *layer.parameters()))
    assert gs.autograd.gradgradcheck(lambda x, memory: layer(x, memory), (x, memory))


def test_a_causal_mask_hides_what_comes_later() -> None:
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.0), 2)
    mask = nn.Transformer.generate_square_subsequent_mask(5)
    x = gs.randn(5, 1, 4)
    whole = encoder(x, mask)
    for said in (None, True, False):
        assert gs.allclose(encoder(x, mask, is_causal=said), whole, atol=1e-6)
    assert gs.allclose(encoder(x[:3], mask[:3, :3]), whole[:3], atol=1e-6)
    assert not gs.allclose(encoder(x[:3]), whole[:3], atol=1e-3)


def test_layers_are_copies_and_dropout_is_only_in_training() -> None:
    gs.manual_seed(0)
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 6, 0.5), 2, nn.LayerNorm(4))
    assert encoder.layers[0].linear1.weight is not encoder.layers[1].linear1.weight
    x = gs.randn(5, 1, 4)
    assert not gs.equal(encoder(x), encoder(x))
    encoder.eval()
    assert gs.equal(encoder(x), encoder(x))


def test_custom_encoder_and_decoder() -> None:
    encoder, decoder = nn.Identity(), nn.Identity()
    made = nn.Transformer(4, 2, custom_encoder=encoder, custom_decoder=decoder)
    assert (made.encoder, made.decoder) == (encoder, decoder)


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib, m: m(lib.zeros(5, 2, 4), lib.zeros(3, 3, 4)),
        lambda lib, m: m(lib.zeros(5, 2, 4), lib.zeros(3, 2, 3)),
        lambda lib, m: lib.nn.TransformerEncoderLayer(4, 2, activation="sin"),
        lambda lib, m: lib.nn.TransformerEncoderLayer(4, 3),
        lambda lib, m: m.encoder(lib.zeros(5, 2, 4), mask=lib.zeros(5, 5, dtype=lib.int64)),
    ],
)
def test_wrong_arguments_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib, model(lib.nn)))
