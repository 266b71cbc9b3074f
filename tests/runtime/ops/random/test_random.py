"""Random numbers: repeatable by seed and by state, of the right distributions, and PyTorch's errors."""

from __future__ import annotations

import copy
import math
import pickle
from collections.abc import Callable
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.side_by_side import same_complaint


def mean_and_deviation(tensor: gs.Tensor) -> tuple[float, float]:
    values = tensor.double().numpy()
    return float(values.mean()), float(values.std())


# --- seeds and states -------------------------------------------------------------------------------------------------

DRAWS = [
    lambda: gs.rand(3, 2),
    lambda: gs.randn(3, 2),
    lambda: gs.randint(10, (5,)),
    lambda: gs.randperm(10),
    lambda: gs.multinomial(gs.ones(10), 5),
    lambda: gs.bernoulli(gs.full((10,), 0.5)),
    lambda: gs.zeros(5).uniform_(),
    lambda: gs.zeros(5).exponential_(),
    lambda: gs.nn.functional.dropout(gs.ones(20)),
    lambda: gs.nn.Linear(3, 2).weight.detach(),
]


@pytest.mark.parametrize("draw", DRAWS)
def test_a_seed_repeats(draw: Any) -> None:
    assert gs.manual_seed(5) is gs.default_generator
    first, second = draw().tolist(), draw().tolist()
    gs.manual_seed(5)
    assert draw().tolist() == first
    assert first != second


def test_a_state_repeats_and_keeps_the_seed() -> None:
    gs.manual_seed(1)
    gs.rand(3)
    state = gs.get_rng_state()
    assert state.dtype is gs.uint8
    expected = [gs.randn(5).tolist(), gs.randint(100, (5,)).tolist()]
    gs.manual_seed(2)
    gs.set_rng_state(state)
    assert [gs.randn(5).tolist(), gs.randint(100, (5,)).tolist()] == expected
    assert gs.initial_seed() == 1


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda g: pickle.loads(pickle.dumps(g))])
def test_a_copied_generator_goes_on_as_the_other_would(copied: Any) -> None:
    generator = gs.Generator().manual_seed(3)
    gs.rand(3, generator=generator)
    other = copied(generator)
    assert gs.randn(4, generator=other).tolist() == gs.randn(4, generator=generator).tolist()
    assert other.initial_seed() == 3


def test_generators_of_their_own() -> None:
    generator = gs.Generator().manual_seed(3)
    gs.manual_seed(0)
    expected = gs.rand(2).tolist()
    gs.manual_seed(0)
    first = gs.rand(2, generator=generator).tolist()
    assert gs.rand(2).tolist() == expected
    assert gs.rand(2, generator=generator.manual_seed(3)).tolist() == first
    assert gs.zeros(2).uniform_(generator=generator.manual_seed(3)).tolist() == first


def test_seeds_of_the_system_differ() -> None:
    generator = gs.Generator()
    assert generator.initial_seed() == generator.initial_seed()
    assert generator.seed() != generator.seed()
    assert gs.seed() == gs.initial_seed()


@pytest.mark.parametrize("wrong", [1 << 64, -(1 << 63) - 1])
def test_seeds_have_64_bits(wrong: int) -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        gs.manual_seed(wrong)
    assert gs.Generator().manual_seed(-1).initial_seed() == (1 << 64) - 1


def test_a_wrong_state_is_refused() -> None:
    with pytest.raises(TypeError, match="ByteTensor"):
        gs.set_rng_state(gs.zeros(3))
    with pytest.raises(RuntimeError, match="RNG state is wrong size"):
        gs.set_rng_state(gs.zeros(3, dtype=gs.uint8))


