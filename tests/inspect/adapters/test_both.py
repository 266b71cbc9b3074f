"""The instruments do the same on both frameworks: twins of the tests of the debugger, the graph and the tracker."""

import gc
import threading
import weakref

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import Observer, adapter_for
from gradscope.inspect.records.execution_order import walk
from gradscope.inspect.records.records import operator_of
from tests.inspect.sessions import debugging, wait, where


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    """A framework: gradscope's own, or PyTorch."""
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


def product(lib):
    """Return a leaf, and a function that runs Sum, Mul, Exp, AccumulateGrad backward."""
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def run():
        (x.exp() * 2.0).sum().backward()

    return x, run


def mlp(lib):
    """Return a small network, the same each time."""
    lib.manual_seed(0)
    return lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.ReLU(), lib.nn.Linear(4, 2))


def train(lib, model, steps=3):
    """Train."""
    optimizer = lib.optim.SGD(model.parameters(), lr=0.1)
    inputs = lib.ones(8, 3)
    for _ in range(steps):
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def test_what_is_told_of_all_nodes_at_once_is_what_is_told_of_each(lib):
    model = mlp(lib)
    with gi.track():
        loss = (model(lib.ones(8, 3)) ** 2).mean()
    adapter = gi.adapters.adapter_for(loss)
    nodes = [link.node for link in walk(adapter, [loss.grad_fn]).values()]
    for one in (adapter, gi.adapters.AnyAdapter()):
        facts = one.facts(nodes)
        assert list(facts.names) == list(map(adapter.node_name, nodes))
        assert all(leaf is adapter.variable(node) for leaf, node in zip(facts.leaves, nodes, strict=True))
        assert [notes or {} for notes in facts.notes] == list(map(adapter.notes, nodes))
        places = dict(zip(map(id, facts.sites), map(adapter.location, nodes)))
        assert [places[id(site)] for site in facts.sites] == list(map(adapter.location, nodes))
    assert gi.adapters.AnyAdapter().facts([]).names == []


# --- going on ---------------------------------------------------------------------------------------------------------


def test_step_by_step_to_the_end(lib):
    x, run = product(lib)
    with debugging(run) as session:
        session.start()
        for index, operator in enumerate(["Sum", "Mul", "Exp", "AccumulateGrad"]):
            wait(session)
            assert where(session) == ("paused before", index, operator)
            session.step()
        assert wait(session) == "finished"
        assert [n.state for n in session.nodes] == ["done"] * 4
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))


def test_into_stops_after_the_node_and_then_before_the_next(lib):
    _, run = product(lib)
    with debugging(run) as session:
        session.start()
        wait(session)
        session.into()
        assert wait(session) == "paused after"
        assert [g.shape for g in session.inspect(0).grad_inputs] == [(2,)]
        session.into()
        wait(session)
        assert where(session) == ("paused before", 1, "Mul")


def test_out_runs_to_the_end_of_the_modules_backward(lib):
    model = mlp(lib)
    with debugging(lambda: train(lib, model)) as session:
        session.add_breakpoint("mod:2", temporary=True)
        session.cont()
        wait(session)
        assert session.nodes[session.current].module == "2"
        session.out()
        wait(session)
        assert session.nodes[session.current].module == "1"
        assert session.reason.text == "the backward of 2 has ended"


def test_several_backwards(lib):
    with debugging(lambda: train(lib, mlp(lib), steps=3)) as session:
        session.start()
        for task in (1, 2, 3):
            wait(session)
            assert (session.task_index, session.current) == (task, 0)
            session.next_backward()
        assert wait(session) == "finished"


def test_pause_stops_a_running_program(lib):
    go_on = threading.Event()

    def run():
        while not go_on.is_set():
            lib.ones(2, requires_grad=True).sum().backward()

    with debugging(run) as session:
        session.cont()
        session.pause()
        assert wait(session) == "paused before"
        assert session.reason.kind == "pause"
        go_on.set()


def test_abort_ends_a_paused_program_and_the_framework_is_usable(lib):
    x, run = product(lib)
    with debugging(run) as session:
        session.start()
        wait(session)
        session.abort()
        assert wait(session) == "finished"
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


