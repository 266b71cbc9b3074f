import gc
import threading
import weakref

import numpy as np
import pytest

import gradscope as gs
from gradscope.check import Sanitizer
from gradscope.check.watching import watcher
from gradscope.runtime import call_sites, events, state


def violate():
    """Write what exp saved; backward raises."""
    x = gs.ones(3, requires_grad=True)
    y = x.exp()
    y.add_(1)
    with pytest.raises(gs.SavedTensorModifiedError):
        y.sum().backward()


def train(steps=20):
    """Return parameters and gradients of a small regression with in-place updates and an in-place activation."""
    rng = np.random.default_rng(0)
    x, y = (gs.from_numpy(rng.standard_normal(shape)) for shape in ((32, 5), (32, 3)))
    weights = [gs.from_numpy(rng.standard_normal(shape)).requires_grad_() for shape in ((5, 8), (8, 3))]
    for _ in range(steps):
        hidden = (x @ weights[0]).tanh_()
        error = hidden @ weights[1] - y
        (error * error).mean().backward()
        with gs.no_grad():
            for w in weights:
                w -= 0.1 * w.grad
                w.grad.zero_()
    (((x @ weights[0]).tanh() @ weights[1] - y) ** 2).mean().backward()
    return [a for w in weights for a in (w.detach().numpy(), w.grad.numpy())]


def test_parameters_and_gradients_are_bit_identical_with_and_without():
    without = train()
    with Sanitizer() as sanitizer:
        watched = train()
    assert sanitizer.findings == []
    assert (sanitizer.backwards, sanitizer.writes) == (21, 100)
    assert [a.tobytes() for a in watched] == [a.tobytes() for a in without]


def test_no_listener_is_left_behind():
    with Sanitizer():
        violate()
    assert not state.special
    assert not events.wanted(events.VersionBumped)


def test_one_finding_per_root_cause():
    with Sanitizer() as sanitizer:
        for _ in range(4):
            violate()
    (finding,) = sanitizer.findings
    assert finding.occurrences == 4


def test_findings_carry_the_facts():
    with Sanitizer() as sanitizer:
        violate()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.severity, finding.node) == ("GS101", "error", "ExpBackward0")
    assert (finding.saved_version, finding.current_version) == (0, 1)
    assert finding.tensor.shape == (3,)
    assert (finding.tensor.name, finding.tensor.dtype) == ("y", "float32")
    assert (finding.tensor.producer, finding.tensor.saved_as) == ("ExpBackward0", "result")
    assert [s.location.source for s in finding.sites] == ["y.add_(1)", "y = x.exp()", "y.sum().backward()"]
    assert finding.written.function == "violate"


