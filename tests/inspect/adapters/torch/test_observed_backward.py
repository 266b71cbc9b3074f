"""What an observer hears of backward passes in PyTorch, and what it may change."""

import contextlib
import gc
import threading
import weakref

import pytest

from gradscope.inspect.adapters import Observer, adapter_for
from tests.inspect.adapters.watching import Heard
from tests.inspect.sessions import debugging, wait

torch = pytest.importorskip("torch")

from torch.autograd.graph import get_gradient_edge  # noqa: E402

from gradscope.inspect.adapters.torch import engine_wrapper  # noqa: E402
from gradscope.inspect.adapters.torch.observed_backward import reached  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.fixture
def adapter():
    return adapter_for(torch.ones(()))


@pytest.fixture
def heard(adapter):
    return Heard(adapter)


@pytest.fixture
def watching(adapter, heard):
    with adapter.observe(heard, forward=False, backward=True):
        yield heard


def leaf(*values):
    return torch.tensor(values or (1.0, 2.0), requires_grad=True)


class Editor(Observer):
    """Runs a function at each node, before or after it."""

    def __init__(self, before=None, after=None):
        self._before, self._after = before, after

    def node_entered(self, call):
        if self._before is not None:
            self._before(call)

    def node_exited(self, call):
        if self._after is not None:
            self._after(call)


# --- hearing ----------------------------------------------------------------------------------------------------------


def test_a_backward_from_its_start_to_its_end(watching):
    (leaf().exp() * 2).sum().backward()
    names = ["SumBackward0", "MulBackward0", "ExpBackward0", "AccumulateGrad"]
    told = [(kind, name) for name in names for kind in ("entered", "exited")]
    assert watching.events == [("started", 1), *told, ("finished",)]


class Forks(Heard):
    """Wants to hear of the end of nodes alone that hand gradients to several others."""

    exits_of_forks_alone = True


def test_ends_are_told_of_forks_alone_to_who_wants_no_others(adapter):
    def exits(*observers):
        x = leaf()
        y = x.exp() * 2
        with contextlib.ExitStack() as open_:
            for observer in observers:
                open_.enter_context(adapter.observe(observer, forward=False, backward=True))
            (y + y.sin()).sum().backward()
        return [[name for kind, *name in observer.events if kind == "exited"] for observer in observers]

    nodes = [["SumBackward0"], ["AddBackward0"], ["SinBackward0"], ["MulBackward0"], ["ExpBackward0"]]
    assert exits(Forks(adapter)) == [[["AddBackward0"]]]
    assert exits(Forks(adapter), Heard(adapter)) == [[["AddBackward0"]], [*nodes, ["AccumulateGrad"]]]


def test_a_node_no_longer_runs_once_the_next_has_a_hook_called(adapter):
    seen = []

    class Entries(Forks):
        def node_entered(self, call):
            self.call = call
            seen.append(adapter.task_is_at(call.task, call.node))

    entries = Entries(adapter)
    x = leaf()
    y = x.exp()
    y.register_hook(lambda grad: seen.append(adapter.task_is_at(entries.call.task, entries.call.node)))
    with adapter.observe(entries, forward=False, backward=True):
        y.sum().backward()
    assert seen == [True, False, True, True]


def test_nodes_are_reached_without_an_object_for_each_edge():
    total = leaf().sum()
    for _ in range(500):
        total = total * 2 + total
    gc.collect()
    before = len(gc.get_objects())
    nodes = reached([total.grad_fn])
    assert len(nodes) == 1002
    assert len(gc.get_objects()) - before < 1100  # the edges would be 3,000 tuples, of which the collector hears


def test_all_ways_to_run_a_backward(watching):
    x = leaf()
    x.sum().backward()
    torch.autograd.backward([x.sum(), x.exp().sum()])
    torch.autograd.grad(x.sum(), x)
    torch.autograd.grad([(x * x).sum()], [x], create_graph=True)[0].sum().backward()
    assert watching.of("started") == [1, 2, 1, 1, 1]


class Passing(Observer):
    """Notes what it is told in passing."""

    def __init__(self, adapter):
        self.adapter, self.told = adapter, []

    def node_reached(self, call):
        self.told.append(("reached", self.adapter.variable(call.node)))

    def leaf_filled(self, task, node):
        self.told.append(("filled", self.adapter.variable(node)))

    def node_passed(self, task, given, made):
        self.told.append(("passed", len(made)))
        return False


