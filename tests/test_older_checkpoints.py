"""States as older versions of PyTorch wrote them: written by PyTorch, edited to what was there then, loaded in both."""

from __future__ import annotations

import copy
import io
import pickle
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import numpy
import pytest

import gradscope as gs


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    """The older form of weight_norm says that it is deprecated, in both libraries."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        yield


def carried_over(torch: Any, obj: Any) -> Any:
    """Return what gradscope reads of a file of PyTorch."""
    file = io.BytesIO()
    torch.save(obj, file)
    file.seek(0)
    return gs.load(file)


def in_both(torch: Any, state: Any) -> list[tuple[Any, Any]]:
    """Return each library with its own copy of a state that PyTorch wrote."""
    return [(torch, copy.deepcopy(state)), (gs, carried_over(torch, state))]


# --- optimizers -------------------------------------------------------------------------------------------------------

ADDED_LATER = ("maximize", "foreach", "capturable", "differentiable", "fused", "decoupled_weight_decay", "amsgrad")
OPTIMIZERS: dict[str, dict[str, Any]] = {
    "SGD": {"lr": 0.1, "momentum": 0.9}, "Adam": {}, "AdamW": {}, "Adadelta": {}, "Adagrad": {}, "Adamax": {},
    "ASGD": {}, "NAdam": {}, "RAdam": {}, "RMSprop": {"momentum": 0.5}, "Rprop": {},
}  # fmt: skip


def stepped(m: Any, name: str, values: Any, load: Callable[[Any], None]) -> tuple[list[Any], list[str]]:
    """Take two steps with an optimizer that `load` has given a state."""
    weight = m.nn.Parameter(m.tensor(values))
    optimizer = getattr(m.optim, name)([weight], **OPTIMIZERS[name])
    load(optimizer)
    for _ in range(2):
        optimizer.zero_grad()
        (weight**2).sum().backward()
        optimizer.step()
    return weight.tolist(), sorted(optimizer.param_groups[0])


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_the_state_of_an_older_optimizer_is_taken_up(torch: Any, name: str) -> None:
    saved: list[Any] = []

    def save(optimizer: Any) -> None:
        optimizer.register_step_post_hook(lambda *_: saved.append(copy.deepcopy(optimizer.state_dict())))

    values, _ = stepped(torch, name, [-1.0, -0.5, 0.25, 2.0], save)
    state = saved[-1]
    for group in state["param_groups"]:
        for key in (*ADDED_LATER, *(["nesterov"] if name == "SGD" else ["momentum", "centered"][1:])):
            group.pop(key, None)
    for held in state["state"].values():
        for key in {"step", "eta", "mu", "mu_product"} & held.keys():
            held[key] = int(held[key]) if key == "step" else float(held[key])
    (theirs, their_names), (mine, names) = (
        stepped(m, name, values, lambda optimizer, s=s: optimizer.load_state_dict(s))  # type: ignore[misc]
        for m, s in in_both(torch, state)
    )
    if name in ("Adam", "AdamW") and torch.__version__ < "2.8":  # they had no such setting
        names = [setting for setting in names if setting != "decoupled_weight_decay"]
    assert names == their_names
    numpy.testing.assert_allclose(mine, theirs, rtol=1e-5)


def test_what_an_optimizer_was_made_with_is_no_default_of_older_states(torch: Any) -> None:
    settings = []
    for m in (gs, torch):
        optimizer = m.optim.SGD([m.ones(1, requires_grad=True)], 0.1, momentum=0.5, nesterov=True, maximize=True)
        state = optimizer.state_dict()
        del state["param_groups"][0]["nesterov"], state["param_groups"][0]["maximize"]
        optimizer.load_state_dict(state)
        settings.append([optimizer.param_groups[0][name] for name in ("nesterov", "maximize", "momentum")])
    assert settings == [[False, False, 0.5]] * 2


def test_a_subclass_completes_its_older_states_itself() -> None:
    class Older(gs.optim.SGD):
        def __setstate__(self, state: dict[str, Any]) -> None:
            super().__setstate__(state)
            for group in self.param_groups:
                group.setdefault("warmup", 3)

    optimizer = Older([gs.ones(1, requires_grad=True)])
    calls = []
    optimizer.register_step_post_hook(lambda *_: calls.append(1))
    optimizer.load_state_dict(optimizer.state_dict())
    optimizer.step()
    assert (optimizer.param_groups[0]["warmup"], calls) == (3, [1])


SCHEDULERS: dict[str, Callable[[Any, Any], Any]] = {
    "StepLR": lambda s, optimizer: s.StepLR(optimizer, 2),
    "CosineAnnealingLR": lambda s, optimizer: s.CosineAnnealingLR(optimizer, 5),
    "OneCycleLR": lambda s, optimizer: s.OneCycleLR(optimizer, 1.0, total_steps=10),
    "CyclicLR": lambda s, optimizer: s.CyclicLR(optimizer, 0.1, 1.0),
    "LambdaLR": lambda s, optimizer: s.LambdaLR(optimizer, lambda epoch: 0.9**epoch),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_the_state_of_an_older_schedule_is_taken_up(torch: Any, name: str) -> None:
    def made(m: Any) -> tuple[Any, Any]:
        weight = m.ones(1, requires_grad=True)
        weight.grad = m.ones(1)
        optimizer = m.optim.SGD([weight], 0.5, momentum=0.9)
        return optimizer, SCHEDULERS[name](m.optim.lr_scheduler, optimizer)

    def rates(optimizer: Any, schedule: Any) -> list[float]:
        found = []
        for _ in range(3):
            optimizer.step()
            schedule.step()
            found.append(round(optimizer.param_groups[0]["lr"], 6))
        return found

    optimizer, schedule = made(torch)
    rates(optimizer, schedule)
    state = {**schedule.state_dict(), "verbose": False}
    for key in ("_get_lr_called_within_step", "_is_initial", "_scale_fn_ref"):
        state.pop(key, None)
    found = []
    for m, (own, of_optimizer) in in_both(torch, (state, optimizer.state_dict())):
        optimizer, schedule = made(m)
        optimizer.load_state_dict(of_optimizer)
        schedule.load_state_dict(own)
        found.append(rates(optimizer, schedule))
    assert found[0] == found[1]


# --- modules ----------------------------------------------------------------------------------------------------------


def loaded(m: Any, module: Any, state: Any) -> Any:
    """Return what loading a state comes to: an error's first words, or the state there is then."""
    try:
        module.load_state_dict(state)
    except RuntimeError as error:
        return str(error)[:200]
    return {name: value.tolist() for name, value in module.state_dict().items()}


