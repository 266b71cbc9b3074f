"""What is suspected: every silent violation of the catalogue, and hardly anything of a program that trains."""

from textwrap import dedent

import numpy as np
import pytest

from tests.check.test_script_runner_catalogue import BEHIND_A_BACK, SILENT

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.torch

from gradscope.inspect.adapters.torch.writes.suspicious_writes import suspect_writes  # noqa: E402


@pytest.fixture
def seen():
    """The suspicions, one entry each, while they are looked for."""
    found = []
    end = suspect_writes(lambda: found.append("suspicion"))
    yield found
    end()


def leaf(count=3):
    return torch.ones(count, requires_grad=True)


@pytest.mark.parametrize("program", [*SILENT, *BEHIND_A_BACK], ids=lambda p: f"{p.code} {p.row}")
def test_what_check_finds_without_an_error_is_suspected(program, seen):
    exec(f"import torch as gs\n{dedent(program.source)}", {"__name__": "__main__"})
    assert seen


def test_a_write_through_an_alias_that_was_there_before_is_suspected(seen):
    w = leaf()
    alias = w.data
    loss = (w * w).sum()
    alias.zero_()
    del alias
    loss.backward()
    assert seen == ["suspicion"]


class Unchecked(torch.autograd.Function):
    """Fills a part of a buffer past the version check, as solvers of differential equations do."""

    @staticmethod
    def forward(ctx, buffer, value, place):
        ctx.place = place
        buffer.data[place] = value
        return buffer

    @staticmethod
    def backward(ctx, grad):
        return grad, grad[ctx.place], None


def test_a_buffer_that_is_filled_part_by_part_is_not_suspected(seen):
    y, buffer = leaf().exp(), torch.zeros(3, 4)
    for place in range(4):
        buffer = Unchecked.apply(buffer, y, (..., place))
        y = (buffer[:, : place + 1] * buffer[:, place : place + 1]).sum(1)
    y.sum().backward()
    assert seen == []


class OldSGD(torch.optim.Optimizer):
    """As optimizers were written before there was no_grad(); `step` may keep an alias, or raise."""

    def __init__(self, parameters, keep=False, fail=False):
        super().__init__(list(parameters), {"lr": 0.1})
        self.aliases, self.keep, self.fail = [], keep, fail

    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            alias = parameter.data
            alias.add_(parameter.grad.data, alpha=-0.1)
            if self.keep:
                self.aliases.append(alias)
        if self.fail:
            raise ValueError("somebody else's")


def stepped(w, **how):
    """An optimizer that has stepped once, after a backward of its own graph."""
    optimizer = OldSGD([w], **how)
    w.pow(2).sum().backward()
    optimizer.step()
    return optimizer


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensors
        return 2 * x * grad


def test_a_function_that_has_released_what_it_saved_may_lie_in_a_graph(seen):
    x, w = leaf(), leaf()
    square = Square.apply(x)
    square.sum().backward()
    x.data.fill_(2)
    (grad,) = torch.autograd.grad((square * w).sum(), [w])
    assert torch.equal(grad, square)


