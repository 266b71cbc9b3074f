"""What an observer hears of a forward pass in PyTorch, and that PyTorch is left as it was found."""

import functools
import gc
import threading
import warnings
import weakref

import numpy as np
import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters import Observer, adapter_for
from tests.inspect.adapters.watching import Heard

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch.overrides import TorchFunctionMode, _get_current_function_mode_stack  # noqa: E402

from gradscope.inspect.adapters.torch.forward_pass import CallMode, forward_tap  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def adapter():
    return adapter_for(torch.ones(()))


@pytest.fixture
def heard(adapter):
    return Heard(adapter)


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


# --- nodes and modules ------------------------------------------------------------------------------------------------


def test_each_call_tells_of_the_nodes_it_made_and_of_no_others(adapter, heard):
    before = leaf().exp()
    with adapter.observe(heard, forward=True, backward=False):
        y = nn.Linear(2, 2)(before.unsqueeze(0))
        nn.functional.mse_loss(y, torch.zeros(1, 2)).backward()
        torch.ones(2) * 2
        y.detach().argmax()
    assert heard.events == [
        ("recorded", "UnsqueezeBackward0"),
        ("module", "Linear"), ("recorded", "TBackward0"), ("recorded", "AddmmBackward0"), ("left", "Linear"),
        ("recorded", "MseLossBackward0"),
    ]  # fmt: skip


def test_the_nodes_of_a_call_are_told_of_together_the_first_one_first(adapter):
    class Together(Observer):
        def __init__(self):
            self.told = []

        def operators_recorded(self, nodes):
            self.told.append([adapter.node_name(node) for node in nodes])

    observer, layer = Together(), torch.nn.Linear(3, 2)
    with adapter.observe(observer, forward=True, backward=False):
        layer(torch.ones(1, 3)).exp()
    assert observer.told == [["TBackward0", "AddmmBackward0"], ["ExpBackward0"]]


def test_an_item_assignment_is_noted_though_it_returns_nothing(adapter, heard):
    y = leaf() * 1
    with adapter.observe(heard, forward=True, backward=False):
        y[0] = 3.0
    assert heard.events == [("recorded", "CopySlices")]


def test_a_module_that_raises_has_been_left(adapter, heard):
    with adapter.observe(heard, forward=True, backward=False):
        with pytest.raises(RuntimeError):
            nn.Sequential(nn.Linear(2, 2))(torch.ones(1, 3))
        nn.ReLU()(torch.ones(1))
    assert [kind for kind, _ in heard.events] == ["module", "module", "left", "left", "module", "left"]


def test_two_observers_hear_the_same(adapter, heard):
    other = Heard(adapter)
    with adapter.observe(heard, forward=True, backward=False):
        leaf().exp()
        with adapter.observe(other, forward=True, backward=False):
            leaf().sum()
        leaf().log()
    assert heard.of("recorded") == ["ExpBackward0", "SumBackward0", "LogBackward0"]
    assert other.of("recorded") == ["SumBackward0"]


