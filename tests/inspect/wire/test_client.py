from __future__ import annotations

import socket
import threading

import pytest

from gradscope.inspect import BreakpointError, Debugger, SessionError, SessionState, TensorSubject
from gradscope.inspect.records.node_records import norms_by_place
from gradscope.inspect.wire import client
from gradscope.inspect.wire.addresses import parse_address
from gradscope.inspect.wire.channel import ChannelError

from .programs import served, train


@pytest.fixture
def pair():
    """A debugger, and a front's view of it, at the first node."""
    debugger = Debugger.for_call(train)
    with served(debugger) as remote:
        remote.start()
        assert remote.wait(10) is SessionState.PAUSED_BEFORE
        yield debugger, remote


def same(debugger, remote):
    for name in ("state", "reason", "task_index", "task_count", "current", "live", "ended", "recorded", "tasks"):
        assert getattr(remote, name) == getattr(debugger, name), name
    assert list(remote.nodes) == list(debugger.nodes)
    assert remote.nodes.known_norms() == norms_by_place(debugger.nodes)
    assert remote.watches == debugger.watches
    assert remote.breakpoints == debugger.breakpoints
    assert remote.catching == debugger.catching


def test_what_is_no_program_under_gradscope_is_told_with_what_to_look_at():
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]

        def answer():
            with server.accept()[0] as other:
                other.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")
                other.recv(1000)

        threading.Thread(target=answer).start()
        with pytest.raises(ChannelError) as caught:
            client.connect(parse_address(f"tcp://127.0.0.1:{port}"), b"token")
    what, what_to_do = str(caught.value).splitlines()
    assert "at most 4,096 are taken" in what
    assert f"listens at tcp://127.0.0.1:{port}" in what_to_do


def test_it_reads_what_the_debugger_reads(pair):
    debugger, remote = pair
    remote.add_watch("norm")
    remote.add_breakpoint("op:Tanh", condition="norm > 0", temporary=True)
    for verb in (lambda: remote.step(2), remote.into, remote.cont, remote.out, remote.next_backward):
        verb()
        assert remote.wait(10).paused
        same(debugger, remote)
        for index in range(len(remote.nodes)):
            assert remote.inspect(index) == debugger.inspect(index)
        assert remote.records(0, 5) == debugger.records(0, 5)
        assert remote.where() == debugger.where()
    remote.back(3)
    assert remote.state is SessionState.REPLAYING
    same(debugger, remote)
    remote.go_live()
    remote.cont()
    assert remote.wait(10) is SessionState.FINISHED
    same(debugger, remote)
    assert remote.conclusion() == debugger.conclusion()


def test_it_asks_what_the_debugger_is_asked(pair):
    debugger, remote = pair
    assert remote.evaluate_text("grad * 2") == debugger.evaluate_text("grad * 2")
    assert remote.gradient_flow() == str(debugger.gradient_flow())
    assert remote.memory() == str(debugger.memory())
    assert remote.why_no_grad("0.weight") == str(debugger.why_no_grad("0.weight"))
    assert remote.what_if(0, "grad * 3") == debugger.what_if(0, "grad * 3")
    assert remote.parameter_names() == debugger.parameter_names()
    assert remote.derivative("MulBackward0") == debugger.derivative("MulBackward0")
    values = remote.elements("grads[0] + 1j", 0, 3)
    assert (values.dtype, values.values) == ("complex64", ((1.0, 1.0),))
    with pytest.raises(TypeError, match=r"`node` is a .*, and no tensor"):
        remote.elements("node")


def test_ctrl_c_while_the_message_is_sent_leaves_the_state_known(pair, monkeypatch):
    _, remote = pair

    class Interrupted(threading.Thread):
        def start(self):
            super().start()
            raise KeyboardInterrupt

    monkeypatch.setattr(client.threading, "Thread", Interrupted)
    asked = remote._standing
    with pytest.raises(KeyboardInterrupt):
        remote.cont()
    monkeypatch.undo()
    assert remote._standing is not asked  # what the debugger has answered is known by now
    assert remote.wait(10) is SessionState.FINISHED


def test_it_looks_into_tensors_as_the_debugger_does(pair, tmp_path):
    debugger, remote = pair
    remote.step(3)
    assert remote.wait(10).paused
    subject = TensorSubject("at_node(2).grads[0]", "at_node(2).grads[0] * 2", "relative error")
    assert remote.tensor_page(subject, (0, (0, 1))) == debugger.tensor_page(subject, (0, (0, 1)))
    assert remote.tensor_summary(subject) == debugger.tensor_summary(subject)
    assert remote.find_element(subject, "largest") == 0
    assert remote.find_element(subject, "not finite") is None
    assert remote.save_tensor(subject, str(tmp_path / "error.npy")) == str(tmp_path / "error.npy")
    with pytest.raises(FileExistsError, match="kept as it is"):
        remote.save_tensor(subject, str(tmp_path / "error.npy"))


def test_a_gradient_is_changed(pair):
    debugger, remote = pair
    remote.set_grad(0, 5)
    assert debugger.evaluate("grad").tolist() == 5
    remote.scale_grad(0, 2.0)
    assert remote.elements("grad").values == (10.0,)
    remote.zero_grad_slot(0)
    assert remote.inspect(0).grad_outputs[0].zeros == 1
    remote.execute("model.extra = 3")
    assert remote.evaluate_text("model.extra") == "3"
    remote.skip()


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (lambda remote: remote.step(0), ValueError),
        (lambda remote: remote.add_breakpoint(""), BreakpointError),
        (lambda remote: remote.evaluate_text("nothing"), NameError),
        (lambda remote: remote.evaluate_text("1 +"), SyntaxError),
        (lambda remote: remote.goto(99), SessionError),
        (lambda remote: remote.run_to(99), ValueError),
        (lambda remote: remote.remove_watch(7), ValueError),
        (lambda remote: remote.pause(), SessionError),
        (lambda remote: remote.restart(), SessionError),
    ],
)
def test_what_is_refused_there_is_refused_here(pair, call, error):
    debugger, remote = pair
    with pytest.raises(error) as here:
        call(remote)
    if error is not SessionError or "started" not in str(here.value):
        with pytest.raises(error) as there:
            call(debugger)
        assert str(here.value) == str(there.value)


def test_logpoints_and_changes_are_told():
    debugger = Debugger.for_call(train)
    with served(debugger) as remote:
        heard = []
        remote.add_listener(lambda event: heard.append((event.kind, event.text)))
        remote.add_breakpoint("op:Tanh", log="round(norm, 1) * 0")
        remote.cont()
        assert remote.wait(10) is SessionState.FINISHED
        remote.conclusion()
        assert len(remote.log) == 2
        assert {kind for kind, _ in heard} == {"state", "breakpoints", "log"}


def test_a_program_that_is_gone_says_so(pair):
    _, remote = pair
    remote.detach()
    assert remote.wait_for_end(10)
    with pytest.raises(SessionError, match="has ended, or let its front go: nothing can be asked of it"):
        remote.step()
    assert remote.conclusion()[0] == 1
    remote.abort()