# --- breakpoints ------------------------------------------------------------------------------------------------------


def test_breakpoints_by_parameter_operator_and_line(lib):
    model = mlp(lib)

    def run():
        loss = (model(lib.ones(8, 3)) ** 2).mean()  # here
        loss.backward()

    line = run.__code__.co_firstlineno + 1
    with debugging(run) as session:
        for spec in ("param:0.weight", "op:Relu", f"line:test_both.py:{line}"):
            session.add_breakpoint(spec, temporary=True)
        stops = []
        session.cont()
        while wait(session) != "finished":
            stops.append(session.reason.breakpoint)
            session.cont()
    assert sorted(stops) == [1, 2, 3]


def test_a_condition_sees_gradients_saved_tensors_and_the_programs_variables(lib):
    def run():
        for step in range(5):
            x = lib.full((2,), float(step), requires_grad=True)
            (x * x).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("Mul if step == 3 and saved['self'].max() > 2 and norm < 2 and not isnan(grads)")
        session.cont()
        wait(session)
        assert session.task_index == 4
        assert session.evaluate("step, index, node.name") == (3, 1, "MulBackward0")
        session.cont()
        assert wait(session) == "finished"


def test_the_nan_breakpoint_stops_where_a_nan_first_appears(lib):
    def run():
        x = lib.zeros(2, requires_grad=True)
        y = lib.sqrt(x) * 0.0  # the derivative of sqrt at 0 is inf, and 0 * inf is NaN
        (y * 2.0).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("nan")
        session.cont()
        assert wait(session) == "paused after"
        node = session.inspect(session.current)
        assert (session.reason.kind, node.operator) == ("nan", "Sqrt")
        assert (node.grad_outputs[0].nans, node.grad_inputs[0].nans) == (0, 2)


# --- failures ---------------------------------------------------------------------------------------------------------


def test_it_stops_where_a_backward_fails_and_the_error_goes_its_way(lib):
    class Broken(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("out of cheese")

    caught = []

    def run():
        x = lib.ones(2, requires_grad=True)
        try:
            Broken.apply(x).sum().backward()
        except ValueError as error:
            caught.append(error)
        x.sum().backward()

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "paused after"
        record = session.inspect(session.current)
        assert (session.reason.kind, record.name, record.state) == ("exception", "BrokenBackward", "failed")
        assert session.reason.text == "BrokenBackward raised ValueError: out of cheese"
        assert [g.norm for g in record.grad_outputs] == [pytest.approx(2**0.5)]
        session.step()
        wait(session)
        assert (session.task_index, session.current) == (2, 0)
        session.cont()
        assert wait(session) == "finished"
    assert len(caught) == 1


def test_it_stops_at_a_version_violation_and_shows_both_versions(lib):
    def run():
        x = lib.ones(2, requires_grad=True)
        y = x.exp()
        y += 1
        y.sum().backward()

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "paused after"
        record = session.inspect(session.current)
        assert (session.reason.kind, record.operator, record.state) == ("violation", "Exp", "failed")
        assert "`result`, saved at version 0" in session.reason.text
        (saved,) = record.saved
        assert (saved.state, saved.saved_version, saved.current_version) == ("modified", 0, 1)
        session.cont()
        assert wait(session) == "failed"
        assert session.conclusion()[0] == 1


# --- looking and changing ---------------------------------------------------------------------------------------------


def test_inspect_of_a_node_that_has_run_is_about_to_and_will(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def run():
        (x * x).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        done, current, pending = (session.inspect(i) for i in range(3))
        assert (done.state, current.state, pending.state) == ("done", "current", "pending")
        assert (done.grad_outputs[0].norm, done.grad_inputs[0].preview) == (1.0, "[1, 1]")
        assert current.grad_inputs is None
        assert [s.summary.preview for s in current.saved] == ["[1, 2]", "[1, 2]"]
        assert [(s.state, s.saved_version) for s in current.saved] == [("ok", 0), ("ok", 0)]
        assert (pending.grad_outputs, pending.parameter) == (None, "x")
        session.step()
        wait(session)
        assert {s.state for s in session.inspect(1).saved} == {"released"}


def test_evaluate(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)

    def run():
        learning_rate = 0.5
        (x * x).sum().backward()
        assert learning_rate

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        value = session.evaluate("grad * learning_rate")
        assert isinstance(value, np.ndarray)
        assert value.tolist() == [0.5, 0.5]
        assert session.evaluate("saved['self'].tolist(), saved.other.tolist()") == ([1.0, 2.0], [1.0, 2.0])
        assert session.evaluate("isnan(grad), isinf(grads), produced, len(saved)") == (False, False, None, 2)
        assert session.evaluate_text("grad") == "tensor([1., 1.])"


def test_an_evaluation_records_nothing_and_is_not_stopped_in(lib):
    _, run = product(lib)
    with debugging(run) as session:
        session.start()
        wait(session)
        code = f"[z := __import__('{lib.__name__}').ones(2, requires_grad=True), z.sum().requires_grad][1]"
        assert session.evaluate(code) is False
        assert session.task_index == 1


def test_where_shows_the_users_frames_only(lib):
    def inner(loss):
        loss.backward()

    def run():
        inner(lib.ones(2, requires_grad=True).sum())

    with debugging(run) as session:
        session.start()
        wait(session)
        assert [line.strip() for line in session.where().splitlines()[1::2]] == [
            "inner(lib.ones(2, requires_grad=True).sum())",
            "loss.backward()",
        ]


@pytest.mark.parametrize(("value", "result"), [(0.5, [1.0, 2.0]), ([1.0, 3.0], [2.0, 12.0]), ("grad * 2", [4.0, 8.0])])
def test_set_an_incoming_gradient(lib, value, result):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x * x).sum().backward()) as session:
        session.add_breakpoint("Mul")
        session.cont()
        wait(session)
        session.set_grad(0, value)
        session.cont()
        wait(session)
    assert x.grad.tolist() == result