def test_a_tensor_is_called_the_result_of_what_it_was_when_it_was_saved():
    x, w = gs.ones(2, 3, requires_grad=True), gs.ones(3, 3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.relu()
        z = y @ w
        y += z
        with pytest.raises(RuntimeError, match="output 0 of AddBackward0"):  # of the write, as PyTorch says
            z.sum().backward()
    (finding,) = sanitizer.findings  # one write is to blame
    assert [(f.node, f.tensor.producer) for f in (finding, *finding.also)] == [
        ("MmBackward0", "ReluBackward0"),
        ("ReluBackward0", "ReluBackward0"),
    ]


def test_the_nodes_that_would_have_failed_too_are_reported():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        a = x.exp()
        b = x.tanh()
        a.add_(1)
        b.add_(1)
        with pytest.raises(RuntimeError):
            (a + b).sum().backward()
    assert sorted(f.node for f in sanitizer.findings) == ["ExpBackward0", "TanhBackward0"]
    texts = {f.node: f.sites[-1].text for f in sanitizer.findings}
    assert texts == {
        "TanhBackward0": "needed here: TanhBackward0 fails",
        "ExpBackward0": "needed here: ExpBackward0 would fail",
    }


def test_nodes_that_grad_does_not_run_are_left_alone():
    x = gs.ones(3, requires_grad=True)
    z = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        a = x.exp()
        b = z.tanh()
        a.add_(1)
        b.add_(1)
        with pytest.raises(RuntimeError):
            gs.autograd.grad((a + b).sum(), x)
    assert [f.node for f in sanitizer.findings] == ["ExpBackward0"]


def test_every_further_line_that_wrote_is_named_once():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.exp()
        y.add_(1)
        for _ in range(30):
            y.mul_(1)
        with pytest.raises(RuntimeError):
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert finding.current_version == 31
    assert finding.written.source == "y.add_(1)"
    assert [s.location.source for s in finding.sites if s.role == "written again"] == ["y.mul_(1)"]


def test_of_many_further_lines_that_wrote_two_are_named():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.exp()
        y.add_(1)
        y.mul_(2)
        y.mul_(3)
        y.mul_(4)
        with pytest.raises(RuntimeError):
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert [s.location.source for s in finding.sites if s.role == "written again"] == ["y.mul_(2)", "y.mul_(3)"]


def test_parameter_is_named_by_its_path():
    class Model:
        def __init__(self):
            self.weight = gs.ones(3, requires_grad=True)

        def named_parameters(self):
            return [("fc.weight", self.weight)]

    model = Model()
    with Sanitizer() as sanitizer:
        loss = (model.weight * model.weight).sum()
        with gs.no_grad():
            model.weight.sub_(0.1)
        with pytest.raises(RuntimeError):
            loss.backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.tensor.name, finding.tensor.parameter) == ("GS102", "model.fc.weight", True)


def test_a_transposed_parameter_is_still_the_parameter():
    w = gs.ones(2, 3, requires_grad=True)
    x = gs.ones(4, 3, requires_grad=True)
    with Sanitizer() as sanitizer:
        loss = (x @ w.t()).sum()
        with gs.no_grad():
            w.sub_(0.1)
        with pytest.raises(RuntimeError):
            loss.backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.tensor.name, finding.tensor.shape) == ("GS102", "w", (2, 3))


