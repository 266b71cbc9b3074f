"""The instrumentation points: every event is emitted, with what its documentation says."""

from __future__ import annotations

import functools
import inspect
import math
import re
import sys
import threading
from pathlib import Path

import pytest

import gradscope as gs
from gradscope.runtime import events, state

KINDS = [
    kind
    for _, kind in inspect.getmembers(events, inspect.isclass)
    if issubclass(kind, events.Event) and kind is not events.Event
]
DOCUMENT = Path(__file__).parents[2] / "docs" / "events.md"


def collect(run, *kinds, **options):
    """Return the events of `kinds` that `run()` causes."""
    seen = []
    with events.subscribe(seen.append, *kinds, **options):
        run()
    return seen


def small_backward():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    (x * 3).exp().sum().backward()
    return x


def test_the_documentation_has_the_table_of_the_events():
    assert f"\n{events.event_table()}\n" in DOCUMENT.read_text(encoding="utf-8")


def test_every_event_is_registered_once_and_public():
    assert set(KINDS) <= set(events.kinds.values())
    assert sorted(set(events.__all__)) == sorted(events.__all__)
    assert {kind.__name__ for kind in KINDS} < set(events.__all__)
    assert all(hasattr(events, name) for name in events.__all__)


def test_the_table_names_every_field_and_says_what_has_happened():
    for kind in KINDS:
        (row,) = (row for row in events.event_table().split("\n") if row.startswith(f"| `{kind.__name__}` |"))
        about, fields = row.split(" | ")[1:]
        assert about.endswith(".")
        assert re.findall(r"`(\w+)`", fields) == list(kind.__match_args__)
        assert kind.__match_args__


def test_an_event_of_somebody_else_is_heard_and_joins_no_public_name():
    class Noticed(events.Event):
        __slots__ = ()

    assert len(collect(lambda: events.emit(Noticed()), Noticed)) == 1
    assert "Noticed" not in events.__all__
    assert "Noticed" not in events.event_table()
    del events.kinds["Noticed"]


def test_nodes_are_attended_only_for_events_that_say_so():
    for kind in KINDS:
        with events.subscribe(lambda event: None, kind):
            assert events.closely is kind.CLOSE
    assert {kind.__name__ for kind in KINDS if kind.CLOSE} == {
        "NodeReady", "GradientCaptured", "GradientAccumulated", "HookCalled", "TensorUnpacked",
        "TensorReleased",
    }  # fmt: skip


def test_a_listener_must_be_callable():
    with pytest.raises(TypeError, match=r"expects a listener that can be called, got str\n"):
        events.subscribe("print", events.NodeEntered)
    assert not state.special


def test_no_listener_leaves_the_flag_down():
    with events.subscribe(print):
        assert not state.special
    with events.subscribe(lambda event: None, events.NodeReady):
        assert state.special
        assert not state.modes_on
    assert not state.special


def test_task_events_frame_the_nodes():
    seen = collect(small_backward, events.GraphTaskStarted, events.NodeEntered, events.GraphTaskFinished)
    assert [type(e).__name__ for e in seen] == ["GraphTaskStarted", *["NodeEntered"] * 4, "GraphTaskFinished"]
    assert [e.node.name() for e in seen[1:-1]] == ["SumBackward0", "ExpBackward0", "MulBackward0", "AccumulateGrad"]
    assert seen[-1].task.nodes_run == seen[-1].task.total == 4


def test_exit_carries_gradients_in_and_out():
    seen = collect(small_backward, events.NodeExited)
    mul = next(e for e in seen if e.node.name() == "MulBackward0")
    assert mul.grad_inputs[1] is None
    gs_out = mul.grad_outputs[0]
    assert mul.grad_inputs[0].tolist() == (gs_out * 3).tolist()


@pytest.mark.parametrize("closer", [(), (events.NodeReady,)], ids=["heard", "attended"])
def test_a_node_still_has_what_it_saved_when_its_exit_is_told_and_not_after(closer):
    held = {}

    def look(event):
        held[event.node] = [saved.released for saved in event.node.saved_tensors_info()]

    with events.subscribe(look, events.NodeExited), events.subscribe(lambda event: None, *closer):
        small_backward()
    exp = next(node for node in held if node.name() == "ExpBackward0")
    assert held[exp] == [False]
    assert [saved.released for saved in exp.saved_tensors_info()] == [True]


@pytest.mark.parametrize("closer", [(), (events.NodeReady,)], ids=["heard", "attended"])
def test_who_hears_of_forks_alone_is_told_of_them_among_those_who_hear_of_all(closer):
    told = []

    def listen(name, kind):
        return events.subscribe(lambda event: told.append((name, type(event), event.node.name())), kind)

    x = gs.tensor([1.0, 2.0], requires_grad=True)
    y = (x * 3).sum() + x.sin().sum()
    with events.subscribe(lambda event: None, *closer), listen("forks", events.ForkExited):
        y.backward(retain_graph=True)
        assert told == [("forks", events.NodeExited, "AddBackward0")]
        told.clear()
        with listen("all", events.NodeExited):
            y.backward()
    assert [name for name, _, node in told if node == "AddBackward0"] == ["forks", "all"]
    assert {name for name, _, node in told if node != "AddBackward0"} == {"all"}


