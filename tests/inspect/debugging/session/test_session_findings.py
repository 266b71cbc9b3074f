"""What a session finds wrong: before a backward has run, at a stop, and when the program has ended."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from os.path import basename

import pytest

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.debugging.prompt.plain_text import finding_text, place_of
from gradscope.inspect.diagnosis.nan.bad_values import inherited_in

from ...sessions import debugging, mlp, train, wait


def started(session):
    session.start()
    wait(session)


def kinds(session):
    return [finding.kind for finding in session.findings()]


def test_nothing_is_found_where_nothing_is_wrong():
    with debugging(lambda: train(mlp())) as session:
        assert session.findings() == ()
        started(session)
        assert session.findings() == ()
        session.cont()
        assert wait(session) == "finished"
        assert session.findings() == ()


def test_an_infinite_slope_is_known_before_it_runs_and_explained_where_it_has():
    def run():
        for _ in range(2):
            w = gs.tensor([0.0, 4.0], requires_grad=True)
            (w * w).sqrt().sum().backward()

    with debugging(run) as session:
        started(session)
        (ahead,) = session.findings()
        assert (ahead.kind, ahead.index) == ("slope", 1)
        assert ahead.title == "the gradient of Sqrt will be infinite where its result is 0 (1 of 2 elements)"
        for number in (1, 2):  # the second one runs free from its first node on
            session.cont()
            assert wait(session) == "paused after"
            assert (session.task_index, session.current) == (number, 1)
            (found,) = session.findings()
            assert (found.kind, found.severity, found.index) == ("inf", "error", 1)
            assert "the derivative of sqrt is infinite at 0" in found.text
            assert found.location.source == "(w * w).sqrt().sum().backward()"
            session.cont()
            assert wait(session) == "paused after"
            cause, found = session.findings()
            assert (cause.kind, cause.index) == ("inf", 1)
            assert (session.task_index, found.kind, found.index) == (number, "nan", 2)


def test_parameters_that_are_not_reached_are_told_with_the_line():
    def run():
        model = mlp()
        hidden = model[0](gs.ones(2, 3)).data
        model[2](model[1](hidden)).sum().backward()

    with debugging(run) as session:
        started(session)
        found = next(finding for finding in session.findings() if finding.kind == "unreached")
        assert found.location.source == "hidden = model[0](gs.ones(2, 3)).data"
        assert "read in the source and not seen running" in found.text
        assert found.likely
        assert f"likely {place_of(found.location)}" in finding_text(found)
        assert "likely" not in finding_text(replace(found, likely=False)).splitlines()[0]
        session.cont()
        assert wait(session) == "finished"
        assert "unreached" in kinds(session)


def test_a_saved_tensor_that_has_been_written_is_told_before_its_node_runs():
    def run():
        y = gs.ones(2, requires_grad=True).exp()
        z = (y * 2).sum()
        y.add_(1)
        z.backward()

    with debugging(run) as session:
        started(session)
        (found,) = session.findings()
        assert (found.kind, found.severity, found.index) == ("modified", "error", 2)
        assert found.location.source == "y.add_(1)"
        session.cont()
        wait(session)
        assert kinds(session) == ["violation"]


def test_sigmoids_in_a_row_are_told_before_and_their_effect_after():
    layers = [layer for _ in range(10) for layer in (gs.nn.Linear(8, 8), gs.nn.Sigmoid())]
    model = gs.nn.Sequential(*layers, gs.nn.Linear(8, 1))

    def run():
        for _ in range(2):
            model(gs.ones(2, 8)).sum().backward()

    with debugging(run) as session:
        started(session)
        assert kinds(session) == ["bounded"]
        assert "ReLU or GELU in their place" in session.findings()[0].text
        session.cont()
        assert wait(session) == "finished"
        (found,) = session.findings()
        assert found.kind == "vanishing"
        assert found.text.startswith("Sigmoid in `1`, `3`, `5` and 7 more does most of it: it multiplies the norm 10")
        assert all(node.norm is not None for node in session.nodes)
        assert session.task_index == 2
        (spec,) = re.findall("`break (.*)` stops at the first", found.text)
    with debugging(run) as session:
        session.breakpoint(spec)
        session.cont()
        assert wait(session) == "paused before"
        node = session.nodes[session.current]
        assert node.parameter
        assert 0 < node.norm < 1e-7


def small_weights(lib, std):
    layers = [lib.nn.Linear(16, 16, bias=False) for _ in range(8)]
    for layer in layers:
        lib.nn.init.normal_(layer.weight, std=std)
    return lib.nn.Sequential(*layers)


@pytest.mark.parametrize("name", ["gradscope", "torch"])
def test_values_that_fade_forward_are_told_before_anything_runs_with_the_line_of_the_weights(name):
    lib = pytest.importorskip(name)

    def run():
        lib.manual_seed(0)
        model = small_weights(lib, std=0.01)
        for _ in range(2):
            model(lib.ones(4, 16)).sum().backward()

    with debugging(run) as session:
        started(session)
        (found,) = session.findings()
        assert (found.kind, found.severity) == ("faded", "warning")
        assert found.title.endswith("on the way forward to 7.weight")
        assert "6 times, each time by about 0.0" in found.text
        assert re.search(r"has the size 0\.0\d+, where 1 / sqrt\(16\) = 0.25 keeps the values", found.text)
        assert found.location.source == "lib.nn.init.normal_(layer.weight, std=std)"
        for _ in range(2):
            session.step()
            wait(session)
        assert kinds(session) == ["faded"]
        session.cont()
        assert wait(session) == "finished"
        assert kinds(session) == ["faded"]


def test_a_finding_beyond_a_limit_that_is_set_is_one_no_more():
    layers = [layer for _ in range(7) for layer in (gs.nn.Linear(8, 8), gs.nn.Sigmoid())]
    model = gs.nn.Sequential(*layers, gs.nn.Linear(8, 1))
    told = []

    with debugging(lambda: model(gs.ones(2, 8)).sum().backward()) as session:
        session.add_listener(lambda event: told.append(event.kind))
        started(session)
        assert kinds(session) == ["bounded"]
        session.set_limit("bounded_chain=1e-6")
        assert (kinds(session), session.limits["bounded_chain"], told[-1]) == ([], 1e-6, "limits")
        session.set_limit("bounded_chain=1e-4")
        assert kinds(session) == ["bounded"]
        session.set_limit("bounded_chain=1e-6")
        session.cont()
        assert wait(session) == "finished"
        assert kinds(session) == []
        session.set_limit("norm_spread=2")
        session.set_limit("vanishing_norm=1")
        assert kinds(session) == ["vanishing"]


@pytest.mark.parametrize(
    ("setting", "text"),
    [
        (
            "dead=0.1",
            "no finding of the debugger's has the limit dead\nThe doctor's have: gradscope doctor",
        ),
        ("bounded=1", "there is no limit 'bounded'\nDid you mean one of bounded_chain"),
        ("bounded_chain=-1", "bounded_chain wants a number above 0, got '-1'"),
        ("recurrent_calls=2.5", "recurrent_calls wants a whole number above 0, got '2.5'"),
    ],
)
def test_a_limit_that_is_none_is_refused_and_nothing_is_changed(setting, text):
    with debugging(lambda: gs.ones(2, requires_grad=True).sum().backward()) as session:
        before = session.limits
        with pytest.raises(ValueError, match=re.escape(text)):
            session.set_limit(setting)
        assert session.limits == before


def test_values_that_keep_their_size_have_not_faded():
    def run():
        small_weights(gs, std=0.25)(gs.ones(4, 16)).sum().backward()

    with debugging(run) as session:
        started(session)
        assert session.findings() == ()


def test_what_runs_free_keeps_no_graph_once_the_program_goes_on():
    released = []

    class Watched(gs.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.kept = Witness()
            return x * 1

        @staticmethod
        def backward(ctx, grad):
            return grad

    class Witness:
        def __del__(self):
            released.append(True)

    seen = []

    def run():
        for _ in range(3):
            seen.append(len(released))
            Watched.apply(gs.ones(2, requires_grad=True)).sum().backward()

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "finished"
    assert seen[2] >= 1
    assert len(released) == 3


def test_in_pytorch_too(torch):
    def run():
        for _ in range(2):
            w = torch.tensor([0.0, 4.0], requires_grad=True)
            (w * w).sqrt().sum().backward()

    with debugging(run) as session:
        started(session)
        assert kinds(session) == ["slope"]
        for found in (["inf"], ["inf", "nan"]) * 2:
            session.cont()
            assert wait(session) == "paused after"
            assert kinds(session) == found


@pytest.mark.parametrize("name", ["gradscope", "torch"])
@pytest.mark.parametrize("asked", [False, True])
def test_an_infinity_keeps_its_reason_when_the_program_goes_on_and_the_nan_after_it_names_it(request, name, asked):
    lib = gs if name == "gradscope" else request.getfixturevalue("torch")

    def run():
        w = lib.tensor([0.0, 4.0], requires_grad=True)
        (w * 2).pow(2).sqrt().sum().backward()

    with debugging(run) as session:
        session.cont()
        assert (wait(session), session.reason.kind) == ("paused after", "inf")
        (stop,) = session.findings() if asked else (None,)
        session.step()
        wait(session)
        (infinity,) = session.findings()
        assert stop in (None, infinity)
        assert (infinity.index, infinity.location.source) == (1, "(w * 2).pow(2).sqrt().sum().backward()")
        assert "the derivative of sqrt is infinite at 0" in infinity.text
        assert "Add a small eps under the root" in infinity.text
        session.cont()
        assert (wait(session), session.reason.kind) == ("paused after", "nan")
        first, nan = session.findings()
        assert first == infinity
        place = f"{basename(infinity.location.filename)}:{infinity.location.lineno}"
        assert re.search(rf"came out of SqrtBackward0 \(#1\) at \S*{place}, before the NaN", nan.text)
        session.back()
        wait(session)
        assert session.findings() == (infinity, nan)
        session.go_live()
        session.cont()
        assert wait(session) == "finished"
        assert session.findings() == (infinity, nan)


def test_a_node_that_was_passed_while_nothing_is_caught_is_not_said_to_make_a_nan():
    with debugging(distances(gs)) as session:
        for kind in ("nan", "inf"):
            session.catch(kind, False)
        session.start()
        wait(session)
        session.next_backward()
        wait(session)
        assert session.task_index == 2
        while all(norm is None or math.isfinite(norm) for norm in (node.norm for node in session.nodes)):
            session.step()
            wait(session)
        (found,) = (one for one in session.findings() if one.kind == "nan")
        assert found.title.startswith("a NaN comes out of ")
        assert "since the forward pass" in found.text


@pytest.mark.parametrize("name", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_what_has_made_a_bad_value_of_the_forward_pass_is_told_beside_the_node_that_hands_it_on(name):
    lib = pytest.importorskip(name)

    def run():
        p = lib.tensor([0.0, 0.5], requires_grad=True)
        (p * p.log()).sum().backward()

    with debugging(run) as session:
        started(session)
        assert kinds(session) == ["slope"]
        session.cont()
        assert wait(session) == "paused after"
        stop, cause = session.findings()
        assert (stop.kind, session.nodes[stop.index].operator) == ("inf", "Mul")
        assert (cause.kind, session.nodes[cause.index].operator) == ("slope", "Log")
        assert "Keep the argument above 0" in cause.text


@pytest.mark.parametrize("always", [False, True])
def test_a_nan_that_enters_a_backward_is_caught_at_its_first_node(always):
    def run():
        w = gs.ones(2, requires_grad=True)
        (w * 2).backward(gs.tensor([float("nan"), 1.0]))

    session = Debugger.for_call(run)
    session.record_always = always
    session.cont()
    assert session.wait(20) == "paused before"
    assert session.reason.text == "a NaN enters this backward"
    session.abort()
    session.wait(20)


def distances(lib):
    """Return a program whose first backward makes a NaN, which its step takes into the parameter."""

    def run():
        w = lib.nn.Parameter(lib.zeros(2))
        optimizer = lib.optim.SGD([w], lr=0.1)
        for _ in range(2):
            loss = (w * 0).sqrt().sum() + (w - 1).pow(2).sum()
            loss.backward()
            optimizer.step()

    return run


@pytest.mark.parametrize("name", ["gradscope", "torch"])
def test_a_nan_that_was_there_in_the_forward_pass_is_not_said_to_be_produced(request, name):
    lib = gs if name == "gradscope" else request.getfixturevalue("torch")
    with debugging(distances(lib)) as session:
        session.cont()
        wait(session)
        (made,) = session.findings()
        while session.task_index == 1:
            session.cont()
            assert wait(session) == "paused after"
        node = session.nodes[session.current]
        (left,) = session.findings()
        assert session.reason.text == left.title
        assert re.fullmatch(
            rf"{node.name} hands on a NaN: its saved `\w+` has not been finite since the forward pass", left.title
        )
        told = re.sub(r" +", " ", left.text)
        assert "NaN of the forward pass is handed on by" in told
        assert "It is in the parameters already: `w`." in told
        assert f"The first infinity was made in backward 1, by {session_name(made)}" in told
        assert left.location == made.location
        assert session.explain() == left.text
        assert inherited_in(node) == node.inherited != ""
        assert inherited_in(session.inspect(node.index)) == node.inherited
        session.step()
        wait(session)
        assert session.findings() == (left,)
        assert inherited_in(session.nodes[node.index]) == node.inherited


def session_name(finding):
    """Return the node that a finding of a stop begins with."""
    return finding.title.split()[0]


def test_a_nan_that_an_operator_of_the_forward_pass_made_is_told_with_its_line():
    def run():
        w = gs.tensor([-1.0, 4.0], requires_grad=True)
        root = w.sqrt()
        (root * root).sum().backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        (found,) = session.findings()
        assert found.title.startswith("MulBackward0 hands on a NaN: its saved `")
        assert "the saved `result` of SqrtBackward0 at " in found.text
        assert found.location.source == "root = w.sqrt()"


@pytest.mark.parametrize("name", ["gradscope", "torch"])
def test_a_row_that_a_mask_leaves_nothing_of_is_told(request, name):
    lib = gs if name == "gradscope" else request.getfixturevalue("torch")

    def run():
        scores = lib.ones((3, 2, 4), requires_grad=True)
        padded = lib.tensor([[False] * 4, [True] * 4, [False, False, True, True]])
        weights = (scores * 2).masked_fill(padded[:, None], float("-inf")).softmax(-1)
        (weights * weights).sum().backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        (found,) = session.findings()
        assert found.location.source.startswith("weights = (scores * 2)")
        told = " ".join(found.text.split())
        assert "has it first: of 2 of 6 rows every entry was -inf (all of it is masked), or one was +inf." in told
        assert "Leave one entry of each row unmasked" in told


def test_the_two_models_of_a_gan_are_not_called_unreached():
    def run(*, trained):
        generator, critic = gs.nn.Linear(2, 3), gs.nn.Linear(3, 1)
        for _ in range(3):
            fake = generator(gs.ones(4, 2))
            critic.zero_grad()
            critic(fake.detach()).sum().backward()
            if trained:
                generator.zero_grad()
                critic(fake).sum().backward()

    def unreached(session):
        return [one.path for one in session.parameters() if one.unreached]

    lost = ["generator.weight", "generator.bias"]
    for trained in (True, False):
        with debugging(lambda trained=trained: run(trained=trained)) as session:
            started(session)
            assert unreached(session) == []  # whichever of the two is asked first
            assert kinds(session) == []
            session.step()
            wait(session)
            assert unreached(session) == []
            session.next_backward()
            wait(session)
            assert unreached(session) == ([] if trained else lost)
            assert kinds(session) == ([] if trained else ["unreached"])
            session.cont()
            assert wait(session) == "finished"
            assert kinds(session) == ([] if trained else ["unreached"])


def test_the_error_that_has_ended_a_program_is_the_first_finding():
    def run():
        gs.ones(2, requires_grad=True).sum().backward()
        raise ValueError("the batch has 7 columns,\nnot 8")

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "failed"
        (found,) = session.findings()
        assert (found.kind, found.severity, found.index) == ("exception", "error", -1)
        assert (found.title, found.text) == ("ValueError: the batch has 7 columns,", "not 8")
        assert found.location.source == 'raise ValueError("the batch has 7 columns,\\nnot 8")'


def test_an_error_that_left_a_backward_is_told_once():
    def run():
        w = gs.ones(2, requires_grad=True)
        w.register_hook(lambda grad: 1 / 0)
        w.exp().sum().backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        stop = session.findings()
        session.cont()
        assert wait(session) == "failed"
        assert (kinds(session), session.findings()) == (["exception"], stop)


def test_an_error_that_fails_to_give_its_text_is_told_all_the_same():
    class MuteError(Exception):
        def __str__(self):
            raise OSError

    def run():
        raise MuteError

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "failed"
        assert [found.title for found in session.findings()] == ["MuteError: <exception str() failed>"]
