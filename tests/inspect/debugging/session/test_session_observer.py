"""A program that runs free: told of in passing, looked at closely where that is due, and let alone for a while."""

import threading

import numpy as np
import pytest

import gradscope
import gradscope.inspect as gi
from gradscope.inspect import Debugger
from gradscope.inspect.adapters import adapter_for
from gradscope.runtime import events

from ...sessions import debugging, wait


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def framework(request):
    """Each framework in turn."""
    return pytest.importorskip(request.param)


def training(framework, steps, *, after=lambda step: None):
    """Return a program that trains, and where it leaves the bits of its parameter."""
    left = []

    def program():
        weight = framework.ones(3, requires_grad=True)
        for step in range(steps):
            loss = (weight * weight).exp().sum()
            loss.backward()
            with framework.no_grad():
                weight -= 0.01 * weight.grad
            weight.grad = None
            after(step)
        left.append(weight.detach().numpy().tobytes())

    return program, left


class EveryFifth:
    """Looks at two backwards of five; the first of them without its forward pass."""

    count = 0

    def interrupted(self):
        """Go on as before."""

    def switched(self, seconds):
        """Do not care."""

    def ended(self):
        """Rest after the second."""
        self.count += 1
        return self.count % 2 == 0

    def passes(self):
        """Look after three."""
        self.count += 1
        return self.count % 5 == 0


def let_alone(session: Debugger) -> None:
    """Have a session catch nothing, and look at some backwards alone."""
    for kind in ("nan", "inf"):
        session.catch(kind, False)
    session._session._looking = EveryFifth()


def test_a_program_that_is_let_alone_computes_the_same(framework):
    program, left = training(framework, 23)
    program()
    with debugging(program) as session:
        let_alone(session)
        session.cont()
        assert wait(session) == "finished"
        assert session.error is None
        assert left[0] == left[1]
        assert session._session.tasks_seen == session._session.task_count == 23, "none is forgotten"
        told = session.reason.text
        assert "ran after the one that is shown" in told
        assert all(node.norm is not None for node in session.nodes), "those of the last that was looked at are known"
        assert int(session.nodes[0].norm) == 1


def test_nobody_listens_while_a_program_is_let_alone(framework):
    heard = []

    def after(step):
        if framework.__name__ == "gradscope":
            heard.append(bool(events.heard))
        else:
            heard.append(framework._C._len_torch_function_stack() > 0)

    program, _ = training(framework, 23, after=after)
    with debugging(program) as session:
        let_alone(session)
        session.cont()
        wait(session)
        assert heard[:5] == [True, False, False, False, False]
        assert 1 < sum(heard) < 15, "it is looked at again and again"


@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_program_that_is_let_alone_stops_when_it_is_asked_to(framework, elsewhere):
    def after(step):
        if step == 12 and elsewhere:
            thread = threading.Thread(target=session.pause)
            thread.start()
            thread.join()
        elif step == 12:
            session.pause()

    program, _ = training(framework, 1000, after=after)
    with debugging(program) as session:
        let_alone(session)
        session._session._looking.passes = lambda: False
        session.cont()
        assert wait(session) == "paused before"
        assert (session.reason.kind, session._session.task_count, session.current) == ("pause", 14, 0)
        # PyTorch's modes belong to a thread: asked for on another, the forward pass is not seen before the next one.
        unseen = elsewhere and framework.__name__ == "torch"
        assert ("lines of its nodes are not known" in session.reason.text) is unseen
        assert (session.nodes[0].location is None) is unseen
        session.run_to(len(session.nodes) - 1)
        wait(session)
        session.step()
        wait(session)
        assert all(node.location is not None for node in session.nodes[:-1]), "the next forward pass is seen"


def test_a_breakpoint_that_is_set_meanwhile_is_hit(framework):
    def after(step):
        if step == 12:
            session.add_breakpoint("op:Exp if iteration == 20")

    program, _ = training(framework, 1000, after=after)
    with debugging(program) as session:
        let_alone(session)
        session._session._looking.passes = lambda: False
        session.cont()
        assert wait(session) == "paused before"
        assert session.evaluate("iteration") == 20, "those that ran unseen count"


def test_a_nan_stops_where_it_was_made_though_nodes_are_told_of_in_passing(framework):
    def program():
        x = framework.zeros(3, requires_grad=True)
        (x.sqrt() * 0.0).exp().sum().backward()

    with debugging(program) as session:
        session.cont()
        assert wait(session) == "paused after"
        node = session.inspect(session.current)
        assert (session.reason.kind, node.operator, session.current) == ("nan", "Sqrt", 3)
        assert [one.norm for one in session.nodes[:3]] == pytest.approx([1, 3**0.5, 3**0.5])
        assert session.evaluate("saved.result.sum()") == 0, "what it saved is still there"
        session.cont()
        assert wait(session) == "finished"


