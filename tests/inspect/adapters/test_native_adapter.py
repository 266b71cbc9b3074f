"""What the native adapter answers."""

import traceback

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect import Location
from gradscope.inspect.adapters import NativeAdapter, Observer
from gradscope.inspect.adapters.native_adapter import location_of
from gradscope.inspect.records.records import TensorSpec
from gradscope.runtime import events
from gradscope.runtime.engine import graph_task


class Everything:
    """An observer that keeps what it hears."""

    def __init__(self):
        self.heard = []

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        return lambda *args: self.heard.append(name)


def test_tensors_and_roots():
    adapter = NativeAdapter()
    x = gs.ones(2, requires_grad=True)
    assert adapter.is_tensor(x)
    assert not adapter.is_tensor(np.ones(2))
    assert adapter.root(gs.ones(2)) is None
    leaf, nr = adapter.root(x)
    assert (adapter.node_name(leaf), nr) == ("AccumulateGrad", 0)
    assert adapter.variable(leaf) is x
    first, second = x.unbind()
    node, nr = adapter.root(second)
    assert (adapter.node_name(node), nr, adapter.variable(node)) == ("UnbindBackward0", 1, None)
    assert first.grad_fn is node
    assert adapter.outputs(node) == (TensorSpec((), "float32", "cpu"),) * 2


def test_specs_and_host_values():
    adapter = NativeAdapter()
    x = gs.ones(2, 3, dtype=gs.float64, requires_grad=True)
    assert adapter.spec(x) == TensorSpec((2, 3), "float64", "cpu")
    assert adapter.to_host(x).tolist() == [[1.0] * 3] * 2


def test_tensor_like():
    adapter, spec = NativeAdapter(), TensorSpec((2,), "float16", "cpu")
    made = adapter.tensor_like(3, spec)
    assert (made.dtype, made.tolist(), made.requires_grad) == (gs.float16, [3.0, 3.0], False)
    kept = gs.tensor([1.0, 2.0])
    copy = adapter.tensor_like(kept, TensorSpec((2,), "float32", "cpu"))
    copy.mul_(0)
    assert kept.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="cannot take a value"):
        adapter.tensor_like([1, 2, 3], spec)


def test_observation_of_both_directions():
    adapter, everything = NativeAdapter(), Everything()
    model = gs.nn.Linear(2, 1)
    with adapter.observe(everything, forward=True, backward=True):
        model(gs.ones(1, 2)).sum().backward()
    ran = ["module_entered", "operator_recorded", "module_left", "module_returned"]
    expected = [*ran, "operator_recorded", "task_started"]
    assert everything.heard == expected + ["node_entered", "node_exited"] * 4 + ["task_finished"]
    model(gs.ones(1, 2)).sum().backward()
    assert len(everything.heard) == len(expected) + 9


def test_observation_of_one_direction():
    adapter, everything = NativeAdapter(), Everything()
    with adapter.observe(everything, forward=False, backward=True) as observation:
        x = gs.ones(1, requires_grad=True)
        (x * 2).backward()
        assert set(everything.heard) == {"task_started", "node_entered", "node_exited", "task_finished"}
        observation.close()
        observation.close()


def test_failures_and_violations_are_told():
    adapter, everything = NativeAdapter(), Everything()
    y = gs.ones(2, requires_grad=True).exp()
    loss = y.sum()
    with gs.no_grad():
        y.mul_(2)
    with adapter.observe(everything, forward=False, backward=True), pytest.raises(RuntimeError):
        loss.backward()
    assert everything.heard[-2:] == ["violation", "task_failed"]


def test_locations():
    adapter = NativeAdapter()
    with adapter.observe(Everything(), forward=True, backward=False):
        y = gs.ones(2, requires_grad=True) * 2  # this line
    location = adapter.location(y.grad_fn)
    assert isinstance(location, Location)
    assert (location.filename, location.source) == (__file__, "y = gs.ones(2, requires_grad=True) * 2  # this line")
    assert location_of(None) is None
    assert adapter.location((gs.ones(2, requires_grad=True) * 2).grad_fn) is None


