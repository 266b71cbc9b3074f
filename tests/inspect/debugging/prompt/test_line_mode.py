"""Line mode: what is typed, and what comes back."""

import io
import re
from types import SimpleNamespace

import pytest

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.debugging.prompt.line_mode import LineMode
from gradscope.inspect.debugging.prompt.prompt_verbs import UsageError

from ...sessions import mlp, train

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
    assert session.ended
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


def test_a_limit_is_shown_and_set():
    listed, changed, shown, unknown, _ = answers(
        product, "limit", "limit norm_spread = 10", "limits norm_spread", "limit norm_spred", "quit"
    )
    assert [line.split("=")[0] for line in listed.split("\n")] == [
        "norm_spread", "vanishing_norm", "exploding_norm", "cancelled", "bounded_chain", "faded_signal",
        "recurrent_calls",
    ]  # fmt: skip
    assert changed == shown
    assert shown.startswith("norm_spread=10 (usually 10000): by how many times")
    assert unknown == "*** there is no limit 'norm_spred'\nDid you mean one of norm_spread?"


def test_a_program_that_the_debugger_has_started_is_not_left():
    detached, where, _ = answers(product, "detach", "where", "quit")
    assert detached.startswith("*** the program runs under the debugger that has started it\n")
    assert where.startswith("node 0 of 3")


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


def test_a_nan_is_explained_where_it_appears_and_a_violation_names_the_line():
    def run():
        x = gs.zeros(2, requires_grad=True)
        (gs.sqrt(x) * 0.0).sum().backward()

    stop, again = answers(run, "catch nan", "continue", "explain")[1:]
    assert "\n  NaN is produced in backward by SqrtBackward0" in stop
    assert again in stop.replace("\n  ", "\n")

    def spoil():
        y = gs.ones(2, requires_grad=True).exp()
        y += 1  # here
        y.sum().backward()

    stop, again, topic, code = answers(spoil, "continue", "explain", "explain inplace", "explain GS101")
    assert stop.endswith("y += 1  # here")
    assert again.startswith("`result` was written by add_ at ")
    assert topic.startswith("inplace: ")
    assert code == "*** no topic 'GS101'\nCodes are explained by `gradscope explain GS101`."
    assert "`explain TOPIC` explains one of: " in answers(spoil, "explain")[0]


def test_a_nan_that_was_saved_is_blamed_whatever_its_place_in_the_tensor():
    def run():
        layer = gs.nn.Linear(8, 3)
        rows = gs.cat([gs.ones(4, 8), gs.full((1, 8), float("nan"))])
        layer(rows)[:4].square().mean().backward()

    (stop,) = answers(run, "catch nan", "continue")[1:]
    assert "AddmmBackward0 hands on a NaN: its saved `input` has not been finite since the forward pass" in stop
    assert "the saved `input` has had a NaN or an infinity in it since the forward pass" in stop


def test_a_failure_that_is_passed_over_is_the_node_to_look_at():
    def run():
        layer = gs.nn.Linear(4, 2)
        hidden = gs.ones(3, 4, requires_grad=True).relu()
        hidden.register_hook(lambda grad: 1 / 0)
        layer(hidden).sum().backward()

    text, _, _ = talk(run, "catch exception off\nbreak AccumulateGrad\ncontinue\ncontinue\ncontinue\nprint\n")
    assert "node 4 of 6: ReluBackward0  (failed)" in text


def test_editing_changes_what_the_program_gets():
    text, _, _ = talk(product, "step\nset grad * 3\nscale 2\nset 0 [1.0, 2.0]\nscale 0 0.5\ncontinue\n")
    assert "incoming gradient 0 is now [3, 3]" in text
    assert "incoming gradient 0 is now [6, 6]" in text
    assert "incoming gradient 0 is now [0.5, 1]" in text
    assert "(gradscope) continue\nthe program has ended (exit status 0)\n" in text
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


def test_the_node_of_the_past_that_is_looked_at_is_marked_in_the_list():
    listed = answers(lambda: train(mlp()), "step 2", "back", "list 0,2")[-1]
    assert [line[0] for line in listed.splitlines()] == ["+", "<", ">"]


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
    there, back, nowhere, word = answers(product, "run-to 2", "t 1", "to 99", "run-to x")
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
    assert "run-to, to, t NODE" in everything
    assert one.startswith("break, b [SPEC] [if CONDITION]")


