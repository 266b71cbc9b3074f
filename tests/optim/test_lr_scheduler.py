"""Schedules beside PyTorch's: each step's learning rates and momenta, saved states, closed forms, warnings, errors."""

from __future__ import annotations

import copy
import gc
import inspect
import math
import pickle
import warnings
import weakref
from typing import Any

import numpy
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.inspect.records.optimizer_steps import OptimizerHooks
from tests.optim.schedules import advance, close, follow, numbers, optimizer_of, seen
from tests.side_by_side import complaint, same_complaint


class Halving:
    """A callable with a state."""

    def __init__(self) -> None:
        self.calls = 0

    def __call__(self, epoch: int) -> float:
        self.calls += 1
        return 0.5 ** (epoch / 4) + self.calls / 1000


def by_name(name: str, **settings: Any) -> Any:
    def make(lib: Any, optimizer: Any) -> Any:
        return getattr(lib.optim.lr_scheduler, name)(optimizer, **settings)

    make.__name__ = name
    return make


SCHEDULES = [
    by_name("LambdaLR", lr_lambda=lambda epoch: 0.9**epoch),
    by_name("LambdaLR", lr_lambda=[lambda epoch: 1 / (epoch + 1), lambda epoch: epoch % 5]),
    lambda lib, optimizer: lib.optim.lr_scheduler.LambdaLR(optimizer, Halving()),
    by_name("MultiplicativeLR", lr_lambda=lambda epoch: 0.9 + 0.01 * (epoch % 3)),
    by_name("MultiplicativeLR", lr_lambda=[lambda epoch: 0.5, lambda epoch: 1.1]),
    lambda lib, optimizer: lib.optim.lr_scheduler.MultiplicativeLR(optimizer, Halving()),
    by_name("StepLR", step_size=1),
    by_name("StepLR", step_size=7, gamma=0.5),
    by_name("MultiStepLR", milestones=[3, 10, 10, 30]),
    by_name("MultiStepLR", milestones=(5,), gamma=2.0),
    by_name("ConstantLR"),
    by_name("ConstantLR", factor=0.25, total_iters=20),
    by_name("LinearLR"),
    by_name("LinearLR", start_factor=0.1, end_factor=0.7, total_iters=20),
    by_name("LinearLR", start_factor=1.0, end_factor=0.0, total_iters=9),
    by_name("ExponentialLR", gamma=0.9),
    by_name("PolynomialLR"),
    by_name("PolynomialLR", total_iters=30, power=2.5),
    by_name("CosineAnnealingLR", T_max=10),
    by_name("CosineAnnealingLR", T_max=7, eta_min=0.01),
    by_name("CosineAnnealingLR", T_max=1, eta_min=0.01),
    by_name("CosineAnnealingWarmRestarts", T_0=5),
    by_name("CosineAnnealingWarmRestarts", T_0=3, T_mult=2, eta_min=0.01),
    by_name("CyclicLR", base_lr=0.01, max_lr=0.1, step_size_up=5),
    by_name("CyclicLR", base_lr=[0.01, 0.1], max_lr=[0.1, 0.4], step_size_up=4, step_size_down=9, mode="triangular2"),
    by_name("CyclicLR", base_lr=0.01, max_lr=0.1, step_size_up=3, mode="exp_range", gamma=0.97, base_momentum=0.1),
    by_name("CyclicLR", base_lr=0.01, max_lr=0.1, step_size_up=5, scale_fn=lambda x: 1 / x, cycle_momentum=False),
    by_name("CyclicLR", base_lr=0, max_lr=1, step_size_up=5, scale_fn=lambda x: x / 40, scale_mode="iterations"),
    lambda lib, optimizer: lib.optim.lr_scheduler.CyclicLR(optimizer, 0.1, 1.0, 4, scale_fn=Halving()),
    by_name("OneCycleLR", max_lr=1.0, total_steps=37),
    by_name("OneCycleLR", max_lr=[1.0, 0.5], epochs=10, steps_per_epoch=4, anneal_strategy="linear", pct_start=0.5),
    by_name("OneCycleLR", max_lr=1.0, total_steps=40, three_phase=True, base_momentum=[0.1, 0.2], div_factor=5.0),
    by_name("OneCycleLR", max_lr=1.0, total_steps=60, cycle_momentum=False, final_div_factor=10.0),
    by_name("ReduceLROnPlateau"),
    by_name("ReduceLROnPlateau", patience=2, factor=0.5, cooldown=3, min_lr=[0.03, 0.001]),
    by_name("ReduceLROnPlateau", mode="max", patience=1, threshold=0.05, threshold_mode="abs", eps=1e-3),
    by_name("ReduceLROnPlateau", mode="max", patience=4, threshold=0.02),
    by_name("ReduceLROnPlateau", mode="min", patience=0, threshold=0.01, threshold_mode="abs", min_lr=1e-3),
    lambda lib, o: lib.optim.lr_scheduler.SequentialLR(
        o,
        [
            lib.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=5),
            lib.optim.lr_scheduler.CosineAnnealingLR(o, 10),
            lib.optim.lr_scheduler.ExponentialLR(o, 0.9),
        ],
        [5, 18],
    ),
    lambda lib, o: lib.optim.lr_scheduler.SequentialLR(
        o, [lib.optim.lr_scheduler.ConstantLR(o, 0.1, 3), lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(o, 6)], [4]
    ),
    lambda lib, o: lib.optim.lr_scheduler.SequentialLR(
        o, [lib.optim.lr_scheduler.ConstantLR(o, 0.5, 3), lib.optim.lr_scheduler.StepLR(o, 4)], [0]
    ),
    lambda lib, o: lib.optim.lr_scheduler.ChainedScheduler(
        [
            lib.optim.lr_scheduler.SequentialLR(
                o, [lib.optim.lr_scheduler.ConstantLR(o, 0.5, 3), lib.optim.lr_scheduler.StepLR(o, 4)], [7]
            ),
            lib.optim.lr_scheduler.ExponentialLR(o, 0.9),
        ],
    ),
    lambda lib, o: lib.optim.lr_scheduler.ChainedScheduler(
        [
            lib.optim.lr_scheduler.LinearLR(o, 0.25, total_iters=8),
            lib.optim.lr_scheduler.ExponentialLR(o, 0.95),
            lib.optim.lr_scheduler.CosineAnnealingLR(o, 12, 0.001),
        ]
    ),
]
NAMES = [f"{getattr(make, '__name__', '')}{number}" for number, make in enumerate(SCHEDULES)]


