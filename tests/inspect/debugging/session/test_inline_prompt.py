"""Stops that a program asks for: set_trace() anywhere, post_mortem() after a failure."""

import io
import sys

import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect.debuggee.pause_gate import ProgramAborted
from gradscope.inspect.debugging.session.session_observer import ACTIVE
from gradscope.inspect.records.records import Location
from gradscope.inspect.source.call_sites import place
from gradscope.runtime import events

from ...sessions import debugging, mlp
from ..history.test_time_travel import go


def talk(*lines):
    """Return streams for a prompt at which these lines are typed."""
    return {"stdin": io.StringIO("".join(f"{line}\n" for line in lines)), "stdout": io.StringIO()}


def answers(streams):
    """Return what was printed, without the echoed commands."""
    return [line for line in streams["stdout"].getvalue().splitlines() if not line.startswith("(gradscope)")]


class Traced(gs.autograd.Function):
    """A Function whose backward asks for a prompt."""

    streams: dict = {}

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, grad):
        mine = grad * 2
        gi.set_trace(**Traced.streams)
        return mine


# --- without a session around -----------------------------------------------------------------------------------------


def test_in_the_forward_pass_it_shows_the_variables_of_the_function():
    hidden, streams = 42, talk("print hidden", "!hidden = 7", "where", "print grad", "continue")
    gi.set_trace(**streams)
    line = sys._getframe().f_lineno - 1
    said = answers(streams)
    assert said[0].startswith("stopped in no backward - set_trace() at " + place(Location(__file__, line, "", "")))
    assert said[1] == "42"
    assert hidden == 7
    assert "in no backward, at" in said
    assert said[-1] == "*** NameError: name 'grad' is not defined"
    assert ACTIVE == []
    assert not events.wanted(events.NodeEntered)


def test_from_the_forward_pass_one_can_step_into_the_next_backward():
    x, streams = gs.tensor([1.0, 2.0], requires_grad=True), talk("step", "into", "set 5", "list", "continue")
    gi.set_trace(**streams)
    (x * 3).sum().backward()
    assert x.grad.tolist() == [15.0, 15.0]
    said = answers(streams)
    assert "stopped before node 0 of 3: SumBackward0 - first node of backward 1" in said
    assert "produced gradient 0 is now [5, 5]" in said
    assert ACTIVE == []


def test_in_a_backward_of_ones_own_it_shows_the_node():
    Traced.streams = talk("print grad + mine", "p saved[0]", "set 1", "step", "back", "continue", "continue")
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    (Traced.apply(x) * 3).sum().backward()
    said = answers(Traced.streams)
    assert said[0].startswith("stopped in node 2 of 4: TracedBackward")
    assert "tensor([9., 9.])" in said
    assert "tensor([1., 2.])" in said
    assert any("*** gradients can be changed before a node runs" in line for line in said)
    assert "stopped before node 3 of 4: AccumulateGrad - next node" in said
    assert any(line.startswith("looking at node 2 of 4") for line in said)
    assert x.grad.tolist() == [6.0, 6.0]
    assert ACTIVE == []


def test_in_a_hook_it_shows_the_node_that_the_gradient_enters():
    x = gs.ones(2, requires_grad=True)
    y = x.exp()
    streams = talk("print node.name", "step", "continue")
    y.register_hook(lambda grad: gi.set_trace(**streams))
    y.sum().backward()
    said = answers(streams)
    assert said[0].startswith("stopped in node 1 of 3: ExpBackward0")
    assert "'ExpBackward0'" in said
    assert "stopped before node 2 of 3: AccumulateGrad - next node" in said


def test_leaving_ends_the_backward_and_puts_the_gradients_back():
    Traced.streams = talk("quit")
    x = gs.ones(2, requires_grad=True)
    with pytest.raises(ProgramAborted, match="left at set_trace"):
        (Traced.apply(x) + x).sum().backward()
    assert x.grad is None
    assert ACTIVE == []
    (x * 2).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]


def test_it_cannot_restart_what_it_did_not_start():
    streams = talk("restart", "continue")
    gi.set_trace(**streams)
    assert "*** the program was not started by the debugger, so it cannot be started again" in answers(streams)


