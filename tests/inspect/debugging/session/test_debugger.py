"""The session: verbs, stops, records, edits, and that nothing it does changes the numbers."""

import gc
import threading
import weakref

import numpy as np
import pytest

import gradscope as gs
import gradscope.inspect as gi
from gradscope.inspect import Debugger, SessionError, SessionState
from gradscope.inspect.debuggee.pause_gate import NotParkedError
from gradscope.runtime import events

from ...sessions import debugging, mlp, train, wait, where


def product():
    """Return a leaf, and a function that runs Sum, Mul, Exp, AccumulateGrad backward."""
    x = gs.tensor([1.0, 2.0], requires_grad=True)

    def run():
        (x.exp() * 2.0).sum().backward()

    return x, run


# --- going on ---------------------------------------------------------------------------------------------------------


def test_start_stops_at_the_first_node():
    _, run = product()
    with debugging(run) as session:
        assert (session.state.value, session.current, session.task_index, session.nodes) == ("not started", -1, 0, [])
        session.start()
        assert wait(session) == "paused before"
        assert (session.reason.kind, session.reason.text) == ("entry", "first node of backward 1")
        assert [n.operator for n in session.nodes] == ["Sum", "Mul", "Exp", "AccumulateGrad"]
        assert [n.state for n in session.nodes] == ["current", "pending", "pending", "pending"]
        assert [n.index for n in session.nodes] == [0, 1, 2, 3]
        assert (session.current, session.task_index) == (0, 1)


def test_step_by_step_to_the_end():
    x, run = product()
    with debugging(run) as session:
        session.step()
        for index in range(4):
            assert wait(session) == "paused before"
            assert session.current == index
            session.step()
        assert wait(session) == "finished"
        assert (session.reason.kind, session.exit_status) == ("finished", 0)
        assert [n.state for n in session.nodes] == ["done"] * 4
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))


def test_step_of_several_nodes():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        session.step(3)
        wait(session)
        assert where(session) == ("paused before", 3, "AccumulateGrad")
        with pytest.raises(ValueError, match="positive"):
            session.step(0)


def test_into_stops_after_the_node_and_then_before_the_next():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        session.into()
        assert wait(session) == "paused after"
        record = session.inspect(0)
        assert (session.current, record.state) == (0, "done")
        assert [g.shape for g in record.grad_inputs] == [(2,)]
        session.into()
        wait(session)
        assert where(session) == ("paused before", 1, "Mul")
        session.into()
        wait(session)
        session.step()
        wait(session)
        assert where(session) == ("paused before", 2, "Exp")


def test_out_runs_to_the_end_of_the_modules_backward():
    model = mlp()
    with debugging(lambda: train(model)) as session:
        session.add_breakpoint("mod:2", temporary=True)
        session.cont()
        wait(session)
        assert session.nodes[session.current].module == "2"
        session.out()
        wait(session)
        assert session.nodes[session.current].module == "1"
        assert session.reason.text == "the backward of 2 has ended"


def test_out_of_no_module_is_refused_and_nothing_runs():
    with debugging(lambda: train(mlp())) as session:
        session.start()
        wait(session)
        assert session.nodes[0].module == ""
        for verb in (session.step, session.back):  # the next is Mean, outside of a module as well; then the past
            with pytest.raises(SessionError, match=f"node {session.current} .* belongs to no module"):
                session.out()
            assert (session.state.paused, session.task_index) == (True, 1)
            verb()
            wait(session)


def test_run_to():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        session.run_to(2)
        wait(session)
        assert (session.current, session.reason.kind) == (2, "run-to")
        with pytest.raises(ValueError, match="already been reached"):
            session.run_to(2)
        with pytest.raises(ValueError, match="nodes are 0 to 3"):
            session.run_to(4)


def test_several_backwards():
    with debugging(lambda: train(mlp(), steps=3)) as session:
        session.start()
        for task in (1, 2, 3):
            wait(session)
            assert (session.task_index, session.current) == (task, 0)
            session.next_backward()
        assert wait(session) == "finished"