@pytest.mark.torch
@pytest.mark.parametrize("make", SCHEDULES, ids=NAMES)
@pytest.mark.parametrize("how", [{}, {"tensor": True}, {"kind": "Adam"}], ids=["numbers", "tensors", "betas"])
def test_each_step_is_that_of_pytorch(torch: Any, make: Any, how: dict[str, Any]) -> None:
    for mine, theirs in zip(follow(gs, make, **how), follow(torch, make, **how), strict=True):
        if isinstance(theirs, dict):
            theirs.pop("_scale_fn_ref", None)
        close(mine, theirs)


# --- schedules at random ----------------------------------------------------------------------------------------------

SHARES = st.floats(0.05, 1.0)
LENGTHS = st.integers(1, 12)
PLANS = st.one_of(
    st.tuples(st.just("StepLR"), st.fixed_dictionaries({"step_size": LENGTHS, "gamma": SHARES})),
    st.tuples(
        st.just("MultiStepLR"), st.fixed_dictionaries({"milestones": st.lists(st.integers(0, 30)), "gamma": SHARES})
    ),
    st.tuples(st.just("ConstantLR"), st.fixed_dictionaries({"factor": SHARES, "total_iters": LENGTHS})),
    st.tuples(
        st.just("LinearLR"),
        st.fixed_dictionaries({"start_factor": SHARES, "end_factor": SHARES, "total_iters": LENGTHS}),
    ),
    st.tuples(st.just("ExponentialLR"), st.fixed_dictionaries({"gamma": SHARES})),
    st.tuples(st.just("PolynomialLR"), st.fixed_dictionaries({"total_iters": LENGTHS, "power": st.floats(0, 3)})),
    st.tuples(st.just("CosineAnnealingLR"), st.fixed_dictionaries({"T_max": LENGTHS, "eta_min": st.floats(0.0, 0.02)})),
    st.tuples(st.just("CosineAnnealingWarmRestarts"), st.fixed_dictionaries({"T_0": LENGTHS, "T_mult": LENGTHS})),
)


def composed(plans: list[Any], milestones: list[int] | None) -> Any:
    """Return what makes a chain of schedules, or a sequence."""

    def make(lib: Any, optimizer: Any) -> Any:
        parts = [getattr(lib.optim.lr_scheduler, name)(optimizer, **settings) for name, settings in plans]
        if milestones is None:
            return lib.optim.lr_scheduler.ChainedScheduler(parts)
        return lib.optim.lr_scheduler.SequentialLR(optimizer, parts, milestones)

    return make