# --- inside a session -------------------------------------------------------------------------------------------------


def test_inside_a_session_it_stops_the_session():
    Traced.streams = {}

    def run():
        weight = gs.ones(2, requires_grad=True)
        gi.set_trace()
        Traced.apply(weight).sum().backward()

    with debugging(run) as session:
        assert go(session, "cont") == "paused before"
        assert (session.reason.kind, session.current, list(session.nodes)) == ("trace", -1, [])
        assert session.evaluate("weight.tolist()") == [1.0, 1.0]
        assert go(session, "cont") == "paused before"
        assert session.nodes[session.current].name == "TracedBackward"
        assert session.evaluate("mine.tolist(), norm") == ([2.0, 2.0], pytest.approx(2**0.5))
        with pytest.raises(ValueError, match="before a node runs"):
            session.set_grad(0, 1)
        go(session, "step")
        assert session.nodes[session.current].name == "AccumulateGrad"
        assert go(session, "cont") == "finished"


def test_in_a_hook_of_a_session_the_node_is_counted_once():
    x = gs.ones(2, requires_grad=True)

    def run():
        y = x.exp()
        y.register_hook(lambda grad: gi.set_trace())
        y.sum().backward()

    with debugging(run) as session:
        go(session, "cont")
        assert (session.current, session.nodes[session.current].operator) == (1, "Exp")
        go(session, "step")
        assert (session.current, session.nodes[session.current].operator) == (2, "AccumulateGrad")
        assert go(session, "step") == "finished"


# --- after a failure --------------------------------------------------------------------------------------------------


def fail():
    with gi.track():
        model = mlp()
        hidden = model(gs.ones(1, 3)).exp()
        with gs.no_grad():
            hidden += 1
        hidden.sum().backward()


def test_post_mortem_shows_where_a_backward_failed():
    streams = talk("print", "where", "p saved.result", "list", "what-if 2.0", "step", "quit")
    try:
        fail()
    except RuntimeError as error:
        gi.post_mortem(error, **streams)
    said = "\n".join(answers(streams))
    assert "stopped in node 1 of " in said
    assert "ExpBackward0 needs `result`, saved at version 0, but it has been written since and is at version 1" in said
    assert "gradients in   [0] float32 (1, 2)  norm 1.414" in said
    assert "saved at version 0, now at 1: MODIFIED" in said
    assert "hidden = model(gs.ones(1, 3)).exp()" in said
    assert "in fail\n    hidden.sum().backward()" in said
    assert "*** what-if: node 1 ExpBackward0 raised" in said
    assert "*** this backward has failed and cannot go on; `quit` leaves" in said
    assert ACTIVE == []


def test_post_mortem_takes_the_last_exception(monkeypatch):
    class Broken(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            halves = grad / 2
            raise ValueError("out of " + ("cheese" if halves is not None else "grad"))

    error = None
    try:
        Broken.apply(gs.ones(2, requires_grad=True)).sum().backward()
    except ValueError as raised:
        error = raised
    monkeypatch.setattr(sys, "last_value", error, raising=False)
    streams = talk("p halves", "p grad")
    gi.post_mortem(commands=["p halves", "p grad"], **streams)
    assert answers(streams)[0].endswith("BrokenBackward raised ValueError: out of cheese")
    assert answers(streams)[-2:] == ["tensor([0.5000, 0.5000])", "tensor([1., 1.])"]


def test_post_mortem_of_something_else(monkeypatch):
    with pytest.raises(ValueError, match="KeyError did not leave a backward"):
        gi.post_mortem(KeyError("x"))
    monkeypatch.delattr(sys, "last_value", raising=False)
    with pytest.raises(ValueError, match="there is no exception to look at"):
        gi.post_mortem()


def test_a_second_backward_in_a_failed_programs_process_is_not_followed():
    try:
        fail()
    except RuntimeError as error:
        gi.post_mortem(error, commands=["print"], **talk())
    x = gs.ones(2, requires_grad=True)
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]
