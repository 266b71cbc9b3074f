"""Masks of attentions, fused or not, that hide what they should show."""

import math

import pytest

import gradscope.inspect as gi
from tests.pytorch_versions import require_pytorch

SAMPLES, LENGTH, WIDTH = 3, 5, 4
LENGTHS = [2, 4, 3]


def tokens_of(fw, *, left):
    """Return tokens of samples of several lengths, filled up with 0, and where there is no filling."""
    positions = fw.arange(LENGTH)
    keep = fw.stack([positions >= LENGTH - length if left else positions < length for length in LENGTHS])
    tokens = (fw.arange(SAMPLES * LENGTH).reshape(SAMPLES, LENGTH) + 1) * keep
    return tokens, keep


def codes_with(fw, attend, tokens):
    embed = fw.nn.Embedding(SAMPLES * LENGTH + 1, WIDTH)
    with gi.Doctor() as doctor:
        attend(embed(tokens)).square().mean().backward()
    return [symptom.code for symptom in doctor.diagnosis.symptoms]


def fused(fw, shown):
    return lambda x: fw.nn.functional.scaled_dot_product_attention(x, x, x, attn_mask=shown)


def by_hand(fw, shown, hiding=-1e9):
    def attend(x):
        scores = (x @ x.transpose(1, 2)).masked_fill(~shown, hiding)
        return fw.softmax(scores, dim=-1) @ x

    return attend


@pytest.mark.parametrize("attention", [fused, by_hand])
@pytest.mark.parametrize("left", [False, True])
def test_a_mask_of_padding(fw, attention, left):
    fw.manual_seed(0)
    tokens, keep = tokens_of(fw, left=left)
    keys = keep.unsqueeze(1).expand(SAMPLES, LENGTH, LENGTH)
    assert codes_with(fw, attention(fw, keys), tokens) == []
    assert codes_with(fw, attention(fw, ~keys), tokens) == ["D332"]


def require_zeros_of_what_sees_nothing(fw, attention):
    """Skip the fused attention of PyTorch 2.4, whose rows are NaN where all is hidden."""
    if attention is fused and fw.__name__ == "torch":
        require_pytorch(fw, "2.8")


@pytest.mark.parametrize("attention", [fused, by_hand])
def test_a_causal_mask(fw, attention):
    require_zeros_of_what_sees_nothing(fw, attention)
    fw.manual_seed(0)
    tokens, _ = tokens_of(fw, left=False)
    past = fw.tril(fw.ones(LENGTH, LENGTH)) == 1
    assert codes_with(fw, attention(fw, past), tokens) == []
    assert codes_with(fw, attention(fw, ~past), tokens) == ["D332"]


def test_a_mask_that_is_added_hides_by_its_least_numbers(fw):
    fw.manual_seed(0)
    tokens, _ = tokens_of(fw, left=False)
    past = fw.tril(fw.ones(LENGTH, LENGTH)) == 1
    added = fw.zeros(LENGTH, LENGTH).masked_fill(~past, -math.inf)
    assert codes_with(fw, fused(fw, added), tokens) == []
    inverted = fw.zeros(LENGTH, LENGTH).masked_fill(past, -1e9)
    assert codes_with(fw, fused(fw, inverted), tokens) == ["D332"]


def test_a_sample_that_is_hidden_altogether(fw):
    require_zeros_of_what_sees_nothing(fw, fused)
    fw.manual_seed(0)
    tokens, keep = tokens_of(fw, left=False)
    shown = keep.unsqueeze(1).expand(SAMPLES, LENGTH, LENGTH) & (fw.arange(SAMPLES) != 1).reshape(SAMPLES, 1, 1)
    embed = fw.nn.Embedding(SAMPLES * LENGTH + 1, WIDTH)
    with gi.Doctor() as doctor:
        fused(fw, shown)(embed(tokens)).nan_to_num().square().mean().backward()
    assert "hides all positions of 1 sample" in str(doctor.diagnosis)