def test_modules_that_compare_equal_are_told_apart():
    class Same(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(2, 2)

        def __eq__(self, other):
            return isinstance(other, Same)

        def __hash__(self):
            return 0

        def forward(self, x):
            return self.fc(x)

    one, two = Same(), Same()
    with gi.track():
        loss = two(one(torch.ones(1, 2))).sum()
    assert {d["module"] for _, d in gi.graph(loss).nodes(data=True)} == {"", "one.fc", "two.fc"}


# --- nothing else changes ---------------------------------------------------------------------------------------------


def test_pytorch_is_left_as_it_was_found(adapter):
    def state():
        return (
            torch.autograd.Function.__dict__["apply"],
            nn.Module._call_impl,
            torch.optim.Optimizer.zero_grad,
            threading.Thread._bootstrap_inner,
            torch.autograd._engine_run_backward,
            torch.autograd.graph._engine_run_backward,
            len(nn.modules.module._global_forward_hooks),
            len(nn.modules.module._global_forward_pre_hooks),
            _get_current_function_mode_stack(),
            torch.utils._python_dispatch._get_current_dispatch_mode(),
        )

    before = state()
    first = adapter.observe(Observer(), forward=True, backward=True, operators=True, writes=True)
    second = adapter.observe(Observer(), forward=True, backward=True)
    first.close()
    assert state() != before
    second.close()
    second.close()
    assert state() == before


def test_modules_are_seen_without_hooks_by_which_each_call_takes_pytorchs_slow_way(adapter, heard):
    with adapter.observe(heard, forward=True, backward=False):
        calls = nn.modules.module
        assert not calls._global_forward_hooks
        assert not calls._global_forward_pre_hooks
        nn.Linear(2, 1)(torch.ones(1, 2))
    assert heard.of("module") == heard.of("left") == ["Linear"]


def test_writes_are_looked_for_no_longer_than_somebody_wants_to_hear_of_them(adapter, heard):
    with adapter.observe(Observer(), forward=True, backward=False):
        with adapter.observe(heard, forward=False, backward=False, writes=True):
            torch.zeros(2).add_(1)
        assert torch.utils._python_dispatch._get_current_dispatch_mode() is None
        torch.zeros(2).add_(1)
    assert heard.of("written") == [("add_", 1)]


def test_no_module_backward_hook_is_ever_used(adapter):
    model = nn.Sequential(nn.ReLU(inplace=True), nn.Linear(2, 2))
    with adapter.observe(Observer(), forward=True, backward=True):
        y = model(torch.ones(1, 2) * 1)
        y += 1  # a full backward hook would refuse this: its output is a view made by a Function
        y.sum().backward()
        assert not nn.modules.module._global_backward_hooks
        assert not any(m._backward_hooks or m._backward_pre_hooks for m in model.modules())


class PassingMode(TorchFunctionMode):
    def __torch_function__(self, func, types, args=(), kwargs=None):
        return func(*args, **(kwargs or {}))


def test_the_mode_comes_off_below_modes_that_the_program_has_entered(adapter):
    observation, mine = adapter.observe(Observer(), forward=True, backward=False), PassingMode()
    mine.__enter__()
    observation.close()
    assert _get_current_function_mode_stack() == [mine]
    mine.__exit__(None, None, None)


@pytest.mark.parametrize("seldom_seen", ["step", "no_grad"])
def test_the_mode_goes_back_below_modes_that_the_program_has_entered(adapter, seldom_seen):
    model = nn.Linear(2, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with adapter.observe(Observer(), forward=True, backward=True):
        (own,) = _get_current_function_mode_stack()
        with PassingMode() as mode:
            if seldom_seen == "step":
                optimizer.step()
            else:
                with torch.no_grad():
                    model(torch.ones(1, 2))
            assert _get_current_function_mode_stack() == [own, mode]
        assert _get_current_function_mode_stack() == [own]


def test_a_mode_or_a_subclass_of_the_program_hears_of_its_own_calls_only(adapter):
    calls = []

    class Mine(TorchFunctionMode):
        def __torch_function__(self, func, types, args=(), kwargs=None):
            calls.append(func.__name__)
            return func(*args, **(kwargs or {}))

    x = leaf()
    with Mine(), adapter.observe(Observer(), forward=True, backward=True, operators=True):
        (x * 2).sum().backward()
    assert calls == ["mul", "sum", "backward"]


def test_inference_takes_the_fast_path_bit_for_bit(adapter):
    torch.manual_seed(0)
    model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2).eval()
    x = torch.randn(2, 5, 8)
    with torch.no_grad():
        plain = model(x)
        with adapter.observe(Observer(), forward=True, backward=True):
            watched = model(x)
            assert len(_get_current_function_mode_stack()) == 1
    assert np.array_equal(plain.numpy(), watched.numpy())


def test_a_module_that_turns_recording_on_again_is_seen(adapter, heard):
    class Inner(nn.Module):
        def forward(self, x):
            return x.exp()

    class Outer(nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = Inner()

        def forward(self, x):
            with torch.enable_grad():
                return self.inner(x)

    with adapter.observe(heard, forward=True, backward=False), torch.no_grad():
        Outer()(leaf())
    assert heard.of("recorded") == ["ExpBackward0"]


@pytest.mark.parametrize("closure", [False, True])
def test_an_optimizers_step_is_passed_over_and_its_closure_is_not(adapter, heard, closure):
    x = leaf()
    optimizer = torch.optim.SGD([x], lr=0.1)

    def loss():
        value = (x * x).sum()
        value.backward()
        return value

    with adapter.observe(heard, forward=True, backward=False):
        if closure:
            optimizer.step(loss)
        else:
            loss()
            optimizer.step()
        (x * 1).sum()
    assert heard.of("recorded") == ["MulBackward0", "SumBackward0"] * 2


def test_what_a_step_has_written_is_told_without_a_call_for_each_parameter(adapter, heard, monkeypatch):
    calls = []
    carry_out = CallMode.__torch_function__
    monkeypatch.setattr(CallMode, "__torch_function__", lambda *args: calls.append(args[1]) or carry_out(*args))

    def calls_of_step(parameters):
        optimizer = torch.optim.SGD(parameters, lr=0.1)
        for parameter in parameters:
            parameter.grad = torch.ones(2)
        with adapter.observe(heard, forward=True, backward=False, own_writes=True):
            calls.clear()
            optimizer.step()
            return len(calls)

    assert calls_of_step([leaf()]) == calls_of_step([leaf() for _ in range(10)])
    assert len(heard.of("written")) == 11


class Calls(Observer):
    """Notes how many tensors one call has written."""

    def __init__(self):
        self.written = []

    def tensors_written(self, writes):
        assert len({id(write.site) for write in writes}) == 1
        self.written.append([(write.operator, write.version) for write in writes])


def test_what_a_call_has_written_is_told_at_once(adapter):
    parameters, observer = [leaf(), leaf()], Calls()
    for parameter in parameters:
        parameter.grad = torch.ones(2)
    with adapter.observe(observer, forward=True, backward=False, own_writes=True):
        torch.optim.SGD(parameters, lr=0.1).step()
        parameters[0].detach().mul_(2)
        torch.stack(parameters)
    assert observer.written == [[("SGD.step", 1), ("SGD.step", 1)], [("mul_", 2)]]


class Groups(list):
    """The parameter groups of an optimizer, which note whether the calls of who goes through them are seen."""

    def __init__(self, groups):
        super().__init__(groups)
        self.seen = []

    def __iter__(self):
        self.seen.append(forward_tap.active)
        return super().__iter__()


def test_an_optimizer_lets_go_of_gradients_unseen_and_fills_them_with_zeros_seen(adapter):
    x, observer = leaf(), Calls()
    optimizer = torch.optim.SGD([x], lr=0.1)
    optimizer.param_groups = Groups(optimizer.param_groups)
    with adapter.observe(observer, forward=True, backward=False, own_writes=True):
        for set_to_none in (True, False):
            x.grad = torch.ones(2)
            optimizer.zero_grad(set_to_none)
            assert forward_tap.active
        optimizer.param_groups.append({"params": [None]})
        with pytest.raises(AttributeError):
            optimizer.zero_grad()
        assert forward_tap.active
    assert optimizer.param_groups.seen == [False, True, False]
    assert observer.written == [[("zero_", 1)]]
    assert "zero_grad" in vars(torch.optim.Optimizer)


class Operators(Observer):
    """Notes the operators that it is told of, those in steps where `steps` says so."""

    def __init__(self, steps):
        self.operators_of_steps = steps
        self.names = []

    def operator_ran(self, call):
        self.names.append(call.name)


class OwnStep(torch.optim.SGD):
    """An optimizer of the program's own."""

    def step(self, closure=None):
        for group in self.param_groups:
            group["params"][0].detach().mul_(0.5)
        return super().step(closure)


def hooked(parameters, lr):
    optimizer = torch.optim.SGD(parameters, lr=lr)
    optimizer.register_step_pre_hook(lambda optimizer, args, kwargs: None)
    return optimizer


@pytest.mark.parametrize(
    ("make", "steps", "told"),
    [
        (torch.optim.SGD, True, True),
        (torch.optim.SGD, False, False),
        (torch.optim.AdamW, False, False),
        (functools.partial(torch.optim.SGD, foreach=True), False, False),
        (functools.partial(torch.optim.SGD, differentiable=True), False, True),
        (OwnStep, False, True),
        (hooked, False, True),
    ],
)
def test_operators_of_a_step_are_told_to_whom_they_matter_and_those_of_the_program_to_all(adapter, make, steps, told):
    x = torch.ones(2)  # the step of a differentiable optimizer refuses a leaf that requires grad
    x.grad = torch.ones(2)
    optimizer = make([x], lr=0.1)
    observer = Operators(steps)
    with adapter.observe(observer, forward=False, backward=False, operators=True):
        with torch.no_grad():
            optimizer.step()
        during, observer.names = observer.names, []
        x.detach() * 2
    assert (bool(during), observer.names) == (told, ["detach", "mul"])


def test_a_step_is_told_of_where_it_matters_to_one_of_two(adapter):
    x = leaf()
    x.grad = torch.ones(2)
    one, other = Operators(False), Operators(True)
    with (
        adapter.observe(one, forward=False, backward=False, operators=True),
        adapter.observe(other, forward=False, backward=False, operators=True),
    ):
        torch.optim.SGD([x], lr=0.1).step()
    assert one.names == other.names != []


def test_a_step_that_raises_does_not_blind(adapter, heard):
    x = leaf()
    optimizer = torch.optim.SGD([x], lr=0.1)
    x.grad = torch.ones(2)
    optimizer.param_groups[0]["lr"] = "fast"
    with adapter.observe(heard, forward=True, backward=True):
        with pytest.raises(TypeError):
            optimizer.step()
        x.exp().sum().backward()
        x.log()
    assert "LogBackward0" in heard.of("recorded")


def test_nothing_is_kept_alive_with_the_collector_off(adapter):
    gc.collect()
    gc.disable()
    try:
        with adapter.observe(Observer(), forward=True, backward=True, operators=True, writes=True):
            x = leaf()
            y = x.exp()
            y.sum().backward()
            alive = [weakref.ref(x), weakref.ref(y), weakref.ref(x.grad)]
            del x, y
            assert [tensor() for tensor in alive] == [None, None, None]
    finally:
        gc.enable()


# --- threads ----------------------------------------------------------------------------------------------------------


def test_threads_of_the_program_are_seen_and_left_clean(adapter, heard):
    stacks = []

    def work():
        leaf().exp().sum().backward()
        stacks.append(len(_get_current_function_mode_stack()))

    with adapter.observe(heard, forward=True, backward=True):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert stacks == [1, 1, 1]
    assert sorted(heard.of("recorded")) == ["ExpBackward0"] * 3 + ["SumBackward0"] * 3
    assert heard.of("entered").count("AccumulateGrad") == 3


def test_a_thread_that_ran_before_is_seen_inside_modules_only(adapter, heard):
    go, stacks = threading.Event(), []

    def work():
        go.wait(10)
        nn.Linear(2, 2)(torch.ones(1, 2)).sum()
        stacks.append(_get_current_function_mode_stack())

    thread = threading.Thread(target=work)
    thread.start()
    with adapter.observe(heard, forward=True, backward=False):
        go.set()
        thread.join()
    assert heard.of("recorded") == ["TBackward0", "AddmmBackward0"]
    assert stacks == [[]]


# --- operators and writes ---------------------------------------------------------------------------------------------


def test_a_graph_that_was_made_on_another_thread_is_not_of_the_call_that_goes_on_from_it(adapter, heard):
    """Each thread counts its own sequence numbers, so those of the graph may be the higher ones."""
    w = torch.ones(2, 3, requires_grad=True)
    for _ in range(20):
        before = (w * 2).exp()
    losses = []

    def go_on():
        with adapter.observe(heard, forward=True, backward=False):
            losses.append(nn.functional.cross_entropy(before, torch.tensor([0, 1])))

    thread = threading.Thread(target=go_on)
    thread.start()
    thread.join()
    node, located = losses[0].grad_fn, []
    while adapter.variable(node) is None:
        located.append((adapter.node_name(node), adapter.location(node) is not None))
        node = node.next_functions[0][0]
    assert located == [
        ("NllLossBackward0", True),
        ("LogSoftmaxBackward0", True),
        ("ExpBackward0", False),
        ("MulBackward0", False),
    ]


def test_operators_that_ran_recorded_or_not(adapter, heard):
    x = leaf()
    with adapter.observe(heard, forward=False, backward=True, operators=True):
        y = 2 * x
        z = y.detach()
        with torch.no_grad():
            y.argmax()
        y.sum().backward()
        assert x.shape
    assert heard.of("ran") == [
        ("mul", 1, True), ("detach", 1, True), ("argmax", 1, False), ("sum", 1, True),
    ]  # fmt: skip
    assert z is not None


def test_writes_of_every_kind_are_told_with_their_version(adapter, heard):
    x, y = torch.zeros(3), torch.zeros(3)
    with adapter.observe(heard, forward=False, backward=False, writes=True):
        x.add_(1)
        x[1:].mul_(2)
        x[0] = 5.0
        torch.add(x, 1, out=y)
        torch._foreach_add_([x, y], 1)
    set_item = "fill_" if ("fill_", 3) in heard.of("written") else "copy_"  # PyTorch 2.15, and before it
    assert heard.of("written") == [
        ("add_", 1), ("mul_", 2), (set_item, 3),
        ("add", 1), ("_foreach_add_", 4), ("_foreach_add_", 2),
    ]  # fmt: skip
    assert (x._version, y._version) == (4, 2)


def test_no_dispatch_mode_stands_where_nothing_can_be_written(adapter):
    """It would cost several times what the function mode does, in the engine too."""
    modes = []

    def look(grad):
        modes.append(torch.utils._python_dispatch._get_current_dispatch_mode())

    with adapter.observe(Observer(), forward=True, backward=True, writes=True):
        x = leaf()
        y = nn.functional.softmax(x.exp(), 0)
        y.register_hook(look)
        y.sum().backward()
        look(None)
    assert modes == [None, None]


class AddOne(nn.Module):
    def forward(self, x):
        return x.add_(1)


def add_one(x: torch.Tensor) -> torch.Tensor:
    return x.add_(1)


def scripted(code):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return torch.jit.script(code)


def accumulate(x):
    w = torch.ones(3, requires_grad=True)
    w.grad = x
    (w * 2).sum().backward()


def write_in_hook(x):
    y = torch.ones(3, requires_grad=True) * 2
    y.register_hook(lambda grad: x.add_(1))
    y.sum().backward()


class AfterBackward(nn.Module):
    def forward(self, x):
        with torch.enable_grad():
            (torch.ones(3, requires_grad=True) * 2).sum().backward()
        return x.add_(1)


def step(x):
    w = torch.ones(3, requires_grad=True)
    w.data, w.grad = x, torch.ones(3)
    torch.optim.SGD([w], lr=1.0, foreach=False).step()


UNSEEN = {
    "a script": lambda x: scripted(add_one)(x),
    "a method of a script": lambda x: scripted(AddOne()).forward(x),
    "a module under no_grad": lambda x: torch.no_grad()(AddOne())(x),
    "after a backward in a module under no_grad": lambda x: torch.no_grad()(AfterBackward())(x),
    "a function that is told to": lambda x: nn.functional.relu(x, inplace=True),
    "by its place": lambda x: nn.functional.relu(x, True),
    "statistics": lambda x: nn.functional.embedding(torch.tensor([0]), x.view(3, 1), max_norm=0.5),
    "out": lambda x: torch.neg(torch.ones(3), out=x),
    "an overload": lambda x: torch.ops.aten.add_.Tensor(x, 1),
    "what a backward adds": accumulate,
    "a hook of a backward": write_in_hook,
    "a step": step,
}


@pytest.mark.parametrize("way", UNSEEN)
def test_no_way_of_writing_is_unheard(adapter, heard, way):
    x = torch.ones(3)
    with adapter.observe(heard, forward=True, backward=True, writes=True):
        UNSEEN[way](x)
    assert 1 in [version for _, version in heard.of("written")]


@pytest.mark.parametrize("all_writes", [True, False])
def test_what_initialises_a_tensor_writes_it(adapter, heard, all_writes):
    x = torch.zeros(3, 3)
    with adapter.observe(heard, forward=False, backward=False, writes=all_writes, own_writes=not all_writes):
        nn.init.normal_(x)
        nn.init.kaiming_uniform_(x)
        nn.init.constant_(x, 2.0)
        nn.init.zeros_(x)
    assert [version for _, version in heard.of("written")] == [1, 2, 3, 4]


def test_writes_in_inference_mode_have_no_version(adapter, heard):
    with adapter.observe(heard, forward=True, backward=False, operators=True, writes=True), torch.inference_mode():
        torch.zeros(3).add_(1)
    assert heard.of("written") == []
    assert ("add_", 1, False) in heard.of("ran")


@pytest.mark.parametrize("write", ["foreach", "fused"])
def test_the_version_check_is_never_hidden(adapter, write):
    """Under a dispatch mode PyTorch does not count what foreach and fused operators write."""
    x = torch.ones(2, requires_grad=True)
    with adapter.observe(Observer(), forward=True, backward=True, writes=True):
        y = x.exp()
        if write == "foreach":
            torch._foreach_mul_([y.detach()], 2.0)
        else:
            torch._fused_sgd_(
                [y.detach()], [torch.ones(2)], [], weight_decay=0.0, momentum=0.0, lr=0.1, dampening=0.0,
                nesterov=False, maximize=False, is_first_step=True,
            )  # fmt: skip
        with pytest.raises(RuntimeError, match="is at version 1; expected version 0 instead"):
            y.sum().backward()


@pytest.mark.parametrize("kinds", [{"forward": True}, {"forward": True, "operators": True}, {"writes": True}])
def test_tracing_is_as_without_an_observer(kinds):
    """What is traced a second time is compared, with the lines; what is printed has numbers in the place of tensors."""

    class Doubled(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = torch.nn.Linear(2, 1)

        def forward(self, x):
            return self.inner(x) * 2

    with adapter_for(torch.ones(1)).observe(Observer(), **{"forward": False, "backward": False, **kinds}):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            traced = torch.jit.trace(Doubled(), torch.ones(3, 2))
        assert "aten::mul" in str(traced.graph)
        traced(torch.ones(3, 2)).sum().backward()
    assert traced.inner.weight.grad.tolist() == [[6.0, 6.0]]


class ModulesAlone(Observer):
    """Hears which modules run, and asks for no lines of nodes."""

    places_of_nodes = False

    def __init__(self):
        self.heard = []

    def module_entered(self, module):
        self.heard.append(type(module).__name__)


def test_who_hears_of_modules_alone_puts_no_mode_around_calls(adapter):
    observer = ModulesAlone()
    model = torch.nn.Linear(2, 1)
    with adapter.observe(observer, forward=True, backward=False):
        loss = model(torch.ones(1, 2)).sum()
        assert _get_current_function_mode_stack() == []
        assert adapter.location(loss.grad_fn) is None
        with adapter.observe(Observer(), forward=True, backward=False):  # another may want more meanwhile
            assert adapter.location(model(torch.ones(1, 2)).sum().grad_fn) is not None
    assert _get_current_function_mode_stack() == []
    assert observer.heard == ["Linear", "Linear"]