def test_step_passes_from_one_backward_to_the_next():
    with debugging(lambda: train(mlp(), steps=2)) as session:
        session.start()
        wait(session)
        count = len(session.nodes)
        session.step(count)
        wait(session)
        assert (session.task_index, session.current, session.reason.kind) == (2, 0, "entry")
        session.step(count)
        assert wait(session) == "finished"


def test_continue_without_breakpoints_runs_to_the_end():
    with debugging(lambda: train(mlp())) as session:
        session.start()
        wait(session)
        session.cont()
        assert wait(session) == "finished"
        assert session.conclusion() == (0, "<lambda> finished (exit status 0)")


def test_pause_stops_a_running_program():
    go_on = threading.Event()

    def run():
        while not go_on.is_set():
            gs.ones(2, requires_grad=True).sum().backward()

    with debugging(run) as session:
        session.cont()
        session.pause()
        assert wait(session) == "paused before"
        assert session.reason.kind == "pause"
        go_on.set()


def test_verbs_at_the_wrong_time_are_refused():
    hold = threading.Event()
    with debugging(lambda: hold.wait(10)) as session:
        with pytest.raises(SessionError, match="nothing to pause: the program is not started"):
            session.pause()
        session.cont()
        for verb in (session.step, session.into, session.out, session.cont, session.start, session.next_backward):
            with pytest.raises(SessionError, match="the program is running"):
                verb()
        with pytest.raises(NotParkedError):
            session.evaluate("1")
        hold.set()
        wait(session)
        with pytest.raises(SessionError, match="the program is finished"):
            session.cont()


def test_wait_gives_up_in_time():
    hold = threading.Event()
    with debugging(lambda: hold.wait(10)) as session:
        assert session.wait(0.01).value == "not started"
        session.cont()
        assert session.wait(0.01).value == "running"
        hold.set()


# --- the end ----------------------------------------------------------------------------------------------------------


def test_a_program_that_raises():
    def run():
        raise ValueError("no data")

    with debugging(run) as session:
        session.start()
        assert wait(session) == "failed"
        assert (session.exit_status, str(session.error)) == (1, "no data")
        assert session.conclusion() == (1, "run raised ValueError (exit status 1)")
        assert session.output[-1] == "ValueError: no data"
        assert "gradscope" not in session.traceback


def test_a_program_without_a_backward():
    with debugging(lambda: None) as session:
        session.start()
        assert wait(session) == "finished"
        status, text = session.conclusion()
        assert status == 1
        assert "finished without calling backward()" in text


def test_a_pause_that_comes_while_the_program_stops_does_not_stop_it_again():
    _, run = product()
    with debugging(run) as session:

        def pause():
            thread = threading.Thread(target=session.pause)
            thread.start()
            thread.join()
            return True

        session.start()
        wait(session)
        session.add_breakpoint("op:Exp")
        run.__globals__["pause_now"] = pause
        try:
            watch = session.add_watch("pause_now() if node.operator == 'Exp' else None")
            session.cont()
            assert (wait(session), session.reason.kind) == ("paused before", "breakpoint")
            assert session.watches[0].text == "True"
            session.remove_watch(watch.id)
            session.cont()
            assert wait(session) == "finished"
        finally:
            del run.__globals__["pause_now"]


def test_abort_ends_a_paused_program():
    x, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        session.abort()
        assert wait(session) == "finished"
        assert "ended before its end" in session.conclusion()[1]
    assert x.grad is None
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_abort_ends_a_running_program_at_its_next_node_or_module():
    model, stopped = gs.nn.Linear(2, 2), threading.Event()

    def run():
        try:
            while True:
                model(gs.ones(1, 2))
        finally:
            stopped.set()

    with debugging(run) as session:
        session.cont()
        session.abort()
        assert wait(session) == "finished"
        assert stopped.is_set()


def test_abort_before_the_start():
    session = Debugger.for_call(lambda: None)
    session.abort()
    assert wait(session) == "finished"
    with pytest.raises(SessionError):
        session.start()


# --- breakpoints ------------------------------------------------------------------------------------------------------