def test_operators_and_writes_are_told_with_their_lines():
    heard = []

    class Listener(Observer):
        def operator_ran(self, call):
            heard.append((call.name, call.node is not None, call.grad_enabled, call.location.source))

        def tensor_written(self, write):
            heard.append((write.operator, write.version, write.grad_enabled, write.location.source))

    x = gs.ones(3, requires_grad=True)
    with NativeAdapter().observe(Listener(), forward=False, backward=False, operators=True, writes=True):
        y = x * 2
        z = y.detach()
        with gs.no_grad():
            z.add_(1)
    assert heard == [
        ("mul", True, True, "y = x * 2"),
        ("detach", False, True, "z = y.detach()"),
        ("add_", 1, False, "z.add_(1)"),
        ("add", False, False, "z.add_(1)"),
    ]


def test_gradients_that_are_asked_for_accumulate_nothing():
    adapter = NativeAdapter()
    x = gs.ones(3, requires_grad=True)
    y = x * 2
    z = y.exp().sum()
    dx, nothing = adapter.gradients([z], [gs.tensor(2.0)], [x, gs.ones(1, requires_grad=True)])
    assert dx.tolist() == (4 * y.exp()).tolist()
    assert nothing is None
    assert adapter.leaf_grad(x) is None
    z.backward()
    adapter.set_leaf_grad(x, None)
    assert x.grad is None


def test_saved_tensors_can_be_kept_for_one_backward():
    adapter = NativeAdapter()
    x = gs.ones(3, requires_grad=True)
    y = x.exp()
    node = y.grad_fn
    kept, release = [], []

    class Listener(Observer):
        def task_started(self, task):
            release.append(adapter.keep_saved(task))

        def task_finished(self, task):
            kept.extend(saved.released for saved in adapter.saved(node))
            kept.append(adapter.run_node(node, [gs.ones(3)])[0].tolist())
            release[0]()

    with adapter.observe(Listener(), forward=False, backward=True):
        y.sum().backward()
    assert kept == [False, y.tolist()]
    with pytest.raises(RuntimeError, match="second time"):
        y.sum().backward()


def test_memory_version_and_copies():
    adapter = NativeAdapter()
    x = gs.zeros(4)
    assert adapter.memory_key(x[1:]) == adapter.memory_key(x) != adapter.memory_key(x.clone())
    x.add_(1)
    assert adapter.version(x) == 1
    copied = adapter.copy(gs.ones(2, requires_grad=True))
    assert (copied.requires_grad, copied.tolist()) == (False, [1.0, 1.0])


def interrupted_between_nodes(monkeypatch):
    """Raise as a signal's handler does where the engine's loop stands, which is not in a node."""

    def handler(ready):
        raise KeyboardInterrupt

    monkeypatch.setattr(graph_task, "heappop", handler)
    a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    ((a * 2).sum() + (b * 3).sum()).backward()


def test_between_two_nodes_none_is_running(monkeypatch):
    with pytest.raises(KeyboardInterrupt) as raised:
        interrupted_between_nodes(monkeypatch)
    frames = [frame for frame, _ in traceback.walk_tb(raised.value.__traceback__)][::-1]
    assert frames[1].f_code is graph_task.GraphTask._advance.__code__
    assert NativeAdapter().failed_call(raised.value, frames) is None


def test_an_interrupt_between_two_nodes_does_not_stop_a_recording(monkeypatch, tmp_path):
    with gi.record(tmp_path / "run.gscope"):
        with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
            interrupted_between_nodes(patch)
        gs.ones(2, requires_grad=True).sum().backward()
    with gi.open_recording(tmp_path / "run.gscope") as recording:
        assert recording.runs[0].state == "finished"
        assert [task.state for task in recording.tasks()] == ["failed", "finished"]