def test_in_passing_a_leaf_is_told_of_before_only_where_that_matters(adapter):
    empty, full, hooked = leaf(), leaf(), leaf()
    full.grad = torch.ones(2)
    hooked.register_post_accumulate_grad_hook(lambda leaf: None)
    observer = Passing(adapter)
    with adapter.observe(observer, forward=False, backward=True) as observation:
        observation.pass_by(True)
        for x in (empty, full, hooked):
            x.sum().backward()
        torch.autograd.grad(empty.sum(), [empty])
    expected = [("filled", empty), ("passed", 0), ("reached", full), ("passed", 0), ("reached", hooked), ("passed", 0)]
    heard = [one for one in observer.told if one != ("passed", 1)]
    assert [(kind, id(what)) for kind, what in heard] == [(kind, id(what)) for kind, what in expected]


class PassingLater(Passing):
    """Is told in passing after its first node, and as usual again after the next but one."""

    def attach(self):
        self.observation = self.adapter.observe(self, forward=False, backward=True)
        return self.observation

    def node_entered(self, call):
        self.told.append(("entered", self.adapter.node_name(call.node)))

    def node_exited(self, call):
        self.told.append(("exited", self.adapter.node_name(call.node)))
        self.observation.pass_by(sum(kind == "exited" for kind, _ in self.told) == 1)

    def node_passed(self, task, given, made):
        super().node_passed(task, given, made)
        if sum(kind == "passed" for kind, _ in self.told) < 2:
            return False
        self.observation.pass_by(False)
        return True


def test_nodes_are_told_of_in_passing_and_as_usual_again_within_a_backward(adapter):
    observer = PassingLater(adapter)
    with observer.attach():
        leaf().exp().sin().cos().sum().backward()
    assert observer.told == [
        ("entered", "SumBackward0"),
        ("exited", "SumBackward0"),
        ("passed", 1),
        ("passed", 1),
        ("exited", "SinBackward0"),
        ("entered", "ExpBackward0"),
        ("exited", "ExpBackward0"),
        ("entered", "AccumulateGrad"),
        ("exited", "AccumulateGrad"),
    ]


def test_a_node_that_is_left_out_stays_so_where_nodes_are_told_of_in_passing_meanwhile(adapter):
    class LeavesOut(PassingLater):
        def node_entered(self, call):
            super().node_entered(call)
            call.skip = True
            self.observation.pass_by(True)
            call.task._attend()  # as where another node has run, on the thread of a device

        def node_exited(self, call):
            self.told.append(("exited", call.grad_inputs))

    x, observer = leaf(), LeavesOut(adapter)
    with observer.attach():
        x.sum().backward()
    assert (observer.told[:2], x.grad) == ([("entered", "SumBackward0"), ("exited", [None])], None)


def test_the_node_that_fails_and_its_gradients_are_known_where_nodes_are_told_of_in_passing_since_a_stop(adapter):
    class Fails(PassingLater):
        def node_reached(self, call):
            self.told.append(("reached", self.adapter.node_name(call.node), call.grad_outputs[0].tolist()))

        def task_failed(self, task, error):
            self.told.append(("failed",))

    observer = Fails(adapter)
    hidden = leaf().exp()
    loss = (hidden.sin() * 2).sum()
    with torch.no_grad():
        hidden.add_(1)
    with observer.attach(), pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()
    assert observer.told[2:] == [("passed", 2), ("reached", "SinBackward0", [2.0, 2.0]), ("failed",)]


def test_tensor_hooks_have_run_before(adapter):
    x = leaf()
    y = x.exp()
    y.register_hook(lambda g: g * 10)
    seen = []
    look = lambda c: seen.append(c.grad_outputs[0].tolist())  # noqa: E731
    with adapter.observe(Editor(before=look), forward=False, backward=True):
        y.sum().backward()
    assert seen[1] == [10.0, 10.0]


def test_undefined_gradients_are_none_and_accumulate_grad_produces_nothing(adapter):
    _, second = leaf().unbind()
    seen = []
    look = lambda c: seen.append((c.grad_outputs, c.grad_inputs))  # noqa: E731
    with adapter.observe(Editor(after=look), forward=False, backward=True):
        second.backward()
    (outputs, _), (_, produced) = seen
    assert [outputs[0], outputs[1].item(), produced] == [None, 1.0, []]


