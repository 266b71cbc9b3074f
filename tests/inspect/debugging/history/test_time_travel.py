"""Time travel: what was recorded is seen again as it was, and the program does not notice."""

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

import gradscope as gs
from gradscope.inspect import Debugger, HistoryPolicy, SessionError
from gradscope.inspect.debugging.session.debugger import ProgramEndedError

from ...sessions import debugging, mlp, train, wait, where
from ..session.test_debugger import Nested, product


def started(session):
    session.start()
    wait(session)
    return session


def go(session, verb, *arguments):
    """Let the program go on by a verb; return the state of the next stop."""
    getattr(session, verb)(*arguments)
    return wait(session)


def test_back_and_forth():
    _, run = product()
    with debugging(run) as session:
        started(session)
        go(session, "step", 2)
        session.back()
        assert where(session) == ("replaying", 1, "Mul")
        assert (session.live, session.reason.kind) == (2, "replay")
        assert session.evaluate("grad").tolist() == [1.0, 1.0]
        assert session.evaluate("[p.tolist() for p in produced if p is not None], norm, index") == (
            [[2.0, 2.0]],
            pytest.approx(2**0.5),
            1,
        )
        session.back()
        assert where(session) == ("replaying", 0, "Sum")
        assert go(session, "step") == "replaying"
        assert session.current == 1
        assert go(session, "step") == "paused before"
        assert (session.current, session.reason.kind) == (2, "live")
        assert go(session, "step") == "paused before"
        assert where(session) == ("paused before", 3, "AccumulateGrad")


def through_nan():
    x = gs.zeros(2, requires_grad=True)
    return lambda: ((x * 1).sqrt() * 0).sum().backward()


def test_going_back_to_a_nan_stops_where_it_came_up():
    with debugging(through_nan()) as session:
        started(session)
        go(session, "step", 4)
        session.add_breakpoint("nan")
        session.reverse_continue()
        assert where(session) == ("replaying", 2, "Sqrt")  # not where it only went through


def test_going_back_passes_a_breakpoint_that_only_logs():
    _, run = product()
    with debugging(run) as session:
        started(session)
        go(session, "step", 3)
        session.add_breakpoint("op:Mul", log="norm")
        session.reverse_continue()
        assert where(session) == ("replaying", 0, "Sum")


def test_there_is_nothing_before_the_first_node():
    _, run = product()
    with debugging(run) as session:
        with pytest.raises(SessionError, match="not started"):
            session.back()
        started(session)
        with pytest.raises(SessionError, match="nothing is recorded before"):
            session.back()
        with pytest.raises(SessionError, match="nothing is recorded before"):
            session.reverse_continue()
        with pytest.raises(ValueError, match="positive"):
            session.back(0)
        assert session.state.value == "paused before"


def test_back_over_several_backwards():
    with debugging(lambda: train(mlp(), steps=3)) as session:
        session.add_breakpoint("backward:3")
        go(session, "cont")
        count = len(session.nodes)
        norm = session.evaluate("norm")
        session.back()
        assert (session.task_index, session.current, len(session.nodes)) == (2, count - 1, count)
        assert session.nodes[session.current].name == "AccumulateGrad"
        session.back(count)
        assert (session.task_index, session.current) == (1, count - 1)
        assert session.evaluate("grad").shape == session.nodes[-1].outputs[0].shape
        with pytest.raises(RuntimeError, match="backward 1 has ended"):
            session.evaluate("saved")
        session.next_backward()
        assert (session.task_index, session.current) == (2, 0)
        session.next_backward()
        assert (session.state.value, session.task_index, session.evaluate("norm")) == ("paused before", 3, norm)


