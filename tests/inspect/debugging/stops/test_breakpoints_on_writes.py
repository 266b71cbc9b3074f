"""Breakpoints on saved tensors: the program stops where it writes one, on both frameworks."""

import pytest

from gradscope.inspect import BreakpointError, Debugger, HistoryPolicy
from gradscope.inspect.debuggee.pause_gate import NotParkedError
from gradscope.inspect.debugging.stops.breakpoints import BreakpointTable

from ...sessions import debugging, wait


def writing(fw, refused):
    def run():
        x = fw.ones(3, requires_grad=True)
        y = x.exp()
        z = (y * 2).sum()
        z.backward(retain_graph=True)
        with fw.no_grad():
            x.grad.zero_()
            y.view(-1).add_(1)
            y.mul_(2)
        try:
            z.backward()
        except RuntimeError as error:
            refused.append(error)

    return run


def test_it_stops_at_each_write_through_a_view_too_and_at_no_other(fw):
    refused = []
    with debugging(writing(fw, refused)) as session:
        session.start()
        wait(session)
        point = session.add_breakpoint("saved:2.result")
        session.cont()
        wait(session)
        assert (session.reason.kind, session.reason.breakpoint) == ("write", point.id)
        assert "add_ at " in session.reason.text
        assert session.reason.text.endswith("has written it; it is at version 1")
        assert "y.view(-1).add_(1)" in session.where()
        assert session.evaluate("y.tolist()") == pytest.approx([3.71828] * 3)
        session.cont()
        wait(session)
        assert (session.reason.kind, "mul_ at " in session.reason.text, point.hits) == ("write", True, 2)
        session.cont()
        wait(session)
        assert session.reason.kind == "violation"
        session.cont()
        assert wait(session) == "finished"
    assert refused


def test_it_is_passed_by_as_often_as_asked(fw):
    with debugging(writing(fw, [])) as session:
        session.start()
        wait(session)
        session.ignore_breakpoint(session.add_breakpoint("saved:2.result", temporary=True).id, 1)
        session.cont()
        wait(session)
        assert (session.reason.kind, "mul_ at " in session.reason.text) == ("write", True)
        assert session.breakpoints == []


@pytest.mark.parametrize(
    ("spec", "text"),
    [
        ("saved:2.nothing", "has no saved tensor 'nothing': it keeps result"),
        ("saved:9.result", "there is no node 9"),
        ("saved:0.self", "it keeps nothing"),
        ("saved:2", "needs a node and a name"),
        ("saved:2.result if norm > 1", "takes no condition"),
    ],
)
def test_what_is_not_saved_is_refused(fw, spec, text):
    with debugging(writing(fw, [])) as session:
        session.start()
        wait(session)
        with pytest.raises(BreakpointError, match=text):
            session.add_breakpoint(spec)
        assert session.breakpoints == []


def test_what_a_node_has_released_is_refused(fw):
    def run():
        fw.ones(3, requires_grad=True).exp().exp().sum().backward()

    session = Debugger.for_call(run, history=HistoryPolicy(keep_saved=False))
    session.start()
    wait(session)
    session.step(2)
    wait(session)
    try:
        with pytest.raises(BreakpointError, match="node 1 ExpBackward0 has released `result`"):
            session.add_breakpoint("saved:1.result")
    finally:
        session.abort()
        wait(session)


def test_without_a_program_that_is_paused_there_is_no_memory_to_watch(fw):
    with debugging(writing(fw, [])) as session, pytest.raises(NotParkedError):
        session.add_breakpoint("saved:2.result")
    with pytest.raises(BreakpointError, match="in a program that is paused"):
        BreakpointTable().add("saved:2.result")


def test_a_write_stops_on_its_thread_and_abort_ends_there(fw):
    with debugging(writing(fw, [])) as session:
        session.start()
        wait(session)
        session.add_breakpoint("saved:2.result")
        session.cont()
        assert wait(session) == "paused before"
    assert session.ended
