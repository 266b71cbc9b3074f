"""NaN and Inf that come out of what torch.compile has compiled: the call inside, its line and why."""

import pytest

torch = pytest.importorskip("torch")

import gradscope.inspect as gi  # noqa: E402
from tests.inspect.sessions import debugging, wait  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(
        not hasattr(torch.utils._python_dispatch.TorchDispatchMode, "ignore_compile_internals"),
        reason="any dispatch mode keeps this PyTorch from compiling",
    ),
]


def compiled(function):
    torch._dynamo.reset()
    return torch.compile(function, backend="aot_eager")


def zero_times_infinity(x):
    root = torch.sqrt(x)
    return (root * 0).sum()


def root(x):
    return (x**0.5).sum()


def overflow(x):
    return (x * 1e30).sum() * 1e30


def negative_root(x):
    return torch.sqrt(x - 1).exp().sum()


def origin_of(function, x):
    with gi.watch_nan() as watch:
        compiled(function)(x).backward()
    return watch.origin


def test_the_call_is_named_with_line_and_arithmetic():
    origin = origin_of(zero_times_infinity, torch.zeros(3, requires_grad=True))
    (producer,) = origin.producers
    assert (producer.direction, producer.value, producer.name) == ("backward", "NaN", "sqrt")
    assert producer.location.source == "root = torch.sqrt(x)"
    assert producer.text.startswith("0 * inf: the derivative of sqrt is infinite at 0")


def test_a_derivative_that_is_infinite_at_what_was_saved():
    (producer,) = origin_of(root, torch.zeros(3, requires_grad=True)).producers
    assert producer.value == "Inf"
    assert producer.text == "the derivative of x**p, p < 1, is infinite at 0"


def test_arithmetic_of_a_kernel():
    (producer,) = origin_of(overflow, torch.zeros(3, requires_grad=True)).producers
    assert producer.location.source == "return (x * 1e30).sum() * 1e30"
    assert producer.text.endswith("in the derivative of mul")


def test_what_was_bad_in_forward_is_said_to_be():
    (producer,) = origin_of(negative_root, torch.zeros(3, requires_grad=True)).producers
    assert (producer.direction, producer.name) == ("forward", "sqrt")
    assert producer.location.source == "return torch.sqrt(x - 1).exp().sum()"


@pytest.mark.filterwarnings("ignore:The .grad attribute")  # Dynamo's own, of an input that is no leaf
def test_what_comes_in_bad_is_not_blamed_on_the_region():
    x = torch.tensor([-1.0], requires_grad=True)
    with gi.watch_nan() as watch:
        compiled(lambda t: (t * 2).sum())(x.log()).backward()
    assert watch.origin.first.name == "log"


def test_finite_regions_are_silent():
    assert origin_of(root, torch.ones(3, requires_grad=True)).producers == ()


def test_parameters_that_are_bad_already_begin_nothing_new():
    w = torch.zeros(3, requires_grad=True)
    function = compiled(zero_times_infinity)
    with gi.watch_nan() as watch:
        for _ in range(3):
            function(w).backward()
            with torch.no_grad():
                w -= w.grad
            w.grad = None
    assert [producer.name for producer in watch.origin.producers] == ["sqrt"]


@pytest.mark.parametrize("verb", ["step", "cont"])
def test_the_debugger_stops_and_shows_the_inside(verb):
    x = torch.zeros(3, requires_grad=True)
    with debugging(lambda: compiled(zero_times_infinity)(x).backward()) as session:
        if verb == "step":
            session.step()
            assert wait(session) == "paused before"
        getattr(session, verb)()
        assert wait(session) == "paused after"
        assert session.reason.kind == "nan"
        node = session.node
        assert [one.operator for one in node.inside] == ["sum", "mul", "sqrt"]
        assert [one.bad for one in node.inside] == [0, 0, 3]
        assert "the derivative of sqrt is infinite at 0" in node.inside[-1].why
        told = session.explain()
        assert "inside of CompiledFunctionBackward" in told
        assert "root = torch.sqrt(x)" in told
        assert "root = torch.sqrt(x)" in node._repr_html_()
        session.abort()
        wait(session)


def test_a_recording_keeps_the_inside_of_the_first_backward_and_of_bad_ones(tmp_path):
    path = tmp_path / "run.gscope"
    x = torch.ones(3, requires_grad=True)
    function = compiled(zero_times_infinity)
    with gi.record(path):
        for _ in range(3):
            function(x).backward()
        with torch.no_grad():
            x.zero_()
        function(x).backward()
    with gi.open_recording(path) as recording:
        insides = [task.nodes[0].inside for task in recording.tasks()]
        assert [len(inside) for inside in insides] == [3, 0, 0, 3]
        assert insides[0][-1].made == 0.0
        assert insides[3][-1].bad == 3
        assert insides[3][-1].location.source == "root = torch.sqrt(x)"
        assert recording.events() == []
