"""One table tells all watches, and each hears what it would hear by itself."""

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.adapters import NativeAdapter, Observer, event_guards
from gradscope.inspect.diagnosis import watch_table
from gradscope.inspect.diagnosis.watch import Watch
from gradscope.inspect.diagnosis.watch_table import WatchTable
from gradscope.runtime import events

ALL = ("forward", "backward", "operators", "writes")


class Hearing(Watch):
    """Writes down what it hears."""

    def __init__(self, name, heard):
        self.name, self.heard = name, heard

    def module_returned(self, module, inputs, output):
        self.heard.append((self.name, "module"))

    def operator_recorded(self, node):
        self.heard.append((self.name, "recorded", node.name()))

    def operator_ran(self, call):
        self.heard.append((self.name, "ran", call.name))

    def tensor_written(self, write):
        self.heard.append((self.name, "written"))

    def task_started(self, task):
        self.heard.append((self.name, "started"))

    def node_entered(self, call):
        self.heard.append((self.name, "entered", call.node.name()))

    def node_exited(self, call):
        self.heard.append((self.name, "exited", call.node.name()))

    def task_finished(self, task):
        self.heard.append((self.name, "finished"))

    def task_failed(self, task, error):
        self.heard.append((self.name, "failed"))


class OfProducts(Hearing):
    operators_heard = frozenset({"mul"})


class OfLeaves(Hearing):
    at_leaves_alone = ("node_entered",)


class OfFunctions(Hearing):
    at_functions_alone = ("node_entered",)


class OfEachBackward(Hearing):
    """Hears nodes by what it makes for a backward."""

    def in_backward(self, task):
        return Hearing("its own", self.heard)


class Failing(Watch):
    def operator_ran(self, call):
        raise ValueError("a bug")

    def in_backward(self, task):
        return self if not hasattr(self, "nodes") else self.nodes

    def node_exited(self, call):
        raise ValueError("a bug")


class OfNoBackward(Hearing):
    def looks_into(self, task):
        return False


def step():
    w = gs.ones(2, requires_grad=True)
    model = gs.nn.Identity()
    (model(w) * 2).sum().backward()
    w.grad.mul_(3)


def told(watches, wanted=ALL):
    adapter = NativeAdapter()
    table = WatchTable(adapter, [(watch, wanted) for watch in watches])
    with adapter.observe(table, **{kind: kind in wanted for kind in ALL}):
        step()


def alone(watch, wanted=ALL):
    with NativeAdapter().observe(watch, **{kind: kind in wanted for kind in ALL}):
        step()
    return watch.heard


@pytest.mark.parametrize(
    "wanted", [ALL, ("forward", "backward"), ("backward",), ("operators", "backward"), ("writes", "backward")]
)
def test_a_watch_hears_what_it_hears_by_itself(wanted):
    heard = []
    told([Hearing("one", heard)], wanted)
    assert heard == alone(Hearing("one", []), wanted)
    assert len(heard) > 3


def test_watches_hear_each_event_in_their_order():
    heard = []
    told([Hearing("one", heard), Hearing("two", heard)])
    assert heard[::2] == alone(Hearing("one", []))
    assert [event[1:] for event in heard[1::2]] == [event[1:] for event in heard[::2]]


def test_operators_are_told_by_name():
    heard = []
    told([OfProducts("products", heard)])
    assert {event[2] for event in heard if event[1] == "ran"} == {"mul"}


def test_nodes_that_are_no_leaves_are_told_to_those_that_look_into_the_backward():
    heard = []
    told([OfLeaves("leaves", heard), OfNoBackward("none", heard)])
    nodes = [event for event in heard if event[1] in ("entered", "exited")]
    assert nodes == [
        ("leaves", "exited", "SumBackward0"),
        ("leaves", "exited", "MulBackward0"),
        ("leaves", "entered", "AccumulateGrad"),
        ("none", "entered", "AccumulateGrad"),
        ("leaves", "exited", "AccumulateGrad"),
        ("none", "exited", "AccumulateGrad"),
    ]