def test_set_a_tensor_and_a_produced_gradient(lib):
    x = lib.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x * 3.0).sum().backward()) as session:
        session.add_breakpoint("Mul")
        session.cont()
        wait(session)
        session.into()
        wait(session)
        session.set_grad(0, lib.tensor([7.0, 8.0]))
        assert session.inspect(session.current).grad_inputs[0].preview == "[7, 8]"
        with pytest.raises(ValueError, match="undefined"):
            session.set_grad(1, 1.0)
        session.cont()
        wait(session)
    assert x.grad.tolist() == [7.0, 8.0]


def test_back_and_forth(lib):
    _, run = product(lib)
    with debugging(run) as session:
        session.start()
        wait(session)
        session.step(2)
        wait(session)
        session.back()
        assert where(session) == ("replaying", 1, "Mul")
        assert session.evaluate("grad").tolist() == [1.0, 1.0]
        assert session.evaluate("[p.tolist() for p in produced if p is not None]") == [[2.0, 2.0]]
        session.step(1)
        wait(session)
        assert (session.state.value, session.current) == ("paused before", 2)
        session.step(1)
        wait(session)
        session.back()
        assert where(session) == ("replaying", 2, "Exp")
        assert np.allclose(session.evaluate("saved.result"), np.exp([1.0, 2.0]))  # kept, though the node has run
        session.cont()
        session.cont()
        assert wait(session) == "finished"


@pytest.mark.parametrize("past", [False, True])
def test_what_if_tells_what_a_run_with_that_gradient_gives_and_changes_nothing(lib, past):
    x, called = lib.tensor([1.0, 2.0], requires_grad=True), []
    x.register_hook(lambda grad: called.append(1))
    with debugging(lambda: (x.exp() * 2.0).sum().backward()) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        if past:
            session.step(2)
            wait(session)
            session.goto(1)
        found = session.what_if(0, "grad * 3")
        assert (found.index, found.slot, found.complete) == (1, 0, True)
        (change,) = found.changes
        assert change.after == pytest.approx(3 * change.before, rel=1e-6)
        assert (x.grad, called) == (None, [1] * past)
        session.cont()
        if past:
            session.cont()
        assert wait(session) == "finished"
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))
    assert called == [1]


