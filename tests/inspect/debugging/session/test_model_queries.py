"""What a session knows of modules and parameters."""

from __future__ import annotations

import pytest

import gradscope as gs
from gradscope.inspect import SessionError
from gradscope.inspect.debuggee.pause_gate import NotParkedError

from ...sessions import debugging, mlp, train, wait


def by_path(session):
    return {one.path: one for one in session.parameters()}


def test_nothing_is_known_before_the_program_has_started():
    with debugging(lambda: train(mlp())) as session, pytest.raises((NotParkedError, SessionError)):
        session.parameters()


def test_modules_have_kinds_and_arguments():
    with debugging(lambda: train(mlp())) as session:
        session.start()
        wait(session)
        found = {one.path: one for one in session.modules()}
        assert found["0"].kind == "Linear"
        assert found["0"].arguments == "in_features=3, out_features=4, bias=True"
        assert found[""].kind == "Sequential"


def test_a_module_that_cannot_say_what_it_is_has_no_arguments():
    class Odd(gs.nn.Linear):
        def extra_repr(self):
            raise ValueError("no")

    model = Odd(2, 1)
    with debugging(lambda: model(gs.ones(1, 2)).sum().backward()) as session:
        session.start()
        wait(session)
        assert [(one.kind, one.arguments) for one in session.modules()] == [("Odd", "")]


def test_norms_are_remembered_whether_backwards_are_stepped_or_run_free():
    seen = []

    def run():
        model = mlp()
        optimizer = gs.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(6):
            optimizer.zero_grad()
            model(gs.ones(2, 3)).sum().backward()
            seen.append(model[0].weight.grad.norm().item())
            optimizer.step()

    with debugging(run) as session:
        session.start()
        wait(session)
        assert all(one.recent == () and one.norm is None and one.index >= 0 for one in session.parameters())
        session.next_backward()
        wait(session)
        while session.current + 1 < len(session.nodes):
            session.step()
            wait(session)
        session.next_backward()
        wait(session)
        assert by_path(session)["0.weight"].recent == pytest.approx(seen, rel=1e-5)
        session.cont()
        assert wait(session) == "finished"
        weight = by_path(session)["0.weight"]
        assert weight.recent == pytest.approx(seen, rel=1e-5)
        assert len(seen) == 6
        assert weight.norm == weight.recent[-1]
        assert [one.path for one in session.modules()] == ["", "0", "1", "2"]


def test_a_parameter_that_another_backward_has_reached_is_not_called_unreached():
    def run():
        left, right = gs.nn.Linear(2, 1), gs.nn.Linear(2, 1)
        lost = gs.nn.Linear(2, 1)
        for _ in range(2):
            for model in (left, right):
                left.zero_grad()
                right.zero_grad()
                (model(gs.ones(1, 2)) + lost(gs.ones(1, 2)).detach()).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        for _ in range(3):
            session.next_backward()
            wait(session)
        unreached = [one.path for one in session.parameters() if one.unreached]
        assert unreached == ["lost.weight", "lost.bias"]
        (finding,) = [one for one in session.findings() if one.kind == "unreached"]
        assert finding.parameters == ("lost.weight", "lost.bias")


def test_leaves_of_no_module_and_frozen_parameters_are_listed():
    def run():
        model = gs.nn.Linear(2, 2)
        model.bias.requires_grad_(False)
        scale = gs.ones(2, requires_grad=True)
        (model(gs.ones(1, 2)) * scale).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        found = by_path(session)
        assert (found["bias"].requires_grad, found["bias"].unreached, found["bias"].index) == (False, False, -1)
        assert found["scale"].shape == (2,)
        session.cont()
        wait(session)
        assert by_path(session)["scale"].recent == (by_path(session)["scale"].norm,)


def test_pytorch_programs_are_known_alike(torch):
    def run():
        model = torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU(), torch.nn.Linear(2, 1))
        for _ in range(3):
            model(torch.ones(2, 3)).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.cont()
        assert wait(session) == "finished"
        found = by_path(session)
        assert [len(one.recent) for one in found.values()] == [3, 3, 3, 3]
        assert [one.kind for one in session.modules()] == ["Sequential", "Linear", "ReLU", "Linear"]


def test_the_last_backward_is_shown_though_an_evaluation_follows_it():
    def run():
        model = mlp()
        for _ in range(3):
            model.zero_grad()
            model(gs.ones(2, 3)).sum().backward()
        with gs.no_grad():
            model(gs.ones(2, 3))

    with debugging(run) as session:
        session.start()
        wait(session)
        session.cont()
        assert wait(session) == "finished"
        assert all(node.norm is not None for node in session.nodes)
        assert [len(one.recent) for one in session.parameters()] == [3, 3, 3, 3]
        assert [one.index >= 0 for one in session.parameters()] == [True] * 4


@pytest.mark.parametrize("bad", [False, True])
def test_a_program_that_has_ended_tells_how_gradients_flowed_by_the_norms_that_were_kept(bad):
    grads = {}

    def run():
        model, lost = mlp(), gs.nn.Linear(3, 3)
        x = lost(gs.ones(2, 3)).detach()
        (model(x).sum() * (float("nan") if bad else 1.0)).backward()
        grads.update((name, one.grad.norm().item()) for name, one in model.named_parameters())

    with debugging(run) as session:
        session.catch("nan", False)
        session.start()
        wait(session)
        session.cont()
        assert wait(session) == "finished"
        flow = session.gradient_flow()
        known = {one.name.removeprefix("model."): one for one in flow.parameters if one.grad_norm is not None}
        assert {name: one.grad_norm for name, one in known.items()} == pytest.approx(grads, nan_ok=True)
        assert [one.name.rpartition(".")[2] for one in flow.parameters[:2]] == ["weight", "bias"]
        assert all(one.grad_norm is None for one in flow.parameters[:2])
        assert flow.verdict == ("not finite" if bad else "ok")
        assert str(flow).startswith("4 of 6 parameters have a gradient")
        assert ("its gradient is not finite" in str(flow)) == bad
        with pytest.raises(SessionError, match="nothing can be evaluated"):
            session.gradient_flow("model")


@pytest.mark.parametrize("recorded", [False, True])
def test_the_end_shows_the_last_backward_whether_it_was_recorded_or_ran_free(recorded):
    def run():
        model = mlp()
        for _ in range(4):
            model(gs.ones(2, 3)).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        session.record_always = recorded
        session.cont()
        assert wait(session) == "finished"
        assert (session.task_index, session.current) == (4, len(session.nodes) - 1)
        assert all(node.state == "done" and node.norm is not None for node in session.nodes)
        assert len(session.backward_records(4)) == len(session.nodes)
