"""A violation names the lines that wrote what was saved."""

import threading

import pytest

import gradscope as gs
from gradscope.inspect.debugging.prompt.plain_text import node_text

from ...sessions import debugging, wait


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


def by_method(lib, saved):
    saved.add_(1)  # here


def by_assignment(lib, saved):
    saved *= 2  # here


def of_an_item(lib, saved):
    saved[0] = 0  # here


def under_no_grad(lib, saved):
    with lib.no_grad():
        saved.mul_(2)  # here


def through_a_view(lib, saved):
    saved.detach()[1:].zero_()  # here


def by_a_function(lib, saved):
    lib.nn.functional.relu(saved, inplace=True)  # here


def by_out(lib, saved):
    lib.mul(lib.ones(3), 2, out=saved.detach())  # here


def by_a_module(lib, saved):
    lib.nn.ReLU(inplace=True)(saved)  # here


def in_another_thread(lib, saved):
    thread = threading.Thread(target=lambda: saved.detach().neg_())  # here
    thread.start()
    thread.join()


WAYS = [
    by_method,
    by_assignment,
    of_an_item,
    under_no_grad,
    through_a_view,
    by_a_function,
    by_out,
    by_a_module,
    in_another_thread,
]


def stopped_by(way, lib):
    """Return why a session stops where a backward needs what `way` has written."""
    w = lib.ones(3, requires_grad=True)

    def run():
        saved = w.exp()
        way(lib, saved)
        saved.sum().backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        return session.reason


@pytest.mark.parametrize("way", WAYS, ids=lambda way: way.__name__)
def test_the_line_that_wrote_is_named(lib, way):
    reason = stopped_by(way, lib)
    assert reason.kind == "violation"
    (write,) = reason.writes
    assert write.name == "result"
    assert write.location.source.endswith("# here")


def test_what_wrote_is_named_as_its_method(lib):
    assert [stopped_by(way, lib).writes[0].operator for way in (by_method, by_assignment)] == ["add_", "mul_"]


def test_writes_are_told_in_their_order_and_a_loop_once(lib):
    def way(lib, saved):
        for _ in range(100):
            saved.add_(1)
        saved.mul_(2)

    assert [write.operator for write in stopped_by(way, lib).writes] == ["add_", "mul_"]


def test_a_write_before_it_was_saved_is_not_named(lib):
    w = lib.ones(3, requires_grad=True)

    def run():
        x = w * 2
        x.add_(1)
        loss = x.exp().sum() + (x * x).sum()
        x.mul_(3)
        loss.backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        assert [write.operator for write in session.reason.writes] == ["mul_"]


def test_the_step_of_an_optimizer_is_named(lib):
    model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1))
    optimizer = lib.optim.Adam(model.parameters(), lr=0.1)

    def run():
        first, second = model(lib.ones(1, 2)).sum(), model(lib.ones(4, 2)).sum()
        first.backward()
        optimizer.step()  # here
        second.backward()

    with debugging(run) as session:
        session.cont()
        wait(session)
        assert session.reason.kind == "violation"
        assert session.reason.writes[-1].location.source == "optimizer.step()  # here"


def test_it_is_told_before_the_node_is_come_to(lib):
    w = lib.ones(3, requires_grad=True)

    def run():
        saved = w.exp()
        saved.add_(1)  # here
        (saved * 2).sum().backward()

    with debugging(run) as session:
        session.start()
        wait(session)
        index = next(node.index for node in session.nodes if node.operator == "Exp")
        (saved,) = session.inspect(index).saved
        assert (saved.state, saved.saved_version, saved.current_version) == ("modified", 0, 1)
        assert [write.location.source for write in saved.writes] == ["saved.add_(1)  # here"]
        shown = node_text(session.inspect(index), session.nodes)
        assert "\n                   `result` was written by add_ at " in shown
        assert session.inspect(0).saved == ()


@pytest.mark.torch
def test_lists_are_written_too():
    torch = pytest.importorskip("torch")

    def way(lib, saved):
        torch._foreach_mul_([saved.detach()], 2.0)  # here

    (write,) = stopped_by(way, torch).writes
    assert write.operator == "_foreach_mul_"
    assert write.location.source.endswith("# here")


@pytest.mark.torch
def test_inference_tensors_and_transforms_count_no_versions():
    torch = pytest.importorskip("torch")

    def way(lib, saved):
        with torch.inference_mode():
            torch.ones(3).add_(1)
            torch.add(torch.ones(3), 1, out=torch.ones(3))
        torch.func.grad(lambda x: (x * 2).clone().add_(1).sum())(torch.ones(3))
        torch.vmap(lambda x: x.clone().mul_(2))(torch.ones(2, 3))
        torch.ones(2).to_sparse().mul_(2)
        saved.add_(1)

    assert [write.operator for write in stopped_by(way, torch).writes] == ["add_"]
