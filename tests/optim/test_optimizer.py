"""What all optimizers share: groups, state, hooks, closures, versions, errors."""

from __future__ import annotations

import copy
import inspect
import pickle
import subprocess
import sys
from typing import Any

import numpy
import pytest

import gradscope as gs
from gradscope.optim.optimizer import (
    BLOCK,
    register_optimizer_step_post_hook,
    register_optimizer_step_pre_hook,
)
from tests.side_by_side import same_complaint


def leaf(lib: Any = gs, *shape: int) -> Any:
    return lib.ones(*(shape or (2,)), requires_grad=True)


def with_gradient(*shape: int) -> Any:
    parameter = leaf(gs, *shape)
    parameter.grad = gs.ones(*parameter.shape)
    return parameter


def stepped(make: Any, parameter: Any, lib: Any) -> None:
    parameter.grad = lib.ones_like(parameter).detach()
    make([parameter]).step()


# --- the same numbers as PyTorch --------------------------------------------------------------------------------------

SETTINGS = [
    ("SGD", {}),
    ("SGD", {"momentum": 0.9}),
    ("SGD", {"momentum": 0.9, "dampening": 0.1, "weight_decay": 0.1}),
    ("SGD", {"momentum": 0.9, "nesterov": True, "weight_decay": 0.1}),
    ("SGD", {"weight_decay": 0.1, "maximize": True}),
    ("SGD", {"momentum": 0.9, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"weight_decay": 0.1}),
    ("Adam", {"amsgrad": True, "maximize": True, "weight_decay": 0.1}),
    ("Adam", {"betas": (0.5, 0.6), "eps": 1e-3}),
    ("Adam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("AdamW", {}),
    ("AdamW", {"amsgrad": True, "weight_decay": 0.2}),
    ("RMSprop", {}),
    ("RMSprop", {"momentum": 0.9, "weight_decay": 0.1}),
    ("RMSprop", {"centered": True, "alpha": 0.9, "eps": 1e-2}),
    ("RMSprop", {"centered": True, "momentum": 0.5, "maximize": True, "weight_decay": 0.1, "eps": 1e-2}),
    ("Adagrad", {}),
    ("Adagrad", {"lr_decay": 0.1, "weight_decay": 0.1, "initial_accumulator_value": 0.5}),
    ("Adagrad", {"eps": 1e-2, "maximize": True}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.5, "eps": 1e-3, "weight_decay": 0.1}),
    ("Adadelta", {"maximize": True}),
    ("Adamax", {}),
    ("Adamax", {"betas": (0.5, 0.6), "eps": 1e-3, "weight_decay": 0.1, "maximize": True}),
    ("NAdam", {}),
    ("NAdam", {"weight_decay": 0.1, "momentum_decay": 0.1, "maximize": True}),
    ("NAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1, "betas": (0.5, 0.6), "eps": 1e-3}),
    ("RAdam", {}),
    ("RAdam", {"betas": (0.8, 0.95), "weight_decay": 0.1, "maximize": True}),
    ("RAdam", {"betas": (0.8, 0.6), "eps": 1e-3}),
    ("RAdam", {"decoupled_weight_decay": True, "weight_decay": 0.1}),
    ("ASGD", {}),
    ("ASGD", {"t0": 2, "lambd": 0.1, "alpha": 0.5}),
    ("ASGD", {"t0": 1, "weight_decay": 0.1, "maximize": True}),
    ("Rprop", {}),
    ("Rprop", {"etas": (0.4, 1.5), "step_sizes": (0.04, 0.12), "maximize": True}),
    ("Adafactor", {}),
    ("Adafactor", {"weight_decay": 0.1, "maximize": True, "d": 1.5, "beta2_decay": -0.5}),
    ("Adafactor", {"eps": (1e-3, 5.0)}),
]
NAMES = sorted({name for name, _ in SETTINGS})
SHAPES = [(3, 4), (), (2, 3, 4), (0, 3)]
LONG = (BLOCK + 7,)


# An eps that half precision does not round to nothing.
HALF = {name: {"eps": 1e-3} for name in ("Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Adagrad", "Adadelta")}


def noise(rng: Any, shape: tuple[int, ...], dtype: str) -> Any:
    values = rng.normal(size=shape)
    return (values + 1j * rng.normal(size=shape) if dtype.startswith("complex") else values).astype(dtype)


def train(lib: Any, name: str, settings: dict[str, Any], dtype: str) -> tuple[list[Any], list[int], list[str]]:
    """Take eight steps in two groups, through a state_dict in the middle."""
    rng = numpy.random.default_rng(0)
    # The root mean square of nothing is an error in PyTorch too.
    shapes = [s for s in SHAPES if name != "Adafactor" or 0 not in s] + ([LONG] if dtype == "float64" else [])
    parameters = [lib.tensor(noise(rng, shape, dtype), requires_grad=True) for shape in shapes]

    def make() -> Any:
        groups = [{"params": parameters[:1]}, {"params": parameters[1:], "lr": 0.05}]
        return getattr(lib.optim, name)(groups, lr=0.1, **settings)

    optimizer = make()
    for step in range(8):
        optimizer.zero_grad()
        for parameter in parameters:
            parameter.grad = lib.tensor(noise(rng, tuple(parameter.shape), dtype))
        if step == 3:
            state = optimizer.state_dict()
            optimizer = make()
            optimizer.load_state_dict(state)
        optimizer.step()
    state = optimizer.state_dict()["state"]
    names = [f"{key} {str(value.dtype).rpartition('.')[2]}" for key, value in sorted(state.get(0, {}).items())]
    found = [p.detach().numpy() for p in parameters]
    found += [item.numpy() for number in sorted(state) for _, item in sorted(state[number].items()) if item is not None]
    return found, [p._version for p in parameters], names


@pytest.mark.torch
@pytest.mark.parametrize(("name", "settings"), SETTINGS)
@pytest.mark.parametrize(("dtype", "tolerance"), [("float64", 1e-12), ("float32", 1e-3)])
def test_steps_are_those_of_pytorch(
    torch: Any, name: str, settings: dict[str, Any], dtype: str, tolerance: float
) -> None:
    mine, versions, names = train(gs, name, settings, dtype)
    theirs, other_versions, other_names = train(torch, name, settings, dtype)
    for a, b in zip(mine, theirs, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)
    assert versions == other_versions
    assert names == other_names


@pytest.mark.torch
@pytest.mark.parametrize(("name", "settings"), [(name, s) for name, s in SETTINGS if name != "Adafactor"])
def test_complex_steps_are_those_of_pytorch(torch: Any, name: str, settings: dict[str, Any]) -> None:
    if settings.get("amsgrad") or settings.get("lr_decay"):
        settings = settings | {"weight_decay": 0.0}
    mine, versions, _ = train(gs, name, settings, "complex128")
    theirs, other_versions, _ = train(torch, name, settings, "complex128")
    for a, b in zip(mine, theirs, strict=True):
        numpy.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)
    assert versions == other_versions