def asked():
    """Train a step with a module that is left out."""
    model, head = mlp(), gs.nn.Linear(2, 2)
    loss = model(gs.ones(4, 3)).square().mean()
    loss.backward()
    return head


def test_memory_of_this_backward_and_of_another_loss():
    default, named, missing = answers(asked, "memory", "memory loss", "memory lost")
    assert default == named
    assert "nodes hold" in default
    assert "parameter  `model.2.weight`" in default
    assert missing == (
        "*** name 'lost' is not defined\nSay which one, by an expression that has a value where it stopped."
    )


def test_flow_counts_the_gradients_that_have_come_so_far():
    before, _, after, named = answers(asked, "flow", "until param:model.0.weight", "flow", "flow model")
    assert before == (
        "0 of 4 parameters have a gradient: none\n"
        "  no gradient has arrived yet: they come at nodes 3 to 8 of this backward, and `run-to 8` goes there"
    )
    assert after == re.sub(r"\b(0\.(?:weight|bias))", r"model.\1", named)
    assert after.startswith("2 of 4 parameters have a gradient")


def test_flow_says_where_gradients_will_come_if_none_has():
    one, none = answers(asked, "flow [model[2].bias]", "flow head.parameters()")
    assert one.endswith("arrived yet: it comes at node 4 of this backward, and `run-to 4` goes there")
    assert none == (
        "0 of 2 parameters have a gradient: none\n"
        "  no gradient has arrived, and this backward brings none: `why NAME` tells why a parameter gets none"
    )


def test_why_takes_paths_modules_and_losses():
    lines = ["why 0.weight", "why model", "why head", "why head.weight, loss", "why"]
    path, model, whole, given, nothing = answers(asked, *lines)
    assert "reached, and this backward has not come to it yet" in model
    assert path == (
        "`model.0.weight`: reached: its gradient arrives at node 7 of this backward, which has not run yet\n"
        "  `run-to 7` goes there."
    )
    assert whole.startswith("2 of 2 parameters without a gradient")
    assert given.startswith(("`head.weight`: not reached", "`weight`: not reached"))
    assert nothing == "*** usage: why TENSOR [, LOSS]"


def test_backwards_are_compared_where_they_are_recorded():
    lines = ["compare", "record on", "nb", "nb", "compare", "compare 3", "compare 9"]
    first, *_, beside, itself, nothing = answers(lambda: train(mlp(), 3), *lines)
    assert first == "*** backward 1 is shown: there is none before it to compare it with"
    assert beside.startswith("backward 3 and backward 2: no difference in the 1 of 9 nodes")
    assert itself == "*** backward 3 is shown: compare it with another, such as `compare 2`"
    assert nothing.startswith("*** backward 9 has not begun")


def two_losses():
    """Train as a GAN is trained, with two losses in turns, and another at the end."""
    real, fake = gs.ones(3, requires_grad=True), gs.ones(3, requires_grad=True)
    for _ in range(2):
        (real * fake.detach()).sum().backward()
        (fake.exp() * 2).mean().backward()
    real.exp().sum().backward()


def test_a_backward_is_compared_with_the_last_of_the_same_loss():
    lines = ["record on", "nb", "nb", "compare", "nb", "compare", "nb", "compare"]
    second, third, last = answers(two_losses, *lines)[3::2]
    assert second.startswith("backward 3 and backward 1 (the last of the same loss): no difference")
    assert third.startswith("backward 4 and backward 2 (the last of the same loss): no difference")
    assert last.startswith("backward 5 and backward 4 (of another loss): the first difference is at node 0")


def test_two_nodes_are_compared_in_numbers():
    *_, beside, none = answers(lambda: train(mlp(), 1), "n", "n", "compare node 1", "compare node 99")
    title, _, *rows = beside.splitlines()
    assert re.fullmatch(r"#2 \w+.* and #1 \w+.*", title)
    assert sum(row.startswith(">") for row in rows) == 1
    assert sum("grad in norm" in row for row in rows) == 1
    assert none == "*** there is no node 99 in this backward: it has 9 nodes"