# --- distributions ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("draw", "mean", "deviation"),
    [
        (lambda n: gs.rand(n), 0.5, math.sqrt(1 / 12)),
        (lambda n: gs.randn(n), 0.0, 1.0),
        (lambda n: gs.randn(n, dtype=gs.float16), 0.0, 1.0),
        (lambda n: gs.randint(2, 6, (n,)), 3.5, math.sqrt(15 / 12)),
        (lambda n: gs.zeros(n).uniform_(-1, 3), 1.0, 4 * math.sqrt(1 / 12)),
        (lambda n: gs.zeros(n).normal_(2, 3), 2.0, 3.0),
        (lambda n: gs.zeros(n).exponential_(2), 0.5, 0.5),
        (lambda n: gs.zeros(n).bernoulli_(0.3), 0.3, math.sqrt(0.21)),
        (lambda n: gs.zeros(n).bernoulli_(gs.tensor(0.3)), 0.3, math.sqrt(0.21)),
        (lambda n: gs.zeros(n).random_(5), 2.0, math.sqrt(2)),
        (lambda n: gs.bernoulli(gs.full((n,), 0.3)), 0.3, math.sqrt(0.21)),
        (lambda n: gs.poisson(gs.full((n,), 4.0)), 4.0, 2.0),
        (lambda n: gs.normal(gs.full((n,), 2.0), 3.0), 2.0, 3.0),
        (lambda n: gs.normal(2.0, gs.full((n,), 3.0)), 2.0, 3.0),
        (lambda n: gs.normal(gs.full((n,), 2.0), gs.full((n,), 3.0)), 2.0, 3.0),
        (lambda n: gs.normal(2.0, 3.0, (n,)), 2.0, 3.0),
    ],
)
def test_moments(draw: Any, mean: float, deviation: float) -> None:
    gs.manual_seed(0)
    count = 20_000
    found = mean_and_deviation(draw(count))
    assert found == pytest.approx((mean, deviation), abs=6 * max(deviation, 1) / math.sqrt(count))


def test_complex_normal_numbers_have_variance_one() -> None:
    values = gs.randn(20_000, dtype=gs.complex128).numpy()
    assert (abs(values) ** 2).mean() == pytest.approx(1.0, abs=0.05)


def test_randperm_is_a_permutation() -> None:
    assert sorted(gs.randperm(50).tolist()) == list(range(50))
    assert gs.randperm(0).shape == (0,)


def test_like() -> None:
    x = gs.zeros(2, 3, dtype=gs.float64)
    for made in (gs.rand_like(x), gs.randn_like(x), gs.randint_like(x, 5)):
        assert made.shape == x.shape
        assert made.dtype is gs.float64
    assert gs.randn(2, requires_grad=True).requires_grad


@pytest.mark.parametrize("replacement", [True, False])
def test_multinomial_follows_the_weights(replacement: bool) -> None:
    gs.manual_seed(0)
    weights = gs.tensor([0.0, 1.0, 3.0]).expand(4000, 3)
    drawn = gs.multinomial(weights, 1, replacement).numpy()
    assert drawn.shape == (4000, 1)
    assert (drawn == 0).sum() == 0
    assert (drawn == 2).mean() == pytest.approx(0.75, abs=0.05)


def test_multinomial_without_replacement_draws_each_once() -> None:
    drawn = gs.multinomial(gs.rand(50, 8) + 0.1, 8)
    assert numpy.sort(drawn.numpy(), axis=1).tolist() == [list(range(8))] * 50


# --- autograd ---------------------------------------------------------------------------------------------------------


def test_filling_is_a_write_and_ends_the_gradient() -> None:
    x = gs.ones(3, requires_grad=True)
    y = x * 2
    y.normal_()
    assert y._version == 1
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0, 0.0]


def test_bernoulli_is_recorded_with_gradient_zero() -> None:
    p = gs.full((3,), 0.5, requires_grad=True)
    y = gs.bernoulli(p)
    assert y.grad_fn.name() == "BernoulliBackward0"
    y.sum().backward()
    assert p.grad.tolist() == [0.0, 0.0, 0.0]


def test_bernoulli_takes_probabilities() -> None:
    with pytest.raises(RuntimeError, match="Expected p_in >= 0 && p_in <= 1 to be true, but got false"):
        gs.bernoulli(gs.tensor([2.0]))


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.ones(2, requires_grad=True).normal_(),
        lambda lib: lib.ones(2, requires_grad=True).bernoulli_(lib.tensor([0.5, 0.5])),
        lambda lib: lib.zeros(2, dtype=lib.int64).normal_(),
        lambda lib: lib.zeros(2).normal_(0, -1),
        lambda lib: lib.zeros(2).uniform_(2, 1),
        lambda lib: lib.zeros(2).exponential_(-1.0),
        lambda lib: lib.multinomial(lib.tensor([0.0, 1.0]), 3),
        lambda lib: lib.multinomial(lib.tensor([0.0, 1.0]), 0),
        lambda lib: lib.multinomial(lib.tensor([0.0, -1.0]), 1),
        lambda lib: lib.multinomial(lib.tensor([0.0, 0.0]), 1),
        lambda lib: lib.multinomial(lib.zeros(2, 2, 2), 1),
        lambda lib: lib.randint(5, 5, (2,)),
        lambda lib: lib.randperm(-1),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_draws_like_a_tensor_take_a_generator() -> None:
    like = gs.ones(3)
    for draw in (gs.rand_like, gs.randn_like, lambda x, generator: gs.randint_like(x, 0, 1000, generator=generator)):
        first, second = (draw(like, generator=gs.Generator().manual_seed(4)) for _ in range(2))
        assert first.tolist() == second.tolist()