def test_reverse_continue_goes_to_breakpoints():
    with debugging(lambda: train(mlp(), steps=2)) as session:
        session.add_breakpoint("op:Relu")
        session.add_breakpoint("param:2.bias if norm > 0")
        go(session, "cont")
        go(session, "cont")
        go(session, "cont")
        hits = [point.hits for point in session.breakpoints]
        session.reverse_continue()
        assert (session.task_index, session.nodes[session.current].operator) == (1, "Relu")
        session.reverse_continue()
        assert session.nodes[session.current].parameter == "2.bias"
        assert "breakpoint 2" in session.reason.text
        session.reverse_continue()
        assert (session.current, session.reason.text) == (0, "the first node that was recorded (recorded)")
        assert [point.hits for point in session.breakpoints] == hits
        session.cont()
        assert session.nodes[session.current].parameter == "2.bias"
        session.remove_breakpoint(1)
        session.remove_breakpoint(2)
        session.cont()
        assert (session.state.value, session.task_index) == ("paused before", 2)


def test_out_until_goto_and_run_to_in_the_past():
    with debugging(lambda: train(mlp())) as session:
        started(session)
        go(session, "step", 7)
        session.goto(2)
        assert where(session)[:2] == ("replaying", 2)
        assert session.nodes[2].module == "2"
        session.out()
        assert session.nodes[session.current].module == "1"
        session.goto(0)
        session.until("op:Relu")
        assert session.nodes[session.current].operator == "Relu"
        session.run_to(6)
        assert where(session)[:2] == ("replaying", 6)
        session.goto(7)
        assert where(session)[:2] == ("paused before", 7)
        session.back()
        assert go(session, "run_to", 8) == "paused before"
        assert session.current == 8
        with pytest.raises(SessionError, match="there is no recorded node 20"):
            session.goto(20)
        assert (session.state.value, session.current) == ("paused before", 8)


def test_the_past_cannot_be_changed():
    _, run = product()
    with debugging(run) as session:
        started(session)
        go(session, "step")
        session.back()
        for change in (lambda: session.set_grad(0, 1), lambda: session.scale_grad(0, 2), session.skip):
            with pytest.raises(ValueError, match="this node has run"):
                change()


def test_saved_tensors_of_a_node_that_has_run_are_there_until_its_backward_ends():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    losses = []

    def run():
        losses.append((x * x).sum())
        losses[0].backward()
        losses[0].backward()

    with debugging(run) as session:
        started(session)
        go(session, "step", 2)
        saved = session.inspect(1).saved
        assert [(s.state, s.summary.preview) for s in saved] == [("released", "[1, 2]")] * 2
        session.back()
        assert session.evaluate("saved.other").tolist() == [1.0, 2.0]
        session.go_live()
        session.cont()
        assert wait(session) == "paused after"
        assert "second time" in str(session.reason)
        assert session.task_index == 2