def test_parameters_are_listed_and_chosen_by_a_pattern():
    everything, weights, none = answers(lambda: train(mlp()), "parameters", "parameters *.weight", "parameters x")
    assert [line.split()[0] for line in everything.splitlines()] == [
        "parameter", "0.weight", "0.bias", "2.weight", "2.bias",
    ]  # fmt: skip
    assert len(weights.splitlines()) == 3
    assert none == "*** no parameter is called 'x'\n`parameters` lists all 4."


def test_a_recording_has_no_program_to_ask():
    said = io.StringIO()
    mode = LineMode(SimpleNamespace(), stdout=said)
    mode.obey("memory")
    assert said.getvalue() == "*** this is a recording: there is no program to ask\n"


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
    LineMode(session).run_commands(["step", "print grad", "continue", "quit"])
    out = capsys.readouterr().out.splitlines()
    assert [line for line in out if line.startswith("(gradscope)")] == [
        "(gradscope) step", "(gradscope) print grad", "(gradscope) continue",
    ]  # fmt: skip
    assert out[-1] == "(gradscope) continue"
    untouched = Debugger.for_call(product)
    with pytest.raises(UsageError, match="no command 'stepp'"):
        LineMode(untouched).run_commands(["step", "stepp"])
    assert untouched.state.value == "not started"


def test_the_past_can_be_walked_after_the_end():
    text, session, mode = talk(product, "step\ncontinue\nprint\np grad\nback\np grad\nwhere\nset 0\nlive\nquit\n")
    said = [part.partition("\n")[2].rstrip("\n") for part in text.split("(gradscope) ")[1:]]
    ended, printed, nothing, back, grad, where, set_, live, _ = said[1:]
    told = "the program has ended (exit status 0)"
    assert ended.startswith(f"{told}\n`back`, `goto` and `list` look at what was recorded")
    assert printed.startswith("node 1 of 3: MulBackward0  (done)"), "where it stopped last"
    assert nothing.startswith("*** the program is finished: nothing can be evaluated in it\n`back` goes to")
    free = "the nearest recorded node is #1: node 2 ran free (`record on` records it)"
    assert back.startswith(f"looking at node 1 of 3: MulBackward0 - {free}")
    assert grad == "tensor([1., 1.])"
    assert where.endswith("in product\n    (x * x).sum().backward()")
    assert set_ == "*** this node has run, and backward 1 has ended: its gradients cannot be changed"
    assert live == told
    assert (session.state.value, mode.failures) == ("finished", 2)


def test_saved_tensors_of_the_past_are_known_by_shape_and_version():
    text, _, _ = talk(product, "step\ncontinue\nback\nprint\np saved.self\n")
    assert "self  float32 (2)  version 0 ok" in text
    assert "*** RuntimeError: backward 1 has ended, and its saved tensors have been released" in text


@pytest.mark.parametrize("verb", ["step", "into", "out", "continue", "next-backward", "until op:Mul"])
def test_what_would_run_says_so_after_the_end_and_is_no_failure(verb):
    session, out = Debugger.for_call(product), io.StringIO()
    mode = LineMode(session, stdout=out)
    mode.run_commands(["continue", verb, "back", "print norm", "step"])
    said = out.getvalue()
    assert f"(gradscope) {verb}\nthe program is finished: it cannot go on\n`back` goes to" in said
    ended = "the program has ended (exit status 0); nodes 1 to 2 ran free (`record on` records them)"
    assert said.endswith(f"(gradscope) print norm\n1.0\n(gradscope) step\n{ended}\n")
    assert mode.failures == 0


def test_restart_after_the_end():
    text, session, _ = talk(product, "continue\nrestart\ncontinue\nquit\n")
    assert text.count("stopped before node 0 of 3: SumBackward0 - first node of backward 1") == 2
    assert text.count("the program has ended (exit status 0)") == 2
    assert session.state.ended


def test_a_program_without_a_backward_leaves_nothing_to_ask():
    text, session, _ = talk(lambda: None, "print\n")
    assert text == ""
    assert "finished without calling backward()" in session.conclusion()[1]


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


# --- the past, breakpoints of every kind, watches ---------------------------------------------------------------------