def test_a_base_written_through_a_view_has_its_history_reported():
    x = gs.ones(2, 3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x * 2
        y.narrow(0, 0, 1).exp_()
        z = (y * y).sum()
        z.backward()
        with pytest.raises(RuntimeError):
            z.backward()
    (finding,) = sanitizer.findings
    assert finding.code == "GS104"
    assert finding.at("freed").lineno == finding.read.lineno - 2


def test_second_backward_into_a_written_view():
    x = gs.ones(2, 3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x * 2
        y.narrow(0, 0, 1).exp_()
        y.sum().backward()
        with pytest.raises(RuntimeError):
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.node) == ("GS104", "CopySlices")
    assert finding.at("freed").source == "y.sum().backward()"


def test_reading_a_saved_tensor_by_hand_is_reported_where_it_is_read():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.exp()
        y.add_(1)
        node = y.grad_fn.next_functions[0][0]
        with pytest.raises(RuntimeError):
            node._saved_result
    (finding,) = sanitizer.findings
    assert finding.read.source.startswith("node._saved_result")


def test_other_threads_are_watched():
    with Sanitizer() as sanitizer:
        thread = threading.Thread(target=violate)
        thread.start()
        thread.join()
    assert [f.code for f in sanitizer.findings] == ["GS101"]


def test_another_threads_operator_may_come_before_the_subscription_is_held(monkeypatch):
    subscribe = events.subscribe

    def and_run(*arguments, **options):
        subscription = subscribe(*arguments, **options)
        x = gs.ones(2, requires_grad=True)
        thread = threading.Thread(target=lambda: x * 2)
        thread.start()
        thread.join()
        return subscription

    monkeypatch.setattr(events, "subscribe", and_run)
    failures = []
    monkeypatch.setattr(threading, "excepthook", failures.append)
    with Sanitizer() as sanitizer:
        assert "gradscope" in sanitizer.frameworks
        gs.ones(2, requires_grad=True) * 2
        assert not events.wanted(events.OperatorRecorded)
    assert failures == []


def test_suppressed_on_the_line_of_the_write():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.exp()
        y.add_(1)  # gradscope: ignore[GS101]
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    assert (sanitizer.findings, sanitizer.suppressed) == ([], 1)
    assert not sanitizer.explains(caught.value)


def test_what_one_write_spoils_again_and_again_is_suppressed_once():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        for _ in range(3):
            y = x.exp()
            y.add_(1)  # gradscope: ignore[GS101]
            with pytest.raises(RuntimeError):
                y.sum().backward()
    assert (sanitizer.findings, sanitizer.suppressed, sanitizer.known) == ([], 1, 0)


def test_a_comment_for_another_code_does_not_suppress():
    x = gs.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        y = x.exp()
        y.add_(1)  # gradscope: ignore[GS102]
        with pytest.raises(RuntimeError):
            y.sum().backward()
    assert [f.code for f in sanitizer.findings] == ["GS101"]


def test_nothing_is_kept_alive():
    def program(references):
        x = gs.ones(3, requires_grad=True)
        y = x.exp()
        references += [weakref.ref(x), weakref.ref(y), weakref.ref(y.grad_fn)]
        y.add_(1)
        references.append(weakref.ref(y.grad_fn))
        try:
            y.sum().backward()
        except RuntimeError:
            pass

    references = []
    gc.disable()
    try:
        with Sanitizer() as sanitizer:
            program(references)
            gc.collect()
            assert [r() for r in references] == [None] * 4
        assert len(sanitizer.findings) == 1
    finally:
        gc.enable()


def test_a_training_loop_does_not_grow_without_the_collector():
    def nodes():
        return sum(type(o) in (gs.Tensor, call_sites.CallSite) for o in gc.get_objects())

    w = gs.ones(3, requires_grad=True)
    with Sanitizer():
        gc.collect()
        gc.disable()
        try:
            counts = []
            for step in range(40):
                (w * w).sum().backward()
                with gs.no_grad():
                    w -= 0.1 * w.grad
                w.grad = None
                if step in (19, 39):  # to walk over all objects takes long
                    counts.append(nodes())
        finally:
            gc.enable()
    assert counts[1] == counts[0]


def test_a_parameter_that_many_nodes_saved_is_looked_up_among_the_leaves_once(monkeypatch):
    walks = []
    nodes_of = watcher.nodes_of
    monkeypatch.setattr(watcher, "nodes_of", lambda *args: walks.append(args) or nodes_of(*args))
    with Sanitizer() as sanitizer:
        weight = gs.full((2, 2), 0.5, requires_grad=True)
        x = weight
        for _ in range(20):
            x = gs.tanh(x @ weight)
        weight.data.mul_(2)
        x.sum().backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.occurrences, finding.tensor.parameter) == ("GS106", 21, True)
    assert len(walks) == 1


@pytest.mark.torch
def test_pytorch_can_be_left_alone():
    torch = pytest.importorskip("torch")
    with Sanitizer(torch=False) as sanitizer:
        y = torch.ones(3, requires_grad=True).exp()
        assert torch._C._len_torch_function_stack() == torch._C._len_torch_dispatch_stack() == 0
        y.data.zero_()
        y.sum().backward()
        violate()
    assert [(finding.code, finding.node) for finding in sanitizer.findings] == [("GS101", "ExpBackward0")]
    assert sanitizer.frameworks == ("gradscope",)


@pytest.mark.parametrize("framework", ["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def test_functions_that_are_made_in_a_loop_go(framework):
    fw = pytest.importorskip(framework)
    made = []

    def once():
        class Double(fw.autograd.Function):
            @staticmethod
            def forward(ctx, x):
                ctx.save_for_backward(x)
                return x * 2

            @staticmethod
            def backward(ctx, grad):
                return grad * 2

        Double.apply(fw.ones(3, requires_grad=True)).sum().backward()
        made.append(weakref.ref(Double))

    with Sanitizer():
        for _ in range(3):
            once()
        gc.collect()
        assert [one() for one in made[:-1]] == [None, None]