@pytest.mark.torch
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_compositions_at_random(torch: Any, data: st.DataObject) -> None:
    plans = data.draw(st.lists(PLANS, min_size=1, max_size=3))
    count = len(plans) - 1
    cuts = data.draw(st.none() | st.lists(st.integers(1, 25), min_size=count, max_size=count, unique=True).map(sorted))
    make, resume = composed(plans, cuts), data.draw(st.integers(0, 30))
    close(follow(gs, make, 30, resume), follow(torch, make, 30, resume))


@pytest.mark.torch
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.integers(1, 9), st.integers(1, 3), st.lists(st.one_of(st.none(), st.integers(0, 200), st.floats(0, 200))), SHARES
)
def test_warm_restarts_go_to_any_epoch(torch: Any, first: int, factor: int, epochs: list[Any], low: float) -> None:
    found = []
    for lib in (gs, torch):
        scheduler = lib.optim.lr_scheduler.CosineAnnealingWarmRestarts(optimizer_of(lib), first, factor, low / 100)
        rates = []
        for epoch in epochs:
            scheduler.step(epoch)
            rates.append(seen(scheduler))
        found.append([*rates, numbers(scheduler.state_dict())])
    close(*found)


# --- other ways to go on ----------------------------------------------------------------------------------------------


@pytest.mark.torch
@pytest.mark.parametrize("make", SCHEDULES[:22], ids=NAMES[:22])
def test_a_step_to_an_epoch_takes_the_closed_form(torch: Any, make: Any) -> None:
    found = []
    for lib in (gs, torch):
        scheduler = make(lib, optimizer_of(lib))
        rates = []
        for epoch in (3, 4, 11, 0, None, 30):
            scheduler.optimizer.step()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                scheduler.step(epoch)
            rates.append(seen(scheduler))
        found.append(rates)
    close(*found)


@pytest.mark.torch
@pytest.mark.parametrize(
    "plan",
    [
        ("LambdaLR", {"lr_lambda": lambda epoch: 0.9**epoch}),
        ("MultiplicativeLR", {"lr_lambda": lambda epoch: 0.9}),
        ("StepLR", {"step_size": 3}),
        ("MultiStepLR", {"milestones": [5, 8, 9]}),
        ("ConstantLR", {"total_iters": 12}),
        ("LinearLR", {"total_iters": 12}),
        ("ExponentialLR", {"gamma": 0.9}),
        ("PolynomialLR", {"total_iters": 12}),
        ("CosineAnnealingLR", {"T_max": 5}),
        ("CosineAnnealingWarmRestarts", {"T_0": 5}),
        ("CyclicLR", {"base_lr": 0.01, "max_lr": 0.1, "step_size_up": 5}),
        ("OneCycleLR", {"max_lr": 1.0, "total_steps": 37}),
    ],
)
def test_a_scheduler_goes_on_from_the_last_epoch(torch: Any, plan: Any) -> None:
    found = []
    for lib in (gs, torch):
        kind = getattr(lib.optim.lr_scheduler, plan[0])
        scheduler = kind(optimizer_of(lib), **plan[1])
        for step in range(7):
            advance(scheduler, step)
        optimizer = optimizer_of(lib)
        optimizer.load_state_dict(scheduler.optimizer.state_dict())
        scheduler = kind(optimizer, **plan[1], last_epoch=6)
        rates = [seen(scheduler)]
        for step in range(12):
            advance(scheduler, step)
            rates.append(seen(scheduler))
        found.append([*rates, numbers(scheduler.state_dict())])
    for state in (found[0][-1], found[1][-1]):
        state.pop("lr_lambdas", None)
        state.pop("_scale_fn_ref", None)
    close(*found)


def test_going_on_needs_the_learning_rates_of_the_start() -> None:
    with pytest.raises(KeyError, match=r"'initial_lr' is not specified in param_groups\[0\] when resuming scheduler"):
        gs.optim.lr_scheduler.StepLR(optimizer_of(gs), 3, last_epoch=4)


def test_a_learning_rate_that_is_a_tensor_stays_that_tensor() -> None:
    optimizer = optimizer_of(gs, tensor=True)
    rates = [group["lr"] for group in optimizer.param_groups]
    scheduler = gs.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    advance(scheduler, 0)
    assert [rate.item() for rate in rates] == [0.05, 0.02]
    assert all(group["lr"] is rate for group, rate in zip(optimizer.param_groups, rates, strict=True))
    assert [base.item() for base in scheduler.base_lrs] == [0.1, 0.04]
    scheduler.get_last_lr()[0].zero_()
    assert rates[0].item() == 0.05


