"""Names without ceremony: the living modules that own a graph's leaves, on both frameworks."""

import gc
import time
import warnings
import weakref

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import adapter_for
from gradscope.inspect.records import module_tracking
from gradscope.inspect.records import naming as names
from gradscope.inspect.records.naming import living_roots, name_graph, names_for, parameters_below


@pytest.fixture(autouse=True)
def _no_tracker():
    module_tracking._latest = None
    yield
    module_tracking._latest = None


def net_of(fw):
    class Block(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = fw.nn.Linear(3, 3)
            self.norm = fw.nn.LayerNorm(3)

        def forward(self, x):
            return x + self.norm(self.fc(x)).relu()

    class Net(fw.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = fw.nn.ModuleList([Block() for _ in range(4)])
            self.head = fw.nn.Linear(3, 1)
            self.spare = fw.nn.Linear(3, 1)

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.head(x)

    return Net()


def loss_of(fw, *models):
    x = fw.ones(2, 3)
    return sum(model(x).sum() for model in models)


def leaf_names(loss, **options):
    return {d["parameter"] for _, d in gi.graph(loss, **options).nodes(data=True) if d["name"] == "AccumulateGrad"}


# --- one model --------------------------------------------------------------------------------------------------------


def test_names_are_those_of_named_parameters(fw):
    model = net_of(fw)
    loss = loss_of(fw, model)
    reached = {name for name, _ in model.named_parameters() if not name.startswith("spare")}
    assert leaf_names(loss) == reached == leaf_names(loss, params=model)
    g = gi.graph(loss)
    assert g.graph["parameters"] == [name for name, _ in model.named_parameters()]
    assert gi.graph_statistics(g).not_reached == ("spare.weight", "spare.bias")


def test_nodes_belong_to_the_modules_of_their_parameters(fw):
    model = net_of(fw)
    loss = loss_of(fw, model)
    for params in (None, model):
        modules = {(d["operator"], d["module"]) for _, d in gi.graph(loss, params=params).nodes(data=True)}
        assert {("Addmm", f"layers.{i}.fc") for i in range(4)} < modules
        assert {("NativeLayerNorm", f"layers.{i}.norm") for i in range(4)} < modules
        assert ("Addmm", "head") in modules
        # Who made a relu is not known of what has no parameters.
        assert {module for operator, module in modules if operator in ("Relu", "Add", "Sum")} == {""}


def test_a_regulariser_is_not_of_the_module_whose_parameter_it_is_added_to(fw):
    model = net_of(fw)
    loss = loss_of(fw, model) + 0.1 * (model.head.weight**2).sum()
    modules = {(d["operator"], d["module"]) for _, d in gi.graph(loss).nodes(data=True)}
    assert ("Pow", "head") in modules
    assert {module for operator, module in modules if operator == "Sum"} == {""}


def test_a_node_that_uses_parameters_of_two_modules_is_of_what_contains_both(fw):
    model = net_of(fw)
    product = (model.layers[0].fc.weight * model.layers[0].norm.weight).sum()
    assert [d["module"] for _, d in gi.graph(product).nodes(data=True) if d["operator"] == "Mul"] == ["layers.0"]


def test_the_debugger_knows_modules(fw):
    model = net_of(fw)
    dbg = gi.debug(loss_of(fw, model))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        dbg.breakpoint("mod:layers.3.* and norm > 0")
        dbg.breakpoint("param:head.*")
    dbg.cont()
    assert dbg.nodes[dbg.current].parameter.startswith("head.")
    while not dbg.nodes[dbg.current].module.startswith("layers"):
        dbg.cont()
    assert dbg.nodes[dbg.current].module == "layers.3.norm"
    dbg.abort()


@pytest.mark.parametrize("named", [False, True])
def test_the_debugger_knows_them_after_a_restart(fw, named):
    model = net_of(fw)
    loss = loss_of(fw, model)
    dbg = gi.debug(loss, params=model if named else None, retain_graph=True)
    before = [(node.module, node.parameter) for node in dbg.nodes]
    dbg.restart()
    assert [(node.module, node.parameter) for node in dbg.nodes] == before
    dbg.abort()
    dbg = gi.debug(lambda: loss.backward(retain_graph=True), params=model)
    dbg.restart()
    assert "head.weight" in [node.parameter for node in dbg.nodes]
    dbg.abort()


def test_the_debugger_says_what_it_cannot_know(fw):
    model = net_of(fw)
    dbg = gi.debug(loss_of(fw, model))
    with pytest.warns(UserWarning, match="mod:nothing names no node of this backward\nWithout parameters"):
        dbg.breakpoint("mod:nothing")
    with pytest.warns(UserWarning, match="none of its lines is known"):
        dbg.breakpoint("line:train.py:3")
    dbg.abort()
    dbg = gi.debug(fw.ones(2, requires_grad=True).exp().sum(), params={})
    with pytest.warns(UserWarning, match="none of its parameters is known"):
        dbg.breakpoint("param:fc.*")
    dbg.abort()


def test_every_explanation_knows_them(fw):
    model = net_of(fw)
    loss = loss_of(fw, model)
    memory = gi.memory(loss)
    assert "layers.0.fc" in [group.label for group in memory.by_module()]
    assert {"head.weight"} < {piece.name for piece in memory.pieces if piece.kind == "parameter"}
    flow = gi.gradient_flow(loss=loss)
    assert [p.name for p in flow.parameters] == [name for name, _ in model.named_parameters()]
    assert gi.why_no_grad(model.spare.bias, loss).name == "spare.bias"
    bad = ((model(fw.ones(2, 3)) * 0).sqrt() * 0).sum()
    assert "`layers.0.fc.bias`" in gi.nan_origin(bad).parameters


def test_what_was_tracked_comes_first(fw):
    model = net_of(fw)
    with gi.track():
        loss = loss_of(fw, model)
    modules = {(d["operator"], d["module"]) for _, d in gi.graph(loss).nodes(data=True)}
    assert ("Relu", "layers.2") in modules
    assert "layers.2.fc.weight" in leaf_names(loss)


# --- several modules --------------------------------------------------------------------------------------------------


def test_several_modules_are_told_apart_by_their_variables(fw):
    generator, critic = net_of(fw), net_of(fw)
    loss = loss_of(fw, generator, critic)
    assert {name.partition(".")[0] for name in leaf_names(loss)} == {"generator", "critic"}
    assert "generator.layers.0.fc.weight" in leaf_names(loss)


def test_or_by_the_attributes_of_self(fw):
    class Trainer:
        def __init__(self):
            self.generator, self.critic = net_of(fw), net_of(fw)

        def names(self):
            return leaf_names(loss_of(fw, self.generator, self.critic))

    assert {name.partition(".")[0] for name in Trainer().names()} == {"generator", "critic"}


def test_without_variables_by_their_classes(fw):
    loss = loss_of(fw, *(models := [net_of(fw), fw.nn.Linear(3, 1), net_of(fw)]))
    assert {name.partition(".")[0] for name in leaf_names(loss)} == {"Net", "Net#2", "Linear"}
    assert len(models) == 3


def test_a_module_that_contains_all_is_the_root(fw):
    inner = net_of(fw)
    outer = fw.nn.Sequential(inner, fw.nn.Tanh())
    assert "0.head.weight" in leaf_names(loss_of(fw, outer))


def test_modules_in_a_ring(fw):
    one, two = fw.nn.Linear(3, 3), fw.nn.Linear(3, 3)
    one.other, two.other = two, one
    assert any(name.endswith("weight") for name in leaf_names(loss_of(fw, one)))


def test_a_shared_parameter_has_its_first_name(fw):
    model = fw.nn.Sequential(fw.nn.Linear(3, 3), fw.nn.Linear(3, 3))
    model[1].weight = model[0].weight
    assert leaf_names(loss_of(fw, model)) == {"0.weight", "0.bias", "1.bias"}
    expected = [(name, id(p)) for name, p in model.named_parameters()]
    assert [(name, id(p)) for name, p in parameters_below(model, "")] == expected


# --- what is not done -------------------------------------------------------------------------------------------------


def test_tensors_that_are_no_parameters_are_not_looked_for(monkeypatch):
    monkeypatch.setattr(names, "living", lambda classes: pytest.fail("looked through all objects"))
    w = gs.ones(3, requires_grad=True)
    assert leaf_names((w * 2).sum()) == {""}
    model = gs.nn.Linear(3, 1)
    assert leaf_names(loss_of(gs, model), params=model) == {"weight", "bias"}
    with gi.track():
        loss = loss_of(gs, model)
    assert leaf_names(loss) == {"weight", "bias"}


def test_no_proxy_wakes_up_and_no_property_runs(fw):
    woken = []

    class Proxy:
        @property
        def __class__(self):
            woken.append("__class__")
            return fw.nn.Module

        @property
        def __dict__(self):
            woken.append("__dict__")
            return {}

        def __getattribute__(self, name):
            woken.append(name)
            return object.__getattribute__(self, name)

    class Odd(fw.nn.Linear):
        @property
        def loud(self):
            woken.append("loud")

        def named_parameters(self, *args, **kwargs):
            woken.append("named_parameters")
            return super().named_parameters(*args, **kwargs)

        def __eq__(self, other):
            woken.append("__eq__")
            return True

        __hash__ = None

    class HalfMade(fw.nn.Module):
        def __init__(self):
            pass

    model = Odd(3, 1)
    kept = [Proxy(), HalfMade()]
    loss = model(fw.ones(2, 3)).sum()
    woken.clear()
    assert leaf_names(loss) == {"weight", "bias"}
    assert woken == []
    assert len(kept) == 2


def test_nothing_is_kept_alive(fw):
    model = net_of(fw)
    loss = loss_of(fw, model)
    gi.graph(loss)
    gone = weakref.ref(model)
    del model, loss
    gc.collect()
    assert gone() is None


@pytest.mark.slow
@pytest.mark.usefixtures("own_objects")
def test_a_million_objects_take_little_time():
    model = gs.nn.Linear(3, 1)
    crowd = [[i] for i in range(1_000_000)]
    adapter = adapter_for(model)
    assert living_roots(adapter, [model.weight]) == {"": model}
    # In passes over the same objects, which do not depend on how fast the machine is: one takes 20 to 30 ms.
    one = thread_time(lambda: list(map(type, gc.get_objects())))
    assert thread_time(lambda: living_roots(adapter, [model.weight])) < 4 * one
    assert len(crowd) == 1_000_000


def thread_time(function):
    taken = []
    for _ in range(5):
        start = time.thread_time()
        function()
        taken.append(time.thread_time() - start)
    return min(taken)


def test_leaves_without_a_name_are_listed_too(fw):
    model, shift = fw.nn.Linear(3, 1), fw.ones(1, requires_grad=True)
    adapter = adapter_for(model)
    found = names_for(adapter, [model.weight, shift])
    assert [name for name, _ in found.tensors] == ["weight", "bias", ""]
    assert found.roots == {"": model}
    assert name_graph(adapter, {}).tensors == ()


def test_a_module_that_grows_while_it_is_looked_through():
    model = gs.nn.Sequential(gs.nn.Linear(2, 2), gs.nn.Linear(2, 2))
    seen = []
    for path, _ in parameters_below(model, ""):
        seen.append(path)
        # As another thread may, between two of them.
        model.register_parameter(f"late{len(seen)}", gs.nn.Parameter(gs.ones(1)))
        model[0].register_parameter(f"late{len(seen)}", gs.nn.Parameter(gs.ones(1)))
    assert {"0.weight", "0.bias", "1.weight", "1.bias"} <= set(seen)
