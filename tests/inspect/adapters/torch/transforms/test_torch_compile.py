"""Programs that torch.compile compiles: the same graphs are compiled under an instrument, and the backward is seen."""

from contextlib import contextmanager

import pytest

torch = pytest.importorskip("torch")

import gradscope.inspect as gi  # noqa: E402
from gradscope.check import Sanitizer, ScriptResult, make_report  # noqa: E402
from gradscope.check.formats.text_report import as_text  # noqa: E402
from tests.inspect.sessions import debugging, wait  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not hasattr(torch.utils._python_dispatch.TorchDispatchMode, "ignore_compile_internals"),
        reason="any dispatch mode keeps this PyTorch from compiling",
    ),
]


class Graphs(list):
    """A backend that keeps how many calls are in each graph it is given."""

    def __call__(self, graph, inputs):
        self.append(sum(node.op.startswith("call") for node in graph.graph.nodes))
        return graph.forward


def with_a_break(graphs):
    """Train with a function of which torch.compile makes two graphs around a backward."""
    torch._dynamo.reset()
    w = torch.full((4, 4), 0.5, requires_grad=True)

    @torch.compile(backend=graphs)
    def train(x):
        loss = torch.relu(x @ w).sum()
        loss.backward()
        w.grad.mul_(2)
        return x * 3

    train(torch.ones(3, 4))
    return w.grad


@pytest.mark.parametrize("instrument", [Sanitizer, gi.Doctor, gi.Ledger], ids=lambda kind: kind.__name__)
def test_the_same_graphs_are_compiled(instrument):
    plain, watched = Graphs(), Graphs()
    expected = with_a_break(plain)
    with instrument():
        actual = with_a_break(watched)
    assert watched == plain
    assert torch.equal(actual, expected)


class Regions(Graphs):
    """A backend that keeps the same, and makes regions with a backward of their own."""

    def __call__(self, graph, inputs):
        super().__call__(graph, inputs)
        return torch._dynamo.lookup_backend("aot_eager")(graph, inputs)


def with_a_step(backend):
    """Train with a function that torch.compile breaks at a backward, of whose forward it has made a region."""
    torch._dynamo.reset()
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(3, 4), torch.nn.Tanh(), torch.nn.Linear(4, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.1)

    @torch.compile(backend=backend)
    def train(x):
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return [train(torch.ones(2, 3)).item() for _ in range(3)]


@contextmanager
def recorded(path):
    """Record a block, and see that it was recorded to its end."""
    with gi.record(path):
        yield
    with gi.open_recording(path) as recording:
        assert len(recording.tasks()) == 3


def test_a_whole_step_is_compiled_as_without_an_instrument(tmp_path, recwarn):
    plain = with_a_step("aot_eager")
    known = len(recwarn)
    for instrument in (Sanitizer(), gi.Doctor(), recorded(tmp_path / "run.gscope")):
        with instrument:
            assert with_a_step("aot_eager") == plain
    seen = []
    with debugging(lambda: seen.append(with_a_step("aot_eager"))) as session:
        session.cont()
        assert wait(session) == "finished", session.traceback
    assert seen == [plain]
    assert not [str(warning.message) for warning in recwarn.list[known:]]


@pytest.mark.parametrize("instrument", [Sanitizer, gi.Doctor, gi.Ledger], ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")
def test_a_whole_step_is_broken_where_it_is_without_an_instrument(instrument):
    plain, watched = Regions(), Regions()
    expected = with_a_step(plain)
    with instrument():
        actual = with_a_step(watched)
    assert len(watched) == len(plain)  # of an operator of Python's a mode makes another call
    assert actual == expected


def test_a_backward_between_two_graphs_is_seen():
    with Sanitizer() as sanitizer:
        with_a_break(Graphs())
    assert (sanitizer.backwards, sanitizer.findings, sanitizer.unseen) == (1, [], ())


def aot(x):
    torch._dynamo.reset()
    return torch.compile(lambda t: (t.exp() * 2).sum(), backend="aot_eager")(x)


def test_the_reports_name_what_was_compiled():
    x = torch.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer, gi.Doctor() as doctor:
        aot(x).backward()
    (reason,) = sanitizer.unseen
    assert "torch.compile" in reason
    assert as_text(make_report(sanitizer, ScriptResult("train.py", (), None, 0))).endswith(
        f"Not looked into: {reason}.\n"
    )
    assert doctor.diagnosis.unseen == (reason,)
    assert str(doctor.diagnosis).endswith(f"Not looked into: {reason}.")
    assert doctor.diagnosis.to_dict()["unseen"] == [reason]


def test_what_the_compiler_traces_is_no_backward_of_the_program():
    with debugging(lambda: aot(torch.ones(3, requires_grad=True))) as session:
        session.cont()
        assert wait(session) == "finished"
        assert session.log == []


def test_a_compiled_step_is_a_step():
    torch._dynamo.reset()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    step, graphs = None, Graphs()
    with gi.Doctor() as doctor:
        step = torch.compile(optimizer.step, backend=graphs)
        for _ in range(4):
            model(torch.ones(3, 2)).sum().backward()
            step()
            optimizer.zero_grad()
    assert graphs
    assert doctor.diagnosis.updates.findings == ()


def test_the_gradients_that_a_compiled_step_has_used_are_not_lost():
    torch._dynamo.reset()
    model = torch.nn.Linear(2, 1)
    optimizer = torch.optim.Adam(model.parameters(), lr=torch.tensor(0.1))
    step = torch.compile(lambda: optimizer.step(), backend="aot_eager")
    with gi.Doctor() as doctor:
        for take_step in (step, step, step, optimizer.step):
            model(torch.ones(3, 2)).sum().backward()
            take_step()
            optimizer.zero_grad()
    assert doctor.diagnosis.updates.findings == ()


def test_what_compiled_code_writes_is_written_in_the_function_that_was_compiled():
    torch._dynamo.reset()
    w = torch.ones(3, requires_grad=True)

    @torch.compile(backend="aot_eager")
    def shrink():
        with torch.no_grad():
            w.mul_(0.5)

    with Sanitizer() as sanitizer:
        loss = (w * w).sum()
        shrink()
        with pytest.raises(RuntimeError):
            loss.backward()
    (finding,) = sanitizer.findings
    assert finding.primary.filename == __file__
    assert finding.primary.function.endswith("shrink")
