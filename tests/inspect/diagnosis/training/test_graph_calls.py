"""Which call has computed what a loss is given, where torch.compile has compiled one of them, or both."""

import shutil

import pytest

torch = pytest.importorskip("torch")

import gradscope.inspect as gi  # noqa: E402

functional = torch.nn.functional

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor that is not a leaf:UserWarning"),
    pytest.mark.skipif(torch.__version__ < "2.8", reason="PyTorch 2.4 keeps no graph of what it has compiled"),
]

BACKENDS = [
    "aot_eager",
    pytest.param(
        "inductor",
        marks=[pytest.mark.slow, pytest.mark.skipif(shutil.which("cc") is None, reason="inductor needs a C compiler")],
    ),
]


class Model(torch.nn.Module):
    """A layer, and a function of its result."""

    def __init__(self, function, classes=4):
        super().__init__()
        torch.manual_seed(0)
        self.layer, self.function = torch.nn.Linear(3, classes), function

    def forward(self, x):
        """Return what is compiled."""
        return self.function(self.layer(x))  # HERE


@pytest.fixture(autouse=True)
def without_cache():
    """Have regions compiled: those that come from the cache on the disk have no lines and no functions."""
    from torch._functorch import config

    torch.compiler.reset()
    with config.patch(enable_autograd_cache=False):
        yield


def found_in(step):
    """Return what is found where a loss is computed from eight samples."""
    torch.manual_seed(0)
    with gi.Doctor() as doctor:
        step(torch.randn(8, 3)).backward()
    return doctor.diagnosis.symptoms


def cross_entropy(result):
    return functional.cross_entropy(result, torch.arange(8) % 4)


def with_logits(result):
    return functional.binary_cross_entropy_with_logits(result, torch.ones_like(result))


def softmax(result):
    return torch.softmax(result, 1)


def squashed_and_reshaped(result):
    """Return a probability of each class behind another output that has a gradient, too."""
    return result.square().mean(), result.softmax(1).unsqueeze(0).reshape(-1, 4), result.detach()


@pytest.mark.parametrize("backend", BACKENDS)
def test_a_compiled_model_that_ends_in_a_softmax_is_found_out(backend):
    compiled = torch.compile(Model(torch.nn.Softmax(dim=1)), backend=backend)
    (symptom,) = found_in(lambda x: cross_entropy(compiled(x)))
    assert symptom.code == "D320"
    assert symptom.text.startswith("cross_entropy at ")
    assert "is given the result of the softmax `function` at " in symptom.text
    assert "with 4 classes it never falls below 0.74" in symptom.text
    assert symptom.location.source == "return self.function(self.layer(x))  # HERE"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("function", "loss", "said"),
    [
        (softmax, cross_entropy, "with 4 classes it never falls below 0.74"),
        (torch.sigmoid, with_logits, "it never falls below log 2"),
        (softmax, lambda result: functional.nll_loss(result, torch.arange(8) % 4), "takes the logarithm"),
        (softmax, lambda r: functional.nll_loss(r.log_softmax(1), torch.arange(8) % 4), "never falls below 0.74"),
    ],
)
@pytest.mark.parametrize("compiled", ["both", "model", "loss"])
def test_both_may_be_in_one_region_or_one_alone(backend, function, loss, said, compiled):
    model = Model(function)
    if compiled == "both":
        step = torch.compile(lambda x: loss(model(x)), backend=backend)
    elif compiled == "model":
        inner = torch.compile(model, backend=backend)
        step = lambda x: loss(inner(x))  # noqa: E731
    else:
        outer = torch.compile(loss, backend=backend)
        step = lambda x: outer(model(x))  # noqa: E731
    (symptom,) = found_in(step)
    assert symptom.code == "D320"
    assert said in symptom.text


def test_of_several_outputs_the_one_that_the_loss_is_given_counts():
    compiled = torch.compile(Model(squashed_and_reshaped), backend="aot_eager")

    def of_the_probabilities(x):
        penalty, probabilities, _ = compiled(x)
        return cross_entropy(probabilities) + penalty

    def of_the_penalty(x):
        penalty, probabilities, _ = compiled(x)
        return with_logits(penalty) + probabilities.square().sum()

    assert [symptom.code for symptom in found_in(of_the_probabilities)] == ["D320"]
    assert found_in(of_the_penalty) == ()


def test_probabilities_that_two_things_use_are_seen_too():
    def step(x):
        probabilities = model(x)
        return cross_entropy(probabilities) + probabilities.square().mean()

    model = Model(softmax)
    (symptom,) = found_in(torch.compile(step, backend="aot_eager"))
    assert symptom.code == "D320"


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    "function",
    [
        lambda result: result,
        lambda result: result + softmax(result),
        lambda result: 10 * softmax(result),
        lambda result: softmax(result).log(),
        lambda result: torch.relu(result) - 1,
    ],
    ids=["logits", "residual", "scaled", "logarithm", "shifted"],
)
def test_of_what_is_no_probability_nothing_is_said(backend, function):
    model = Model(function)
    assert found_in(torch.compile(lambda x: cross_entropy(model(x)), backend=backend)) == ()
    compiled = torch.compile(model, backend=backend)
    assert found_in(lambda x: cross_entropy(compiled(x))) == ()


@pytest.mark.parametrize("backend", BACKENDS)
def test_attention_and_soft_targets_inside_are_healthy(backend):
    """A softmax of the scores, another of the targets that have a gradient of their own, and logits."""

    def step(x):
        attended = softmax(x @ x.T) @ x
        return functional.cross_entropy(model(attended), softmax(teacher(x)))

    model, teacher = Model(lambda result: result), Model(lambda result: result)
    assert found_in(torch.compile(step, backend=backend)) == ()


def test_what_a_region_writes_into_its_inputs_is_no_output():
    def function(x, seen):
        seen.add_(1.0)
        return softmax(model.layer(x))

    model = Model(softmax)
    compiled = torch.compile(function, backend="aot_eager")
    (symptom,) = found_in(lambda x: cross_entropy(compiled(x, torch.zeros(1))))
    assert symptom.code == "D320"