def test_a_breakpoint_stops_every_time_until_it_is_removed():
    with debugging(lambda: train(mlp(), steps=3)) as session:
        point = session.add_breakpoint("param:0.weight")
        session.cont()
        wait(session)
        node = session.nodes[session.current]
        assert (node.name, node.parameter, node.module) == ("AccumulateGrad", "0.weight", "0")
        assert (session.reason.kind, session.reason.breakpoint, point.hits) == ("breakpoint", 1, 1)
        session.cont()
        wait(session)
        assert (session.task_index, point.hits) == (2, 2)
        session.remove_breakpoint(point.id)
        session.cont()
        assert wait(session) == "finished"


def test_a_temporary_breakpoint_stops_once():
    with debugging(lambda: train(mlp(), steps=3)) as session:
        session.add_breakpoint("op:Relu", temporary=True)
        session.cont()
        wait(session)
        assert session.nodes[session.current].operator == "Relu"
        assert session.breakpoints == []
        session.cont()
        assert wait(session) == "finished"


def test_a_condition_sees_gradients_saved_tensors_and_the_programs_variables():
    def run():
        for step in range(5):
            x = gs.full((2,), float(step), requires_grad=True)
            (x * x).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("Mul if step == 3 and saved['self'].max() > 2 and norm < 2 and not isnan(grads)")
        session.cont()
        wait(session)
        assert session.task_index == 4
        assert session.evaluate("step, index, node.name") == (3, 1, "MulBackward0")
        session.cont()
        assert wait(session) == "finished"


def test_a_condition_that_fails_stops_and_says_so():
    _, run = product()
    with debugging(run) as session:
        session.add_breakpoint("Mul if gard > 1")
        session.cont()
        wait(session)
        assert (
            session.reason.text == "breakpoint 1: its condition `gard > 1` raised NameError: name 'gard' is not defined"
        )


def test_a_line_breakpoint():
    def run():
        x = gs.ones(2, requires_grad=True)
        y = x * 2  # here
        y.sum().backward()

    line = run.__code__.co_firstlineno + 2
    with debugging(run) as session:
        session.add_breakpoint(f"test_debugger.py:{line}")
        session.cont()
        wait(session)
        node = session.nodes[session.current]
        assert (node.operator, node.location.lineno, node.location.function.split(".")[-1]) == ("Mul", line, "run")
        assert node.location.source == "y = x * 2  # here"


def test_the_nan_breakpoint_stops_where_a_nan_first_appears():
    def run():
        x = gs.zeros(2, requires_grad=True)
        y = gs.sqrt(x) * 0.0  # the derivative of sqrt at 0 is inf, and 0 * inf is NaN
        (y * 2.0).sum().backward()

    with debugging(run) as session:
        session.add_breakpoint("nan")
        session.cont()
        assert wait(session) == "paused after"
        node = session.inspect(session.current)
        assert (session.reason.kind, node.operator) == ("nan", "Sqrt")
        assert (node.grad_outputs[0].nans, node.grad_inputs[0].nans) == (0, 2)
        assert "the derivative of sqrt is infinite at 0" in session.explain()
        session.step()
        assert wait(session) == "paused before"
        assert session.explain() == ""
        session.cont()
        assert wait(session) == "finished"


def test_a_nan_that_enters():
    def run():
        (gs.full((2,), float("nan"), requires_grad=True) * 1).sum().backward(gs.tensor(float("nan")))

    with debugging(run) as session:
        session.add_breakpoint("nan")
        session.cont()
        assert wait(session) == "paused before"
        assert session.reason.text == "a NaN enters this backward"


# --- failures ---------------------------------------------------------------------------------------------------------


