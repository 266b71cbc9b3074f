"""state_dict and load_state_dict."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import complaint


def test_a_state_goes_out_and_in() -> None:
    first = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    second = nn.Sequential(nn.Linear(2, 3), nn.BatchNorm1d(3))
    first(gs.rand(4, 2))
    state = first.state_dict()
    assert isinstance(state, OrderedDict)
    assert state._metadata["1"] == {"version": 2}
    weight = second[0].weight
    assert str(second.load_state_dict(state)) == "<All keys matched successfully>"
    assert second[0].weight is weight
    assert weight._version == first[0].weight._version + 1
    for (name, a), (_, b) in zip(first.state_dict().items(), second.state_dict().items(), strict=True):
        assert a.tolist() == b.tolist(), name


def test_entries_share_memory_and_are_detached() -> None:
    module = nn.Linear(2, 3)
    state = module.state_dict()
    assert not state["weight"].requires_grad
    assert state["weight"].data_ptr() == module.weight.data_ptr()
    assert module.state_dict(keep_vars=True)["weight"] is module.weight
    assert list(module.state_dict(prefix="net.")) == ["net.weight", "net.bias"]


def test_a_shared_parameter_is_stored_under_both_names() -> None:
    shared = nn.Linear(2, 2)
    assert list(nn.Sequential(shared, shared).state_dict()) == ["0.weight", "0.bias", "1.weight", "1.bias"]


@pytest.mark.torch
def test_problems_are_told_as_by_pytorch(torch: Any) -> None:
    def load(lib: Any) -> None:
        lib.nn.Linear(2, 3).load_state_dict({"weight": lib.zeros(2, 2), "x": lib.zeros(1), "y.z": lib.zeros(1)})

    def whole(lib: Any) -> str:
        with pytest.raises(RuntimeError) as caught:
            load(lib)
        return str(caught.value).replace("torch", "gradscope")

    assert whole(gs) == whole(torch)
    assert complaint(gs, lambda lib: lib.nn.Linear(1, 1).load_state_dict(3))[0] is TypeError


def test_not_strict() -> None:
    module = nn.Linear(2, 3)
    found = module.load_state_dict({"weight": gs.zeros(3, 2), "x": gs.zeros(1)}, strict=False)
    assert found == (["bias"], ["x"])
    assert module.weight.tolist() == [[0.0, 0.0]] * 3


def test_assigning_takes_the_tensors_themselves() -> None:
    module, weight = nn.Linear(2, 3), gs.zeros(3, 2, dtype=gs.float64)
    module.load_state_dict({"weight": weight, "bias": gs.zeros(3)}, assign=True)
    assert module.weight.dtype is gs.float64
    assert module.weight.data_ptr() == weight.data_ptr()
    assert type(module.weight) is nn.Parameter


def test_hooks() -> None:
    log: list[Any] = []
    module = nn.Sequential(nn.Linear(2, 3))
    module.register_state_dict_pre_hook(lambda m, prefix, keep: log.append("pre"))
    module[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state.pop(prefix + "bias"))
    module[0].register_load_state_dict_pre_hook(
        lambda m, state, prefix, *rest: state.setdefault(prefix + "bias", gs.ones(3))
    )
    module.register_load_state_dict_post_hook(lambda m, keys: log.append(keys.missing_keys))
    with pytest.raises(RuntimeError, match="state_dict post-hook must return None"):
        module.state_dict()
    module[0]._state_dict_hooks.clear()
    module[0].register_state_dict_post_hook(lambda m, state, prefix, meta: state.__delitem__(prefix + "bias"))
    state = module.state_dict()
    assert list(state) == ["0.weight"]
    module.load_state_dict(state)
    assert module[0].bias.tolist() == [1.0, 1.0, 1.0]
    assert log == ["pre", "pre", []]


def test_extra_state() -> None:
    class Counting(nn.Module):
        count = 3

        def get_extra_state(self) -> Any:
            return {"count": self.count}

        def set_extra_state(self, state: Any) -> None:
            self.count = state["count"]

    first, second = Counting(), Counting()
    first.count = 7
    second.load_state_dict(first.state_dict())
    assert second.count == 7
    with pytest.raises(RuntimeError, match="_extra_state"):
        second.load_state_dict({})
