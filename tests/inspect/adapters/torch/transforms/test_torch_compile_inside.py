"""Inside of what torch.compile has compiled: calls, lines, modules, numbers, and what cannot be known of them."""

import pytest

torch = pytest.importorskip("torch")

import gradscope.inspect as gi  # noqa: E402
from gradscope.inspect.adapters import Observer  # noqa: E402
from gradscope.inspect.adapters.torch import TorchAdapter  # noqa: E402

pytestmark = [
    pytest.mark.torch,
    pytest.mark.skipif(torch.__version__ < "2.8", reason="PyTorch 2.4 keeps no graph of what it has compiled"),
]

compiled_under_modes = pytest.mark.skipif(
    not hasattr(torch.utils._python_dispatch.TorchDispatchMode, "ignore_compile_internals"),
    reason="any dispatch mode keeps this PyTorch from compiling",
)


class Block(torch.nn.Module):
    """A layer whose function is not a module's."""

    def __init__(self):
        super().__init__()
        self.fc = torch.nn.Linear(4, 4)

    def forward(self, x):
        """Return what is compiled."""
        return torch.tanh(self.fc(x))


class Model(torch.nn.Module):
    """Two of them, and a head."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layers = torch.nn.ModuleList([Block(), Block()])
        self.head = torch.nn.Linear(4, 1)

    def forward(self, x):
        """Return a prediction."""
        for layer in self.layers:
            x = layer(x)
        return self.head(x)


class Watch(Observer):
    """Keeps the steps of each run."""

    def __init__(self):
        self.runs = []

    def compiled_ran(self, run):
        """Keep its calls, with the norms of the gradients that leave them."""
        self.runs.append([(step.operator, [float(grad.norm()) for grad in step.made]) for step in run.steps()])


@pytest.fixture
def without_cache():
    """Have regions compiled: those that come from the cache on the disk have no lines and no modules."""
    from torch._functorch import config

    with config.patch(enable_autograd_cache=False):
        yield


def loss_of(model, backend="aot_eager"):
    torch._dynamo.reset()
    return torch.compile(model, backend=backend)(torch.linspace(-1, 1, 12).reshape(3, 4)).sum()


def compiled_node(loss):
    (node, _), *_ = loss.grad_fn.next_functions
    return node


def gradients_of(model):
    return [parameter.grad.clone() for parameter in model.parameters()]


def test_the_calls_of_the_forward_pass_are_listed_last_first():
    loss = loss_of(Model())  # a node of PyTorch 2.8 is none any more where its graph has gone
    inside = TorchAdapter().inside(compiled_node(loss))
    assert [(one.operator.lower(), one.module) for one in inside] == [
        ("linear", "head"),
        ("tanh", "layers.1"),
        ("linear", "layers.1.fc"),
        ("tanh", "layers.0"),
        ("linear", "layers.0.fc"),
    ]
    assert {one.location.filename for one in inside} == {__file__}
    assert [one.location.function for one in inside] == ["forward"] * 5


def test_an_ordinary_node_has_nothing_inside():
    adapter = TorchAdapter()
    loss = torch.ones(2, requires_grad=True).sum()
    assert adapter.inside(loss.grad_fn) == adapter.withheld(loss.grad_fn) == ()


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
def test_a_run_beside_it_computes_what_the_region_computes(backend, without_cache):
    plain = Model()
    loss_of(plain, backend).backward()
    model, watch = Model(), Watch()
    with TorchAdapter().observe(watch, forward=True, backward=True):
        loss_of(model, backend).backward()
    assert all(map(torch.equal, gradients_of(plain), gradients_of(model)))
    (steps,) = watch.runs
    norms = {operator.module: made for operator, made in steps if operator.operator.lower() == "linear"}
    for name in ("head", "layers.1.fc", "layers.0.fc"):
        expected = {float(parameter.grad.norm()) for parameter in model.get_submodule(name).parameters()}
        assert all(any(value == pytest.approx(norm, rel=1e-5) for norm in norms[name]) for value in expected)


def test_an_observer_that_does_not_ask_changes_nothing():
    from torch._functorch._aot_autograd import runtime_wrappers

    before = runtime_wrappers.call_func_at_runtime_with_args
    seen = []

    class Idle(Observer):
        def node_exited(self, call):
            seen.append(runtime_wrappers.call_func_at_runtime_with_args)

    with TorchAdapter().observe(Idle(), forward=True, backward=True):
        loss_of(Model()).backward()
    assert set(seen) == {before}


def test_the_wrapper_is_gone_after_the_backward():
    from torch._functorch._aot_autograd import runtime_wrappers

    before = runtime_wrappers.call_func_at_runtime_with_args
    with TorchAdapter().observe(Watch(), forward=True, backward=True):
        loss_of(Model()).backward()
        assert runtime_wrappers.call_func_at_runtime_with_args is before


def test_the_report_says_which_lines_are_not_looked_into():
    loss = loss_of(Model())
    told = TorchAdapter().blind(compiled_node(loss))
    assert told.startswith("the forward pass of what torch.compile has compiled (5 calls, ")
    assert "test_torch_compile_inside.py:" in told


@compiled_under_modes
def test_a_region_without_a_graph_is_said_to_be_dark(monkeypatch):
    node = compiled_node(loss_of(Model()))
    monkeypatch.setattr(type(node)._forward_cls, "_lazy_backward_info", None)
    adapter = TorchAdapter()
    assert adapter.inside(node) == ()
    assert "kept no graph" in adapter.blind(node)
    with gi.Doctor() as doctor:
        loss = loss_of(Model())
        loss.backward()
    assert "the forward pass" in doctor.diagnosis.unseen[0]


@compiled_under_modes
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:dynamo_pgo force disabled")
def test_a_region_from_the_cache_on_the_disk_says_what_is_not_known_of_it_and_what_is():
    """What PyTorch keeps there of a graph has neither lines nor calls; its operators and numbers are the same."""
    from torch._functorch import config
    from torch._inductor import config as inductor
    from torch._inductor.utils import fresh_inductor_cache

    def blind_and_hits(model):
        torch._dynamo.utils.counters.clear()
        node = compiled_node(loss_of(model, "inductor"))
        return TorchAdapter().blind(node), torch._dynamo.utils.counters["aot_autograd"]["autograd_cache_hit"]

    with fresh_inductor_cache(), config.patch(enable_autograd_cache=True):
        plain = Model()
        loss_of(plain, "inductor").backward()
        told, hits = blind_and_hits(Model())
        assert (hits, told) == (
            1,
            "the forward pass of what torch.compile has compiled (16 operators in backward, without its lines: it came "
            "from a cache, which TORCHINDUCTOR_FORCE_DISABLE_CACHES=1 leaves out)",
        )
        model, watch = Model(), Watch()
        adapter = TorchAdapter()
        with adapter.observe(watch, forward=True, backward=True):  # for which it is compiled once more, and kept
            loss_of(Model(), "inductor").backward()
            loss_of(model, "inductor").backward()
        steps = watch.runs[-1]
        assert {(step.module, step.location) for step, _ in steps} == {("", None)}
        assert all(map(torch.equal, gradients_of(plain), gradients_of(model)))
        norms = [norm for _, made in steps for norm in made]
        expected = [float(gradient.norm()) for gradient in gradients_of(model)]
        assert all(any(norm == pytest.approx(value, rel=1e-5) for norm in norms) for value in expected)
        with torch.no_grad():
            model.head.weight.fill_(float("inf"))
        with gi.watch_nan() as watch:
            loss_of(model, "inductor").backward()
        assert watch.origin.first.location.filename == __file__
        with inductor.patch(force_disable_caches=True):  # what the sentence names
            told, hits = blind_and_hits(Model())
        assert (hits, "test_torch_compile_inside.py:" in told) == (0, True)


class Cut(torch.nn.Module):
    """A layer that the loss is cut off from, inside of what is compiled."""

    def __init__(self):
        super().__init__()
        self.first, self.second = torch.nn.Linear(4, 4), torch.nn.Linear(4, 1)

    def forward(self, x):
        """Return a prediction."""
        features = self.first(x).detach()
        return self.second(features)


def test_a_cut_inside_is_named_with_its_line():
    model = Cut()
    loss = loss_of(model)
    found = gi.why_no_grad(model.first.weight, loss)
    assert found.reason.value == "cut where it is compiled"
    assert [suspect.location.source for suspect in found.suspects] == ["features = self.first(x).detach()"]
    loss.backward()
    assert gi.why_no_grad(model.second.weight, loss).reason.value == "has a gradient"


def test_a_graph_lists_what_is_inside():
    model = Model()
    graph = gi.graph(loss_of(model), params=model)
    (inside,) = [data["inside"] for _, data in graph.nodes(data=True) if "inside" in data]
    assert len(inside) == 5
    text = gi.render_graph(graph, "text")
    assert "inside of CompiledFunctionBackward" in text
    assert "layers.1.fc" in text
    assert "tanh of layers.0" in gi.render_graph(graph, "graphml")
    assert "tanh of layers.0" in gi.render_graph(graph, "html")