@pytest.mark.torch
@pytest.mark.parametrize("name", [*NAMES, "LBFGS"])
def test_settings_are_those_of_pytorch(torch: Any, name: str) -> None:
    mine, theirs = (getattr(lib.optim, name)([leaf(lib)]) for lib in (gs, torch))
    assert mine.defaults == theirs.defaults
    groups = [optimizer.state_dict()["param_groups"] for optimizer in (mine, theirs)]
    assert [sorted(group) for group in groups[0]] == [sorted(set(group)) for group in groups[1]]
    own, other = (inspect.signature(type(optimizer)).parameters for optimizer in (mine, theirs))
    assert [(p.name, p.kind, p.default) for p in own.values()] == [(p.name, p.kind, p.default) for p in other.values()]


@pytest.mark.torch
@pytest.mark.parametrize("name", ["Rprop", "Adafactor", "RMSprop", "Adamax"])
def test_numbers_that_are_none_go_where_they_go_in_pytorch(torch: Any, name: str) -> None:
    found = []
    for lib in (gs, torch):
        x = lib.ones(4, requires_grad=True)
        optimizer = getattr(lib.optim, name)([x], lr=0.1)
        for _ in range(2):
            x.grad = lib.tensor([float("nan"), 1.0, -2.0, 0.0])
            optimizer.step()
        found.append(x.detach().numpy())
    numpy.testing.assert_allclose(*found, rtol=1e-5)


