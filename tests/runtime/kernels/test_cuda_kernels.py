"""The kernels for a GPU: beside the CPU's numbers where there is one, and everywhere what they are given."""

import types

import numpy as np
import pytest

import gradscope as gs
from gradscope.nn import functional
from gradscope.runtime.kernels import cuda_kernels, forms, updates
from gradscope.runtime.kernels.normalization.normalized_rows import rows_backward
from gradscope.runtime.kernels.normalization.row_blocks import is_worth_it
from gradscope.runtime.memory import device
from tests.runtime.kernels.compiled.test_activation_loops import CALLS, TWICE, numbers

on_a_gpu = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gs.cuda.is_available(), reason="needs CuPy and a CUDA device"),
]
ROWS = {
    "softmax": lambda F, x: F.softmax(x, -1),
    "log_softmax": lambda F, x: F.log_softmax(x, -1),
    "cross_entropy": lambda F, x: F.cross_entropy(x, x.argmax(-1), reduction="none")[:, None] * x,
    "layer_norm": lambda F, x: F.layer_norm(x, x.shape[-1:]),
}


def gpu(function):
    for mark in on_a_gpu:
        function = mark(function)
    return function


def result_and_gradients(call, x, g, where):
    x = gs.tensor(x, device=where, requires_grad=True)
    y = call(functional, x)
    gradients = gs.autograd.grad(y, x, gs.tensor(g, device=where))
    return [part.detach().cpu().numpy() for part in (y, *gradients)]


def compare(call, x, g, rtol, atol):
    for one, other in zip(*(result_and_gradients(call, x, g, where) for where in ("cuda", "cpu")), strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)


@gpu
@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_activations_are_those_of_the_cpu(call, kind):
    x, g = (a.astype(kind) for a in numbers())
    x[abs(x) < 1e-38] = 0  # CuPy has its kernels take denormal numbers for zero
    rtol, atol = (2e-6, 1e-5) if kind == "f" else (1e-12, 1e-12)
    compare(call, x, g, rtol, atol)
    compare(call, x.T, g.T, rtol, atol)
    compare(call, x[:0], g[:0], rtol, atol)
    compare(call, x[0, 0], g[0, 0], rtol, atol)


@gpu
@pytest.mark.parametrize("call", TWICE.values(), ids=TWICE)
def test_second_derivatives_are_of_the_formula(call):
    x, found = np.linspace(-3, 3, 50), []
    for where in ("cuda", "cpu"):
        leaf = gs.tensor(x, device=where, requires_grad=True)
        (slope,) = gs.autograd.grad(call(functional, leaf).sum(), leaf, create_graph=True)
        found.append(gs.autograd.grad(slope.sum(), leaf)[0].cpu().numpy())
    np.testing.assert_allclose(*found, rtol=1e-9, atol=1e-12)


@gpu
@pytest.mark.parametrize("kind", ["f", "d"])
@pytest.mark.parametrize(
    "shape", [(1, 1), (3, 5), (700, 10), (4, 31), (5, 32), (5, 33), (6, 511), (300, 1024), (2, 40000)]
)
@pytest.mark.parametrize("call", ROWS.values(), ids=ROWS)
def test_rows_are_those_of_the_cpu(call, shape, kind):
    rng = np.random.default_rng(0)
    x, g = (rng.standard_normal(shape).astype(kind) for _ in "xg")
    compare(call, x, g, *((1e-4, 2e-5) if kind == "f" else (1e-9, 1e-12)))


