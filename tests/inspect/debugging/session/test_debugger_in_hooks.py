"""Stops inside hooks: a hook runs before its node is announced, and the stop is at that node all the same."""

import pytest

import gradscope.inspect as gi
from tests.inspect.sessions import debugging, wait

FRAMEWORKS = ["gradscope", pytest.param("torch", marks=pytest.mark.torch)]


@pytest.fixture(params=FRAMEWORKS)
def framework(request):
    return pytest.importorskip(request.param)


def hooked(framework, hook, *, leaf=False):
    """Return a backward that calls a hook before Exp, or before the leaf's node."""
    weight = framework.ones(3, requires_grad=True)
    hidden = weight.exp()
    (weight if leaf else hidden).register_hook(hook)
    return hidden.tanh().sum().backward


def fail(grad):
    raise KeyError("hook")


@pytest.mark.parametrize("verb", ["cont", "start"])
@pytest.mark.parametrize(("leaf", "name"), [(False, "ExpBackward0"), (True, "AccumulateGrad")])
def test_a_hook_that_fails_is_that_of_its_node(framework, verb, leaf, name):
    with debugging(hooked(framework, fail, leaf=leaf)) as session:
        getattr(session, verb)()
        wait(session)
        if verb == "start":
            session.cont()
            wait(session)
        node = session.nodes[session.current]
        assert (session.reason.kind, session.reason.text) == ("exception", f"{name} raised KeyError: 'hook'")
        assert (node.name, node.state) == (name, "failed")
        assert session.nodes[session.current - 1].state == "done"


@pytest.mark.parametrize(("leaf", "name"), [(False, "ExpBackward0"), (True, "AccumulateGrad")])
def test_set_trace_in_a_hook(framework, leaf, name):
    with debugging(hooked(framework, lambda grad: gi.set_trace(), leaf=leaf)) as session:
        session.cont()
        wait(session)
        assert (session.reason.kind, session.nodes[session.current].name) == ("trace", name)
        session.step()
        wait(session)
        session.back()
        assert session.nodes[session.current].name == name
        assert session.evaluate("norm") > 0, "what arrived is known since the node has run"


@pytest.mark.torch
def test_what_was_released_says_how_to_keep_it():
    """PyTorch keeps saved tensors of a whole backward or of none: this one is joined in its middle."""
    with debugging(hooked(pytest.importorskip("torch"), lambda grad: gi.set_trace())) as session:
        session.cont()
        wait(session)
        session.step()
        wait(session)
        session.back()
        with pytest.raises(RuntimeError, match="`result` has been released\nSaved tensors are kept where the session"):
            session.evaluate("saved.result")
        with pytest.raises(ValueError, match="what-if: node 2 ExpBackward0 has released what it saved") as info:
            session.what_if(0, 2.0)
        assert "say `record on`, before it begins" in str(info.value)
