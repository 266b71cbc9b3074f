"""PyTorch programs under the sanitizer: what is found, what is left alone, and that nothing is changed."""

import contextlib
import gc
import io
import runpy
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

from gradscope.check import Sanitizer, ScriptResult, check_script, finding_as_text, make_report
from gradscope.check.formats.text_report import as_text
from gradscope.check.watching import watcher
from tests.inspect.adapters.packages import require_models_of_transformers

torch = pytest.importorskip("torch")

pytestmark = [pytest.mark.torch, pytest.mark.filterwarnings("ignore:::transformers")]

HERE = Path(__file__).parents[1] / "programs"
REAL = Path(__file__).parents[2] / "inspect" / "adapters" / "programs"


def leaf(*shape):
    return torch.ones(*shape, requires_grad=True)


def printed(run):
    """Return what a run prints, and what it returns."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        result = run()
    return output.getvalue().splitlines(), result


@pytest.mark.parametrize(
    ("script", "backwards"),
    [(HERE / "clean_torch.py", 15), (REAL / "gpt2.py", 2), (REAL / "bert.py", 2), (REAL / "transformer.py", 2)],
    ids=lambda value: getattr(value, "stem", ""),
)
def test_a_right_program_has_no_finding_and_computes_the_same_bits(script, backwards):
    if script.stem in ("gpt2", "bert"):
        require_models_of_transformers()
    plain, _ = printed(lambda: runpy.run_path(str(script), run_name="__main__"))
    watched, (sanitizer, result) = printed(lambda: check_script(str(script)))
    assert (sanitizer.findings, result.error, sanitizer.unseen) == ([], None, ())
    assert sanitizer.frameworks == ("PyTorch",)
    assert sanitizer.backwards == backwards
    assert sanitizer.writes > 0
    assert plain
    assert watched == plain


def test_a_bug_inside_a_transformer_is_found_on_its_line():
    sanitizer, result = check_script(str(HERE / "transformer_bug.py"))
    assert sanitizer.explains(result.error)
    (finding,) = sanitizer.findings
    assert [(f.code, f.node, f.occurrences) for f in (finding, *finding.also)] == [
        ("GS101", "AddmmBackward0", 2),
        ("GS101", "SoftmaxBackward0", 2),
    ]
    assert {f.written.source for f in sanitizer.findings} == {"gate.clamp_(min=0.01)"}
    assert sanitizer.findings[0].saved.source == "hidden = self.linear2(gate)"
    assert finding.also[0].saved.source == "gate = torch.softmax(self.linear1(x), dim=-1)"
    assert {f.read.source for f in sanitizer.findings} == {"loss.backward()"}
    assert {f.help for f in sanitizer.findings} == {"write `gate = gate.clamp(min=0.01)`"}


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}, {"foreach": False}], ids=str)
@pytest.mark.parametrize("kind", ["Adam", "SGD"])
def test_a_step_before_backward_names_optimizer_and_parameter(kind, options):
    model = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
    optimizer = getattr(torch.optim, kind)(model.parameters(), lr=0.1, **options)
    with Sanitizer() as sanitizer:
        model(torch.ones(2, 3)).sum().backward()
        loss = model(torch.ones(2, 3)).sum()
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.node, finding.tensor.name) == ("GS102", "AddmmBackward0", "model.1.weight")
    assert (finding.written.source, finding.read.source) == ("optimizer.step()", "loss.backward()")
    assert finding.sites[0].text == f"written here by {kind}.step"
    assert finding.tensor.shape == (1, 3)


def test_statistics_that_batch_norm_writes_spoil_what_it_saved_in_eval_mode():
    norm = torch.nn.BatchNorm1d(2)
    x = torch.arange(8.0).view(4, 2).requires_grad_()
    with Sanitizer() as sanitizer:
        y = norm.eval()(x).pow(2).sum()
        norm.train()(x)
        y.backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.node, finding.occurrences) == ("GS106", "NativeBatchNormBackward0", 2)
    assert [s.role for s in finding.sites] == ["saved", "read"]
    assert finding.help == "call backward() before the layer runs in training mode again"


def test_the_facts_of_a_finding():
    with Sanitizer() as sanitizer:
        y = leaf(3).exp()
        torch.add(torch.ones(3), 1, out=y.detach())
        y.mul_(2)
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert sanitizer.explains(caught.value)
    assert (sanitizer.backwards, sanitizer.writes) == (1, 2)
    assert (finding.saved_version, finding.current_version) == (0, 2)
    assert (finding.tensor.shape, finding.tensor.dtype, finding.tensor.saved_as) == ((3,), "float32", "result")
    assert finding.tensor.producer == "ExpBackward0"
    assert [(s.role, s.text) for s in finding.sites] == [
        ("written", "written here by add through detach(), which shares the memory"),
        ("saved", "saved here by ExpBackward0 as `result`"),
        ("read", "needed here: ExpBackward0 fails"),
        ("written again", "written again by mul_"),
    ]


def test_gradients_that_accumulate_are_no_writes_of_the_program():
    with Sanitizer() as sanitizer:
        w = leaf(3)
        for _ in range(3):
            (w * 2).sum().backward()
        w.grad.zero_()
    assert (sanitizer.backwards, sanitizer.writes) == (3, 1)


def test_the_nodes_that_would_have_failed_too_are_reported():
    with Sanitizer() as sanitizer:
        x = leaf(3)
        a = x.exp()
        b = x.tanh()
        a.add_(1)
        b.add_(1)
        with pytest.raises(RuntimeError):
            (a + b).sum().backward()
    assert {f.node: f.sites[-1].text for f in sanitizer.findings} == {
        "TanhBackward0": "needed here: TanhBackward0 fails",
        "ExpBackward0": "needed here: ExpBackward0 would fail",
    }


def test_nodes_that_grad_does_not_run_are_left_alone():
    with Sanitizer() as sanitizer:
        x, z = leaf(3), leaf(3)
        a, b = x.exp(), z.tanh()
        a.add_(1)
        b.add_(1)
        with pytest.raises(RuntimeError):
            torch.autograd.grad((a + b).sum(), x)
    assert [f.node for f in sanitizer.findings] == ["ExpBackward0"]


def test_a_custom_function():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx, grad):
            (x,) = ctx.saved_tensors
            return 2 * x * grad

    with Sanitizer() as sanitizer:
        x = leaf(3) * 1
        y = Square.apply(x)
        x.add_(1)
        with pytest.raises(RuntimeError):
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.node, finding.written.source) == ("GS101", "SquareBackward", "x.add_(1)")
    assert finding.saved.source == "y = Square.apply(x)"


@pytest.mark.parametrize("reentrant", [False, True])
def test_the_input_of_a_checkpoint(reentrant):
    with Sanitizer() as sanitizer:
        x = leaf(3) * 1
        y = torch.utils.checkpoint.checkpoint(torch.exp, x, use_reentrant=reentrant)
        z = y * y
        y.add_(1)
        with pytest.raises(RuntimeError):
            z.sum().backward()
    assert {(f.code, f.node, f.written.source) for f in sanitizer.findings} == {
        ("GS101", "MulBackward0", "y.add_(1)"),
    }


@pytest.mark.parametrize(
    ("refused", "kind"),
    [
        (lambda: torch.nn.functional.relu(leaf(3), inplace=True), "a leaf that requires grad"),
        (lambda: (leaf(4) * 1).split_with_sizes([1, 3])[0].zero_(), "returned by one operator (SplitWithSizes)"),
        (lambda: inference_view().mul_(2), "a view made in inference mode"),
        (lambda: inference_tensor().mul_(2), "an inference tensor"),
        (lambda: Flat.apply(leaf(3) * 1).add_(1), "a view returned by a custom Function (Flat)"),
    ],
)
def test_refused_writes(refused, kind):
    with Sanitizer() as sanitizer, pytest.raises(RuntimeError) as caught:
        refused()
    (finding,) = sanitizer.findings
    assert sanitizer.explains(caught.value)
    assert kind in finding.message
    assert finding.written is not None


class Flat(torch.autograd.Function):
    """Returns a view of its input."""

    @staticmethod
    def forward(ctx, x):
        return x.view(-1)

    @staticmethod
    def backward(ctx, grad):
        return grad


def inference_tensor():
    with torch.inference_mode():
        return torch.ones(3)


def inference_view():
    base = leaf(3) * 1
    with torch.inference_mode():
        return base.view(3)


def test_running_statistics_are_no_finding():
    norm = torch.nn.BatchNorm1d(3)
    x = torch.randn(4, 3, requires_grad=True)
    with Sanitizer() as sanitizer:
        first = norm(x)
        second = norm(x)
        (first + second).sum().backward()
    assert sanitizer.findings == []


def test_a_write_beside_the_saved_bytes_is_refused_by_pytorch_and_so_reported():
    with Sanitizer() as sanitizer:
        buffer = torch.zeros(4)
        y = (leaf(2) * buffer[:2]).sum()
        buffer[2:].add_(1)
        with pytest.raises(RuntimeError):
            y.backward()
    assert [f.code for f in sanitizer.findings] == ["GS101"]


def test_suppressed():
    with Sanitizer() as sanitizer:
        y = leaf(3).exp()
        y.add_(1)  # gradscope: ignore[GS101]
        with pytest.raises(RuntimeError) as caught:
            y.sum().backward()
    assert (sanitizer.findings, sanitizer.suppressed) == ([], 1)
    assert not sanitizer.explains(caught.value)


def test_other_threads_are_watched():
    def violate():
        y = leaf(3).exp()
        y.add_(1)
        with pytest.raises(RuntimeError):
            y.sum().backward()

    with Sanitizer() as sanitizer:
        thread = threading.Thread(target=violate)
        thread.start()
        thread.join()
    assert [f.code for f in sanitizer.findings] == ["GS101"]


def test_a_transform_that_nobody_can_look_into_is_told_of(monkeypatch):
    monkeypatch.setattr("gradscope.inspect.adapters.torch.engine_wrapper.BLIND", "a functorch transform")
    with Sanitizer() as sanitizer:
        torch.func.grad(lambda x: (x * x).sum())(torch.ones(3))
    (reason,) = sanitizer.unseen
    assert "a functorch transform" in reason
    text = as_text(make_report(sanitizer, ScriptResult("train.py", (), None, 0)))
    assert text == f"Nothing found: no backward pass ran.\nNot looked into: {reason}.\n"


def test_both_frameworks_in_one_program():
    import gradscope as gs

    with Sanitizer() as sanitizer:
        for framework in (gs, torch):
            y = framework.ones(3, requires_grad=True).exp()
            y += 1
            with pytest.raises(RuntimeError):
                y.sum().backward()
    (finding,) = sanitizer.findings
    assert (finding.occurrences, sanitizer.frameworks) == (2, ("gradscope", "PyTorch"))
    assert "`y` (float32 [3], output of ExpBackward0)" in finding_as_text(finding)


def test_nothing_is_kept_alive():
    def program(references):
        x = leaf(3)
        y = x.exp()
        references += [weakref.ref(x), weakref.ref(y)]
        y.add_(1)
        with contextlib.suppress(RuntimeError):
            y.sum().backward()

    references = []
    with Sanitizer() as sanitizer:
        program(references)
        gc.collect()
        assert [reference() for reference in references] == [None, None]
    assert len(sanitizer.findings) == 1


def test_nothing_is_left_in_pytorch():
    engine = torch.autograd._engine_run_backward
    with Sanitizer():
        (leaf(3) * 2).sum().backward()
    assert torch.autograd._engine_run_backward is engine
    assert torch._C._len_torch_function_stack() == 0
    assert torch._C._len_torch_dispatch_stack() == 0


def test_a_parameter_that_many_nodes_saved_is_looked_up_among_the_leaves_once(monkeypatch):
    walks = []
    nodes_of = watcher.nodes_of
    monkeypatch.setattr(watcher, "nodes_of", lambda *args: walks.append(args) or nodes_of(*args))
    with Sanitizer() as sanitizer:
        weight = torch.full((2, 2), 0.5, requires_grad=True)
        x = weight
        for _ in range(20):
            x = torch.tanh(x @ weight)
        weight.data.mul_(2)
        x.sum().backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.occurrences, finding.tensor.parameter) == ("GS106", 21, True)
    assert len(walks) == 1


@pytest.mark.parametrize("reentrant", [False, True])
def test_an_input_of_a_checkpoint_that_was_written(reentrant):
    from torch.utils.checkpoint import checkpoint

    x = torch.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        h = x * 2
        y = checkpoint(lambda h: h.sin().exp(), h, use_reentrant=reentrant)
        h.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation") as raised:
            y.sum().backward()
    (finding,) = sanitizer.findings
    assert sanitizer.explains(raised.value)
    assert (finding.code, finding.written.source, finding.read.source) == ("GS101", "h.add_(1)", "y.sum().backward()")
    assert (finding.saved_version, finding.current_version) == (0, 1)
    assert finding.tensor.saved_as == ("saved_tensors" if reentrant else "input of checkpoint()")
    assert finding.help == "write `h = h.add(1)`"


@pytest.mark.parametrize(
    ("make", "how"),
    [
        (lambda array: torch.from_numpy(array), "from_numpy()"),
        (lambda array: torch.as_tensor(array), "as_tensor()"),
        (lambda array: torch.frombuffer(array, dtype=torch.float32), "frombuffer()"),
    ],
    ids=["from_numpy", "as_tensor", "frombuffer"],
)
def test_the_line_that_made_a_tensor_of_an_array_is_known(make, how):
    array = np.ones(3, dtype=np.float32)
    w = torch.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        x = make(array)
        loss = (x * w).sum()
        array[0] = 5
        loss.backward()
    (finding,) = sanitizer.findings
    assert (finding.code, finding.sites[0].role) == ("GS106", "shared")
    assert finding.sites[0].text == f"its memory was handed out here by {how}, and has been written since"
    assert torch.from_numpy.__module__ != "gradscope.inspect.adapters.torch.forward_pass"


def test_as_tensor_that_copies_shares_nothing():
    array = np.ones(3)
    w = torch.ones(3, requires_grad=True)
    with Sanitizer() as sanitizer:
        x = torch.as_tensor(array, dtype=torch.float32)
        loss = (x * w).sum()
        array[0] = 5
        loss.backward()
    assert sanitizer.findings == []


class Scaled(torch.nn.Module):
    """A module with a buffer of its own, and one whose buffers PyTorch writes."""

    def __init__(self):
        super().__init__()
        self.norm = torch.nn.BatchNorm1d(3)
        self.register_buffer("scale", torch.ones(3))

    def forward(self, x):
        return self.norm(x) * self.scale


def test_buffers_are_told_of_by_their_paths():
    model = Scaled().eval()
    with Sanitizer() as sanitizer:
        loss = model(leaf(4, 3)).sum()
        model.norm.train()(torch.randn(8, 3))
        loss.backward()
        loss = model(leaf(4, 3)).sum()
        model.scale.add_(1)
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
    statistics, scale = sanitizer.findings
    told = "buffer `model.norm.running_mean` (float32 [3]) changed unnoticed as its layer ran in training mode, and "
    assert statistics.message.startswith(told)
    assert statistics.help == "call backward() before the layer runs in training mode again"
    assert (scale.code, scale.tensor.name) == ("GS101", "model.scale")