def beside_views(framework, made_by):
    """Return the loss of what goes through views, of which the backward makes a NaN in the middle."""

    class Bad(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x.t() * 1.0

        @staticmethod
        def backward(ctx, grad):
            return (grad * float("nan")).t()

    x = framework.zeros(6, requires_grad=True)
    rows = x.view(2, 3)
    turned = {"sqrt": lambda: rows.t().sqrt() * 0.0, "custom": lambda: Bad.apply(rows), "hook": rows.t}[made_by]()
    if made_by == "hook":
        turned.register_hook(lambda grad: grad * float("nan"))
    return x, turned.t().view(6).unsqueeze(0).exp().sum()


@pytest.mark.parametrize(("made_by", "operator"), [("sqrt", "Sqrt"), ("custom", "Bad")])
def test_a_nan_among_nodes_that_hand_their_gradient_on_stops_where_it_was_made(framework, made_by, operator):
    with debugging(lambda: beside_views(framework, made_by)[1].backward()) as session:
        session.cont()
        assert wait(session) == "paused after"
        node = session.nodes[session.current]
        assert (session.reason.kind, node.operator) == ("nan", operator)
        before = [one.norm for one in session.nodes[: session.current]]
        assert len(before) > 4
        assert all(norm == pytest.approx(6**0.5) or norm == 1 for norm in before[:5])
        session.cont()
        assert wait(session) == "finished"


def test_a_nan_that_a_hook_makes_at_a_view_is_seen_in_the_norms_behind_it(framework):
    with debugging(lambda: beside_views(framework, "hook")[1].backward()) as session:
        session.cont()
        assert wait(session) == "finished"
        norms = {one.operator: one.norm for one in session.nodes}
    assert norms["Exp"] == pytest.approx(6**0.5)
    assert np.isnan(norms["AccumulateGrad"])


def test_an_edit_where_a_nan_was_made_is_what_arrives(framework):
    leaves = []

    def program():
        x = framework.zeros(3, requires_grad=True)
        leaves.append(x)
        (x.sqrt() * 0.0).sum().backward()

    with debugging(program) as session:
        session.cont()
        assert wait(session) == "paused after"
        session.set_grad(0, 7.0)
        session.cont()
        assert wait(session) == "finished"
    assert np.asarray(leaves[0].grad).tolist() == [7, 7, 7]


def test_an_abort_in_a_backward_that_runs_free_puts_gradients_back(framework):
    x = framework.ones(2, requires_grad=True)
    x.grad = framework.ones(2) * 5
    other = framework.ones(2, requires_grad=True)

    def program():
        late = other.exp()
        late.register_hook(lambda grad: session.abort())
        (late.sum() + (x * 2).sum()).backward()

    with debugging(program) as session:
        session.cont()
        session.wait(20)
        assert session.ended
        assert "1 leaf put back" in session.conclusion()[1]
    assert np.asarray(x.grad).tolist() == [5, 5]
    assert other.grad is None


@pytest.mark.parametrize("hook", ["register_hook", "register_post_accumulate_grad_hook"])
def test_an_abort_at_a_leaf_takes_away_the_gradients_that_leaves_have_got(framework, hook):
    """A leaf without a gradient is told of when it has got one, unless a hook may end the program just then."""
    leaves = first, second, third = [framework.ones(2, requires_grad=True) for _ in range(3)]
    getattr(second, hook)(lambda _: session.abort())

    def program():
        (third.exp() * second * first).sum().backward()

    with debugging(program) as session:
        session.cont()
        session.wait(20)
        assert session.ended
        assert "put back" in session.conclusion()[1]
    assert [leaf.grad for leaf in leaves] == [None] * 3


def test_the_gradients_at_a_node_of_python_that_fails_are_known(framework):
    class Fails(framework.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            raise ValueError("no")

    def program():
        Fails.apply(framework.ones(2, requires_grad=True) * 2).sum().backward()

    with debugging(program) as session:
        session.cont()
        assert wait(session) == "paused after"
        node = session.inspect(session.current)
        assert (session.reason.kind, node.operator, node.state) == ("exception", "Fails", "failed")
        assert node.grad_outputs[0].norm == pytest.approx(2**0.5)


def test_observers_beside_one_that_is_told_in_passing_hear_all(framework):
    class Hears(gi.adapters.Observer):
        def __init__(self):
            self.nodes = []

        def node_exited(self, call):
            self.nodes.append(call.node.name())

    program, left = training(framework, 3)
    program()
    beside = Hears()
    with adapter_for(framework.ones(1)).observe(beside, forward=False, backward=True), debugging(program) as session:
        session.cont()
        assert wait(session) == "finished"
    assert (len(beside.nodes), left[0]) == (3 * 4, left[1])


def test_a_nan_out_of_an_infinity_is_a_stop_of_its_own_while_nodes_are_told_of_in_passing(framework):
    def program():
        x = framework.zeros(3, requires_grad=True)
        ((x * 0.0).sqrt() * 2.0).sum().backward()

    with debugging(program) as session:
        session.cont()
        assert (wait(session), session.reason.kind, session.nodes[session.current].operator) == (
            "paused after",
            "inf",
            "Sqrt",
        )
        session.cont()
        assert (wait(session), session.reason.kind, session.nodes[session.current].operator) == (
            "paused after",
            "nan",
            "Mul",
        )
        session.cont()
        assert wait(session) == "finished"


class Slow:
    """An observation to which the word that nodes are passed by comes late: a front asks for a pause meanwhile."""

    def __init__(self, front):
        self.front, self.applied = front, []

    def pass_by(self, on):
        if on:
            self.front.start()
            self.front.join(0.2)
        self.applied.append(on)

    def rest(self, on):
        pass


def test_what_is_heard_is_decided_on_one_thread_at_a_time():
    program, _ = training(gradscope, 3)
    with debugging(program) as session:
        session.start()
        assert wait(session) == "paused before"
        observer = session._session
        front = threading.Thread(target=lambda: setattr(observer, "pause_requested", True))
        heard, observer._observation = observer._observation, Slow(front)
        slow, observer._free = observer._observation, lambda: True
        observer.listen_as_needed()
        front.join()
        assert slow.applied == [True, False]
        observer._observation = heard