def test_grad_of_some_inputs_runs_part_of_the_graph(adapter, watching):
    x, y = leaf(), leaf()
    tasks = []
    watching.task_started = tasks.append
    loss = (x.exp() * y.log()).sum()
    torch.autograd.grad(loss, [x], retain_graph=True)
    loss.backward(inputs=[y])
    torch.autograd.grad(loss, [get_gradient_edge(loss)], retain_graph=True, grad_outputs=[torch.ones(())])
    names = [[adapter.node_name(n) for n in task.nodes if adapter.task_runs(task, n)] for task in tasks]
    assert names == [
        ["SumBackward0", "MulBackward0", "ExpBackward0"],
        ["SumBackward0", "MulBackward0", "LogBackward0", "AccumulateGrad"],
        [],
    ]
    ran = watching.of("entered")
    assert ran == [name for task in names for name in task]


def test_double_backward_sees_the_nodes_that_the_first_made(watching):
    x = leaf(2.0)
    (first,) = torch.autograd.grad((x**3).sum(), x, create_graph=True)
    watching.events.clear()
    first.sum().backward()
    assert x.grad.item() == 12.0
    assert watching.of("entered").count("AccumulateGrad") == 1
    assert len(watching.of("entered")) > 4


def test_create_graph_nodes_stand_where_grad_was_called(adapter):
    x = leaf(2.0)
    with adapter.observe(Observer(), forward=True, backward=True):
        (first,) = torch.autograd.grad((x * x).sum(), x, create_graph=True)
    assert adapter.location(first.grad_fn).source.startswith("(first,) = torch.autograd.grad(")


class Nested(torch.autograd.Function):
    """Calls backward in its backward, over a leaf that the outer graph has too."""

    @staticmethod
    def forward(ctx, x, shared):
        ctx.save_for_backward(x, shared)
        return x.exp()

    @staticmethod
    def backward(ctx, grad):
        x, shared = ctx.saved_tensors
        with torch.enable_grad():
            y = x.detach().requires_grad_()
            (y.exp() * shared).sum().backward(grad.sum())
        return y.grad, None


def test_a_nested_backward_is_a_task_of_its_own(adapter):
    tasks, depth, x, shared = [], [], leaf(), leaf(1.0, 1.0)

    class Watch(Observer):
        def task_started(self, task):
            tasks.append(task)
            depth.append(task)

        def node_entered(self, call):
            assert call.task is depth[-1]
            seen.append((tasks.index(call.task), adapter.node_name(call.node)))

        def task_finished(self, task):
            assert depth.pop() is task

    seen = []
    accumulate = get_gradient_edge(shared).node  # noqa: F841 - the same node in both graphs
    with adapter.observe(Watch(), forward=False, backward=True):
        (Nested.apply(x, shared) + shared).sum().backward()
    outer, inner = ([name for task, name in seen if task == number] for number in (0, 1))
    assert outer == ["SumBackward0", "AddBackward0", "NestedBackward", "AccumulateGrad", "AccumulateGrad"]
    assert sorted(inner) == ["AccumulateGrad", "AccumulateGrad", "ExpBackward0", "MulBackward0", "SumBackward0"]
    assert seen.index((1, "SumBackward0")) == seen.index((0, "NestedBackward")) + 1


def test_backwards_on_several_threads_over_shared_nodes_do_not_mix(adapter):
    """Each has put hooks on the leaf that all of them share."""
    shared, errors = leaf(), []
    keep = get_gradient_edge(shared).node  # noqa: F841 - one AccumulateGrad for all
    barrier = threading.Barrier(3, timeout=10)

    class Watch(Observer):
        def task_started(self, task):
            barrier.wait()

        def node_entered(self, call):
            if call.task.thread_name != threading.current_thread().name:
                errors.append((call.task.thread_name, threading.current_thread().name))
            counts[call.task] += 1

    counts = {}

    class Named(Watch):
        def task_started(self, task):
            task.thread_name = threading.current_thread().name
            counts[task] = 0
            super().task_started(task)

    def work():
        (shared.exp() * 2).sum().backward()

    with adapter.observe(Named(), forward=False, backward=True):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert errors == []
    assert list(counts.values()) == [4, 4, 4]


