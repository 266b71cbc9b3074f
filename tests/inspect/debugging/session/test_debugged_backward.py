"""One backward under the debugger."""

import threading

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.history.past_gradients import ValueStore
from gradscope.inspect.debugging.session.debugged_backward import TaskView
from gradscope.inspect.records.module_tracking import Tracker
from tests.inspect.sessions import debugging, wait


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