def test_it_stops_where_a_backward_fails_and_the_error_goes_its_way():
    class Broken(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("out of cheese")

    caught = []

    def run():
        x = gs.ones(2, requires_grad=True)
        try:
            Broken.apply(x).sum().backward()
        except ValueError as error:
            caught.append(error)
        x.sum().backward()

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "paused after"
        record = session.inspect(session.current)
        assert (session.reason.kind, record.name, record.state) == ("exception", "BrokenBackward", "failed")
        assert session.reason.text == "BrokenBackward raised ValueError: out of cheese"
        assert [g.norm for g in record.grad_outputs] == [pytest.approx(2**0.5)]
        assert session.evaluate("grad").tolist() == [1.0, 1.0]
        with pytest.raises(ValueError, match="after a failure"):
            session.set_grad(0, 1)
        session.step()
        wait(session)
        assert (session.task_index, session.current) == (2, 0)
        session.set_grad(0, 3)
        assert [node.edited for node in session.nodes] == [node.index == session.current for node in session.nodes]
        session.cont()
        assert wait(session) == "finished"
    assert len(caught) == 1


def test_it_stops_at_a_version_violation_and_shows_both_versions():
    def run():
        x = gs.ones(2, requires_grad=True)
        y = x.exp()
        y += 1
        y.sum().backward()

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "paused after"
        record = session.inspect(session.current)
        assert (session.reason.kind, record.operator, record.state) == ("violation", "Exp", "failed")
        assert "`result`, saved at version 0" in session.reason.text
        (saved,) = record.saved
        assert (saved.state, saved.saved_version, saved.current_version) == ("modified", 0, 1)
        session.cont()
        assert wait(session) == "failed"
        assert session.conclusion()[0] == 1


def test_leaving_at_a_failure_is_a_failure():
    def run():
        y = gs.ones(2, requires_grad=True).exp()
        y += 1
        y.sum().backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        session.abort()
        wait(session)
        assert session.conclusion()[0] == 1


# --- looking ----------------------------------------------------------------------------------------------------------


def test_inspect_of_a_node_that_has_run_is_about_to_and_will():
    x = gs.tensor([1.0, 2.0], requires_grad=True)

    def run():
        (x * x).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        done, current, pending = (session.inspect(i) for i in range(3))
        assert (done.state, current.state, pending.state) == ("done", "current", "pending")
        assert done.grad_outputs[0].norm == 1.0
        assert done.grad_inputs[0].preview == "[1, 1]"
        assert current.grad_inputs is None
        assert [s.summary.preview for s in current.saved] == ["[1, 2]", "[1, 2]"]
        assert [(s.state, s.saved_version) for s in current.saved] == [("ok", 0), ("ok", 0)]
        assert (pending.grad_outputs, pending.parameter) == (None, "x")
        session.step()
        wait(session)
        assert {s.state for s in session.inspect(1).saved} == {"released"}
        with pytest.raises(ValueError, match="there is no node 3"):
            session.inspect(3)


def test_the_node_at_hand_is_told_of_now_and_in_the_past():
    _, run = product()
    with debugging(run) as session:
        with pytest.raises(SessionError, match="there is no node at hand: the program is not started"):
            session.node
        session.start()
        wait(session)
        assert session.node == session.inspect(0)
        session.step()
        wait(session)
        assert (session.node.name, session.node.grad_outputs[0].norm) == ("MulBackward0", 2**0.5)
        session.back()
        assert session.node.name == "SumBackward0"


def test_saved_tensors_of_a_node_that_will_run_have_summaries():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        (saved,) = session.inspect(2).saved
        assert (saved.name, saved.summary.max) == ("result", pytest.approx(np.exp(2.0)))


def test_what_a_hook_has_packed_is_not_unpacked():
    x, _ = product()
    unpacked = []

    def unpack(value):
        unpacked.append(value)
        return value

    def packed():
        with gs.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), unpack):
            y = x.exp()
        y.sum().backward()

    with debugging(packed) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        (saved,) = session.inspect(1).saved
        assert (saved.summary, saved.saved_version, saved.state) == (None, None, "ok")
        assert unpacked == []


def test_evaluate():
    x = gs.tensor([1.0, 2.0], requires_grad=True)

    def run():
        learning_rate = 0.5
        (x * x).sum().backward()
        assert learning_rate

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        value = session.evaluate("grad * learning_rate")
        assert isinstance(value, np.ndarray)
        assert value.tolist() == [0.5, 0.5]
        assert session.evaluate("(grad != grad).any()").item() is False
        assert session.evaluate("norm") == pytest.approx(2**0.5)
        assert session.evaluate("saved['self'].tolist(), saved.other.tolist()") == ([1.0, 2.0], [1.0, 2.0])
        assert session.evaluate("[g * 2 for g in grads][0].tolist()") == [2.0, 2.0]
        assert session.evaluate("isnan(grad), isinf(grads), produced, len(saved)") == (False, False, None, 2)
        assert session.evaluate_text("grad") == "tensor([1., 1.])"
        assert session.evaluate("node.name") == "MulBackward0"
        with pytest.raises(NameError):
            session.evaluate("nowhere")
        with pytest.raises(SyntaxError):
            session.evaluate("1 +")
        with pytest.raises(KeyError, match=r"this node saved .*there is no"):
            session.evaluate("saved['mat1']")
        session.into()
        wait(session)
        assert session.evaluate("[p.tolist() for p in produced if p is not None]") == [[1.0, 2.0], [1.0, 2.0]]