def test_a_group_that_came_later_has_no_place_in_a_list_of_bounds() -> None:
    optimizer = optimizer_of(gs)
    scheduler = gs.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0, min_lr=[0.0, 0.0])
    single = gs.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=0)
    optimizer.add_param_group({"params": [gs.ones(1, requires_grad=True)], "lr": 1.0})
    scheduler.step(1.0)
    with pytest.raises(RuntimeError, match=r"The number of param groups in the `optimizer` \(3\) differs"):
        scheduler.step(1.0)
    single.step(1.0)
    single.step(gs.tensor(1.0))
    assert single.get_last_lr() == pytest.approx([0.01, 0.004, 0.1])


# --- the optimizer's steps --------------------------------------------------------------------------------------------


def test_hooks_hear_steps_with_a_scheduler_around() -> None:
    told: list[str] = []
    early = optimizer_of(gs)
    early.register_step_post_hook(lambda *_: told.append("early"))
    gs.optim.lr_scheduler.StepLR(early, 1)
    gs.optim.lr_scheduler.StepLR(early, 1)
    late = optimizer_of(gs)
    gs.optim.lr_scheduler.StepLR(late, 1)
    late.register_step_pre_hook(lambda *_: told.append("late"))
    hooks = OptimizerHooks(after=lambda optimizer: told.append("any"))
    hooks.look()
    early.step()
    late.step()
    hooks.close()
    assert told == ["early", "any", "late", "any"]


def test_the_closure_reaches_the_step() -> None:
    optimizer = optimizer_of(gs)
    gs.optim.lr_scheduler.StepLR(optimizer, 1)
    assert optimizer.step(lambda: 5.0) == 5.0
    assert optimizer.step(closure=lambda: 6.0) == 6.0


def test_an_optimizer_with_a_scheduler_is_copied_pickled_and_freed() -> None:
    optimizer = optimizer_of(gs)
    gs.optim.lr_scheduler.ExponentialLR(optimizer, 0.5)
    for other in (copy.deepcopy(optimizer), pickle.loads(pickle.dumps(optimizer))):
        (parameter,) = other.param_groups[0]["params"]
        parameter.grad = gs.ones(1)
        other.step()
        assert parameter.item() == pytest.approx(-0.1)
        assert optimizer.param_groups[0]["params"][0].item() == 0.0
    gc.collect()
    gc.disable()
    try:
        gone = weakref.ref(optimizer)
        del optimizer
        assert gone() is None
    finally:
        gc.enable()


# --- warnings and errors ----------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_warnings_are_those_of_pytorch(torch: Any) -> None:
    def out_of_order(lib: Any) -> None:
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer_of(lib), 3)
        scheduler.step()
        scheduler.step()

    def overridden(lib: Any) -> None:
        optimizer = optimizer_of(lib)
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer, 3)
        optimizer.step = lambda: None
        scheduler.step()

    def asked(lib: Any) -> None:
        lib.optim.lr_scheduler.StepLR(optimizer_of(lib), 3).get_lr()

    def to_an_epoch(lib: Any) -> None:
        scheduler = lib.optim.lr_scheduler.StepLR(optimizer_of(lib), 3)
        scheduler.optimizer.step()
        scheduler.step(4)

    def metric_of_an_epoch(lib: Any) -> None:
        lib.optim.lr_scheduler.ReduceLROnPlateau(optimizer_of(lib)).step(1.0, 4)

    for careless in (out_of_order, overridden, asked, to_an_epoch, metric_of_an_epoch):
        told = []
        for lib in (gs, torch):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                careless(lib)
            told.append([(w.category, str(w.message)[:60]) for w in caught])
            if lib is gs:
                assert [w.filename for w in caught] == [__file__]
        assert told[0] == told[1], careless.__name__


@pytest.mark.parametrize("make", SCHEDULES, ids=NAMES)
def test_the_right_order_of_steps_warns_of_nothing(make: Any) -> None:
    scheduler = make(gs, optimizer_of(gs))
    advance(scheduler, 0)
    advance(scheduler, 1)