def test_divisions_by_nothing_are_silent() -> None:
    code = """if True:
        import gradscope as gs
        x = gs.ones(2, requires_grad=True)
        x.grad = gs.zeros(2)
        gs.optim.Adagrad([x], eps=0.0).step()
        print(x.tolist())
    """
    done = subprocess.run([sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[nan, nan]\n", "")


@pytest.mark.parametrize("name", NAMES)
def test_half_precision(name: str) -> None:
    x = gs.ones(3, 4, dtype=gs.float16, requires_grad=True)
    optimizer = getattr(gs.optim, name)([x], lr=0.1, **HALF.get(name, {}))
    for _ in range(3):
        x.grad = gs.ones(3, 4, dtype=gs.float16)
        optimizer.step()
    assert x.dtype is gs.float16
    assert (x < 1).all().item()


@pytest.mark.parametrize("name", NAMES)
def test_memory_that_is_not_in_row_order_is_updated_alike(name: str) -> None:
    size = 200
    values = numpy.random.default_rng(0).normal(size=(size, size))
    straight, turned = gs.tensor(values, requires_grad=True), gs.from_numpy(values.T.copy()).t().requires_grad_()
    settings = {} if name == "Rprop" else {"weight_decay": 0.1}
    for parameter in (straight, turned):
        optimizer = getattr(gs.optim, name)([parameter], lr=0.1, **settings)
        for _ in range(3):
            parameter.grad = gs.tensor(values[::-1].copy())
            optimizer.step()
    numpy.testing.assert_allclose(straight.detach().numpy(), turned.detach().numpy(), rtol=1e-12)


def test_complex_parameters_are_pairs_of_real_ones() -> None:
    for name in ("SGD", "Adam"):
        z = gs.tensor([1 + 2j, 3 - 1j], requires_grad=True)
        pairs = gs.tensor([[1.0, 2.0], [3.0, -1.0]], requires_grad=True)
        z.grad, pairs.grad = gs.tensor([1 - 1j, 2j]), gs.tensor([[1.0, -1.0], [0.0, 2.0]])
        for parameter in (z, pairs):
            getattr(gs.optim, name)([parameter], lr=0.1).step()
        assert z.detach().numpy().view("f4").tolist() == pairs.detach().numpy().reshape(-1).tolist()


# --- writes -----------------------------------------------------------------------------------------------------------


def test_a_step_is_a_write_that_is_seen() -> None:
    x = leaf()
    y = (x * x).sum()
    x.grad = gs.ones(2)
    gs.optim.SGD([x], lr=0.1).step()
    with pytest.raises(gs.SavedTensorModifiedError, match=r"is at version 1; expected version 0"):
        y.backward()


def test_parameters_without_gradients_stay() -> None:
    x, y = with_gradient(2), leaf()
    gs.optim.Adam([x, y]).step()
    assert (x._version, y._version) == (1, 0)
    assert y.tolist() == [1.0, 1.0]


def test_the_gradient_is_left_as_it_is() -> None:
    for name, settings in SETTINGS:
        x = with_gradient(3)
        optimizer = getattr(gs.optim, name)([x], lr=0.1, **settings)
        optimizer.step()
        optimizer.step()
        assert x.grad.tolist() == [1.0, 1.0, 1.0], (name, settings)
        assert x.grad._version == 0


def test_zero_grad() -> None:
    x = with_gradient(2)
    optimizer = gs.optim.SGD([x], lr=1)
    grad = x.grad
    optimizer.zero_grad(set_to_none=False)
    assert x.grad is grad
    assert grad.tolist() == [0.0, 0.0]
    optimizer.zero_grad()
    assert x.grad is None


def test_zeroed_gradients_have_no_history() -> None:
    x = leaf()
    (x.grad,) = gs.autograd.grad((x * x * x).sum(), x, create_graph=True)
    assert x.grad.requires_grad
    gs.optim.SGD([x], lr=1).zero_grad(set_to_none=False)
    assert not x.grad.requires_grad


# --- closures and hooks -----------------------------------------------------------------------------------------------


def test_the_closure_runs_with_recording_on() -> None:
    x = leaf()
    optimizer = gs.optim.SGD([x], lr=0.25)

    def closure() -> gs.Tensor:
        optimizer.zero_grad()
        loss = (x * x).sum()
        loss.backward()
        return loss

    with gs.no_grad():
        loss = optimizer.step(closure)
    assert loss.item() == 2.0
    assert x.tolist() == [0.5, 0.5]


def test_step_hooks_and_their_order() -> None:
    log: list[str] = []
    optimizer = gs.optim.SGD([with_gradient(1)], lr=1)
    handles = [
        optimizer.register_step_pre_hook(lambda o, args, kwargs: log.append("pre")),
        optimizer.register_step_post_hook(lambda o, args, kwargs: log.append("post")),
        register_optimizer_step_pre_hook(lambda o, args, kwargs: log.append("all pre")),
        register_optimizer_step_post_hook(lambda o, args, kwargs: log.append("all post")),
    ]
    optimizer.step()
    assert log == ["all pre", "pre", "post", "all post"]
    for handle in handles:
        handle.remove()
    optimizer.step()
    assert len(log) == 4


def test_a_pre_hook_may_change_the_arguments() -> None:
    optimizer = gs.optim.SGD([leaf()], lr=1)
    optimizer.register_step_pre_hook(lambda o, args, kwargs: (args, {"closure": lambda: 7}))
    assert optimizer.step() == 7
    optimizer.register_step_pre_hook(lambda o, args, kwargs: 3)
    with pytest.raises(RuntimeError, match="must return None or a tuple"):
        optimizer.step()


def test_an_optimizer_of_ones_own() -> None:
    class Half(gs.optim.Optimizer):
        def __init__(self, params: Any) -> None:
            super().__init__(params, {})

        def step(self, closure: Any = None) -> None:
            with gs.no_grad():
                for group in self.param_groups:
                    for parameter in group["params"]:
                        parameter.mul_(0.5)

    x, log = leaf(), []
    optimizer = Half([x])
    optimizer.register_step_post_hook(lambda *args: log.append("post"))
    optimizer.step()
    assert x.tolist() == [0.5, 0.5]
    assert log == ["post"]
    with pytest.raises(NotImplementedError, match="does not define step"):
        gs.optim.Optimizer([x], {}).step()


# --- groups and state -------------------------------------------------------------------------------------------------


def test_groups_have_settings_of_their_own() -> None:
    x, y = with_gradient(1), with_gradient(1)
    optimizer = gs.optim.SGD([{"params": [("x", x)]}], lr=0.5)
    optimizer.add_param_group({"params": [("y", y)], "lr": 0.25})
    optimizer.step()
    assert (x.item(), y.item()) == (0.5, 0.75)
    assert optimizer.param_groups[1]["param_names"] == ["y"]
    optimizer.param_groups[0]["lr"] = gs.tensor(0.25)
    optimizer.step()
    assert x.item() == 0.25


def test_state_is_made_at_the_first_step_and_goes_out_and_in() -> None:
    x = with_gradient(2)
    optimizer = gs.optim.Adam([x])
    assert optimizer.state_dict()["state"] == {}
    optimizer.step()
    state = copy.deepcopy(optimizer.state_dict())
    assert state["state"][0]["step"].item() == 1.0
    assert state["param_groups"][0]["params"] == [0]
    other = gs.optim.Adam([gs.ones(2, dtype=gs.float64, requires_grad=True)], lr=7)
    other.load_state_dict(state)
    (parameter,) = other.param_groups[0]["params"]
    assert other.state[parameter]["exp_avg"].dtype is gs.float64
    assert other.state[parameter]["step"].dtype is gs.float32
    assert other.param_groups[0]["lr"] == 1e-3
    other.state[parameter]["exp_avg"].zero_()
    assert optimizer.state[x]["exp_avg"].tolist() != [0.0, 0.0]


@pytest.mark.torch
def test_hooks_of_the_state_are_called_as_in_pytorch(torch: Any) -> None:
    logs = []
    for lib in (gs, torch):
        log: list[Any] = []
        optimizer = lib.optim.SGD([leaf(lib)], lr=1.0)

        def replace(who: Any, state: Any, log: list[Any] = log) -> Any:
            log.append(sorted(state))
            return {**state, "more": 1}

        optimizer.register_state_dict_pre_hook(lambda who, log=log: log.append("pre"))
        optimizer.register_state_dict_pre_hook(lambda who, log=log: log.append("earlier"), prepend=True)
        optimizer.register_state_dict_post_hook(replace)
        handle = optimizer.register_state_dict_post_hook(lambda who, state, log=log: log.append(sorted(state)))
        optimizer.register_load_state_dict_pre_hook(replace)
        optimizer.register_load_state_dict_post_hook(lambda who, log=log: log.append("loaded"))
        state = optimizer.state_dict()
        handle.remove()
        optimizer.load_state_dict(state)
        log += [sorted(state), sorted(optimizer.state_dict())]
        logs.append(log)
    assert logs[0] == logs[1]
    assert len(logs[0]) == 11


def test_names_stay_when_a_state_without_them_is_loaded() -> None:
    optimizer = gs.optim.SGD([("w", leaf())], lr=1.0)
    optimizer.load_state_dict(gs.optim.SGD([leaf()], lr=2.0).state_dict())
    assert optimizer.param_groups[0]["param_names"] == ["w"]
    assert optimizer.param_groups[0]["lr"] == 2.0


def test_an_optimizer_can_be_pickled() -> None:
    x = with_gradient(2)
    optimizer = gs.optim.SGD([x], lr=0.5, momentum=0.9)
    optimizer.step()
    other = pickle.loads(pickle.dumps(optimizer))
    (parameter,) = other.param_groups[0]["params"]
    parameter.grad = gs.ones(2)
    optimizer.step()
    other.step()
    assert parameter.tolist() == x.tolist()


def test_repr() -> None:
    assert repr(gs.optim.SGD([leaf()], lr=1)).split("\n")[:3] == ["SGD (", "Parameter Group 0", "    dampening: 0"]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda lib: lib.optim.SGD([], lr=1),
        lambda lib: lib.optim.SGD(leaf(lib), lr=1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=-1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1, momentum=-1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1, weight_decay=-1),
        lambda lib: lib.optim.SGD([leaf(lib) * 2], lr=1),
        lambda lib: lib.optim.SGD([3], lr=1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1, nesterov=True),
        lambda lib: lib.optim.SGD([{"params": {leaf(lib)}}], lr=1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1).add_param_group(3),
        lambda lib: lib.optim.SGD([("w", leaf(lib)), leaf(lib)], lr=1),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1).add_param_group({"params": [("w", leaf(lib))]}),
        lambda lib: lib.optim.SGD([("w", leaf(lib))], lr=1).add_param_group({"params": [leaf(lib)]}),
        lambda lib: lib.optim.Adam([leaf(lib)], betas=(1.0, 0)),
        lambda lib: lib.optim.Adam([leaf(lib)], betas=(0.5, -1)),
        lambda lib: lib.optim.Adam([leaf(lib)], eps=-1),
        *[lambda lib, name=name: getattr(lib.optim, name)([leaf(lib)], lr=-1) for name in [*NAMES, "LBFGS"]],
        *[lambda lib, name=name: getattr(lib.optim, name)([leaf(lib)], lr=lib.ones(2)) for name in [*NAMES, "LBFGS"]],
        *[
            lambda lib, name=name: getattr(lib.optim, name)([leaf(lib)], weight_decay=-1)
            for name in NAMES
            if name != "Rprop"
        ],
        lambda lib: lib.optim.RMSprop([leaf(lib)], alpha=-1),
        lambda lib: lib.optim.RMSprop([leaf(lib)], eps=-1),
        lambda lib: lib.optim.RMSprop([leaf(lib)], momentum=-1),
        lambda lib: lib.optim.Adagrad([leaf(lib)], lr_decay=-1),
        lambda lib: lib.optim.Adagrad([leaf(lib)], initial_accumulator_value=-1),
        lambda lib: lib.optim.Adagrad([leaf(lib)], eps=-1),
        lambda lib: lib.optim.Adagrad([leaf(lib)], fused=True, foreach=True),
        lambda lib: lib.optim.Adagrad([leaf(lib)], fused=True, differentiable=True),
        lambda lib: lib.optim.Adadelta([leaf(lib)], rho=1.5),
        lambda lib: lib.optim.Adadelta([leaf(lib)], eps=-1),
        lambda lib: lib.optim.Adamax([leaf(lib)], betas=(1.0, 0)),
        lambda lib: lib.optim.NAdam([leaf(lib)], betas=(0.5, 1.0)),
        lambda lib: lib.optim.NAdam([leaf(lib)], momentum_decay=-1),
        lambda lib: lib.optim.RAdam([leaf(lib)], eps=-1),
        lambda lib: lib.optim.Rprop([leaf(lib)], etas=(0.5, 0.9)),
        lambda lib: lib.optim.Adafactor([leaf(lib)], beta2_decay=0.1),
        lambda lib: lib.optim.Adafactor([leaf(lib)], eps=(-1, 1)),
        lambda lib: lib.optim.Adafactor([leaf(lib)], eps=(None, -1)),
        lambda lib: lib.optim.Adafactor([leaf(lib)], d=0.5),
        lambda lib: stepped(lib.optim.Adafactor, lib.ones(2, dtype=lib.complex64, requires_grad=True), lib),
        lambda lib: stepped(lib.optim.Adafactor, leaf(lib, 0, 3), lib),
        lambda lib: (lambda p: lib.optim.SGD([{"params": [p]}, {"params": [p]}], lr=1))(leaf(lib)),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1).load_state_dict(
            lib.optim.SGD([leaf(lib), leaf(lib)], lr=1).state_dict()
        ),
        lambda lib: lib.optim.SGD([leaf(lib)], lr=1).load_state_dict({"state": {}, "param_groups": []}),
    ],
)
def test_wrong_calls_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, wrong)


def test_the_same_parameter_twice_warns() -> None:
    x = leaf()
    with pytest.warns(UserWarning, match="duplicate parameters"):
        gs.optim.SGD([x, x], lr=1)


# --- a whole training -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "make",
    [
        lambda p: gs.optim.SGD(p, lr=0.1, momentum=0.9),
        lambda p: gs.optim.Adam(p, lr=0.05),
        lambda p: gs.optim.RMSprop(p, lr=0.02),
        lambda p: gs.optim.NAdam(p, lr=0.05),
        lambda p: gs.optim.Rprop(p),
    ],
)
def test_training_learns(make: Any) -> None:
    gs.manual_seed(0)
    x = gs.randn(64, 2)
    labels = (x[:, 0] * x[:, 1] > 0).long()
    model = gs.nn.Sequential(gs.nn.Linear(2, 16), gs.nn.ReLU(), gs.nn.Linear(16, 2))
    criterion, optimizer = gs.nn.CrossEntropyLoss(), make(model.parameters())
    for _ in range(150):
        optimizer.zero_grad()
        loss = criterion(model(x), labels)
        loss.backward()
        optimizer.step()
    assert loss.item() < 0.15