def test_an_observer_hears_an_event_of_the_runtime_by_a_method_of_its_name():
    heard = []

    class Watch(Observer):
        def node_exited(self, call):
            heard.append(("exited", call.node.name()))

        def on_node_exited(self, event):
            heard.append(("event", event.node.name()))

        def on_gradient_accumulated(self, event):
            heard.append(("accumulated", event.variable is x))

    x = gs.tensor(2.0, requires_grad=True)
    with NativeAdapter().observe(Watch(), forward=False, backward=True):
        (x * 3).backward()
    assert heard == [
        ("exited", "MulBackward0"),
        ("event", "MulBackward0"),
        ("accumulated", True),
        ("exited", "AccumulateGrad"),
        ("event", "AccumulateGrad"),
    ]
    (x * 3).backward()
    assert len(heard) == 5


def test_what_a_node_saved_is_told_after_it_has_let_go_of_it():
    adapter = NativeAdapter()
    x, w = gs.arange(3.0, requires_grad=True), gs.ones(3, requires_grad=True)
    nodes = [(x * w).grad_fn, (x * 2).grad_fn, x.exp().grad_fn, gs.cat([x, w]).grad_fn, x.sum().grad_fn]
    expected = [{v.name: v.data.tolist() for v in adapter.saved(node)} for node in nodes]
    held = [adapter.held(node) for node in nodes]
    for node in nodes:
        node.release()
    assert [{name: t.tolist() for name, t in tell().items()} for tell in held] == expected
    assert expected[:3] == [{"self": [0, 1, 2], "other": [1, 1, 1]}, {}, {"result": x.detach().exp().tolist()}]


def test_the_memory_that_nodes_saved_is_counted_once():
    adapter = NativeAdapter()
    x, w = gs.ones(4, requires_grad=True), gs.ones(2, 2, requires_grad=True)
    nodes = [(x * x).grad_fn, (x.view(2, 2) * w).grad_fn, (x * 3).grad_fn, x.sum().grad_fn]
    assert adapter.saved_bytes(nodes) == 32
    foreign = gs.from_numpy(np.ones(4, np.float32))
    assert adapter.saved_bytes([(x * foreign).grad_fn]) is None


def test_arrays_that_share_memory_share_its_address():
    adapter = NativeAdapter()
    x = gs.ones(4)
    again = gs.from_numpy(x.numpy())
    assert adapter.address(x) == adapter.address(x[1:]) == adapter.address(again)
    assert adapter.address(x) != adapter.address(x.clone())
    assert adapter.address(gs.ones(0)) != adapter.address(gs.ones(0))


def test_what_a_node_carried_is_had_without_making_tensors():
    seen = []

    class Watch(Observer):
        def node_exited(self, call):
            given, made = NativeAdapter().carried(call)
            seen.append((type(given[0]), len(made), call.seen))

    x = gs.ones(3, requires_grad=True)
    y = (x * 2).sum()
    with NativeAdapter().observe(Watch(), forward=False, backward=True):
        y.backward()
    assert seen == [(np.ndarray, 1, False), (np.ndarray, 2, False), (np.ndarray, 0, False)]


class NodesOfModules(Observer):
    nodes_of_modules_alone = True

    def __init__(self):
        self.heard = []

    def module_entered(self, module):
        self.heard.append(type(module).__name__)

    def operator_recorded(self, node):
        self.heard.append(node.name())


def test_an_observer_of_modules_alone_is_asked_from_the_first_module_on():
    layer, x = gs.nn.Linear(2, 2), gs.ones(1, 2, requires_grad=True)
    observer = NodesOfModules()
    with NativeAdapter().observe(observer, forward=True, backward=False) as observation:
        x.exp()
        assert not events.wanted(events.NodeRecorded)
        layer(x)
        x.sin()
        assert observer.heard == ["Linear", "AddmmBackward0", "SinBackward0"]
        observation.close()
    layer(x)
    assert observer.heard[3:] == []
    assert not events.heard