WRONG = [
    lambda s, o, lib: s.StepLR(3, 1),
    lambda s, o, lib: s.ReduceLROnPlateau(3),
    lambda s, o, lib: s.CyclicLR(3, 1, 2),
    lambda s, o, lib: s.OneCycleLR(3, 1, 2),
    lambda s, o, lib: s.LambdaLR(o, [lambda epoch: 1]),
    lambda s, o, lib: s.MultiplicativeLR(o, [lambda epoch: 1]),
    lambda s, o, lib: s.MultiplicativeLR(o, 3),
    lambda s, o, lib: s.ConstantLR(o, 1.5),
    lambda s, o, lib: s.LinearLR(o, 0.0),
    lambda s, o, lib: s.LinearLR(o, 0.5, 1.5),
    lambda s, o, lib: s.CosineAnnealingWarmRestarts(o, 0),
    lambda s, o, lib: s.CosineAnnealingWarmRestarts(o, 2, 0),
    lambda s, o, lib: s.CosineAnnealingWarmRestarts(o, 2, 1.5),
    lambda s, o, lib: s.CosineAnnealingWarmRestarts(o, 2, 1, "0"),
    lambda s, o, lib: s.CosineAnnealingWarmRestarts(o, 2).step(-1),
    lambda s, o, lib: s.CyclicLR(o, [1, 2, 3], 4),
    lambda s, o, lib: s.CyclicLR(o, 1, [1]),
    lambda s, o, lib: s.CyclicLR(o, 1, 2, mode="square"),
    lambda s, o, lib: s.CyclicLR(lib.optim.Adagrad([lib.ones(1, requires_grad=True)]), 1, 2),
    lambda s, o, lib: s.OneCycleLR(o, 1),
    lambda s, o, lib: s.OneCycleLR(o, 1, epochs=3),
    lambda s, o, lib: s.OneCycleLR(o, 1, 0),
    lambda s, o, lib: s.OneCycleLR(o, 1, epochs=0, steps_per_epoch=1),
    lambda s, o, lib: s.OneCycleLR(o, 1, epochs=1, steps_per_epoch=1.5),
    lambda s, o, lib: s.OneCycleLR(o, 1, 5, pct_start=1.5),
    lambda s, o, lib: s.OneCycleLR(o, 1, 5, pct_start=1),
    lambda s, o, lib: s.OneCycleLR(o, 1, 5, anneal_strategy="steep"),
    lambda s, o, lib: s.OneCycleLR(lib.optim.Adagrad([lib.ones(1, requires_grad=True)]), 1, 2),
    lambda s, o, lib: follow(lib, lambda lib, o: s.OneCycleLR(o, 1, 3), 8),
    lambda s, o, lib: s.ReduceLROnPlateau(o, factor=1.0),
    lambda s, o, lib: s.ReduceLROnPlateau(o, "least"),
    lambda s, o, lib: s.ReduceLROnPlateau(o, threshold_mode="none"),
    lambda s, o, lib: s.ReduceLROnPlateau(o, min_lr=[1]),
    lambda s, o, lib: s.SequentialLR(o, [], []),
    lambda s, o, lib: s.SequentialLR(o, [3], []),
    lambda s, o, lib: s.SequentialLR(o, [s.ReduceLROnPlateau(o)], []),
    lambda s, o, lib: s.SequentialLR(o, [s.StepLR(o, 1)], [3]),
    lambda s, o, lib: s.SequentialLR(o, [s.StepLR(optimizer_of(lib), 1)], []),
    lambda s, o, lib: s.ChainedScheduler([]),
    lambda s, o, lib: s.ChainedScheduler([3], o),
    lambda s, o, lib: s.ChainedScheduler([s.StepLR(o, 1), s.ReduceLROnPlateau(o)]),
    lambda s, o, lib: s.ChainedScheduler([s.StepLR(o, 1), s.StepLR(optimizer_of(lib), 1)]),
]


@pytest.mark.torch
@pytest.mark.parametrize("wrong", WRONG)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.optim.lr_scheduler, optimizer_of(lib), lib))


def test_a_scheduler_of_ones_own() -> None:
    class Root(gs.optim.lr_scheduler.LRScheduler):
        def get_lr(self) -> list[float]:
            return [base / math.sqrt(self.last_epoch + 1) for base in self.base_lrs]

    scheduler = Root(optimizer_of(gs))
    for step in range(3):
        advance(scheduler, step)
    numpy.testing.assert_allclose(scheduler.get_last_lr(), [0.05, 0.02])
    kind, message = complaint(gs, lambda lib: lib.optim.lr_scheduler.LRScheduler(optimizer_of(lib)))
    assert (kind, message) == (NotImplementedError, "LRScheduler does not define get_lr()")


@pytest.mark.torch
def test_names_and_settings_are_those_of_pytorch(torch: Any) -> None:
    mine, theirs = gs.optim.lr_scheduler, torch.optim.lr_scheduler
    assert sorted(set(theirs.__all__) - set(mine.__all__)) == []
    for name in theirs.__all__:
        own, other = (inspect.signature(getattr(module, name)).parameters for module in (mine, theirs))
        assert [(p.name, p.default) for p in own.values()] == [(p.name, p.default) for p in other.values()], name