# --- failing ----------------------------------------------------------------------------------------------------------


def test_a_refused_saved_tensor_is_told_before_the_failure_and_the_error_is_pytorchs_own(watching):
    y = leaf().exp()
    z = y.sum()
    y.detach().mul_(2)
    with pytest.raises(RuntimeError, match="Hint: enable anomaly detection") as caught:
        z.backward()
    assert watching.events[-2:] == [("violation", "result", 0, 1), ("failed", "RuntimeError")]
    error = caught.value
    assert (error.saved_name, error.saved_version, error.current_version) == ("result", 0, 1)
    assert (error.operator, error.shape) == ("ExpBackward0", (2,))


def test_a_refused_tensor_of_a_custom_function(watching):
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, other):
            ctx.save_for_backward(other, x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            return 2 * ctx.saved_tensors[1] * grad, None

    x = leaf() * 1
    y = Square.apply(x, torch.ones(2)).sum()
    x.detach().mul_(3)
    with pytest.raises(RuntimeError, match="modified by an inplace"):
        y.backward()
    assert watching.of("violation") == [("saved_tensors", 0, 1)]


def test_an_exception_in_a_backward_passes_through_unchanged(watching):
    raised = ValueError("out of cheese")

    def hook(grad):
        raise raised

    y = leaf().exp()
    y.register_hook(hook)
    with pytest.raises(ValueError, match="cheese") as caught:
        y.sum().backward()
    assert caught.value is raised
    assert watching.of("failed") == ["ValueError"]


def test_an_observer_may_raise_and_pytorch_is_usable_after(adapter):
    class Stop(BaseException):
        pass

    def stop(call):
        raise Stop

    x = leaf()
    with adapter.observe(Editor(before=stop), forward=False, backward=True):
        with pytest.raises(Stop):
            x.exp().sum().backward()
    assert x.grad is None
    x.sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.filterwarnings("ignore:Anomaly Detection has been enabled", "ignore:Error detected in ExpBackward0")
def test_anomaly_mode_and_an_observer_go_together(watching):
    with torch.autograd.detect_anomaly():
        y = leaf().exp()
        z = y.sum()
        y.detach().mul_(2)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            z.backward()
    assert watching.of("violation") == [("result", 0, 1)]


# --- changing ---------------------------------------------------------------------------------------------------------


def edit(name, change):
    def look(call):
        if call.node.name().startswith(name):
            change(call)

    return look


def test_replaced_gradients_are_used(adapter):
    x = leaf()

    def incoming(call):
        call.grad_outputs[0] = torch.tensor([5.0, 6.0])

    def produced(call):
        call.grad_inputs[0] = call.grad_inputs[0] * 10

    with adapter.observe(Editor(edit("Mul", incoming), edit("Mul", produced)), forward=False, backward=True):
        (x * 2).sum().backward()
    assert x.grad.tolist() == [100.0, 120.0]


@pytest.mark.parametrize("name", ["Exp", "torch::autograd::AccumulateGrad"])
def test_a_node_can_be_left_out(adapter, name):
    x, y = leaf(), leaf()

    def skip(call):
        call.skip = True

    with adapter.observe(Editor(edit(name, skip)), forward=False, backward=True):
        (x.exp() * (y if name == "Exp" else 1.0)).sum().backward()
    assert x.grad is None
    assert (y.grad is None) is (name != "Exp")


def test_hooks_are_gone_and_nothing_is_kept_with_the_collector_off(adapter):
    class Probe:
        pass

    gc.collect()
    gc.disable()
    try:
        with adapter.observe(Observer(), forward=True, backward=True):
            x = leaf()
            y = x.exp()
            y.grad_fn.metadata["probe"] = probe = Probe()
            alive = [weakref.ref(y), weakref.ref(probe)]
            loss = y.sum()
            loss.backward(retain_graph=True)
            loss.backward()
            del y, loss, probe
        assert [thing() for thing in alive] == [None, None]
    finally:
        gc.enable()


# --- keeping what nodes have saved ------------------------------------------------------------------------------------


class Keeper(Observer):
    def __init__(self, adapter):
        self.adapter, self.releases, self.states = adapter, [], []

    def task_started(self, task):
        self.release = self.adapter.keep_saved(task)

    def node_exited(self, call):
        self.states += [s.released for s in self.adapter.saved(call.node)]

    def task_finished(self, task):
        if self.release is not None:
            self.release()


def test_kept_saved_tensors_count_as_released_in_the_end(adapter):
    x = leaf()
    keeper = Keeper(adapter)
    y = x.exp()
    loss = y.sum()
    with adapter.observe(keeper, forward=False, backward=True):
        loss.backward()
        assert keeper.states == [False]
        assert [s.released for s in adapter.saved(y.grad_fn)] == [True]
        with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
            loss.backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        loss.backward()


def test_a_node_that_has_saved_nothing_runs_again_after_its_saved_tensors_were_kept(adapter):
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            return grad * 2

    x = leaf()
    loss = Double.apply(x).sum()
    with adapter.observe(Keeper(adapter), forward=False, backward=True):
        loss.backward()
    loss.backward()
    assert x.grad.tolist() == [4.0, 4.0]


def test_a_gradient_becomes_the_leafs_own_without_a_copy(adapter):
    sent = []

    class Passing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, grad):
            made = torch.full((2,), 3.0)
            sent.append(made.data_ptr())
            return made

    heard, x = [], leaf()
    observer = Editor(before=lambda call: None, after=lambda call: heard.append(call.grad_outputs[0].tolist()))
    with adapter.observe(observer, forward=False, backward=True):
        Passing.apply(x).sum().backward()
    assert x.grad.data_ptr() == sent[0]
    assert heard[-1] == [3.0, 3.0]  # what the leaf's node was given is told after it too