@gpu
@pytest.mark.parametrize("call", [ROWS["softmax"], ROWS["log_softmax"]])
@pytest.mark.parametrize("special", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_spoils_the_same_numbers(call, special):
    x = np.zeros((4, 70), "f")
    x[1, 3] = special
    x[2] = special
    compare(call, x, np.ones_like(x), 1e-6, 1e-6)


@gpu
@pytest.mark.parametrize("count", [1, 7, 300, 70_000])
@pytest.mark.parametrize("with_parameters", [False, True])
def test_layer_norm_of_rows(count, with_parameters):
    rng, found = np.random.default_rng(0), []
    x, g, w, b = (rng.standard_normal(shape) for shape in ((count, 33), (count, 33), 33, 33))
    for where in ("cuda", "cpu"):
        leaves = [gs.tensor(a, device=where, requires_grad=True) for a in ((x, w, b) if with_parameters else (x,))]
        y = functional.layer_norm(leaves[0], (33,), *leaves[1:])
        gradients = gs.autograd.grad(y, leaves, gs.tensor(g, device=where))
        found.append([part.detach().cpu().numpy() for part in (y, *gradients)])
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


STEPS = {
    "SGD": lambda p: gs.optim.SGD(p, 0.1, weight_decay=0.01),
    "momentum": lambda p: gs.optim.SGD(p, 0.1, momentum=0.9, dampening=0.1, weight_decay=0.01),
    "nesterov": lambda p: gs.optim.SGD(p, 0.1, momentum=0.9, nesterov=True, maximize=True),
    "Adam": lambda p: gs.optim.Adam(p, 0.1, weight_decay=0.01),
    "AdamW": lambda p: gs.optim.AdamW(p, 0.1, weight_decay=0.1, maximize=True),
}


@gpu
@pytest.mark.parametrize("make", STEPS.values(), ids=STEPS)
@pytest.mark.parametrize("kind", ["f", "d"])
def test_steps_are_those_of_the_cpu(make, kind):
    rng, found, versions = np.random.default_rng(0), [], []
    values = [rng.standard_normal((30, 40)).astype(kind) for _ in range(5)]
    for where in ("cuda", "cpu"):
        parameter = gs.tensor(values[0], device=where, requires_grad=True)
        optimizer = make([parameter])
        for gradient in values[1:]:
            parameter.grad = gs.tensor(gradient, device=where)
            optimizer.step()
        found.append(parameter.detach().cpu().numpy())
        versions.append(parameter._version)
    assert versions[0] == versions[1] > 0
    np.testing.assert_allclose(*found, rtol=1e-5 if kind == "f" else 1e-12, atol=1e-6 if kind == "f" else 1e-12)


@gpu
def test_a_formula_is_one_kernel():
    import cupy

    def refuse(*args):
        raise AssertionError("the formula ran")

    x = cupy.linspace(-1, 1, 10, dtype="f")
    for name, formula in cuda_kernels.ELEMENTWISE.items():
        arrays = [x] * len(formula.arrays.split())
        result = forms.pointwise(
            f"activation_loops.{name}", refuse, *arrays, settings=(0.5,) * len(formula.numbers.split())
        )
        assert result.shape == x.shape
    for name, (arrays, _) in cuda_kernels.ROWWISE.items():
        assert forms.rowwise(f"softmax_loops.{name}", refuse, *[x[None]] * len(arrays.split())).shape == (1, 10)


# --- without a GPU ----------------------------------------------------------------------------------------------------


class Array(np.ndarray):
    """What stands for an array of CuPy."""


class Compiler(types.SimpleNamespace):
    """What stands for CuPy: notes which kernels are made, and what they are given."""

    def __init__(self):
        made, calls = [], []

        def kernel(*declared, **options):
            made.append(declared)
            return lambda *given: calls.append(given)

        super().__init__(ElementwiseKernel=kernel, RawKernel=kernel, made=made, calls=calls, __name__="compiler")

    __hash__ = object.__hash__

    def empty(self, *given):
        return np.zeros(*given).view(Array)

    def full(self, *given):
        return np.full(*given).view(Array)

    empty_like = staticmethod(np.zeros_like)


@pytest.fixture
def compiler(monkeypatch):
    """A device whose module compiles nothing, and notes what it is asked for."""
    backend = device.Backend("compiling", module := Compiler())
    backend.compiles_cuda = True
    for table in ("_backends", "_by_type", "_modules"):
        monkeypatch.setattr(device, table, dict(getattr(device, table)))
    monkeypatch.setattr(device, "elsewhere", device.elsewhere)
    device.register_backend(backend, Array)
    return module


def array(*shape, kind="f"):
    return np.zeros(shape, kind).view(Array)


def unreached(*arrays):
    raise AssertionError("the formula ran")


@pytest.mark.parametrize("kind", ["float32", "float64"])
@pytest.mark.parametrize("name", cuda_kernels.ELEMENTWISE)
def test_an_elementwise_kernel_is_given_its_arrays_and_numbers(compiler, name, kind):
    formula = cuda_kernels.ELEMENTWISE[name]
    given = [array(2, 3, kind=kind) for _ in formula.arrays.split()]
    settings = tuple(range(1, 1 + len(formula.numbers.split())))
    forms.pointwise(f"activation_loops.{name}", unreached, *given, settings=settings)
    (declared, result, statements, _), (call,) = compiler.made[0], compiler.calls
    assert declared.count(kind) == len(given) + len(settings)
    assert result == f"{kind} result"
    assert "result = " in statements
    assert all(one is other for one, other in zip(call, given, strict=False))
    assert call[len(given) :] == settings


def test_each_compiled_formula_has_one_of_the_same_parameters():
    pytest.importorskip("numba", reason="compiles kernels")
    from gradscope.runtime.kernels.compiled import activation_loops, calculus_loops, jit, softmax_loops, update_loops

    def parameters(loops, results):
        kernels = [(name, value) for name, value in vars(loops).items() if hasattr(value, "py_func")]
        homes = (loops.__name__, jit.__name__)  # of a loop of its own, and of one for any function
        codes = {name: value.py_func.__code__ for name, value in kernels if value.py_func.__module__ in homes}
        named = {name: code.co_varnames[: code.co_argcount] for name, code in codes.items()}
        return {name: [p for p in names if p not in results] for name, names in named.items() if name[0] != "_"}

    elementwise = {n: f"{f.arrays} {f.numbers}".split() for n, f in cuda_kernels.ELEMENTWISE.items()}
    compiled = parameters(activation_loops, ("result",)) | parameters(calculus_loops, ("result",))
    del compiled["relu"]  # one of CuPy's own functions
    assert elementwise == compiled
    rowwise = {n: p for n, p in parameters(softmax_loops, ("result",)).items() if not n.startswith("attention")}
    assert {n: arrays.split() for n, (arrays, _) in cuda_kernels.ROWWISE.items()} == rowwise
    steps = {n: f"p g {s.kept} {s.numbers}".split() for n, s in cuda_kernels.STEPS.items()}
    assert steps == parameters(update_loops, ())


@pytest.mark.parametrize(
    "given",
    [
        [np.zeros((3, 4), "e").view(Array)],
        [array(3, 0)],
        [array(4, 3).T],
        [array(3, 4), array(3, 4, kind="d")],
        [array(3, 4), array(4)],
        [array(3, 4), np.zeros((3, 4), "f")],
        [gs.zeros(3, 4)],
    ],
)
def test_the_formula_is_for_all_other_arrays(compiler, given):
    told = forms.pointwise("activation_loops.silu_backward", lambda *arrays: "the formula", *given)
    assert (told, forms.rowwise("softmax_loops.softmax", lambda *arrays: told, *given)) == ("the formula",) * 2
    assert not compiler.made


def test_none_is_made_where_kernels_are_not_wanted(compiler, monkeypatch):
    monkeypatch.setenv("GRADSCOPE_KERNELS", "numpy")
    cuda_kernels.are_left_out.cache_clear()
    try:
        assert forms.pointwise("activation_loops.silu", lambda x: "the formula", array(8)) == "the formula"
    finally:
        monkeypatch.undo()
        cuda_kernels.are_left_out.cache_clear()


@pytest.mark.parametrize(("shape", "threads"), [((5, 1), 32), ((5, 33), 64), ((2, 3, 100), 128), ((2, 40000), 512)])
def test_a_row_is_the_work_of_a_block_of_whole_warps(compiler, shape, threads):
    x = array(*shape)
    result = forms.rowwise("softmax_loops.softmax", unreached, x)
    assert result.shape == shape
    assert compiler.calls == [((x.size // shape[-1],), (threads,), (shape[-1], x, result))]


@pytest.mark.parametrize("count", [1, 255, 256, 257, 70_000])
def test_stripes_of_rows_cover_all_of_them(compiler, count):
    x, vector = array(count, 3), array(count)
    assert is_worth_it(x, x, None, vector)
    result, *parameters = rows_backward(x, x, None, vector, vector, 3)
    assert [result.shape, *(p.shape for p in parameters)] == [(count, 3), (3,), (3,)]
    (_, stripes), _, (size, rows, each, *_) = compiler.calls[-1]
    assert (size, rows) == (3, count)
    assert stripes <= 256
    assert (stripes - 1) * each < count <= stripes * each


def test_steps_change_the_arrays_that_they_are_given(compiler):
    whole = updates.vectors(*[array(5, 2) for _ in range(3)])
    updates.run("sgd_momentum", whole, 0.1, 0.0, 1, 0.9, 1.0, True)
    parameter, gradient, buffer = whole
    (call,) = compiler.calls
    assert call[0] is gradient
    assert call[1:7] == (0.1, 0.0, 1.0, 0.9, 1.0, 1.0)
    assert call[7] is parameter
    assert call[8] is buffer
    assert compiler.made[0][1] == "float32 p, float32 b"
    assert updates.vectors(array(5, 2), array(5)) is None
