"""Breakpoints of every kind, watches, skipping, aborting, restarting, threads: end to end."""

import contextlib
import math
import threading

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect import BreakpointError, Debugger, HistoryPolicy, SessionError
from gradscope.inspect.debuggee.pause_gate import ProgramAborted

from ...sessions import debugging, mlp, train, wait
from ..history.test_time_travel import go, started
from ..session.test_debugger import Nested, product


def test_a_condition_knows_the_iteration_and_the_backward():
    def run():
        for _ in range(4):
            (gs.ones(2, requires_grad=True) * 2).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("Mul if iteration > 2")
        session.cont()
        wait(session)
        assert session.evaluate("iteration, backward") == (3, 3)
        session.back()
        assert session.evaluate("iteration, backward") == (3, 3)


def scaled(scales):
    """Return a program whose gradients are as given, one backward each, and a second backward in between."""

    def run():
        for scale in scales:
            x = gs.ones(2, requires_grad=True)
            (x * scale).sum().backward()
            gs.ones(1, requires_grad=True).sum().backward()

    return run


def stops(session):
    """Let the program go on to its end; return (backward, operator) of every stop."""
    found = []
    while go(session, "cont") != "finished":
        found.append((session.task_index, session.nodes[session.current].operator))
    return found


# --- breakpoints ------------------------------------------------------------------------------------------------------


def test_by_iteration_and_by_backward():
    with debugging(scaled([1.0, 1.0, 1.0])) as session:
        session.add_breakpoint("iter:3")
        session.add_breakpoint("backward:2")
        assert stops(session) == [(2, "Sum"), (5, "Sum"), (6, "Sum")]


def test_a_spec_and_a_condition_in_one_and_a_condition_alone():
    with debugging(lambda: train(mlp())) as session:
        point = session.breakpoint("mod:2 and norm > 0")
        assert (point.spec, point.condition) == ("mod:2", "norm > 0")
        go(session, "cont")
        assert session.nodes[session.current].module == "2"
    with debugging(scaled([1.0, 7.0])) as session:
        assert str(session.breakpoint("norm > 5")) == "* if norm > 5"
        assert stops(session) == [(3, "AccumulateGrad")]


def test_compared_with_the_iteration_before():
    scales = [1.0, 1.5, 4.0, 4.0]
    with debugging(scaled(scales)) as session:
        session.add_breakpoint("AccumulateGrad if norm > 2 * last.norm")
        assert stops(session) == [(5, "AccumulateGrad")]
    with debugging(scaled(scales)) as session:
        session.add_breakpoint("AccumulateGrad if changed(norm)")
        assert stops(session) == [(3, "AccumulateGrad"), (5, "AccumulateGrad")]
    with debugging(scaled(scales)) as session:
        session.add_breakpoint("AccumulateGrad if changed(grad) and last")
        assert stops(session) == [(3, "AccumulateGrad"), (5, "AccumulateGrad")]


def test_last_has_numbers_only():
    with debugging(scaled([1.0])) as session:
        started(session)
        assert session.evaluate("bool(last), repr(last)") == (False, "<last: nothing>")
        assert math.isnan(session.evaluate("last.norm"))
        with pytest.raises(AttributeError, match="`last` has no 'shape'"):
            session.evaluate("last.shape")


def test_ignore_enable_and_disable():
    with debugging(scaled([1.0] * 5)) as session:
        point = session.add_breakpoint("Mul")
        session.ignore_breakpoint(point.id, 2)
        go(session, "cont")
        assert (session.task_index, point.hits, point.ignore) == (5, 1, 0)
        session.enable_breakpoint(point.id, False)
        assert stops(session) == []
        with pytest.raises(BreakpointError, match="there is no breakpoint 9"):
            session.enable_breakpoint(9)
        with pytest.raises(ValueError, match="got -1"):
            session.ignore_breakpoint(point.id, -1)


def test_a_logpoint_prints_and_goes_on():
    heard = []
    with debugging(scaled([1.0, 2.0])) as session:
        session.add_listener(lambda event: heard.append(event.text) if event.kind == "log" else None)
        point = session.add_breakpoint("Mul", log="f'scale {scale}', norm")
        session.add_breakpoint("Sum", log="nowhere", condition="index == 0 and norm == 1 and np is None")
        assert stops(session) == []
        assert point.hits == 2
    assert session.log == heard
    assert [line.partition(": ")[2][:11] for line in heard] == ["('scale 1.0", "('scale 2.0"]
    assert heard[0].startswith("logpoint 1 at node 1 MulBackward0: ")


