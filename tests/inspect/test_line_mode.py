"""Line mode: what is typed, and what comes back."""

import io

import pytest

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.line_mode import LineMode
from gradscope.inspect.verbs import UsageError

from .programs import mlp, train

GRADS: list[list[float]] = []
"""What the last programs got."""


def product():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    (x * x).sum().backward()
    GRADS.append(x.grad.tolist())


def talk(function, text):
    """Type lines at a prompt; return all that was printed, and the session."""
    out = io.StringIO()
    session = Debugger.for_call(function)
    mode = LineMode(session, stdin=io.StringIO(text), stdout=out, stderr=out)
    mode.run()
    assert session.state.ended
    return out.getvalue(), session, mode


def answers(function, *lines):
    """Return the answer to each line, without the line that starts the session."""
    text, _, _ = talk(function, "\n".join(lines) + "\n")
    return [part.partition("\n")[2].rstrip("\n") for part in text.split("(gradscope) ")[1:]]


def test_a_walk_through_a_backward():
    step, printed, into, after, where, quitting = answers(product, "step", "print", "into", "print", "where", "quit")
    assert step.startswith("stopped before node 1 of 3: MulBackward0 - next node\n")
    assert step.endswith("(x * x).sum().backward()")
    assert "gradients in   [0] float32 (2)  norm 1.414" in printed
    assert "gradients out  not computed yet" in printed
    assert "-> node 2 AccumulateGrad input 0" in printed
    assert "self  float32 (2)  version 0 ok  norm 2.236" in printed
    assert into.startswith("stopped after node 1 of 3: MulBackward0 - after the node")
    assert "gradients out  [0] float32 (2)  norm 2.236" in after
    assert "self  float32 (2)  released" in after
    assert "backward 1 was called at" in where
    assert "in product\n    (x * x).sum().backward()" in where
    assert quitting == ""


def test_the_end_of_input_leaves():
    text, session, _ = talk(product, "step\n")
    assert text.endswith("(x * x).sum().backward()\n")
    assert session.conclusion()[0] == 0


def test_breakpoints():
    listed, added, once, both, gone, bad, hit = answers(
        lambda: train(mlp()), "break", "b param:*.bias if norm > 0", "tbreak Relu", "b", "delete 2", "delete 9", "c"
    )
    assert listed == "no breakpoints"
    assert added == "breakpoint 1: param:*.bias if norm > 0, 2 of the nodes ahead in this backward"
    assert once == "temporary breakpoint 2: Relu, 1 of the nodes ahead in this backward"
    assert both == "1  param:*.bias if norm > 0  (0 hits)\n2  Relu  once  (0 hits)"
    assert gone == ""
    assert bad == "*** there is no breakpoint 9 (there are: 1)"
    assert "2.bias - breakpoint 1 (param:*.bias if norm > 0)" in hit


def test_editing_changes_what_the_program_gets():
    text, _, _ = talk(product, "step\nset grad * 3\nscale 2\nset 0 [1.0, 2.0]\nscale 0 0.5\ncontinue\n")
    assert "incoming gradient 0 is now [3, 3]" in text
    assert "incoming gradient 0 is now [6, 6]" in text
    assert "incoming gradient 0 is now [0.5, 1]" in text
    assert text.endswith("(gradscope) continue\n")
    assert GRADS[-1] == [1.0, 4.0]
    text, _, _ = talk(product, "step\ninto\nzero 1\nzero\ncontinue\n")
    assert "produced gradient 0 is now [0, 0]" in text
    assert GRADS[-1] == [0.0, 0.0]


def test_lists_and_graph():
    everything, part, two, graph = answers(lambda: train(mlp()), "list", "list 3", "list 0,1", "graph")
    assert len(everything.splitlines()) == 9
    assert everything.startswith(">    0  MeanBackward0")
    assert part.splitlines()[0].split()[:2] == ["3", "AccumulateGrad"]
    assert len(two.splitlines()) == 2
    assert ">    0  MeanBackward0  -> 1" in graph
    assert "AddmmBackward0  2  -> 5, 3, 4" in graph