def test_finish_outside_of_a_module_is_refused():
    text, _, _ = talk(product, "finish\np index\nquit\n")
    assert "*** node 0 SumBackward0 belongs to no module that could be finished\n" in text
    assert "(gradscope) p index\n0\n" in text


def test_back_and_forth():
    text, session, _ = talk(product, "step 2\nback\nprint\np saved.other\nset 1\nstep\nrc\nlive\nback 99\ngoto 7\nc\n")
    assert "looking at node 1 of 3: MulBackward0 - one node back (recorded)\n" in text
    assert "self  float32 (2)  released, kept here:  norm 2.236" in text
    assert "(gradscope) p saved.other\ntensor([1., 2.])" in text
    assert "*** this node has run: go back to the live node to change a gradient" in text
    assert "stopped before node 2 of 3: AccumulateGrad  x - back where the program is" in text
    assert "looking at node 0 of 3: SumBackward0 - the first node that was recorded (recorded)" in text
    assert "*** there is no recorded node 7 here" in text
    assert session.conclusion()[0] == 0


def test_breakpoints_of_every_kind():
    lines = answers(
        lambda: train(mlp()), "b norm > 1e9", "log Relu :: f'{norm:.1f}'", "log Relu", "b iter:2", "ignore 1 3",
        "disable $", "b", "enable $", "catch", "catch nan off", "catch exception off", "catch fire", "c", "ignore 1",
    )  # fmt: skip
    assert lines[0] == "breakpoint 1: * if norm > 1e9, 8 of the nodes ahead in this backward"
    assert lines[1] == "logpoint 2: Relu :: f'{norm:.1f}', 1 of the nodes ahead in this backward"
    assert lines[2] == "*** usage: log SPEC [if CONDITION] :: EXPRESSION"
    assert lines[3] == "breakpoint 3: iter:2"
    assert lines[4] == "breakpoint 1 is passed by the next 3 times"
    assert lines[6].splitlines() == [
        "1  * if norm > 1e9  passed by 3 more times  (0 hits)",
        "2  Relu :: f'{norm:.1f}'  (0 hits)",
        "3  iter:2  disabled  (0 hits)",
    ]
    assert lines[8:11] == [
        "stops at: violation, exception, nan, inf",
        "stops at: violation, exception, inf",
        "stops at: violation, inf",
    ]
    assert lines[11].startswith("*** there is no 'fire' to catch")
    assert lines[12].splitlines()[0].startswith("logpoint 2 at node 5 ReluBackward0: ")
    assert "first node of backward 2" not in lines[12]
    assert "breakpoint 3 (iter:2)" in lines[12]
    assert lines[13] == "*** usage: ignore NUMBER COUNT"


def test_breakpoints_are_saved_and_read_back(tmp_path):
    path = tmp_path / "breaks"
    saved = answers(
        lambda: train(mlp()), "b mod:2 and norm > 3", "tbreak Relu", "log * :: norm", "ignore 1 2", "disable 3",
        "catch violation off", f"save-breaks {path}",
    )  # fmt: skip
    assert saved[-1] == f"wrote 3 breakpoints to {path}"
    assert path.read_text().splitlines() == [
        "break mod:2 if norm > 3", "ignore $ 2", "tbreak Relu", "log * :: norm", "disable $", "catch violation off",
    ]  # fmt: skip
    path.write_text("# mine\n" + path.read_text())
    read = answers(lambda: train(mlp()), f"source {path}", "b", f"source {tmp_path / 'none'}")
    assert "+ tbreak Relu\ntemporary breakpoint 2: Relu" in read[0]
    assert [line[:20] for line in read[1].splitlines()] == [
        "1  mod:2 if norm > 3",
        "2  Relu  once  (0 hi",
        "3  * :: norm  disabl",
    ]
    assert read[2] == f"*** {tmp_path / 'none'}: No such file or directory"


def test_a_file_that_reads_itself(tmp_path):
    path = tmp_path / "loop"
    path.write_text(f"source {path}\n")
    (text,) = answers(product, f"source {path}")
    assert "files that `source` each other go round in circles" in text


