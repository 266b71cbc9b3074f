"""Programs that go on after a violation: with the numbers that the saved values give, on both runtimes."""

import gc

import pytest

import gradscope as gs
from gradscope.check import Sanitizer


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def lib(request):
    """A framework: gradscope's own, or PyTorch."""
    return gs if request.param == "gradscope" else pytest.importorskip("torch")


def leaf(lib):
    return lib.tensor([0.5, 1.0, 2.0], dtype=lib.float64, requires_grad=True)


def going_on(run, *args):
    """Return what a function returns that runs under the option, and the findings as (code, node) in a list."""
    with Sanitizer(keep_going=True) as sanitizer:
        result = run(*args)
    found = [part for finding in sanitizer.findings for part in (finding, *finding.also)]
    return result, [(finding.code, finding.node) for finding in found], sanitizer


def gradient(lib, run, spoil):
    """Return the gradient of a leaf after `run`, which calls `spoil` with what was saved."""
    x = leaf(lib)
    run(lib, x, spoil)
    return x.grad.tolist()


def spare(tensor):
    """Write nothing."""


def result_saved(lib, x, spoil):
    y = x.sigmoid()
    z = y * 3
    spoil(y)
    (z + y.detach()).sum().backward()


def input_saved(lib, x, spoil):
    y = x * 1
    z = (y * y).exp()
    spoil(y)
    z.sum().backward()


def custom(lib, x, spoil):
    class Cube(lib.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            return value**3

        @staticmethod
        def backward(ctx, grad):
            (value,) = ctx.saved_tensors
            return grad * 3 * value**2

    y = x * 1
    z = Cube.apply(y)
    spoil(y)
    z.sum().backward()


def handed_back(lib, x, spoil):
    """A node whose gradient is the tensor that it has saved."""

    class Itself(lib.autograd.Function):
        @staticmethod
        def forward(ctx, value):
            ctx.save_for_backward(value)
            return value.sum()

        @staticmethod
        def backward(ctx, grad):
            return ctx.saved_tensors[0]

    y = x * 1
    z = Itself.apply(y)
    spoil(y)
    z.backward()


def twice(lib, x, spoil):
    y = x * 1
    z = (y * y).sum()
    spoil(y)
    z.backward(retain_graph=True)
    z.backward()


def with_a_graph(lib, x, spoil):
    y = x * 1
    z = (y**3).sum()
    spoil(y)
    (first,) = lib.autograd.grad(z, x, create_graph=True)
    first.sum().backward()


PROGRAMS = [result_saved, input_saved, custom, handed_back, twice, with_a_graph]


@pytest.mark.parametrize("run", PROGRAMS)
@pytest.mark.parametrize(
    ("spoil", "code"),
    [
        (lambda y: y.detach().mul_(-2), "GS101"),
        (lambda y: y.data.mul_(-2), "GS106"),
        (lambda y: y.detach().numpy().__imul__(-2), "GS106"),
    ],
    ids=["counted", "data", "numpy"],
)
def test_gradients_are_those_of_what_was_saved(lib, run, spoil, code):
    if run is with_a_graph and lib is not gs:
        pytest.skip("what a backward records is not seen in PyTorch")
    expected = gradient(lib, run, spare)
    got, found, _ = going_on(gradient, lib, run, spoil)
    assert got == expected
    assert {code for code, _ in found} == {code}


def test_all_violations_of_a_run_are_told(lib):
    def run():
        x = leaf(lib)
        y, z = x.sigmoid(), x.sigmoid()
        y.add_(2)
        z.mul_(2)
        (y + z).sum().backward()
        return x.grad.tolist()

    x = leaf(lib)
    (x.sigmoid() + 2 + x.sigmoid() * 2).sum().backward()
    got, found, sanitizer = going_on(run)
    assert got == pytest.approx(x.grad.tolist())
    assert found == [("GS101", "SigmoidBackward0")] * 2
    assert {finding.sites[-1].text for finding in sanitizer.findings} == {"needed here: SigmoidBackward0 would fail"}


def test_optimizers_write_only_after_what_was_saved_is_kept(lib):
    def gradients(optimizer, early):
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(2, 3), lib.nn.Tanh(), lib.nn.Linear(3, 1))
        steps = optimizer(model.parameters())
        inputs = lib.ones(4, 2)
        model(inputs).sum().backward()
        loss = model(inputs).sum()
        if early:
            steps.step()
        steps.zero_grad()
        loss.backward()
        return [parameter.grad.tolist() for parameter in model.parameters()]

    optim = lib.optim
    for make in (
        lambda p: optim.SGD(p, lr=0.5),
        lambda p: optim.SGD(p, lr=0.5, momentum=0.9),
        lambda p: optim.Adam(p, lr=0.5),
        lambda p: optim.AdamW(p, lr=0.5),
    ):
        got, found, _ = going_on(gradients, make, True)
        assert got == gradients(make, False)
        assert [code for code, _ in found] == ["GS102"]


def test_memory_that_was_assigned_is_given_back(lib):
    def run(spoil):
        x = leaf(lib)
        z = (x * x).sum()
        kept = x.data
        if spoil:
            x.data = x.data * 5
        z.backward()
        return x.grad.tolist(), kept.tolist(), x.tolist()

    (grad, kept, now), found, _ = going_on(run, True)
    assert (grad, kept) == run(False)[:2]
    assert now == [2.5, 5.0, 10.0]
    assert {code for code, _ in found} == {"GS106"}


def test_a_write_beside_what_was_saved_goes_on_without_a_copy(lib):
    def run():
        x = leaf(lib)
        buffer = lib.zeros(2, 3, dtype=lib.float64)
        z = (x * buffer[0]).sum()
        buffer[1] = 1
        z.backward()
        return x.grad.tolist()

    got, found, sanitizer = going_on(run)
    assert got == [0.0] * 3
    assert found == [("GS101", "MulBackward0")]
    assert sanitizer.findings[0].spared
    assert sanitizer.gradients == []


def test_what_is_there_now_is_there_after_a_backward_that_fails(lib):
    def run():
        x = leaf(lib)
        y = x * 1

        class Fails(lib.autograd.Function):
            @staticmethod
            def forward(ctx, value):
                ctx.save_for_backward(value)
                return value.sum()

            @staticmethod
            def backward(ctx, grad):
                raise ValueError(ctx.saved_tensors[0].tolist())

        z = Fails.apply(y)
        y.detach().zero_()
        with pytest.raises(ValueError, match=r"\[0.5, 1.0, 2.0\]"):
            z.backward()
        return y.tolist()

    assert going_on(run)[0] == [0.0] * 3


def test_a_right_program_computes_the_same_and_keeps_nothing(lib):
    def run():
        lib.manual_seed(0)
        model = lib.nn.Sequential(lib.nn.Linear(3, 4), lib.nn.Sigmoid(), lib.nn.Linear(4, 1))
        optimizer = lib.optim.Adam(model.parameters())
        for _ in range(3):
            optimizer.zero_grad()
            model(lib.ones(2, 3)).pow(2).sum().backward()
            optimizer.step()
        return [parameter.tolist() for parameter in model.parameters()]

    with Sanitizer(keep_going=True) as sanitizer:
        got = run()
        gc.collect()
        watches = [watch for watch in (sanitizer._native, sanitizer._torch) if watch is not None]
        assert [watch._kept._by_memory for watch in watches] == [{}] * len(watches)
    assert got == run()
    assert (sanitizer.findings, sanitizer.gradients, sanitizer.unseen) == ([], [], ())