class Double(gs.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        return grad * 2


def test_nodes_of_functions_are_told_to_those_that_hear_of_them_alone():
    heard, adapter = [], NativeAdapter()
    table = WatchTable(adapter, [(OfFunctions("functions", heard), ("backward",))])
    with adapter.observe(table, forward=False, backward=True):
        Double.apply(gs.ones(2, requires_grad=True)).sum().backward()
    assert [event[2] for event in heard if event[1] == "entered"] == ["DoubleBackward"]
    assert [event[2] for event in heard if event[1] == "exited"] == ["SumBackward0", "DoubleBackward", "AccumulateGrad"]


def test_what_is_known_of_classes_that_are_made_in_a_loop_is_bounded(monkeypatch):
    monkeypatch.setattr(watch_table, "_KINDS", 3)
    heard, adapter = [], NativeAdapter()
    table = WatchTable(adapter, [(OfFunctions("functions", heard), ("backward",))])
    with adapter.observe(table, forward=False, backward=True):
        for _ in range(6):
            type("Made", (Double,), {}).apply(gs.ones(2, requires_grad=True)).sum().backward()
    assert len(table._kinds) <= 3
    assert [event[2] for event in heard if event[1] == "entered"] == ["MadeBackward"] * 6


def test_an_observer_without_a_guard_is_told_too():
    class Bare(Observer):
        def node_exited(self, call):
            heard.append(call.node.name())

    heard = []
    told([Bare()])
    assert heard == ["SumBackward0", "MulBackward0", "AccumulateGrad"]


def test_nodes_are_told_to_what_a_watch_makes_for_a_backward():
    heard = []
    told([OfEachBackward("watch", heard)])
    assert {event[0] for event in heard if event[1] in ("entered", "exited")} == {"its own"}
    assert {event[0] for event in heard if event[1] not in ("entered", "exited")} == {"watch"}


class Nodes:
    def node_exited(self, call):
        raise ValueError("a bug")


@pytest.mark.parametrize("nodes", [None, Nodes()], ids=["watch", "in_backward"])
@pytest.mark.parametrize("wanted", [("operators",), ("backward",)])
def test_a_watch_that_fails_hears_no_more_and_the_others_do(monkeypatch, wanted, nodes):
    monkeypatch.setattr(event_guards, "raising", False)
    heard, failing = [], Failing()
    monkeypatch.setattr(failing, "report_fault", lambda fault: heard.append(("fault",)), raising=False)
    if nodes is not None:
        failing.nodes = nodes
    told([failing, Hearing("other", heard)], wanted)
    assert heard.count(("fault",)) == 1
    assert "a bug" in failing.fault
    assert len([event for event in heard if event[0] == "other"]) == len(alone(Hearing("other", []), wanted))


def test_an_error_that_a_watch_means_leaves_the_table():
    class Meaning(Failing):
        meant = (ValueError,)

    with pytest.raises(ValueError, match="a bug"):
        told([Meaning()], ("operators",))
    with pytest.raises(ValueError, match="a bug"):
        told([Meaning()], ("backward",))


def test_a_table_that_is_opened_in_a_backward_tells_of_its_nodes():
    heard, adapter = [], NativeAdapter()
    table = WatchTable(adapter, [(OfNoBackward("none", heard), ALL)])
    w = gs.ones(2, requires_grad=True)
    product = w * 2
    with adapter.observe(Observer(), forward=False, backward=True):
        product.register_hook(lambda grad: opened.append(adapter.observe(table, forward=False, backward=True)))
        opened = []
        product.sum().backward()
    opened[0].close()
    assert ("none", "exited", "AccumulateGrad") in heard


def test_an_event_that_no_watch_hears_of_is_not_heard():
    class Deaf(Watch):
        def task_started(self, task):
            pass

    adapter = NativeAdapter()
    table = WatchTable(adapter, [(Deaf(), ("forward", "backward"))])
    with adapter.observe(table, forward=True, backward=True):
        assert not events.wanted(events.NodeRecorded)
        assert not events.wanted(events.ModuleForward)


def test_the_doctor_observes_once():
    with gi.Doctor(adapter=NativeAdapter()):
        assert {len(listeners) for listeners in events.heard.values()} == {1}