def test_watches_are_shown_at_every_stop():
    added, stopped, printed, listed, gone, none = answers(
        product, "watch norm", "step", "print", "watch", "unwatch 1", "watch"
    )
    assert added == "watch 1: norm = 1.0"
    assert stopped.splitlines()[-1] == "  watch 1: norm = 1.4142135623730951  (was 1.0)"
    assert printed.splitlines()[-1].startswith("watch 1: norm = 1.41")
    assert listed.startswith("watch 1: norm = ")
    assert (gone, none) == ("", "no watches")


def test_what_if_skip_until_restart_and_python():
    what, skipped, until, again, python, after = answers(
        product, "whatif grad * 3", "skip", "until op:Accum*", "restart", "!x = 3", "p x"
    )
    assert what.splitlines()[-1] == "  x          4.472  13.42     2"
    assert skipped == "node 0 SumBackward0 will be left out"
    assert "reached op:Accum*" in until
    assert again.startswith("started again in the same process")
    assert "stopped before node 0 of 3" in again
    assert (python, after) == ("", "3")


def test_threads_and_tasks():
    tasks, threads, thread, nobody = answers(product, "tasks", "threads", "thread 1", "thread 7")
    assert tasks == "backward 1 at node 0 of 3 SumBackward0"
    assert threads.startswith("> 1  ")
    assert thread == "stops in thread 1 only, from when the program goes on"
    assert nobody.startswith("*** there is no thread 7")


def test_a_typo_is_guessed():
    (typo,) = answers(product, "contineu")
    assert typo == "*** there is no command 'contineu'; did you mean 'continue'?"


class Terminal(io.StringIO):
    """Output to a terminal."""

    def isatty(self):
        return True


def test_long_output_comes_page_by_page(monkeypatch):
    monkeypatch.setenv("LINES", "4")
    monkeypatch.setenv("COLUMNS", "80")
    out, typed = Terminal(), iter(["list all", "", "q", "quit"])
    monkeypatch.setattr("builtins.input", lambda prompt: (out.write(prompt + "\n"), next(typed))[1])
    session = Debugger.for_call(lambda: train(mlp()))
    LineMode(session, stdin=Terminal(), stdout=out, stderr=out).run()
    assert out.getvalue().count("more lines; Enter goes on, q stops") == 2
    assert sum("AccumulateGrad" in line for line in out.getvalue().splitlines()) < 4


def test_pythons_own_debugger_in_a_custom_backward():
    class Custom(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            secret = grad * 21
            breakpoint()  # noqa: T100
            return secret

    def run():
        x = gs.ones(2, requires_grad=True)
        Custom.apply(x).sum().backward()
        GRADS.append(x.grad.tolist())

    text, session, _ = talk(run, "continue\np secret[0].item()\nsecret = grad\nc\n")
    assert "(Pdb) 21.0" in text
    assert session.conclusion()[0] == 0
    assert GRADS[-1] == [1.0, 1.0]


def test_pythons_own_debugger_obeys_no_pdbrc_of_the_current_directory(tmp_path, monkeypatch):
    (tmp_path / ".pdbrc").write_text("!print('ow' + 'ned')\n")
    monkeypatch.chdir(tmp_path)

    def run():
        x = gs.ones(2, requires_grad=True)
        x.register_hook(lambda grad: breakpoint())  # noqa: T100
        x.exp().sum().backward()

    text, session, _ = talk(run, "continue\np 6 * 7\nc\n")
    assert "(Pdb) 42" in text
    assert "owned" not in text
    assert session.conclusion()[0] == 0


@pytest.mark.parametrize(
    ("content", "said"), [(b"\xff\xfe", "not UTF-8 text"), (b"step\n" * 300_000, "is longer than")]
)
def test_a_file_of_commands_that_nobody_has_written_is_refused(tmp_path, content, said):
    (tmp_path / "commands").write_bytes(content)
    (answer,) = answers(product, f"source {tmp_path / 'commands'}")
    assert answer.startswith("*** cannot read")
    assert said in answer


def test_names_that_a_terminal_would_obey_are_shown():
    def run():
        model = gs.nn.Sequential()
        model.add_module("\x1b[2J\x9b1m\u202e", gs.nn.Linear(2, 2))
        model(gs.ones(1, 2)).sum().backward()

    listed, shown = answers(run, "list", "print 1")
    assert "\\x1b[2J\\x9b1m\\u202e" in listed
    assert not set(listed + shown) & set("\x1b\x9b\u202e")