class KeptInList(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.inputs = [None, x]
        return x * x

    @staticmethod
    def backward(ctx, grad):
        return 2 * ctx.inputs[1] * grad


def test_a_write_into_an_input_that_a_list_on_ctx_holds_is_suspected(seen):
    h = leaf() * 1
    y = KeptInList.apply(h)
    with torch.no_grad():
        h.add_(1)
    assert seen == []
    y.sum().backward()
    assert seen == ["suspicion"]


def test_a_step_between_forward_and_backward_is_suspected(seen):
    w = leaf()
    loss = (w * w).sum()
    stepped(w)
    assert seen == []
    loss.backward()
    assert seen == ["suspicion"]


def test_an_alias_that_a_step_has_kept_is_looked_after(seen):
    w = leaf()
    optimizer = stepped(w, keep=True)
    loss = (w * w).sum()
    optimizer.aliases[0].zero_()
    loss.backward()
    assert seen == ["suspicion"]


def test_after_a_step_that_has_raised_writes_are_suspected(seen):
    w = leaf()
    with pytest.raises(ValueError, match="somebody"):
        stepped(w, fail=True)
    loss = (w * w).sum()
    w.data.zero_()
    loss.backward()
    assert seen == ["suspicion"]


def test_nothing_is_compared_while_an_optimizer_steps(seen, monkeypatch):
    def compare(tensor):
        raise AssertionError("the memory is read")

    monkeypatch.setattr("gradscope.inspect.adapters.torch.writes.unversioned_writes.bits_there", compare)
    w = leaf()
    optimizer = stepped(w)
    for _ in range(3):
        optimizer.zero_grad()
        (w * w).sum().backward()
        optimizer.step()
    assert seen == []


def test_training_is_not_suspected(seen):
    model = torch.nn.Sequential(
        torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), torch.nn.ReLU(True), torch.nn.Linear(3, 1)
    )
    optimizer = torch.optim.Adam(model.parameters())
    for _ in range(3):
        x = torch.from_numpy(np.random.default_rng(0).standard_normal((5, 3)).astype("f"))
        loss = model(x).pow(2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        x.numpy().max()
        for parameter in model.parameters():
            parameter.data.clamp_(-1, 1)  # as weights were clamped before there was no_grad()
        model.eval()(x).sum()
        model.train()
    assert seen == []


def test_evaluation_after_training_is_not_suspected(seen):
    norm = torch.nn.BatchNorm1d(3)
    for _ in range(3):
        norm.train()(torch.randn(4, 3)).sum().backward()
        x = torch.randn(4, 3, requires_grad=True)
        norm.eval()(x).pow(2).sum().backward()  # reads its running statistics, which nothing writes meanwhile
    assert seen == []


class Writes(torch.nn.Module):
    """Writes the tensor that it is given, and returns another one."""

    def forward(self, x, fail=False):
        x.mul_(2)
        assert not fail
        return x + 1


@pytest.mark.parametrize("fail", [False, True])
def test_a_module_that_writes_what_it_is_given_is_suspected(seen, fail):
    h = leaf() * 1
    try:
        Writes()(h, fail=fail)
    except AssertionError:
        assert fail
    assert seen == ["suspicion"]
    with torch.no_grad():
        Writes()(h)
    assert seen == ["suspicion"]


def test_modules_run_as_fast_as_modules_without_hooks_do(seen):
    calls = torch.nn.modules.module
    tables = [calls._global_forward_hooks, calls._global_forward_pre_hooks]
    assert not any(tables)  # with any, each call of each module goes through PyTorch's slow path


def test_a_module_is_compiled_into_one_graph_as_without(seen):
    graphs = []

    def backend(graph, inputs):
        graphs.append([node.target for node in graph.graph.nodes if node.op == "call_function"])
        return graph.forward

    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3), Writes())
    x = torch.ones(2, 3)
    torch.compile(layer, fullgraph=True, backend=backend)(x).sum().backward()
    torch._dynamo.reset()
    assert len(graphs) == 1
    assert seen == []


def test_modules_under_transforms_run_as_they_do_without(seen):
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.ReLU(True))
    total = torch.func.grad(lambda x: torch.func.vmap(layer)(x).sum())(torch.ones(2, 3))
    assert total.shape == (2, 3)
    assert seen == []


def test_what_is_only_read_is_not_suspected(seen):
    h = leaf().exp()
    h.data.max(), h.detach().numpy().max(), np.asarray(h.detach()), h.data.tolist()
    h.sum().backward()
    assert seen == []


def test_a_result_that_was_changed_before_it_was_saved_is_not_suspected(seen):
    h = leaf() * 1
    h.data.sign_()
    h.pow(2).sum().backward()
    assert seen == []


def test_code_is_compiled_into_one_graph_as_without(seen):
    @torch.compile(fullgraph=True, backend="aot_eager")
    def loss_of(w, x):
        y = w * 2
        y[0] = 1
        return (y.data + x).mul(w).sum()

    w = leaf()
    loss_of(w, torch.ones(3)).backward()
    assert w.grad.tolist() == [2.0, 3.0, 3.0]
    torch._dynamo.reset()


def test_a_trace_has_the_operators_that_it_has_without():
    def function(x):
        x[0] = 1
        return x.data * 2

    def graph():
        return str(torch.jit.trace(function, torch.ones(3)).graph).partition("#")[0]

    without = graph()
    end = suspect_writes(lambda: None)
    try:
        assert graph() == without
    finally:
        end()


def test_nothing_is_left_behind():
    names = ("data", "numpy", "__dlpack__", "__setitem__", "register_hook")
    before = [torch.nn.Module._call_impl, *(vars(torch.Tensor).get(name) for name in names)]
    suspect_writes(lambda: None)()
    assert [torch.nn.Module._call_impl, *(vars(torch.Tensor).get(name) for name in names)] == before
    w = leaf()
    loss = (w * w).sum()
    w.data.zero_()
    loss.backward()