def test_bounds_under_their_names_in_pytorch() -> None:
    assert 3 <= gs.empty(1).uniform_(**{"from": 3, "to": 4}).item() <= 4
    assert gs.empty(1).random_(**{"from": 3, "to": 4}).item() == 3


@pytest.mark.parametrize(
    ("dtype", "most"), [("bool", 1), ("int8", 127), ("uint8", 255), ("float16", 2048), ("bfloat16", 256)]
)
def test_random_goes_up_to_the_last_integer_before_which_a_dtype_has_all(dtype: str, most: int) -> None:
    drawn = gs.zeros(100_000, dtype=getattr(gs, dtype)).random_()
    assert (drawn.min().item(), drawn.max().item()) == (0, most)


BOUNDS: dict[str, Callable[[Any], Any]] = {
    "all of uint8": lambda m: m.randint(0, 256, (2,), dtype=m.uint8),
    "more than uint8": lambda m: m.randint(0, 257, (2,), dtype=m.uint8),
    "less than uint8": lambda m: m.randint(-1, 5, (2,), dtype=m.uint8),
    "all of int8": lambda m: m.randint(-128, 128, (2,), dtype=m.int8),
    "less than int8": lambda m: m.randint_like(m.zeros(2, dtype=m.int8), -129, 128),
    "bools": lambda m: m.randint(0, 2, (2,), dtype=m.bool),
    "more than bools": lambda m: m.zeros(2, dtype=m.bool).random_(0, 3),
    "more than float16": lambda m: m.randint(0, 70000, (2,), dtype=m.float16),
    "bfloat16": lambda m: m.randint(0, 200, (2,), dtype=m.bfloat16),
    "complex numbers": lambda m: m.randint(0, 3, (2,), dtype=m.complex64),
    "random_ beyond uint8": lambda m: m.zeros(2, dtype=m.uint8).random_(0, 300),
    "permutation of all of uint8": lambda m: m.randperm(256, dtype=m.uint8),
    "permutation beyond uint8": lambda m: m.randperm(257, dtype=m.uint8),
    "permutation of what float16 tells apart": lambda m: m.randperm(2049, dtype=m.float16),
    "permutation beyond float16": lambda m: m.randperm(2050, dtype=m.float16),
    "permutation in bfloat16": lambda m: m.randperm(300, dtype=m.bfloat16),
    "permutation of bools": lambda m: m.randperm(2, dtype=m.bool),
    "permutation of complex numbers": lambda m: m.randperm(2, dtype=m.complex64),
    "uniform to NaN": lambda m: m.zeros(2).uniform_(0, math.nan),
    "uniform from -inf": lambda m: m.zeros(2).uniform_(-math.inf, 0),
    "uniform beyond float32": lambda m: m.zeros(2).uniform_(0, 1e39),
    "uniform over more than float32": lambda m: m.zeros(2).uniform_(-3e38, 3e38),
    "uniform over more than float64": lambda m: m.zeros(2, dtype=m.float64).uniform_(-1e308, 1e308),
    "uniform": lambda m: m.zeros(2).uniform_(-3, 3e38),
    "normal, negative": lambda m: m.normal(0.0, -1.0, (2,)),
    "normal, NaN": lambda m: m.normal(0.0, math.nan, (2,)),
    "normal, zero": lambda m: m.normal(0.0, 0.0, (2,)),
    "normal around a tensor, negative": lambda m: m.normal(m.ones(2), -1.0),
    "normal around nothing, negative": lambda m: m.normal(m.ones(0), -1.0),
    "normal by a tensor, negative": lambda m: m.normal(0.0, m.tensor([1.0, -1.0])),
    "normal by a tensor, NaN": lambda m: m.normal(m.ones(1), m.tensor([math.nan])),
    "normal by no elements": lambda m: m.normal(0.0, -m.ones(0)),
    "normal_, NaN": lambda m: m.zeros(2).normal_(0, math.nan),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", BOUNDS)
def test_what_a_dtype_cannot_hold_and_what_is_no_deviation_is_refused_as_in_pytorch(torch: Any, name: str) -> None:
    def refusal(lib: Any) -> type[BaseException] | None:
        try:
            BOUNDS[name](lib)
        except Exception as error:
            return next(c for c in type(error).__mro__ if c.__module__ == "builtins")
        return None

    assert refusal(gs) == refusal(torch)