def test_infinities():
    def run():
        x = gs.zeros(2, requires_grad=True)
        (gs.sqrt(x) * 2.0).sum().backward()

    with debugging(run) as session:
        assert session.catching == {"violation": True, "exception": True, "nan": True, "inf": True}
        assert go(session, "cont") == "paused after"
        assert session.reason.text == "SqrtBackward0 produced an infinity from gradients without one"
        session.catch("inf", False)
        assert session.catching["inf"] is False
        assert session.breakpoints == []


@pytest.mark.parametrize("recorded", [False, True])
def test_a_nan_out_of_an_infinity_is_a_stop_of_its_own(recorded):
    def run():
        x = gs.zeros(2, requires_grad=True)
        mask = gs.tensor([0.0, 1.0])
        (x * mask).sqrt().sum().backward()
        (x * mask).sqrt().sum().backward()

    with debugging(run) as session:
        session.record_always = recorded
        assert stops(session) == [(1, "Sqrt"), (1, "Mul"), (2, "Sqrt"), (2, "Mul")]
    with debugging(run) as session:
        session.catch("inf", False)
        session.start()
        session.wait()
        assert go(session, "cont") == "paused after"
        assert session.reason.text == "MulBackward0 produced a NaN from gradients without one"
        cause = "0 * inf: the gradient that arrives is infinite, and the saved `other` is 0"
        assert session.explain().splitlines()[1].strip() == cause
        session.catch("nan", False)
        assert go(session, "cont") == "finished"


def test_failures_can_be_passed_over():
    def run():
        y = gs.ones(2, requires_grad=True).exp()
        y += 1
        y.sum().backward()

    for kind, next_stop in (("violation", "exception"), ("exception", "violation")):
        with debugging(run) as session:
            session.catch(kind, False)
            go(session, "cont")
            assert session.reason.kind == next_stop
    with debugging(run) as session:
        session.catch("violation", False)
        session.catch("exception", False)
        assert go(session, "cont") == "failed"
    with pytest.raises(BreakpointError, match="there is no 'segfault' to catch"):
        session.catch("segfault")


def test_until():
    with debugging(lambda: train(mlp())) as session:
        started(session)
        go(session, "until", "op:Relu")
        assert session.nodes[session.current].operator == "Relu"
        assert session.reason.text == "reached op:Relu"
        go(session, "until", session.current + 2)
        assert session.reason.kind == "run-to"
        with pytest.raises(BreakpointError, match="unknown kind"):
            session.until("color:red")


# --- watches ----------------------------------------------------------------------------------------------------------


def test_watches():
    _, run = product()
    with debugging(run) as session:
        first = session.add_watch("norm * 2")
        assert first.text == "not evaluated yet"
        started(session)
        session.add_watch("produced[0].sum()")
        values = [(w.value, w.changed) for w in session.watches]
        assert values == [("2.0", False), (None, False)]
        assert "TypeError" in session.watches[1].text
        go(session, "into")
        one, two = session.watches
        assert (one.changed, two.value, two.changed) == (False, "tensor(2.)", True)
        go(session, "step")
        assert (session.watches[0].previous, session.watches[0].changed) == ("2.0", True)
        session.back()
        assert session.watches[0].value == "2.0"
        session.remove_watch(first.id)
        assert [w.id for w in session.watches] == [2]
        with pytest.raises(ValueError, match=r"there is no watch 1 \(there are: 2\)"):
            session.remove_watch(1)
        with pytest.raises(SyntaxError):
            session.add_watch("1 +")


# --- skip, abort, restart ---------------------------------------------------------------------------------------------


def test_a_node_that_has_failed_cannot_be_skipped():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    with gs.no_grad():
        y.add_(1)
    with debugging(lambda: y.sum().backward()) as session:
        go(session, "cont")
        assert (session.reason.kind, session.nodes[session.current].operator) == ("violation", "Exp")
        with pytest.raises(ValueError, match="not after a failure"):
            session.skip()


def test_skip_leaves_a_node_out():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x.exp() * x).sum().backward()) as session:
        session.add_breakpoint("Exp")
        go(session, "cont")
        session.skip()
        assert session.nodes[session.current].state == "skipped", "it is seen before it happens"
        go(session, "into")
        assert session.inspect(session.current).state == "skipped"
        with pytest.raises(ValueError, match="a node is skipped before it runs"):
            session.skip()
        assert go(session, "cont") == "finished"
    assert np.allclose(x.grad.numpy(), np.exp([1.0, 2.0]))


