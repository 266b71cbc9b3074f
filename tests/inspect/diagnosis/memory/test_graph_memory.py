"""What a graph holds in memory, each piece counted once."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
import gradscope.inspect as gi
from tests.inspect.diagnosis.lines import line


def test_parameters_inputs_and_activations(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 4, bias=False), fw.nn.Tanh(), fw.nn.Linear(4, 1, bias=False))
    x = fw.ones(5, 3)
    with gi.ledger():
        loss = model(x).sum()  # HERE: model
    report = gi.memory(loss, params=model)
    kinds = {(p.kind, p.nbytes) for p in report.pieces}
    # The first weight is not needed: its input requires no grad. tanh's result is kept for two nodes, and counts once.
    assert kinds == {("parameter", 16), ("input", 60), ("activation", 80)}
    assert (report.total, report.activations, report.of_kind("parameter")) == (156, 80, 16)
    shared = next(p for p in report.pieces if p.kind == "activation")
    assert (shared.saved_by, shared.operator, shared.module) == (2, "Tanh", "1")
    assert (shared.location.filename, shared.location.lineno) == (__file__, line(__file__, "model"))
    assert next(p.name for p in report.pieces if p.kind == "parameter") == "2.weight"
    assert [(g.label, g.nbytes, g.pieces) for g in report.by_module()] == [("1", 80, 1)]
    assert [(g.label, g.nbytes) for g in report.by_operator()] == [("Tanh", 80)]
    assert report.by_line()[0].label.endswith(f"test_graph_memory.py:{line(__file__, 'model')}")
    assert "156 B: 80 B of activations, 16 B of parameters, 60 B of inputs" in str(report)


@pytest.mark.parametrize("ask", [gi.memory, gi.second_backward, gi.nan_origin])
def test_what_is_no_loss_is_refused_with_what_to_pass(fw, ask):
    model = fw.nn.Linear(3, 2)
    for wrong, kind in ((model, "Linear"), (None, "NoneType")):
        with pytest.raises(TypeError) as raised:
            ask(wrong)
        assert str(raised.value) == (
            f"{ask.__name__}() takes a loss, a tensor that was computed, got {kind}\n"
            f"Pass what the model computed: gi.{ask.__name__}(model(inputs).sum())."
        )
    with pytest.raises(TypeError, match="takes a loss"):
        ask(model(fw.ones(1, 3)).sum().grad_fn)


def test_what_was_not_seen_is_not_called_outside(fw):
    loss = fw.ones(3, requires_grad=True).exp().sum()
    assert [g.label for g in gi.memory(loss).by_module()] == ["(module not known)"]
    with gi.track():
        loss = fw.ones(3, requires_grad=True).exp().sum()
    assert [g.label for g in gi.memory(loss).by_module()] == ["(outside of modules)"]


def test_a_view_keeps_the_whole(fw):
    x = fw.ones(1000).requires_grad_()
    y = x * 1
    report = gi.memory(y[:2].exp().mul(y[:2]).sum())
    assert ("activation", 4000) in [(p.kind, p.nbytes) for p in report.pieces]


def test_released(fw):
    x = fw.ones(10, requires_grad=True)
    loss = x.exp().sum()
    loss.backward()
    report = gi.memory(loss)
    assert (report.total, report.released) == (0, 1)
    assert "1 saved tensor already released" in str(report)


def test_packed_by_hooks(fw):
    x = fw.ones(10, requires_grad=True)
    with fw.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        loss = x.exp().sum()
    expected = ["packed"]
    if fw.__name__ == "torch":
        from gradscope.inspect.adapters.torch.saved_tensors_unpacked import SHOWN

        expected = expected if SHOWN else []  # before 2.10 nobody knows how large it is
    assert [p.kind for p in gi.memory(loss).pieces] == expected


def test_forms(fw):
    report = gi.memory((fw.ones(3, requires_grad=True) ** 3).sum())
    assert json.loads(report.to_json())["pieces"][0]["nbytes"] == 12
    assert report.table().row_count == 1
    with pytest.raises(RuntimeError, match="no graph"):
        gi.memory(fw.ones(3).sum())


OPERATORS = [
    lambda x, y: x * y,
    lambda x, y: x.exp(),
    lambda x, y: x.t() @ y,
    lambda x, y: x + y,
    lambda x, y: (x / (y * y + 1)).view(3, 3),
    lambda x, y: x[:1].tanh() * y,
]


@settings(max_examples=25)
@given(st.lists(st.tuples(st.integers(0, len(OPERATORS) - 1), st.integers(0, 30), st.integers(0, 30)), max_size=8))
def test_the_total_is_the_sum_of_the_distinct_memories(steps):
    values = [gs.linspace(0, 1, 9).reshape(3, 3).requires_grad_(), gs.ones(3, 3)]
    for operator, a, b in steps:
        values.append(OPERATORS[operator](values[a % len(values)], values[b % len(values)]))
    loss = sum((v.sum() for v in values), gs.zeros(()))
    memories, seen, stack = {}, set(), [loss.grad_fn]
    while stack:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for saved in node.saved_tensors_info():
            storage = saved.data.untyped_storage()
            memories[storage.data_ptr()] = storage.nbytes()
        stack += [child for child, _ in node.next_functions if child is not None]
    assert gi.memory(loss).total == sum(memories.values())