# --- programs of every kind -------------------------------------------------------------------------------------------


def test_grad_with_inputs_runs_part_of_the_graph(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    got = []

    def run():
        got.extend(lib.autograd.grad((x.exp() * y).sum(), [x]))

    with debugging(run) as session:
        session.start()
        wait(session)
        assert [n.operator for n in session.nodes] == ["Sum", "Mul", "Exp"]
        session.step(3)
        assert wait(session) == "finished"
    assert np.allclose(got[0].numpy(), np.e)


def test_double_backward(lib):
    x = lib.tensor(2.0, requires_grad=True)

    def run():
        (first,) = lib.autograd.grad(x * x * x, x, create_graph=True)
        first.backward()

    with debugging(run) as session:
        session.start()
        stops = 0
        while wait(session) != "finished":
            stops += 1
            session.evaluate("grad * 1")
            session.step()
        assert session.task_index == 2
        assert stops > 5
    assert x.grad.item() == 12.0


def test_step_goes_over_a_nested_backward_and_into_goes_inside(lib):
    class Nested(lib.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x.exp()

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            with lib.enable_grad():
                y = x.detach().requires_grad_()
                y.exp().backward(grad)
            return y.grad

    def run():
        Nested.apply(lib.ones(2, requires_grad=True)).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        assert where(session) == ("paused before", 1, "Nested")
        session.step()
        wait(session)
        assert where(session) == ("paused before", 2, "AccumulateGrad")
    with debugging(run) as session:
        session.add_breakpoint("NestedBackward")
        session.cont()
        wait(session)
        session.into()
        wait(session)
        assert (session.task_index, session.nodes[session.current].operator) == (2, "Exp")
        session.next_backward()
        assert wait(session) == "finished"


def test_other_threads_run_through_while_one_is_paused(lib):
    x, y = lib.ones(2, requires_grad=True), lib.ones(2, requires_grad=True)
    with debugging(lambda: (x * 2).sum().backward()) as session:
        session.start()
        wait(session)
        (y * 3).sum().backward()
        assert y.grad.tolist() == [3.0, 3.0]
        assert session.task_index == 1


def test_debug_a_loss(lib):
    x = lib.tensor(3.0, requires_grad=True)
    session = gi.debug(x * x, retain_graph=True)
    assert (session.state.value, session.nodes[0].operator) == ("paused before", "Mul")
    session.cont()
    assert wait(session) == "finished"
    assert x.grad.item() == 6.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        gi.debug(lib.ones(2))


def test_a_session_keeps_no_tensor_alive(lib):
    alive = []

    def run():
        x = lib.ones(2, requires_grad=True)
        y = x * x
        y.sum().backward()
        alive.extend([weakref.ref(y), weakref.ref(x)])

    gc.collect()
    gc.disable()
    try:
        with debugging(run) as session:
            session.add_breakpoint("*")
            session.cont()
            while wait(session) != "finished":
                session.inspect(session.current)
                session.cont()
            assert session.nodes
            assert [reference() for reference in alive] == [None, None]
    finally:
        gc.enable()


# --- graphs and paths -------------------------------------------------------------------------------------------------


def test_nodes_edges_and_names_of_a_graph(lib):
    a = lib.ones(2, requires_grad=True)
    first, second = (a * 2).unbind()
    graph = gi.graph(first * second, params={"a": a})
    assert [d["name"] for _, d in graph.nodes(data=True)] == [
        "MulBackward0", "UnbindBackward0", "MulBackward0", "AccumulateGrad",
    ]  # fmt: skip
    assert [d["parameter"] for _, d in graph.nodes(data=True)][-1] == "a"
    unbind = next(k for k, d in graph.nodes(data=True) if d["operator"] == "Unbind")
    into = sorted((d["output_nr"], d["input_nr"]) for _, _, d in graph.in_edges(unbind, data=True))
    assert into in ([(0, 0), (1, 1)], [(0, 1), (1, 0)])
    told = len(graph.nodes[unbind]["outputs"])
    assert told == 2 or (told == 0 and lib.__version__.startswith("2.4."))
    assert list(gi.graph(first * second)) != list(graph)


def test_track_notes_modules_and_lines(lib):
    net = mlp(lib)
    with gi.track():
        loss = net(lib.ones(1, 3)).sum()
    (root, *rest) = gi.graph(loss, params=net).nodes(data=True)
    assert root[1]["location"].filename == __file__
    assert root[1]["location"].source == "loss = net(lib.ones(1, 3)).sum()"
    modules = [d["module"] for _, d in rest]
    assert set(modules) == {"0", "1", "2"}
    assert modules == sorted(modules, reverse=True)


def test_modified_and_released_tensors_are_told(lib):
    x = lib.ones(2, requires_grad=True)
    y = x.exp()
    z = y.sum()
    with lib.no_grad():
        y.mul_(2)
    exp = next(d for _, d in gi.graph(z).nodes(data=True) if d["operator"] == "Exp")
    assert [(s.state, s.saved_version, s.current_version) for s in exp["saved"]] == [("modified", 0, 1)]
    w = (x * x).sum()
    w.backward()
    mul = next(d for _, d in gi.graph(w).nodes(data=True) if d["operator"] == "Mul")
    assert {s.state for s in mul["saved"]} == {"released"}


def test_what_is_no_loss(lib):
    with pytest.raises(TypeError, match="graph\\(\\) takes a tensor"):
        gi.graph(3)
    with pytest.raises(RuntimeError, match=r"shape \(2\) does not require grad"):
        gi.graph(lib.ones(2))


def test_a_second_model_is_told_apart_by_its_class(lib):
    class Inner(lib.nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = lib.nn.Linear(2, 2)

        def forward(self, x):
            return self.fc(x) * 2

    one, others = lib.nn.Sequential(lib.nn.Linear(2, 2)), [Inner(), Inner()]
    with gi.track() as tracker:
        one(lib.ones(1, 2))
        others[1](others[0](lib.ones(1, 2))).sum()
        assert sorted(tracker.parameter_paths().values()) == [
            "0.bias", "0.weight", "Inner#2.fc.bias", "Inner#2.fc.weight", "Inner.fc.bias", "Inner.fc.weight",
        ]  # fmt: skip


def test_a_model_that_has_gone_leaves_its_place(lib):
    with gi.track() as tracker:
        for _ in range(2):
            model = lib.nn.Linear(2, 2)
            model(lib.ones(1, 2))
            assert sorted(tracker.parameter_paths().values()) == ["bias", "weight"]
            del model
            gc.collect()


def test_an_observer_hears_of_the_operators_that_it_names_alone(lib):
    class OfProducts(Observer):
        operators_heard = frozenset({"mul", "view"})

        def __init__(self):
            self.heard = []

        def operator_ran(self, call):
            self.heard.append(operator_of(call.name))

    x, watch = lib.ones(2), OfProducts()
    with adapter_for(x).observe(watch, forward=False, backward=False, operators=True):
        (x * 2).exp().view(2, 1).mul_(3).add(1)
    assert watch.heard == ["mul", "view", "mul"]


@pytest.mark.parametrize(
    "values", [[1.0, -2.0], [0.0, np.nan], [np.inf], [-np.inf, np.inf], [1e30, -1e30], [], [0.0] * 17, [1]]
)
@pytest.mark.parametrize("shape", [(-1,), (-1, 1), (1, -1, 1)])
def test_what_is_small_and_finite_is_finite(lib, values, shape):
    tensor = lib.tensor(values, dtype=lib.int64 if values == [1] else lib.float32)
    tensor = tensor.reshape(shape) if values else tensor
    adapter = adapter_for(tensor)
    small = 0 < len(values) <= 16 and values != [1]
    assert adapter.are_small_and_finite([None, tensor]) <= bool(np.isfinite(values).all())
    assert adapter.are_small_and_finite([tensor, None]) or not (small and np.isfinite(values).all())


def test_a_result_that_is_not_finite_among_small_ones_is_found(lib):
    with gi.watch_nan() as watch:
        x = lib.tensor([0.0, 1.0], requires_grad=True)
        (x.log() * 0).sum().backward()
    assert [found.name for found in watch.origin.producers][:2] == ["log", "mul"]
