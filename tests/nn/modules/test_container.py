"""Containers of modules and of parameters: the modules are shown and computed as in PyTorch."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

import pytest

import gradscope as gs
from gradscope import nn
from tests.side_by_side import same_complaint


def numbered() -> nn.Sequential:
    return nn.Sequential(nn.Linear(2, 3), nn.ReLU(), nn.Linear(3, 1))


def test_sequential_is_a_list() -> None:
    model = numbered()
    first, second, third = model
    assert (len(model), model[-1]) == (3, third)
    assert list(model[:2]) == [first, second]
    assert list(model[1:].named_children()) == [("1", second), ("2", third)]
    assert model.append(nn.Tanh()) is model
    assert [name for name, _ in model.insert(1, nn.Sigmoid()).named_children()] == list("01234")
    assert isinstance(model.pop(1), nn.Sigmoid)
    del model[-1]
    assert list(model) == [first, second, third]
    model[1] = nn.Identity()
    assert isinstance(model[1], nn.Identity)
    assert len(model + numbered()) == 6
    named = nn.Sequential(OrderedDict(first=nn.ReLU(), second=nn.Tanh()))
    assert [name for name, _ in named.named_children()] == ["first", "second"]
    assert named.first is named[0]


def test_module_list_and_dict() -> None:
    modules = nn.ModuleList([nn.ReLU()])
    modules += [nn.Tanh()]
    modules.extend([nn.Sigmoid()]).insert(0, nn.GELU())
    assert [type(m).__name__ for m in modules] == ["GELU", "ReLU", "Tanh", "Sigmoid"]
    assert isinstance(modules[1:], nn.ModuleList)
    assert len(modules + nn.ModuleList([nn.ReLU()])) == 5
    with pytest.raises(NotImplementedError):
        modules(gs.ones(1))
    table = nn.ModuleDict({"a": nn.ReLU()})
    table["b"] = nn.Linear(1, 1)
    table.update([("c", nn.Tanh())])
    assert list(table) == list(table.keys()) == ["a", "b", "c"]
    assert "b" in table
    assert len(list(table.parameters())) == 2
    assert isinstance(table.pop("b"), nn.Linear)
    del table["a"]
    assert [type(m) for m in table.values()] == [nn.Tanh]
    table.clear()
    assert len(table) == 0


@pytest.mark.torch
def test_equal_modules_of_a_list_are_shown_once(torch: Any) -> None:
    def lists(n: Any) -> list[Any]:
        block = n.ModuleList([n.Linear(2, 2), n.Linear(2, 2), n.ReLU(), n.Linear(2, 2)])
        return [n.ModuleList(), n.ModuleList([n.ReLU()]), block, n.ModuleList([block, block])]

    assert [repr(mine) for mine in lists(nn)] == [repr(theirs) for theirs in lists(torch.nn)]


@pytest.mark.torch
def test_parameter_containers(torch: Any) -> None:
    shown = []
    for lib in (gs, torch):
        listed = lib.nn.ParameterList([lib.zeros(2)])
        listed += [lib.zeros(2, 3)]
        listed[0] = lib.ones(2)
        table = lib.nn.ParameterDict({"a": lib.zeros(2)})
        table["b"] = lib.ones(1)
        names = [n for m in (listed, table) for n, _ in m.named_parameters()]
        shown.append([names, repr(listed).replace("torch", "gradscope"), len(table), list(table.keys()), "a" in table])
        del table["a"]
        assert [tuple(v.shape) for v in table.values()] == [(1,)]
        assert len(listed[1:]) == 1
    assert shown[0] == shown[1]


@pytest.mark.torch
@pytest.mark.parametrize(
    "wrong",
    [
        lambda n: n.Sequential(n.ReLU())[3],
        lambda n: n.Sequential(3),
        lambda n: n.ModuleList([n.ReLU()])[-2],
        lambda n: n.ModuleDict({"a.b": n.ReLU()}),
    ],
)
def test_wrong_containers_raise_what_pytorch_raises(torch: Any, wrong: Any) -> None:
    same_complaint(torch, lambda lib: wrong(lib.nn))


def test_a_sequence_times_a_number(torch: Any) -> None:
    found = []
    for lib in (gs, torch):
        sequence = lib.nn.Sequential(lib.nn.Linear(2, 2), lib.nn.ReLU())
        double, triple = sequence * 2, 3 * sequence
        assert double[2] is double[0] is sequence[0]
        sequence *= 2
        found.append([len(double), len(triple), len(sequence), [*dict(triple.named_children())]])
    assert found[0] == found[1]


@pytest.mark.parametrize("factor", [0, -1, 1.5])
def test_a_sequence_times_what_is_no_count(torch: Any, factor: Any) -> None:
    same_complaint(torch, lambda lib: lib.nn.Sequential() * factor)