def test_an_evaluation_may_use_autograd_without_being_stopped_in():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        code = "[z := __import__('gradscope').ones(2, requires_grad=True), z.sum().requires_grad][1]"
        assert session.evaluate(code) is False
        assert session.task_index == 1


def test_where_shows_the_users_frames_only():
    def inner(loss):
        loss.backward()

    def run():
        inner(gs.ones(2, requires_grad=True).sum())

    with debugging(run) as session:
        session.start()
        wait(session)
        text = session.where()
        assert text.count("File ") == 2
        assert "loss.backward()" in text
        assert "runtime" not in text


# --- changing ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "result"),
    [(0.5, [1.0, 2.0]), ([1.0, 3.0], [2.0, 12.0]), (np.array([1.0, 3.0]), [2.0, 12.0]), ("grad * 2", [4.0, 8.0])],
)
def test_set_an_incoming_gradient(value, result):
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x * x).sum().backward()) as session:
        session.add_breakpoint("Mul")
        session.cont()
        wait(session)
        session.set_grad(0, value)
        session.cont()
        wait(session)
    assert x.grad.tolist() == result


def test_set_a_tensor_and_a_produced_gradient():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x * 3.0).sum().backward()) as session:
        session.add_breakpoint("Mul")
        session.cont()
        wait(session)
        session.into()
        wait(session)
        session.set_grad(0, gs.tensor([7.0, 8.0]))
        assert session.inspect(session.current).grad_inputs[0].preview == "[7, 8]"
        with pytest.raises(ValueError, match="undefined"):
            session.set_grad(1, 1.0)
        session.cont()
        wait(session)
    assert x.grad.tolist() == [7.0, 8.0]


def test_zero_and_scale():
    x, run = product()
    heard = []
    with debugging(run) as session:
        session.add_listener(lambda event: heard.append((event.kind, event.state.value)))
        session.start()
        wait(session)
        session.scale_grad(0, 3)
        assert session.inspect(0).grad_outputs[0].preview == "[3]"
        heard.clear()
        session.zero_grad_slot(0)
        assert heard == [("state", "paused before")]
        session.cont()
        wait(session)
    assert x.grad.tolist() == [0.0, 0.0]


def test_edits_that_do_not_fit_are_refused_and_change_nothing():
    x, run = product()
    with debugging(run) as session:
        session.add_breakpoint("Mul")
        session.cont()
        wait(session)
        for slot, value, error, said in [
            (1, 0, ValueError, "there is no incoming gradient 1: this node has 1"),
            (0, [1.0, 2.0, 3.0], ValueError, r"shape \[2\] cannot take a value of shape \[3\]"),
            (0, "'text'", TypeError, "a gradient is a number, an array or a tensor, got str"),
            (0, 1j, TypeError, "cannot take complex"),
        ]:
            with pytest.raises(error, match=said):
                session.set_grad(slot, value)
        session.cont()
        wait(session)
    assert np.allclose(x.grad.numpy(), 2 * np.exp([1.0, 2.0]))


# --- programs of every kind -------------------------------------------------------------------------------------------


def test_grad_with_inputs_runs_part_of_the_graph():
    x, y = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)
    got = []

    def run():
        got.extend(gs.autograd.grad((x.exp() * y).sum(), [x]))

    with debugging(run) as session:
        session.start()
        wait(session)
        names = [n.operator for n in session.nodes]
        assert names == ["Sum", "Mul", "Exp"]
        session.step(3)
        assert wait(session) == "finished"
    assert np.allclose(got[0].numpy(), np.e)