@pytest.mark.parametrize("before", [None, [10.0, 20.0]])
def test_abort_puts_the_gradients_of_leaves_back(before):
    x, y = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    y.grad = None if before is None else gs.tensor(before)
    with debugging(lambda: (x * 3 + y.exp()).sum().backward()) as session:
        session.add_breakpoint("param:y")
        go(session, "cont")
        go(session, "step")
        assert y.grad.tolist() != before
        session.abort()
        wait(session)
    assert (None if y.grad is None else y.grad.tolist(), x.grad) == (before, None)
    assert ".grad is as it was before backward 1 (" in session.conclusion()[1]
    assert "put back" in session.reason.text


def test_abort_at_a_failure_puts_the_gradients_back_too():
    early, late = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)

    def run():
        z = late.exp()
        with gs.no_grad():
            z += 1
        (z.sum() + early.sum()).backward()

    for kind in ("violation", "exception"):
        early.grad = gs.ones(2)
        with debugging(run) as session:
            session.catch({"violation": "exception", "exception": "violation"}[kind], False)
            go(session, "cont")
            assert session.reason.kind == kind
            assert early.grad.tolist() == [2.0, 2.0]
            session.abort()
            wait(session)
        assert (early.grad.tolist(), late.grad) == ([1.0, 1.0], None)


def test_abort_keeps_what_backwards_that_have_ended_accumulated():
    x = gs.ones(2, requires_grad=True)

    def run():
        x.sum().backward()
        (x * 2).sum().backward()

    with debugging(run) as session:
        started(session)
        go(session, "next_backward")
        session.abort()
        wait(session)
    assert x.grad.tolist() == [1.0, 1.0]


def test_abort_out_of_a_backward_says_that_nothing_was_undone():
    ran, hold = threading.Event(), threading.Event()

    def run():
        gs.ones(1, requires_grad=True).sum().backward()
        ran.set()
        while not hold.wait(0.01):
            pass

    with debugging(run) as session:
        session.cont()
        assert ran.wait(20)
        session.abort()
        hold.set()
        wait(session)
        assert "no backward was in progress" in session.conclusion()[1]


def test_restart_runs_the_program_again_with_its_breakpoints():
    runs = []

    def run():
        runs.append(1)
        train(mlp())

    with debugging(run) as session:
        session.add_breakpoint("op:Relu")
        session.add_watch("index")
        started(session)
        go(session, "cont")
        session.restart()
        wait(session)
        assert (len(runs), session.task_index, session.current, session.reason.kind) == (2, 1, 0, "entry")
        go(session, "cont")
        assert session.nodes[session.current].operator == "Relu"
        assert session.watches[0].value == str(session.current)
        session.remove_breakpoint(1)
        assert go(session, "cont") == "finished"
        session.restart()
        wait(session)
        assert (len(runs), session.exit_status) == (3, None)


def test_recording_all_survives_a_restart():
    with debugging(lambda: train(mlp(), steps=1)) as session:
        started(session)
        session.record_always = True
        assert go(session, "cont") == "finished"
        assert session.recorded
        session.restart()
        wait(session)
        assert session.record_always
        assert go(session, "cont") == "finished"
        session.back(10_000)
        assert (session.task_index, session.current) == (1, 0)


@pytest.mark.parametrize("retain", [False, True])
def test_the_backward_of_a_loss_is_restarted_only_if_its_graph_is_kept(retain):
    loss = gs.ones(2, requires_grad=True).exp().sum()
    session = gi.debug(loss, retain_graph=retain)
    session.cont()
    if retain:
        session.restart()
        assert session.state.value == "paused before"
        session.abort()
        return
    with pytest.raises(SessionError, match="frees its graph, so it cannot be started again"):
        session.restart()
    assert session.state.value == "finished"


# --- threads and nested backwards -------------------------------------------------------------------------------------


def two_threads(count, ready):
    def work():
        for _ in range(count):
            (gs.ones(2, requires_grad=True) * 2).sum().backward()

    def other():
        ready.wait(10)
        with contextlib.suppress(ProgramAborted):
            work()

    def run():
        thread = threading.Thread(target=other, name="other")
        thread.start()
        try:
            work()
        finally:  # however it ends: nothing runs on into the next test
            ready.set()
            thread.join()

    return run