@pytest.mark.parametrize("version", [None, 1, 2])
@pytest.mark.parametrize("kind", ["BatchNorm1d", "BatchNorm2d", "LazyBatchNorm1d", "InstanceNorm1d"])
def test_running_statistics_without_a_count(torch: Any, kind: str, version: int | None) -> None:
    def made(m: Any) -> Any:
        if kind == "InstanceNorm1d":
            return m.nn.Sequential(m.nn.InstanceNorm1d(3, track_running_stats=True))
        return m.nn.Sequential(getattr(m.nn, kind)(*([] if kind.startswith("Lazy") else [3])))

    source = torch.nn.BatchNorm1d(3, affine=kind != "InstanceNorm1d")
    source(torch.randn(4, 3))
    state = torch.nn.Sequential(source).state_dict()
    del state["0.num_batches_tracked"]
    for entry in state._metadata.values():
        entry["version"] = version
    found = [loaded(m, made(m), own) for m, own in in_both(torch, state)]
    assert found[0] == found[1]
    assert isinstance(found[0], str) == (version == 2)


def test_statistics_that_instance_norm_no_longer_keeps(torch: Any) -> None:
    state = torch.nn.Sequential(torch.nn.InstanceNorm1d(3, track_running_stats=True)).state_dict()
    del state["0.num_batches_tracked"]
    newer = copy.copy(state)
    del state._metadata
    for case in (state, newer):
        found = [loaded(m, m.nn.Sequential(m.nn.InstanceNorm1d(3)), own) for m, own in in_both(torch, case)]
        assert found[0] == found[1]
        assert "Unexpected" in found[0]