def test_a_long_backward_is_listed_around_the_current_node():
    def run():
        x = gs.ones(1, requires_grad=True)
        for _ in range(100):
            x = x + 1
        x.sum().backward()

    near, all_of_it = answers(run, "step 50", "list", "list all")[1:]
    assert [int(line.lstrip("> +").split()[0]) for line in near.splitlines()] == list(range(45, 56))
    assert len(all_of_it.splitlines()) == 102


def test_several_backwards():
    out, far = answers(lambda: train(mlp()), "nb", "step 2")
    assert "first node of backward 2" in out
    assert "next node (backward 2)" in far


def test_run_to_and_its_refusals():
    there, back, nowhere, word = answers(product, "run-to 2", "t 1", "to 99", "until x")
    assert "stopped before node 2 of 3: AccumulateGrad  x - reached node 2" in there
    assert back == "*** node 1 has already been reached: the program is paused before node 2"
    assert nowhere == "*** there is no node 99 in this backward: its nodes are 0 to 2"
    assert word == "*** NODE is a number, got 'x'"


def test_mistakes_are_told_and_the_session_goes_on():
    typo, name, syntax, attribute, value, slot, fine = answers(
        product, "frobnicate", "p nowhere", "p 1 +", "p grad.nowhere", "set 0 'a'", "zero 7", "p 1 + 1"
    )
    assert typo == "*** there is no command 'frobnicate'; `help` lists them"
    assert name == "*** NameError: name 'nowhere' is not defined"
    assert syntax.startswith("*** SyntaxError")
    assert attribute.startswith("*** AttributeError")
    assert value.startswith("*** TypeError: a gradient is a number")
    assert slot == "*** there is no incoming gradient 7: this node has 1"
    assert fine == "2"


def test_help():
    everything, one = answers(product, "help", "help b")
    assert "run-to, to, until, t NODE" in everything
    assert one.startswith("break, b [SPEC] [if CONDITION]")


def test_abort():
    before = len(GRADS)
    _, session, _ = talk(product, "abort\n")
    assert len(GRADS) == before
    assert "ended before its end" in session.conclusion()[1]


def test_node_prints_any_node():
    (other,) = answers(product, "node 2")
    assert other.startswith("node 2 of 3: AccumulateGrad  x  (pending)")
    assert "made at        a leaf" in other


def test_a_failure_is_shown_where_it_happens():
    def run():
        y = gs.ones(2, requires_grad=True).exp()
        y += 1
        y.sum().backward()

    stopped, printed, _ = answers(run, "continue", "print", "continue")
    assert stopped.startswith("stopped in node 2 of 4: ExpBackward0 - ExpBackward0 needs `result`, saved at version 0")
    assert "saved at version 0, now at 1: MODIFIED" in printed


def test_commands_are_echoed_and_checked_first(capsys):
    session = Debugger.for_call(product)
    LineMode(session).run_commands(["step", "print grad", "continue", "print"])
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if line.startswith("(gradscope)")] == [
        "(gradscope) step", "(gradscope) print grad", "(gradscope) continue",
    ]  # fmt: skip
    assert out[-1] == "(gradscope) continue"
    untouched = Debugger.for_call(product)
    with pytest.raises(UsageError, match="no command 'stepp'"):
        LineMode(untouched).run_commands(["step", "stepp"])
    assert untouched.state.value == "not started"


def test_commands_that_end_early_end_the_program():
    session = Debugger.for_call(product)
    mode = LineMode(session, stdout=io.StringIO())
    mode.run_commands(["step"])
    assert (session.state.value, mode.failures) == ("finished", 0)
    assert "ended before its end" in session.conclusion()[1]


def test_failed_commands_are_counted():
    mode = LineMode(Debugger.for_call(product), stdout=io.StringIO())
    mode.run_commands(["print nowhere", "delete 3", "print 1"])
    assert mode.failures == 2