@pytest.mark.parametrize("closer", [(), (events.NodeReady,)], ids=["heard", "attended"])
def test_a_backward_knows_the_node_it_runs_until_the_hooks_of_the_next(closer):
    seen = []

    def look(event):
        tasks.append(event.task)
        seen.append(event.task.running is event.node)

    tasks = []
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    y = x.exp()
    y.register_hook(lambda grad: seen.append(tasks[-1].running))
    with events.subscribe(look, events.NodeEntered), events.subscribe(lambda event: None, *closer):
        y.sum().backward()
    assert seen == [True, None, True, True]
    assert tasks[-1].running is None


def test_listener_replaces_an_incoming_gradient():
    def zero(event):
        if event.node.name() == "ExpBackward0":
            event.grad_outputs[0] = gs.zeros_like(event.grad_outputs[0])

    with events.subscribe(zero, events.NodeEntered):
        x = small_backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_listener_replaces_a_produced_gradient():
    def double(event):
        if event.node.name() == "MulBackward0":
            event.grad_inputs[0] = event.grad_inputs[0] * 2

    plain = small_backward().grad
    with events.subscribe(double, events.NodeExited):
        x = small_backward()
    assert x.grad.tolist() == (plain * 2).tolist()


def test_a_listener_that_looks_at_no_gradient_leaves_the_node_to_run_as_a_plain_one():
    seen = []
    with events.subscribe(lambda event: seen.append(event.seen), events.NodeEntered):
        x = small_backward()
    assert seen == [False] * 4
    assert x.grad.tolist() == small_backward().grad.tolist()


@pytest.mark.parametrize("look", [lambda event: None, lambda event: event.grad_outputs])
def test_what_is_ready_when_a_node_is_entered_does_not_depend_on_who_else_listens(look):
    def run(*kinds):
        ready = []

        def entered(event):
            if isinstance(event, events.NodeEntered):
                look(event)
                ready.append((event.node.name(), sorted(node.name() for _, node in event.task.ready)))

        a, b = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
        y = ((a * 2 + b.exp()) * a + (a * b).sin()).sum()
        with events.subscribe(entered, events.NodeEntered, *kinds):
            y.backward()
        return ready, a.grad.tolist(), b.grad.tolist()

    assert run() == run(events.NodeReady)


def test_a_hook_that_is_added_before_its_node_runs_is_called():
    called = []

    def add(event):
        if event.node.name() == "MulBackward0":
            event.node.register_hook(lambda grad_inputs, grad_outputs: called.append(grad_outputs[0].tolist()))

    with events.subscribe(add, events.NodeEntered):
        small_backward()
    assert len(called) == 1


def test_skipped_node_produces_nothing():
    def skip(event):
        event.skip = event.node.name() == "MulBackward0"

    with events.subscribe(skip, events.NodeEntered):
        x = small_backward()
    assert x.grad is None


def test_raising_listener_leaves_through_backward_and_the_next_one_works():
    class Stop(BaseException):
        pass

    def stop(event):
        raise Stop

    failed = []
    x = gs.tensor(2.0, requires_grad=True)
    with events.subscribe(failed.append, events.GraphTaskFailed):
        with events.subscribe(stop, events.NodeEntered), pytest.raises(Stop):
            (x * x).backward()
    assert isinstance(failed[0].error, Stop)
    (x * x).backward()
    assert x.grad.item() == 4.0


def test_listening_changes_no_bit():
    def train():
        gs.manual_seed(0)
        w = gs.randn(5, 3, requires_grad=True)
        for _ in range(20):
            loss = (gs.randn(4, 5) @ w).tanh().square().mean()
            loss.backward()
            with gs.no_grad():
                w -= 0.1 * w.grad
            w.grad = None
        return w.detach().numpy().tobytes()

    plain = train()
    with events.subscribe(lambda event: None, *KINDS, call_sites=True):
        watched = train()
    assert watched == plain


def test_saved_unpacked_and_released():
    seen = collect(small_backward, events.TensorSaved, events.TensorUnpacked, events.TensorReleased)
    exp = [(type(e).__name__, e.name) for e in seen if e.node.name() == "ExpBackward0"]
    assert exp == [("TensorSaved", "result"), ("TensorUnpacked", "result"), ("TensorReleased", "result")]


def test_version_bump_names_operator_version_and_line():
    x = gs.ones(2)
    seen = collect(lambda: x.add_(1), events.VersionBumped, call_sites=True)
    assert (seen[0].operator, seen[0].version, seen[0].tensor) == ("add_", 1, x)
    assert seen[0].call_site.user_frame().filename == __file__
    assert "x.add_(1)" in seen[0].call_site.source_line