def test_a_scalar_that_had_one_dimension(torch: Any) -> None:
    class Scale(gs.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.factor = gs.nn.Parameter(gs.tensor(1.0))

    assert loaded(gs, Scale(), {"factor": gs.tensor([3.0])}) == {"factor": 3.0}
    assert "size mismatch" in loaded(gs, Scale(), {"factor": gs.tensor([3.0, 4.0])})


@pytest.mark.parametrize("dim", [0, 1])
def test_weight_norm_becomes_a_parametrization(torch: Any, dim: int) -> None:
    older = torch.nn.Sequential(torch.nn.utils.weight_norm(torch.nn.Conv1d(2, 3, 1), dim=dim))
    outputs = []
    for m, state in in_both(torch, older.state_dict()):
        model = m.nn.Sequential(m.nn.utils.parametrizations.weight_norm(m.nn.Conv1d(2, 3, 1), dim=dim))
        assert str(model.load_state_dict(state)) == "<All keys matched successfully>"
        outputs.append((sorted(model.state_dict()), model(m.ones(1, 2, 4)).tolist()))
    assert outputs[0][0] == outputs[1][0]
    numpy.testing.assert_allclose(outputs[1][1], outputs[0][1], rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", ["weight_norm", "spectral_norm"])
def test_a_normalised_module_can_be_pickled(name: str) -> None:
    module = getattr(gs.nn.utils, name)(gs.nn.Linear(3, 2)).eval()
    copied = pickle.loads(pickle.dumps(module))
    x = gs.ones(1, 3)
    assert copied(x).tolist() == module(x).tolist()
    next(iter(copied.parameters())).data.mul_(3)
    assert copied(x).tolist() != module(x).tolist()


def test_spectral_norm_before_it_kept_both_vectors(torch: Any) -> None:
    source = torch.nn.utils.spectral_norm(torch.nn.Linear(2, 4))
    source(torch.ones(1, 2))
    state = source.state_dict()
    state["weight"] = state["weight_orig"] / 2.0
    del state["weight_v"]
    state._metadata[""] = {"version": 1}
    theirs, mine = (loaded(m, m.nn.utils.spectral_norm(m.nn.Linear(2, 4)), own) for m, own in in_both(torch, state))
    assert mine.keys() == theirs.keys()
    for key, value in mine.items():
        numpy.testing.assert_allclose(value, theirs[key], rtol=1e-3, atol=1e-5)
    del state["weight"]
    found = [loaded(m, m.nn.utils.spectral_norm(m.nn.Linear(2, 4)), own) for m, own in in_both(torch, state)]
    assert found[0] == found[1]


def test_spectral_norm_says_which_version_its_state_is(torch: Any) -> None:
    found = [m.nn.utils.spectral_norm(m.nn.Linear(2, 4)).state_dict()._metadata[""] for m in (gs, torch)]
    assert found[0] == found[1]
    module = gs.nn.utils.remove_spectral_norm(gs.nn.utils.spectral_norm(gs.nn.Linear(2, 4)))
    assert module.state_dict()._metadata[""] == {"version": 1}


def test_lazy_modules_take_up_any_state(torch: Any) -> None:
    waiting, known = torch.nn.LazyLinear(3), torch.nn.LazyLinear(3)
    known(torch.ones(1, 2))
    module = gs.nn.LazyLinear(3)
    assert str(module.load_state_dict(carried_over(torch, waiting.state_dict()))) == "<All keys matched successfully>"
    assert module.has_uninitialized_params()
    module.load_state_dict(carried_over(torch, known.state_dict()))
    x = torch.ones(1, 2)
    numpy.testing.assert_allclose(module(gs.ones(1, 2)).tolist(), known(x).tolist(), rtol=1e-5)
    with pytest.raises(RuntimeError, match="Can't access the shape of an uninitialized parameter"):
        module.load_state_dict(gs.nn.LazyLinear(3).state_dict())


def test_a_module_from_before_a_kind_of_hooks() -> None:
    module = gs.nn.Linear(2, 1)
    state = {
        k: v for k, v in module.__dict__.items() if k not in ("_load_state_dict_post_hooks", "_state_dict_pre_hooks")
    }
    older = gs.nn.Linear.__new__(gs.nn.Linear)
    older.__setstate__(state)
    older.load_state_dict(module.state_dict())
    assert older(gs.ones(1, 2)).tolist() == module(gs.ones(1, 2)).tolist()


def test_a_hook_of_loading_goes_along_with_its_module() -> None:
    seen = []
    module = gs.nn.Linear(2, 1)
    module.register_load_state_dict_pre_hook(lambda owner, *_: seen.append(owner))
    other = copy.deepcopy(module)
    other.load_state_dict(module.state_dict())
    assert seen == [other]


def test_assigned_parameters_require_grad_as_those_they_replace(torch: Any) -> None:
    for m in (gs, torch):
        module = m.nn.Linear(2, 1)
        frozen = m.nn.Parameter(m.ones(1, 2), requires_grad=False)
        module.load_state_dict({"weight": frozen, "bias": m.zeros(1)}, assign=True)
        assert module.weight is frozen
        assert frozen.requires_grad
