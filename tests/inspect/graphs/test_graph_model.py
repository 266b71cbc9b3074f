"""The networkx model of a backward graph."""

import gc
import weakref

import networkx
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.records.execution_order import walk
from gradscope.inspect.records.snapshots import saved_records
from gradscope.runtime import events


def model():
    return gs.nn.Sequential(gs.nn.Linear(3, 4), gs.nn.ReLU(), gs.nn.Linear(4, 2))


def test_nodes_edges_and_names():
    net = model()
    x = gs.ones(5, 3)
    loss = net(x).sum()
    graph = gi.graph(loss, params=net)
    assert isinstance(graph, networkx.MultiDiGraph)
    assert [(d["operator"], d["parameter"]) for _, d in graph.nodes(data=True)] == [
        ("Sum", ""),
        ("Addmm", ""),
        ("AccumulateGrad", "2.weight"),
        ("AccumulateGrad", "2.bias"),
        ("Relu", ""),
        ("Addmm", ""),
        ("AccumulateGrad", "0.weight"),
        ("AccumulateGrad", "0.bias"),
    ]
    (root,) = graph.graph["roots"]
    assert graph.nodes[root]["name"] == loss.grad_fn.name()
    assert [graph.nodes[k]["index"] for k in gi.execution_order(graph)] == list(range(8))
    (addmm,) = graph.successors(root)
    assert graph.nodes[addmm]["outputs"][0].shape == (5, 2)
    saved = {s.name: s for s in graph.nodes[addmm]["saved"]}
    assert {s.shape for s in saved.values()} == {(5, 4), (2, 4)}
    assert all(s.state == "ok" and s.saved_version == s.current_version for s in saved.values())
    assert networkx.is_directed_acyclic_graph(graph)


def test_edges_carry_output_and_input_numbers():
    a = gs.ones(2, requires_grad=True)
    first, second = (a * 2).unbind()
    graph = gi.graph(first * second)
    unbind = next(k for k, d in graph.nodes(data=True) if d["operator"] == "Unbind")
    into = sorted((d["output_nr"], d["input_nr"]) for _, _, d in graph.in_edges(unbind, data=True))
    assert into == [(0, 0), (1, 1)]
    assert len(graph.nodes[unbind]["outputs"]) == 2


def test_params_in_every_form():
    w = gs.ones(2, requires_grad=True)
    for params in ({"w": w}, [("w", w)], iter([("w", w)])):
        names = [d["parameter"] for _, d in gi.graph((w * 2).sum(), params=params).nodes(data=True)]
        assert names == ["", "", "w"]
    graph = gi.graph((w * 2).sum(), params=[w])
    assert [d["parameter"] for _, d in graph.nodes(data=True)] == ["", "", "[0]"]
    for wrong in ([1.5], 1.5, [("w", w, w)], [(w, "w")]):
        with pytest.raises(TypeError, match="pairs of"):
            gi.graph((w * 2).sum(), params=wrong)


def test_track_notes_modules_and_lines():
    net = model()
    with gi.track():
        loss = net(gs.ones(1, 3)).sum()
    (root, *rest) = gi.graph(loss, params=net).nodes(data=True)
    assert root[1]["location"].filename == __file__
    assert root[1]["location"].source == "loss = net(gs.ones(1, 3)).sum()"
    assert [d["module"] for _, d in rest] == ["2", "2", "2", "1", "0", "0", "0"]


def test_several_losses():
    a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    graph = gi.graph([a.sum(), b.sum()])
    assert len(graph.graph["roots"]) == 2
    assert len(graph) == 4


def test_keys_are_the_same_each_time():
    loss = (gs.ones(2, requires_grad=True) * 2).sum()
    assert list(gi.graph(loss)) == list(gi.graph(loss))


def test_a_leaf_is_a_graph_of_one_node():
    graph = gi.graph(gs.ones((), requires_grad=True))
    assert [d["name"] for _, d in graph.nodes(data=True)] == ["AccumulateGrad"]


def test_modified_and_released_tensors_are_told():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sum()
    with gs.no_grad():
        y.mul_(2)
    exp = next(d for _, d in gi.graph(z).nodes(data=True) if d["operator"] == "Exp")
    assert [(s.state, s.saved_version, s.current_version) for s in exp["saved"]] == [("modified", 0, 1)]
    w = (x * x).sum()
    w.backward()
    mul = next(d for _, d in gi.graph(w).nodes(data=True) if d["operator"] == "Mul")
    assert {s.state for s in mul["saved"]} == {"released"}


def test_the_model_keeps_nothing_alive():
    x = gs.ones(2, requires_grad=True)
    y = x * 2
    graph, node, tensor = gi.graph(y.sum()), weakref.ref(y.grad_fn), weakref.ref(x)
    gc.disable()
    try:
        del y, x
        assert (node(), tensor()) == (None, None)
    finally:
        gc.enable()
    assert len(graph) == 3


def test_what_is_no_loss():
    with pytest.raises(TypeError, match="graph\\(\\) takes a tensor"):
        gi.graph(3)
    with pytest.raises(RuntimeError, match=r"shape \(2\) does not require grad"):
        gi.graph(gs.ones(2))


