"""The debugger on PyTorch: what can be asked of it is the same, and so are the answers."""

import functools
import io

import pytest

import gradscope.inspect as gi
from gradscope.inspect.debugging.session.debugger import ProgramEndedError
from tests.inspect.debugging.history.test_time_travel import go, started
from tests.inspect.sessions import debugging, wait
from tests.pytorch_versions import require_pytorch

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch


def mlp():
    torch.manual_seed(0)
    return torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.ReLU(), torch.nn.Linear(4, 2))


def train(model, steps=3):
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    torch.manual_seed(1)
    inputs, losses = torch.randn(8, 3), []
    for _ in range(steps):
        loss = (model(inputs) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


def test_training_is_bit_identical_whatever_is_asked():
    plain, watched, seen = mlp(), mlp(), []
    losses = train(plain)
    with debugging(lambda: seen.extend(train(watched))) as session:
        session.add_breakpoint("*", log="norm")
        session.add_watch("norm")
        started(session)
        for verb in (
            "step",
            "into",
            "back",
            "what",
            "go_live",
            "step",
            "back",
            "what",
            "next_backward",
            "back",
            "cont",
        ):
            if verb == "what":
                session.what_if(0, "grad * 3")
            else:
                getattr(session, verb)()
            wait(session)
        while not session.state.ended:
            go(session, "cont")
        assert session.error is None, session.traceback
    assert seen == losses
    for one, two in zip(plain.parameters(), watched.parameters()):
        assert torch.equal(one, two)


def test_the_past_has_its_gradients_and_saved_tensors():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x * x).sum().backward()) as session:
        started(session)
        go(session, "step", 2)
        session.back()
        assert session.evaluate("node.operator, grad.tolist(), norm") == ("Mul", [1.0, 1.0], pytest.approx(2**0.5))
        assert session.evaluate("[saved[0].tolist(), produced[0].tolist()]") == [[1.0, 2.0], [1.0, 2.0]]
        session.go_live()
        assert go(session, "cont") == "finished"
    assert x.grad.tolist() == [2.0, 4.0]


def test_the_past_of_a_gradient_inside_of_vmap_has_the_dimensions_that_vmap_hides():
    weight, rows = torch.ones(3), torch.tensor([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])
    per_row = torch.vmap(torch.func.grad(lambda w, row: (w * row).relu().sum()), in_dims=(None, 0))
    with debugging(lambda: per_row(weight, rows)) as session:
        started(session)
        go(session, "step", 2)
        session.back()
        assert session.evaluate("tuple(grad.shape), grad.sum().item()") == ((2, 3), 6.0)
        assert session.findings() == ()


def test_the_past_of_a_gradient_without_values_says_that_it_has_none():
    model = mlp().to("meta")
    with debugging(lambda: model(torch.ones(8, 3, device="meta")).sum().backward()) as session:
        started(session)
        go(session, "step", 3)
        session.back()
        with pytest.raises(RuntimeError, match="have no values"):
            session.evaluate("grad")
        assert session.findings() == ()


def test_a_second_backward_still_raises():
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def run():
        loss = (x * x).sum()
        loss.backward()
        loss.backward()

    with debugging(run) as session:
        started(session)
        go(session, "step")
        go(session, "cont")
        if session.state.paused:
            assert "second time" in session.reason.text
            go(session, "cont")
        assert isinstance(session.error, RuntimeError)
    assert x.grad.tolist() == [2.0, 4.0]


@pytest.mark.parametrize("index", [0, 2, 5])
def test_what_if_tells_what_a_run_with_that_gradient_gives(index):
    expected = {}
    for scale in (1, 3):
        model = mlp()
        with debugging(functools.partial(train, model, steps=1)) as session:
            started(session)
            if index:
                go(session, "step", index)
            found = session.what_if(0, "grad * 3")
            session.scale_grad(0, scale)
            go(session, "cont")
        expected[scale] = {name: p.grad.norm().item() for name, p in model.named_parameters()}
    assert found.complete
    for change in found.changes:
        # The second program asked after its gradient had been left alone, too.
        assert change.before == pytest.approx(expected[1][change.parameter], rel=1e-5)
        assert change.after == pytest.approx(expected[3][change.parameter], rel=1e-5)


def test_abort_puts_the_gradients_back():
    early, late = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    early.grad = torch.ones(2)
    with debugging(lambda: (late.exp().sum() + early.sum()).backward()) as session:
        session.add_breakpoint("op:Exp")
        go(session, "cont")
        assert early.grad.tolist() == [2.0, 2.0]
        session.abort()
        wait(session)
    assert (early.grad.tolist(), late.grad) == ([1.0, 1.0], None)
    with pytest.raises(ProgramEndedError):
        session.step()
    session.back()
    assert session.nodes[session.current].state == "pending", "it was about to run"
    assert (session.state.value, session.nodes[session.current].name) == ("replaying", "ExpBackward0")


def test_skip():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x.exp() * 2 + x).sum().backward()) as session:
        session.add_breakpoint("op:Exp")
        go(session, "cont")
        session.skip()
        assert session.nodes[session.current].state == "skipped", "it is seen before it happens"
        assert go(session, "cont") == "finished", session.traceback
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_node_is_left_out_where_the_program_runs_free_from_there():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    with debugging(lambda: (x.exp() * 2 + x).sum().backward()) as session:
        session.start()
        assert wait(session) == "paused before"
        while session.nodes[session.current].operator != "Exp":
            assert go(session, "step") == "paused before"
        session.skip()
        assert go(session, "cont") == "finished", session.traceback
    assert x.grad.tolist() == [1.0, 1.0]


def test_post_mortem_finds_the_node_that_failed():
    hidden = torch.ones(2, requires_grad=True).exp()
    loss = (hidden * 3).sum() + hidden.tanh().sum()
    with torch.no_grad():
        hidden.add_(1)
    said = io.StringIO()
    try:
        loss.backward()
    except RuntimeError as error:
        gi.post_mortem(error, commands=["print saved.result", "eval norm", "what-if 2.0", "step"], stdout=said)
    text = said.getvalue()
    assert "ExpBackward0 needs `result`, saved at version 0, but it has been written since and is at version 1" in text
    assert "\n  the gradients that arrived here are not known: PyTorch has let go of them\n" in text
    assert "tensor([3.7183, 3.7183]" in text
    assert text.count("*** the gradients that arrived here are not known") == 2, "norm and what-if need them"
    assert "*** this backward has failed and cannot go on; `quit` leaves" in text


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
@pytest.mark.parametrize("layout", [torch.strided, torch.jagged])
def test_a_nested_leaf_has_a_shape_with_what_is_known_of_it(layout):
    if layout is torch.jagged:
        require_pytorch(torch, "2.8")  # 2.4 cannot pad what is jagged

    def program():
        parts = [torch.ones(2, 3), torch.ones(4, 3)]
        nested = torch.nested.nested_tensor(parts, requires_grad=True, layout=layout)
        (nested * 2).to_padded_tensor(0.0).sum().backward()

    with debugging(program) as session:
        session.cont()
        assert (wait(session), session.error, session.log) == ("finished", None, [])
        (known,) = session.parameters()
        assert known.shape in ((2, -1, -1), (2, -1, 3))