def test_what_a_failed_backward_has_not_run_stays_as_it_was():
    class Broken(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("out of cheese")

    def run():
        x = gs.ones(2, requires_grad=True)
        inner = x.exp().sum()
        with pytest.raises(ValueError, match="cheese"):
            Broken.apply(inner).backward()
        inner.backward()
        assert x.grad is not None

    with debugging(run) as session:
        started(session)
        go(session, "cont")
        go(session, "cont")
        assert session.state.value == "finished", session.traceback


def test_values_go_and_numbers_stay_when_the_budget_is_used_up():
    _, run = product()
    session = Debugger.for_call(run, history=HistoryPolicy(max_bytes=16))
    try:
        started(session)
        go(session, "step", 3)
        session.back(2)
        assert session.evaluate("norm") == pytest.approx(2**0.5)
        assert session.inspect(1).grad_outputs[0].preview == "[1, 1]"
        with pytest.raises(RuntimeError, match="kept as numbers only"):
            session.evaluate("grad")
    finally:
        session.abort()
        session.wait(10)


def test_old_backwards_go():
    session = Debugger.for_call(lambda: train(mlp(), steps=6), history=HistoryPolicy(max_nodes=20))
    try:
        session.add_breakpoint("backward:6")
        go(session, "cont")
        session.back(1000)
        assert session.task_index == 4
        assert session.inspect(0).grad_outputs is not None
    finally:
        session.abort()
        session.wait(10)


def test_the_last_backward_that_has_ended_stays_however_large_it_is():
    session = Debugger.for_call(lambda: train(mlp(), steps=3), history=HistoryPolicy(max_nodes=1, always=True))
    try:
        session.cont()
        session.wait(10)
        session.back()
        assert session.task_index == 3
        assert session.inspect(0).grad_outputs is not None
    finally:
        session.abort()


def test_recording_ends_where_the_program_runs_free_and_goes_on_if_asked_to():
    for always, tasks in ((False, 2), (True, 3)):  # the first and, by its norms, the last
        with debugging(lambda: train(mlp(), steps=3)) as session:
            started(session)
            session.record_always = always
            point = session.add_breakpoint("backward:3")
            point.enabled = False
            session.cont()
            wait(session)
            assert session.state.ended
            assert sum(view.number > 0 for view in session._session.history._views) == tasks


def test_what_ran_free_in_between_is_named():
    def back():
        session.back()
        return session.task_index, session.current, session.reason.text

    with debugging(lambda: train(mlp(), steps=4)) as session:
        started(session)
        go(session, "step")
        assert go(session, "cont") == "finished"
        gap = "backwards 2 to 4 ran free (`record on` records them)"
        assert back() == (1, 1, f"the nearest recorded node is in backward 1: {gap}")
        assert back() == (1, 0, "one node back (recorded)")
        session.step(1)
        assert (session.current, session.reason.text) == (1, "next node (recorded)")
        session.step(1)
        assert session.reason.text == f"the program has ended (exit status 0); {gap}"
        session.back(2)
        assert session.reason.text == f"2 nodes back (recorded); {gap}"


def test_nodes_that_ran_free_before_a_nan_are_named():
    with debugging(through_nan()) as session:
        started(session)
        go(session, "step")
        go(session, "step")
        assert go(session, "cont") == "paused after"
        session.back()
        assert (session.current, session.reason.text) == (2, "before node 2, which has run (recorded)")
    with debugging(through_nan()) as session:
        started(session)
        go(session, "cont")
        session.back()
        session.back()
        gap = "node 1 ran free (`record on` records it)"
        assert (session.current, session.reason.text) == (0, f"the nearest recorded node is #0: {gap}")
        go(session, "step")
        assert (session.current, session.reason.text) == (2, f"next node (recorded); {gap}")


def test_a_nested_backward_is_passed_through_in_the_order_in_which_it_ran():
    def run():
        Nested.apply(gs.ones(2, requires_grad=True)).sum().backward()

    with debugging(run) as session:
        started(session)
        for _ in range(20):
            if session.nodes[session.current].name == "AccumulateGrad" and session.task_index == 1:
                break
            go(session, "into")
        seen = []
        while True:
            try:
                session.back()
            except SessionError:
                break
            seen.append((session.task_index, session.nodes[session.current].operator))
            if session.current == 0 and session.task_index == 1:
                break
        assert seen == [(2, "AccumulateGrad"), (2, "Exp"), (1, "Nested"), (1, "Sum")]


def test_listeners_hear_of_moves():
    _, run = product()
    heard = []
    with debugging(run) as session:
        started(session)
        go(session, "step")
        session.add_listener(lambda event: heard.append((event.kind, event.state.value)))
        session.back()
        session.go_live()
        assert heard == [("state", "replaying"), ("state", "paused before")]


# --- any verbs in any order -------------------------------------------------------------------------------------------

STEPS = 3


def training():
    """Return a model trained for some steps of two backwards each, and what to run."""
    model = mlp()

    def run():
        train(model, steps=STEPS)
        Nested.apply(next(iter(model.parameters()))).sum().backward()

    return model, run


def plain_run():
    model, run = training()
    run()
    return [p.grad.numpy().tobytes() for p in model.parameters()]


class Travel(RuleBasedStateMachine):
    """A person at a prompt who types anything: values at a node are the same whenever it is visited."""

    expected: list = []

    @initialize()
    def begin(self):
        if not Travel.expected:
            Travel.expected.extend(plain_run())
        self.model, run = training()
        self.session = started(Debugger.for_call(run))
        self.seen = {}
        self.edited = False
        self.look()

    @property
    def ended(self):
        return self.session.ended

    def look(self):
        """Compare what is seen at this node with what was seen when it was visited before."""
        session = self.session
        if session.state.ended:
            return
        assert session.state.paused
        key = (session.task_index, session.current)
        values = [None if g is None else g.tobytes() for g in session.evaluate("list(grads)")]
        record = session.inspect(session.current)
        assert self.seen.setdefault(key, values) == values
        assert record.index == session.current
        assert [s.norm for s in record.grad_outputs if s is not None][:1] == [session.evaluate("norm")] or not values

    def attempt(self, verb, *arguments):
        """Call a verb; a refusal must leave everything as it was."""
        before = (self.session.state, self.session.task_index, self.session.current)
        try:
            getattr(self.session, verb)(*arguments)
        except (SessionError, ValueError):
            assert (self.session.state, self.session.task_index, self.session.current) == before
        wait(self.session)
        self.look()

    @rule(n=st.integers(1, 6))
    def step(self, n):
        self.attempt("step", n)

    @rule(n=st.integers(1, 30))
    def back(self, n):
        self.attempt("back", n)

    @rule(verb=st.sampled_from(["into", "out", "reverse_continue", "go_live", "next_backward"]))
    def verb(self, verb):
        self.attempt(verb)

    @rule(verb=st.sampled_from(["goto", "run_to"]), index=st.integers(0, 10))
    def place(self, verb, index):
        self.attempt(verb, index)

    @rule(spec=st.sampled_from(["op:Relu", "param:*.bias", "iter:2", "norm > 0.5", "changed(norm)"]))
    def breakpoint(self, spec):
        if len(self.session.breakpoints) < 3:
            self.session.add_breakpoint(spec)
        else:
            self.session.remove_breakpoint(self.session.breakpoints[0].id)

    @rule(factor=st.sampled_from([0.0, 0.5, 2.0]))
    def edit(self, factor):
        state, key = self.session.state.value, (self.session.task_index, self.session.current)
        try:
            self.session.scale_grad(0, factor)
        except (SessionError, ValueError):
            assert state in ("replaying", "finished") or self.nothing_to_edit()
            return
        assert state != "replaying"
        self.edited = True
        if state == "paused before":
            del self.seen[key]
        self.look()

    def nothing_to_edit(self):
        """Whether the node has run and gives its first input no gradient: a leaf's, or one of an input without."""
        record = self.session.inspect(self.session.current)
        return self.session.state.value == "paused after" and not any((record.grad_inputs or ())[:1])

    @precondition(lambda self: self.session.state.ended)
    @rule(verb=st.sampled_from(["start", "step", "cont", "into", "out", "next_backward"]))
    def verb_after_the_end(self, verb):
        with pytest.raises(ProgramEndedError, match="the program is finished: it cannot go on"):
            getattr(self.session, verb)()
        assert self.session.state.ended

    @rule()
    def what_if(self):
        try:
            found = self.session.what_if(0, "grad * 2")
        except (SessionError, ValueError):
            return
        assert all(np.isfinite(change.relative) for change in found.changes)
        self.look()

    def teardown(self):
        session = self.session
        for point in session.breakpoints:
            session.remove_breakpoint(point.id)
        while not session.state.ended:
            session.cont()
            wait(session)
        assert session.exit_status == 0
        if session.recorded:
            session.back(10_000)
            self.look()
            session.go_live()
        assert session.state.ended
        assert session.error is None, session.traceback
        if not self.edited:
            assert [p.grad.numpy().tobytes() for p in self.model.parameters()] == Travel.expected


Travel.TestCase.settings = settings(max_examples=15, stateful_step_count=25)
TestTravel = Travel.TestCase
