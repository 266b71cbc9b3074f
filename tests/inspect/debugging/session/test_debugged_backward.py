"""One backward under the debugger."""

import threading

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.history.past_gradients import ValueStore
from gradscope.inspect.debugging.session.debugged_backward import SeenNode, TaskView
from gradscope.inspect.records.module_tracking import Tracker
from gradscope.inspect.records.node_records import norms_by_place
from tests.inspect.sessions import debugging, mlp, train, wait


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


def test_frames_on_a_thread_of_a_device_are_those_of_the_thread_that_waits():
    adapter, found = NativeAdapter(), []
    view = TaskView(adapter, Tracker(adapter), None, ValueStore(1000))

    def in_a_hook():
        found.extend(frame.f_code.co_name for frame in view.user_frames())

    thread = threading.Thread(target=in_a_hook)
    thread.start()
    thread.join()
    here = "test_frames_on_a_thread_of_a_device_are_those_of_the_thread_that_waits"
    assert found[0] == "in_a_hook"
    assert here in found[1:]
    assert view.user_frames()[0].f_code.co_name == here


def test_norms_are_those_of_the_records_of_nodes_that_ran_free_were_looked_at_or_came_later():
    w = gs.ones(3, requires_grad=True)
    loss = ((w * 0).sqrt() * 2).exp().sum()
    with debugging(loss.backward) as session:
        session.catch("inf")
        session.cont()
        wait(session)
        assert session.nodes[session.current].operator == "Sqrt"
        session.step()
        wait(session)
        view, told = session._session.view, session.nodes.known_norms()
        assert view.norms
        assert view._seen
        assert told == norms_by_place(session.nodes)
        assert set(told) == set(range(session.current + 1))
        view._insert(gs.ones(2, requires_grad=True).exp().grad_fn)
        assert session.nodes.known_norms() == norms_by_place(session.nodes) != told


def test_norms_are_told_without_a_record():
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        made = session._session.view._bare
        made.clear()
        assert list(session.nodes.known_norms()) == [0]
        assert made == {}


def test_norms_are_told_while_the_backward_goes_on():
    with debugging(lambda: train(mlp(), 1)) as session:
        session.start()
        wait(session)
        view = session._session.view
        first, second, *_ = view.order

        class Given:
            """Gradients during whose measuring the next node comes."""

            @property
            def norm(self):
                view._seen[second] = SeenNode()
                view.norms[1] = 3.0
                return 2.0

        view._seen[first].incoming = Given()
        assert session.nodes.known_norms() == {0: 2.0}


def test_norms_are_those_of_nodes_whose_places_are_known():
    adapter = NativeAdapter()
    view = TaskView(adapter, Tracker(adapter), None, ValueStore(1000))
    view.norms = {0: 1.0, 1: None}
    assert (len(view.nodes), view.nodes.known_norms()) == (0, {})
    view.order = [7, 8]
    assert view.nodes.known_norms() == {0: 1.0}