def test_execution_order_of_a_part():
    a = gs.ones(2, requires_grad=True)
    graph = gi.graph((a * 2 + a.exp()).sum())
    (root,) = graph.graph["roots"]
    graph.remove_node(root)
    assert [graph.nodes[k]["operator"] for k in gi.execution_order(graph)] == ["Add", "Exp", "Mul", "AccumulateGrad"]


def test_looking_emits_nothing_and_changes_nothing():
    x = gs.ones(2, requires_grad=True)
    loss = (x * x).sum()
    heard = []
    with events.subscribe(heard.append, events.TensorUnpacked, events.OperatorRecorded, events.NodeEntered):
        gi.graph(loss)
    assert heard == []
    loss.backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_a_big_graph_is_modelled_quickly():
    y = gs.ones((), requires_grad=True)
    for _ in range(5_000):
        y = y + 1.0
    assert len(gi.graph(y)) == 5_001


def test_what_goes_in_and_out_of_a_node():
    w, b = gs.ones(4, 3, requires_grad=True), gs.ones(4, requires_grad=True)
    graph = gi.graph(gs.nn.functional.linear(gs.ones(2, 3), w, b).sum())
    addmm = next(data for _, data in graph.nodes(data=True) if data["operator"] == "Addmm")
    assert [spec.shape for spec in addmm["outputs"]] == [(2, 4)]
    assert sorted(spec.shape for spec in addmm["inputs"] if spec is not None) == [(4,), (4, 3)]
    assert None in addmm["inputs"]  # the batch wants no gradient


def test_the_graph_of_a_session_tells_what_has_been_seen():
    w = gs.ones(2, requires_grad=True)
    loss = (w * 3).sum()
    whole = gi.graph(loss, params={"w": w})
    session = gi.debug(loss)
    try:
        session.step(2)
        session.wait(20)
        graph = gi.graph_of(session)
        assert list(graph) == list(whole)
        assert sorted(graph.edges(keys=True)) == sorted(whole.edges(keys=True))
        assert graph.graph["roots"] == whole.graph["roots"]
        assert [d["state"] for _, d in graph.nodes(data=True)] == ["done", "done", "current"]
        gi.annotate(whole, session)
        assert [d["state"] for _, d in whole.nodes(data=True)] == ["done", "done", "current"]
        assert whole.nodes[list(whole)[1]]["grad_inputs"][0].max == 3.0
    finally:
        session.abort()
        session.wait(20)
    with pytest.raises(TypeError, match="expected a debugger session"):
        gi.graph_of([1, 2])


def test_a_notebook_shows_a_picture_however_large_the_graph_is():
    y = gs.ones((), requires_grad=True)
    for _ in range(2_000):
        y = y * 1.5
    graph = gi.graph(y)
    bundle = graph._repr_mimebundle_()
    assert bundle["image/svg+xml"].startswith("<svg")
    assert "2,001 nodes, folded to 1" in bundle["text/html"]
    assert graph._repr_svg_() == bundle["image/svg+xml"]
    assert bundle["text/html"] == graph._repr_html_()


def test_algorithms_of_networkx_run_on_it_and_copies_stay_of_its_kind():
    graph = gi.graph(model()(gs.ones(5, 3)).sum())
    assert isinstance(graph.copy(), gi.BackwardGraph)
    assert isinstance(graph.reverse(), gi.BackwardGraph)
    assert len(graph.subgraph(list(graph)[:3])) == 3
    assert networkx.dag_longest_path_length(graph) == 4


@pytest.mark.torch
def test_a_torch_loss():
    torch = pytest.importorskip("torch")
    net = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))
    with gi.track():
        loss = net(torch.ones(5, 3)).sum()
    graph = gi.graph(loss, params=net)
    found = {(d["operator"], d["module"]) for _, d in graph.nodes(data=True) if d["name"] != "AccumulateGrad"}
    assert {("Sum", ""), ("Addmm", "2"), ("Relu", "1"), ("Addmm", "0")} <= found
    assert {d["parameter"] for _, d in graph.nodes(data=True)} - {""} == dict(net.named_parameters()).keys()
    assert gi.count_paths(graph, "0.weight") == 1
    saved = {s.name for _, d in graph.nodes(data=True) for s in d["saved"]}
    assert saved
    assert [data["name"] for _, data in gi.fold(graph).nodes(data=True)] == ["SumBackward0", "2", "ReluBackward0", "0"]


def test_saved_tensors_are_told_as_the_debugger_tells_them():
    adapter = NativeAdapter()
    x = gs.ones(3, requires_grad=True)
    with gs.autograd.graph.saved_tensors_hooks(lambda t: t.detach().numpy(), gs.tensor):
        packed = x * x
    y = packed.exp()
    loss = (y * x).sum() + (used := x.tanh()).sum()
    with gs.no_grad():
        y.mul_(2)
    used.sum().backward()
    graph = gi.graph(loss)
    links = walk(adapter, [adapter.root(loss)[0]])
    for key, data in graph.nodes(data=True):
        assert data["saved"] == saved_records(adapter, links[key].node, summaries=False)
    assert {s.state for _, data in graph.nodes(data=True) for s in data["saved"]} == {"ok", "modified", "released"}