def test_double_backward():
    x = gs.tensor(2.0, requires_grad=True)

    def run():
        (first,) = gs.autograd.grad(x * x * x, x, create_graph=True)
        first.backward()

    with debugging(run) as session:
        session.start()
        stops = 0
        while wait(session) != "finished":
            stops += 1
            session.evaluate("grad * 1")
            session.step()
        assert session.task_index == 2
        assert stops > 5
    assert x.grad.item() == 12.0


class Nested(gs.autograd.Function):
    """A Function whose backward calls backward."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        with gs.enable_grad():
            y = x.detach().requires_grad_()
            y.exp().backward(grad)
        return y.grad


def test_step_goes_over_a_nested_backward_and_into_goes_inside():
    def run():
        x = gs.ones(2, requires_grad=True)
        Nested.apply(x).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.step()
        wait(session)
        assert where(session) == ("paused before", 1, "Nested")
        session.step()
        wait(session)
        assert where(session) == ("paused before", 2, "AccumulateGrad")
    with debugging(run) as session:
        session.add_breakpoint("NestedBackward")
        session.cont()
        wait(session)
        session.into()
        wait(session)
        assert (session.task_index, session.nodes[session.current].operator) == (2, "Exp")
        session.next_backward()
        assert wait(session) == "finished"


def test_a_backward_in_another_thread_is_debugged_too():
    def run():
        thread = threading.Thread(target=lambda: gs.ones(2, requires_grad=True).sum().backward())
        thread.start()
        thread.join()

    with debugging(run) as session:
        session.start()
        assert wait(session) == "paused before"
        session.cont()
        assert wait(session) == "finished"


def test_other_threads_run_through_while_one_is_paused():
    x, y = gs.ones(2, requires_grad=True), gs.ones(2, requires_grad=True)

    def run():
        (x * 2).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        (y * 3).sum().backward()
        assert y.grad.tolist() == [3.0, 3.0]
        assert session.task_index == 1


def run_another():
    (gs.ones(2, requires_grad=True) * 2).sum().backward()


ASKED = {
    "pause": (lambda session: session.pause(), "pause"),
    "breakpoint": (lambda session: session.add_breakpoint("op:AccumulateGrad"), "breakpoint"),
    "nested": (lambda session: gs.enable_grad()(run_another)(), "finished"),
    "record": (lambda session: setattr(session, "record_always", True), "finished"),
}


@pytest.mark.parametrize("name", ASKED)
def test_what_is_asked_in_the_middle_of_a_backward_that_runs_free_is_done(name):
    ask, stop = ASKED[name]
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    sessions = []

    def run():
        y = x.exp() * 2
        y.register_hook(lambda grad: ask(sessions[0]) and None)
        (y * 3).sum().backward()

    with debugging(run) as session:
        sessions.append(session)
        session.cont()
        wait(session)
        if stop == "pause":  # it may be seen before the node with the hook or after it
            assert session.reason.kind == "pause"
            assert session.nodes[session.current].operator in ("Mul", "Exp")
            session.cont()
        elif stop == "breakpoint":
            assert (session.reason.kind, session.nodes[session.current].operator) == ("breakpoint", "AccumulateGrad")
            session.cont()
        wait(session)
        assert (session.state.value, session.exit_status) == ("finished", 0)
    assert np.array_equal(x.grad.numpy(), (6 * gs.tensor([1.0, 2.0]).exp()).numpy())


def test_two_sessions_one_after_the_other():
    for _ in range(2):
        x, run = product()
        with debugging(run) as session:
            session.start()
            wait(session)
            session.cont()
            assert wait(session) == "finished"
        assert x.grad is not None


def test_records_name_variables_that_no_module_has():
    def run():
        weight = gs.ones(2, requires_grad=True)
        (weight * 2).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        assert session.nodes[-1].parameter == "weight"


def test_debug_a_loss():
    x = gs.tensor(3.0, requires_grad=True)
    session = gi.debug(x * x, retain_graph=True)
    assert (session.state.value, session.nodes[0].operator) == ("paused before", "Mul")
    session.cont()
    assert wait(session) == "finished"
    assert x.grad.item() == 6.0
    with pytest.raises(RuntimeError, match="does not require grad"):
        gi.debug(gs.ones(2))
    with pytest.raises(TypeError, match="debug\\(\\) takes a tensor"):
        gi.debug(3)


# --- what it must not do ----------------------------------------------------------------------------------------------


def test_training_is_bit_identical_under_the_debugger():
    plain = mlp()
    losses = train(plain, steps=20)
    watched, seen = mlp(), []
    with debugging(lambda: seen.extend(train(watched, steps=20))) as session:
        session.add_breakpoint("op:Addmm if norm > 1e9")
        session.add_breakpoint("nan")
        session.start()
        for verb in (session.step, session.into, session.step, session.out, session.next_backward, session.cont):
            wait(session)
            session.inspect(session.current)
            session.evaluate("grad * 2")
            verb()
        assert wait(session) == "finished"
    assert seen == losses
    for (name, one), (_, two) in zip(plain.named_parameters(), watched.named_parameters()):
        assert one.detach().numpy().tobytes() == two.detach().numpy().tobytes(), name


def test_a_session_keeps_no_node_and_no_tensor_alive():
    alive = []

    def run():
        x = gs.ones(2, requires_grad=True)
        y = x * x
        y.sum().backward()
        alive.extend([weakref.ref(y.grad_fn), weakref.ref(y), weakref.ref(x)])

    gc.collect()
    gc.disable()
    try:
        with debugging(run) as session:
            session.add_breakpoint("*")
            session.cont()
            while wait(session) != "finished":
                session.inspect(session.current)
                session.cont()
            assert session.nodes
            assert [reference() for reference in alive] == [None, None, None]
    finally:
        gc.enable()


class Batch:
    pass


def test_a_session_keeps_no_variable_of_the_program_alive():
    alive = []

    def run():
        x, batch = gs.tensor([1.0, 2.0], requires_grad=True), Batch()
        gone = weakref.ref(batch)
        (x * x).sum().backward()
        del batch
        alive.append(gone())

    with debugging(run) as session:
        session.start()
        wait(session)
        assert session.nodes[-1].parameter == "x"
        assert session.evaluate("x.requires_grad")
        session.execute("x.grad = None")
        session.cont()
        wait(session)
    assert alive == [None]


def test_nobody_listens_when_it_is_over():
    _, run = product()
    with debugging(run) as session:
        session.start()
        wait(session)
        assert events.wanted(events.NodeEntered)
        session.cont()
        wait(session)
        assert not events.wanted(events.NodeEntered)


def test_listeners_hear_of_every_change():
    _, run = product()
    heard = []
    with debugging(run) as session:
        stop = session.add_listener(lambda event: heard.append((event.kind, event.state.value)))
        session.start()
        wait(session)
        session.add_breakpoint("Mul")
        session.remove_breakpoint(1)
        assert heard == [
            ("state", "running"), ("state", "paused before"), ("breakpoints", "paused before"),
            ("breakpoints", "paused before"),
        ]  # fmt: skip
        stop()


def test_the_variables_of_the_paused_function_are_told():
    class Shy:
        def __repr__(self):
            raise ValueError

    def run():
        x, many, shy = gs.ones(2, requires_grad=True), list(range(1000)), Shy()
        (x * 2).sum().backward()
        return many, shy

    with debugging(run) as session:
        session.start()
        wait(session)
        found = {one.name: one for one in session.variables()}
    assert (found["x"].kind, found["x"].shape) == ("Tensor", (2,))
    assert (found["many"].kind, found["many"].shape, len(found["many"].text) < 100) == ("list", None, True)
    assert found["shy"].text.startswith("<Shy instance at ")


def test_two_sessions_of_one_process_hear_and_end_their_own_programs_alone():
    first, second = (Debugger.for_call(lambda: train(mlp())) for _ in range(2))
    for session in (first, second):
        session.start()
        wait(session)
    assert (first.task_count, second.task_count) == (1, 1)
    first.abort()
    second.step()
    wait(second)
    assert (second.state, second.current) == (SessionState.PAUSED_BEFORE, 1)
    second.cont()
    assert wait(second) == "finished"
    assert second.error is None
    assert wait(first) == "finished"