def test_nothing_is_kept_where_the_program_keeps_it_itself_or_it_is_too_late(adapter):
    keeper = Keeper(adapter)
    loss = leaf().exp().sum()
    with adapter.observe(keeper, forward=False, backward=True):
        loss.backward(retain_graph=True)
        assert keeper.release is None
        loss.backward()
    late = []
    look = lambda call: late.append(adapter.keep_saved(call.task))  # noqa: E731
    with adapter.observe(Editor(before=look), forward=False, backward=True):
        leaf().exp().sum().backward()
    assert late == [None] * 3


# --- where nobody can look --------------------------------------------------------------------------------------------


def test_functorch_transforms_that_let_nobody_out_run_unseen_and_are_told_of(watching, monkeypatch):
    monkeypatch.setattr(engine_wrapper, "BLIND", "a functorch transform lets nobody out")
    result = torch.func.grad(lambda t: (t * t).sum())(torch.tensor([3.0]))
    assert result.tolist() == [6.0]
    assert [kind for kind, *_ in watching.events] == ["blind"]
    assert "functorch" in watching.of("blind")[0]


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning")
def test_compiled_autograd_runs_unseen_and_is_told_of(watching):
    from torch._dynamo import compiled_autograd

    x = leaf()
    loss = (x.exp() * 2).sum()
    enable = getattr(compiled_autograd, "_enable", None) or compiled_autograd.enable  # before 2.6
    with enable(lambda module: module):
        loss.backward()
    assert [kind for kind, *_ in watching.events] == ["blind"]
    assert torch.equal(x.grad, 2 * x.detach().exp())


def test_a_session_says_that_a_backward_ran_unseen(monkeypatch):
    monkeypatch.setattr(engine_wrapper, "BLIND", "a functorch transform lets nobody out")

    def run():
        for _ in range(2):
            torch.func.grad(lambda t: (t * t).sum())(torch.ones(2))

    with debugging(run) as session:
        session.cont()
        assert wait(session) == "finished"
        assert session.conclusion()[0] == 0
        assert [line for line in session.log if "functorch" in line] == [session.log[0]]


def test_a_compiled_function_is_one_blind_node(adapter, watching):
    compiled = torch.compile(lambda t: (t.exp() * 2).sum(), backend="aot_eager")
    x = leaf()
    with adapter.observe(Observer(), forward=True, backward=True):
        loss = compiled(x)
        node = loss.grad_fn
        assert "torch.compile" in adapter.blind(node)
        loss.backward()
    assert torch.equal(x.grad, (2 * x.detach().exp()))
    assert watching.of("entered") == ["CompiledFunctionBackward", "AccumulateGrad"]