def test_another_thread_can_be_followed():
    ready = threading.Event()

    def run():
        second = threading.Thread(target=lambda: (gs.ones(1, requires_grad=True) * 3).sum().backward(), name="second")
        second.start()
        second.join(0.5)
        two_threads(50, ready)()

    with debugging(run) as session:
        started(session)
        assert [(t.name, t.followed) for t in session.threads] == [("second", True)]
        session.add_breakpoint("Mul")
        go(session, "cont")
        go(session, "cont")
        names = {t.name: t for t in session.threads}
        followed = [t.name for t in session.threads if t.followed]
        session.follow_thread(next(t.number for t in names.values() if t.followed))
        before = session.task_index
        go(session, "cont")
        assert session.task_index == before + 1
        assert [t.name for t in session.threads if t.followed] == followed
        with pytest.raises(ValueError, match="there is no thread 99"):
            session.follow_thread(99)


def test_choosing_a_thread_leaves_the_other_to_run_through():
    go_on = threading.Event()
    done = []

    def work(name):
        for _ in range(3):
            (gs.ones(2, requires_grad=True) * 2).sum().backward()
        done.append(name)

    def second():
        gs.ones(1, requires_grad=True).sum().backward()
        go_on.wait(10)
        work("other")

    def run():
        other = threading.Thread(target=second)
        other.start()
        while not any(t.name == other.name for t in session.threads):
            pass
        work("main")
        go_on.set()
        other.join()

    with debugging(run) as session:
        started(session)
        other = session.threads[0].number
        session.follow_thread(other)
        session.add_breakpoint("Mul")
        go(session, "cont")
        assert done == ["main"]
        assert [t.number for t in session.threads if t.followed] == [other]
        session.remove_breakpoint(1)
        assert go(session, "cont") == "finished"


def test_the_stack_of_nested_backwards():
    def run():
        Nested.apply(gs.ones(2, requires_grad=True)).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("NestedBackward")
        go(session, "cont")
        go(session, "into")
        outer, inner = session.tasks
        assert (outer.number, outer.depth, outer.node) == (1, 0, "NestedBackward")
        assert (inner.number, inner.depth, inner.index, inner.node, inner.total) == (2, 1, 0, "ExpBackward0", 2)


# --- size -------------------------------------------------------------------------------------------------------------


def test_a_long_backward_is_laid_out_without_a_record_for_every_node():
    def run():
        y = gs.ones(4, requires_grad=True)
        for _ in range(20_000):
            y = y * 1.0001
        y.sum().backward()

    with debugging(run) as session:
        started(session)
        assert len(session.nodes) == 20_002
        assert len(session._session.view._bare) < 10
        assert [n.index for n in session.nodes[10_000:10_003]] == [10_000, 10_001, 10_002]
        assert session.nodes[-1].name == "AccumulateGrad"
        assert session.nodes.position(session.nodes[7].key) == 7
        with pytest.raises(IndexError, match="there is no node 20002"):
            session.nodes[20_002]
        go(session, "step", 3)
        assert [n.state for n in session.nodes[2:5]] == ["done", "current", "pending"]


def test_with_everything_on_training_is_bit_identical():
    plain = mlp()
    losses = train(plain, steps=10)
    watched, seen = mlp(), []
    session = Debugger.for_call(lambda: seen.extend(train(watched, steps=10)), history=HistoryPolicy(always=True))
    session.add_breakpoint("AccumulateGrad if changed(norm) and norm > 1e9 * last.norm")
    session.add_breakpoint("*", log="norm")
    session.add_watch("norm")
    started(session)
    for verb in ("step", "into", "back", "back", "reverse_continue", "go_live", "next_backward"):
        with contextlib.suppress(SessionError):
            getattr(session, verb)()
        wait(session)
        session.what_if(0, "grad * 3")
    session.cont()
    assert wait(session) == "finished"
    assert seen == losses
    for (name, one), (_, two) in zip(plain.named_parameters(), watched.named_parameters()):
        assert one.detach().numpy().tobytes() == two.detach().numpy().tobytes(), name


def test_debug_takes_what_backward_takes():
    x = gs.tensor(3.0, requires_grad=True)
    session = gi.debug(x * x)
    assert session.grad_in == [np.array(1.0, dtype=np.float32)]
    assert session.grad_out is None
    session.abort()
    wait(session)
    assert x.grad is None
