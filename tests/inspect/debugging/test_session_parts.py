"""The small parts of a session, one by one."""

import gc
import threading
import weakref

import numpy as np
import pytest

import gradscope as gs
from gradscope.inspect import Debugger, HistoryPolicy
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.history.gradient_restore import GradBackup
from gradscope.inspect.debugging.history.past_gradients import Group, ValueStore
from gradscope.inspect.debugging.session.backward_threads import Lanes
from gradscope.inspect.debugging.stops.last_iteration import Iterations, LastTime
from gradscope.inspect.debugging.stops.node_specs import BreakpointError, parse_spec, split_spec
from gradscope.inspect.debugging.stops.run_targets import Goal, Order
from gradscope.inspect.debugging.stops.watches import WatchList
from gradscope.inspect.records.object_search import no_collection
from gradscope.inspect.records.tensor_statistics import summarize

from ..sessions import debugging, mlp, train, wait


def group(*values):
    return Group(NativeAdapter(), [None if v is None else gs.tensor(v) for v in values], "grad_outputs")


def test_a_group_is_a_copy():
    grad = gs.tensor([1.0, 2.0])
    kept = Group(NativeAdapter(), [grad, None], "grad_outputs")
    grad.mul_(5)
    one, two = kept.tensors(NativeAdapter())
    assert (one.tolist(), two, kept.known) == ([1.0, 2.0], None, None)
    assert (kept.summaries[0].name, kept.summaries[0].max, kept.summaries[1]) == ("grad_outputs[0]", 2.0, None)
    assert kept.known is kept.summaries


def test_the_newest_values_are_kept():
    store = ValueStore(32)
    groups = [group([float(i)] * 4) for i in range(4)]
    for each in groups:
        store.keep(each)
    assert [g.tensors(NativeAdapter()) is not None for g in groups] == [False, False, True, True]
    assert store.nbytes == 32
    assert [g.summaries[0].max for g in groups] == [0.0, 1.0, 2.0, 3.0]


def test_backups_are_made_once_and_survive_accumulation_in_place():
    x = gs.ones(2, requires_grad=True)
    x.grad = gs.tensor([5.0, 6.0])
    backup = GradBackup(NativeAdapter())
    node = (x * 1).grad_fn.next_functions[0][0]
    assert backup.leaf_of(node) is x
    backup.keep(x)
    assert backup.leaf_of(node) is None
    x.sum().backward()
    assert x.grad.tolist() == [6.0, 7.0]
    assert backup.restore() == 1
    assert x.grad.tolist() == [5.0, 6.0]
    assert backup.restore() == 0


def test_the_collector_is_held_off_and_comes_back():
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("op:Mul", ("op:Mul", None)),
        ("mod:layers.3.* and norm > 10", ("mod:layers.3.*", "norm > 10")),
        ("Mul if a and b", ("Mul", "a and b")),
        ("isnan(grad) and index > 3", ("*", "isnan(grad) and index > 3")),
        ("nan", ("nan", None)),
        ("node:3", ("node:3", None)),
    ],
)
def test_split_spec(text, found):
    assert split_spec(text) == found


@pytest.mark.parametrize("spec", ["iter:0", "iter:x", "backward:", "backward:-1"])
def test_iterations_are_numbers_from_one(spec):
    with pytest.raises(BreakpointError):
        parse_spec(spec)


def test_changed_compares_with_the_iteration_before():
    iterations = Iterations()
    assert [iterations.count("a.py:3"), iterations.count("b.py:1"), iterations.count("a.py:3")] == [1, 1, 2]
    for value, changed in [(1.0, False), (1.0, False), (2.0, True), (np.array([2.0]), True), (np.nan, True)]:
        assert iterations.changed("condition", "node")(value) is changed
    assert iterations.changed("condition", "node")(np.nan) is False
    assert iterations.changed("condition", "another node")(7) is False


def test_last_is_of_the_same_line():
    iterations = Iterations()
    for site, value in (("a.py:3", 3.0), ("b.py:1", 4.0)):
        iterations.count(site)
        iterations.note(site, (site, "Mul", 1), summarize(np.array([value])))
        iterations.ended(site)
    iterations.count("b.py:1")
    iterations.ended("b.py:1")
    assert (iterations.last(("a.py:3", "Mul", 1)).norm, iterations.last(("b.py:1", "Mul", 1)).norm) == (3.0, 4.0)
    assert not iterations.last(("a.py:3", "Mul", 2))
    assert not LastTime(None)


def test_watches_tell_what_changed():
    watches, values = WatchList(), iter(["1", "1", ValueError("no"), "2"])

    def evaluate(expression):
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    watches.add(" norm ")
    seen = []
    for _ in range(4):
        watches.update(evaluate)
        (watch,) = watches.all()
        seen.append((watch.expression, watch.text, watch.changed))
    assert seen == [
        ("norm", "1", False),
        ("norm", "1", False),
        ("norm", "ValueError: no", True),
        ("norm", "2", True),
    ]


def test_a_history_keeps_no_node_and_no_tensor_alive():
    alive = []

    def run():
        model = mlp()
        train(model, steps=3)
        alive.extend(weakref.ref(parameter) for parameter in model.parameters())

    session = Debugger.for_call(run, history=HistoryPolicy(always=True))
    session.start()
    wait(session)
    session.what_if(0, 2.0)
    session.cont()
    assert wait(session) == "finished"
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4
    assert len(session._session.history.moments) == 27
    session.abort()


def test_a_chosen_thread_that_has_ended_is_chosen_no_longer():
    lanes, entered, leave = Lanes(), threading.Event(), threading.Event()

    def work():
        lanes.enter()
        entered.set()
        leave.wait(10)

    thread = threading.Thread(target=work)
    thread.start()
    assert entered.wait(10)
    lanes.choose(1)
    lanes.switch()
    mine = lanes.enter()
    assert lanes.followed is not mine
    leave.set()
    thread.join()
    assert lanes.enter() is mine
    assert lanes.followed is mine


@pytest.mark.parametrize(("kind", "then"), [("run-to", "step"), ("out", "step"), ("cont", "cont"), ("until", "until")])
def test_a_place_that_the_backward_never_reached_is_given_up_at_its_end(kind, then):
    goal = Goal.at(Order(kind, index=5), number=1)
    goal.lost()
    assert goal.kind == then


def test_a_hook_that_ends_the_program_is_no_failure_to_stop_at():
    x = gs.ones(2, requires_grad=True)

    def leave(grad):
        raise SystemExit(3)

    y = x * 2
    y.register_hook(leave)
    with debugging(y.sum().backward) as session:
        session.cont()
        assert wait(session) == "finished"
        assert (session.exit_status, session.error) == (3, None)