def test_a_write_is_told_of_before_it_is_one():
    x, weight = gs.zeros(2), gs.nn.Parameter(gs.zeros(2))
    weight.grad = gs.ones(2)
    table = gs.full((2, 2), 3.0)

    def write():
        x.add_(1)
        x[0] = 7
        gs.mul(x, 2, out=x)
        gs.optim.SGD([weight], lr=1.0).step()
        gs.optim.Adam([weight], lr=1.0).step()
        gs.nn.functional.embedding(gs.tensor([1]), table, max_norm=1.0)

    was = []
    with events.subscribe(lambda event: was.append(event.tensor.tolist()), events.WriteStarted):
        write()
    assert was == [[0, 0], 1, [7, 1], [0, 0], [-1, -1], [[3, 3], [3, 3]]]


def test_violation_is_announced_with_its_writes():
    def fail():
        x = gs.ones(2, requires_grad=True)
        y = x.exp()
        y.add_(1)
        with pytest.raises(gs.SavedTensorModifiedError):
            y.sum().backward()

    seen = collect(fail, events.VersionViolation, events.VersionBumped, call_sites=True)
    error = next(e for e in seen if isinstance(e, events.VersionViolation)).error
    assert (error.operator, error.saved_name, error.saved_version, error.current_version) == (
        "ExpBackward0", "result", 0, 1,
    )  # fmt: skip
    assert [w.operator for w in error.writes] == ["add_"]
    assert error.saved_at.source_line == "y = x.exp()"


def test_operator_recorded_tells_what_was_not_recorded():
    def run():
        x = gs.ones(2, requires_grad=True)
        x * 2
        with gs.no_grad():
            x * 2
        x.detach()

    seen = collect(run, events.OperatorRecorded)
    assert [(e.name, e.node is not None) for e in seen] == [("mul", True), ("mul", False), ("detach", False)]


def test_thread_filter():
    mine = []
    with events.subscribe(mine.append, events.NodeEntered, thread=threading.get_ident()):
        other = threading.Thread(target=small_backward)
        other.start()
        other.join()
        assert mine == []
        small_backward()
    assert len(mine) == 4


def test_subscribing_to_something_else_is_an_error():
    with pytest.raises(TypeError, match="event classes"):
        events.subscribe(print, "NodeEntered")


def test_step_by_step_is_the_same_backward():
    from gradscope.runtime.engine.graph_task import GraphTask

    x = gs.tensor(3.0, requires_grad=True)
    y = x * x
    task = GraphTask([y.grad_fn], [gs.tensor(1.0)._array])
    names = []
    while (node := task.step()) is not None:
        names.append(node.name())
    assert names == ["MulBackward0", "AccumulateGrad"]
    assert x.grad.item() == 6.0


def test_who_begins_to_listen_while_another_leaves_is_heard():
    over, interval = threading.Event(), sys.getswitchinterval()

    def come_and_go():
        while not over.is_set():
            events.subscribe(print, events.NodeExited).unsubscribe()

    others = [threading.Thread(target=come_and_go) for _ in range(2)]
    sys.setswitchinterval(1e-6)
    try:
        for other in others:
            other.start()
        for _ in range(2000):
            with events.subscribe(print, events.NodeEntered):
                assert events.wanted(events.NodeEntered)
            assert not events.wanted(events.NodeEntered)
    finally:
        over.set()
        sys.setswitchinterval(interval)
        for other in others:
            other.join()


def test_a_node_is_told_of_in_passing_while_it_has_what_it_saved():
    told, closer = [], []

    def passes(task, given, made):
        told.append(([a.item() for a in given], [a if a is None else a.item() for a in made]))
        return len(told) == 2

    x = gs.tensor(2.0, requires_grad=True)
    with events.subscribe(lambda event: None) as subscription:
        subscription.listen_to({events.InPassing: passes})
        y = x.exp() * 3.0
        node = y.grad_fn.next_functions[0][0]

        def look(task, given, made):
            if passes(task, given, made):
                assert not node.saved_tensors_info()[0].released
                subscription.listen_to({events.NodeExited: lambda event: closer.append(event.node.name())})
                return True
            return False

        subscription.listen_to({events.InPassing: look})
        y.backward()
    assert told == [([1.0], [3.0, None]), ([3.0], [pytest.approx(3 * math.exp(2))])]
    assert closer == ["ExpBackward0", "AccumulateGrad"], "it is told of that node, and of all that follow"
    assert node.saved_tensors_info()[0].released


def test_a_leaf_is_told_of_before_it_is_added_to():
    x = gs.ones(2, requires_grad=True)
    x.grad = gs.ones(2)
    seen = []
    with events.subscribe(lambda event: seen.append(event.node.variable.grad.tolist()), events.LeafReached):
        (x * 2).sum().backward()
    assert (seen, x.grad.tolist()) == ([[1.0, 1.0]], [3.0, 3.0])


def test_who_does_not_listen_can_be_called_where_a_backward_begins():
    count = []
    x = gs.ones(2, requires_grad=True)
    told = functools.partial(count.append, 1)
    events.call_unheard(told, True)
    try:
        assert not state.special
        (x * 2).sum().backward()
    finally:
        events.call_unheard(told, False)
    (x * 2).sum().backward()
    assert (count, events.unheard) == ([1], ())
