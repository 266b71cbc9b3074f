"""Elementwise functions that threads share give, bit for bit, what one call gives."""

from __future__ import annotations

import tracemalloc
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.kernels import elementwise, threads
from gradscope.runtime.kernels.elementwise import LARGE, add_to, in_blocks, in_parts, whole
from gradscope.runtime.ops.declaration import registry
from gradscope.runtime.ops.declaration.registry import OPERATORS, Operator
from tests.runtime.ops.operator_cases import call, extremes, gradients, samples

BY_ELEMENT = [op for op in OPERATORS.values() if op.by_element]


@pytest.fixture
def three(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Have three threads share arrays of every size."""
    before = threads.count()
    monkeypatch.setattr(threads, "WORTH", 1)
    monkeypatch.setattr(threads, "_WORTH_QUICK", {True: 1, False: 1})
    monkeypatch.setattr(elementwise, "_WORTH_MOVING", 0)
    monkeypatch.setattr(elementwise, "_BLOCK", 2)
    monkeypatch.setattr(elementwise, "_GRAIN", 1)
    monkeypatch.setattr(threads, "_LEAD", 0)
    threads.set_count(3)
    yield
    threads.set_count(before)


@pytest.fixture
def two() -> Any:
    before = threads.count()
    threads.set_count(2)
    yield
    threads.set_count(before)


def same(a: Any, b: Any) -> bool:
    """Whether two arrays have the same bits."""
    return (a.dtype, a.shape, a.tobytes()) == (b.dtype, b.shape, b.tobytes())


def on_one_thread(function: Any, *arguments: Any) -> Any:
    before = threads.count()
    threads.set_count(1)
    try:
        return function(*arguments)
    finally:
        threads.set_count(before)


# --- arrays of every layout -------------------------------------------------------------------------------------------

UFUNCS = {1: [np.exp, np.negative, np.isnan], 2: [np.add, np.true_divide, np.hypot, np.less, np.arctan2]}
FORMULAS = {
    1: [lambda x: x * x + 1, lambda x: np.where(x > 0, x, 0), lambda x: x, lambda x: x.real, lambda x: 0],
    2: [
        lambda x, y: x * (1 - y * y),
        lambda x, y: (x > y) & (y != 0),
        lambda x, y: y * x,
        lambda x, y: x / x,
        lambda x, y: x * y * 2,
        lambda x, y: y if x.dtype.kind == "i" else x * y,
    ],
}


@st.composite
def arrays(draw: Any, shape: tuple[int, ...], kind: str) -> Any:
    """Draw an array of a shape: dense in some order of its axes, a part of a larger one, or expanded."""
    order = draw(st.permutations(range(len(shape))))
    step = draw(st.sampled_from([1, 1, 1, 2, -1]))
    given_shape = [shape[axis] * abs(step) for axis in order]
    numbers = np.random.default_rng(draw(st.integers(0, 99))).integers(-4, 5, given_shape)
    array = (numbers / 2).astype(kind).transpose(np.argsort(order))[(slice(None, None, step),) * len(shape)]
    cut = draw(st.sampled_from(["whole", "whole", "whole", "row", "column", "number", "expanded"]))
    if cut == "row":
        return array[1:2]
    if cut == "column":
        return array[..., :1]
    if cut == "number":
        return array[(0,) * len(shape)]
    return np.broadcast_to(array[(0,) * len(shape)], shape) if cut == "expanded" else array


@pytest.mark.usefixtures("three")
@settings(max_examples=300)
@given(st.data())
def test_every_layout_gives_numpys_result(data: Any) -> None:
    count = data.draw(st.sampled_from([1, 2]))
    shape = tuple(data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=4)))
    kinds = [data.draw(st.sampled_from(["f", "d", "i"])) for _ in range(count)]
    given_arrays = [data.draw(arrays(shape, kind)) for kind in kinds]
    function = data.draw(st.sampled_from(UFUNCS[count] + FORMULAS[count]))
    with np.errstate(all="ignore"):
        expected, found = function(*given_arrays), in_parts(function, *given_arrays)
    if not isinstance(expected, np.ndarray):
        assert found == expected or expected != expected
        return
    assert same(found, expected)
    assert (found.base is None) == (expected.base is None)
    if isinstance(function, np.ufunc) and all(a.shape == shape and any(a.strides) for a in given_arrays):
        assert found.strides == expected.strides


@pytest.mark.usefixtures("three")
@settings(max_examples=200)
@given(st.data())
def test_what_is_written_in_place_is_what_one_call_writes(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 4), min_size=1, max_size=3)))
    target = data.draw(arrays(shape, "d")).copy("K") if data.draw(st.booleans()) else np.ones((*shape, 2))[..., 0]
    other = data.draw(st.one_of(arrays(shape, "d"), st.sampled_from(["itself", "turned", "its row", 2.5])))
    if target.shape != shape:
        return
    alone = np.copy(target, order="K")

    def operand(of: Any) -> Any:
        if isinstance(other, str):
            return {"itself": of, "turned": of[::-1], "its row": of[:1]}[other]
        return other

    np.add(alone, operand(alone), out=alone)
    assert in_parts(np.add, target, operand(target), out=target) is target
    assert same(target, alone)


@pytest.mark.usefixtures("three")
def test_what_is_not_an_array_is_handed_on() -> None:
    def formula(x: Any, factor: Any, names: Any, nothing: Any) -> Any:
        assert (factor, names, nothing) == (2, "names", None)
        return x * factor

    assert in_parts(formula, np.arange(9.0), 2, "names", None).tolist() == [2.0 * i for i in range(9)]
    assert in_parts(np.add, 1.0, 2.0) == 3.0


@pytest.mark.usefixtures("three")
def test_a_product_is_not_computed_beside_its_place() -> None:
    kinds = []

    def formula(x: Any, y: Any) -> Any:
        kinds.append(type(x))
        return x * y

    assert in_parts(formula, np.arange(9.0), 2.0).tolist() == [2.0 * i for i in range(9)]
    assert np.ndarray not in kinds


@pytest.mark.usefixtures("three")
def test_a_product_that_depends_on_a_value_is_asked_for_it() -> None:
    x = np.arange(9.0)
    for formula in (lambda x, y: x + 0 if y == 1 else x * y, lambda x, y: x * y if y else x + 1):
        for y in (0, 1, 2):
            assert same(in_parts(formula, x, y), formula(x, y))


@pytest.mark.usefixtures("three")
def test_a_formula_that_shares_its_work_itself_is_given_whole_arrays() -> None:
    sizes = []

    def formula(x: Any) -> Any:
        sizes.append(x.size)
        return x + 1

    in_parts(formula, np.zeros(9))
    assert len(sizes) > 3
    sizes.clear()
    in_parts(whole(formula), np.zeros(9))
    assert sizes == [9]


@pytest.mark.usefixtures("three")
def test_shapes_that_do_not_broadcast_are_refused_as_by_one_call() -> None:
    with pytest.raises(ValueError, match="operands could not be broadcast together"):
        in_parts(np.add, np.zeros((3, 2)), np.zeros((3, 4)))
    with pytest.raises(ValueError, match="non-broadcastable output"):
        in_parts(np.add, np.zeros((1, 2)), np.zeros((3, 2)), out=np.zeros((1, 2)))


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("shapes", [((5, 1), (5, 0)), ((5, 0), (1,)), ((5, 1, 1), (0, 1)), ((0, 5), (5,))], ids=str)
def test_arrays_that_leave_no_element_give_an_empty_one(shapes: Any) -> None:
    given = [np.zeros(shape) for shape in shapes]
    assert in_parts(np.add, *given).shape == np.add(*given).shape


@pytest.mark.usefixtures("three")
@pytest.mark.parametrize("state", ["raise", "call"])
def test_errors_of_numbers_are_what_the_caller_asks_for(state: str) -> None:
    numbers = np.ones(9)
    numbers[7] = 0
    heard: list[str] = []
    with np.errstate(divide=state, call=lambda kind, flag: heard.append(kind)):  # type: ignore[call-overload]
        if state == "raise":
            with pytest.raises(FloatingPointError, match="divide by zero encountered in divide"):
                in_parts(np.true_divide, 1.0, numbers)
        else:
            in_parts(np.true_divide, 1.0, numbers)
    assert heard == ([] if state == "raise" else ["divide by zero"])


@pytest.mark.usefixtures("three")
@settings(max_examples=100)
@given(st.data())
def test_a_formula_that_writes_gives_the_same_in_blocks(data: Any) -> None:
    shape = tuple(data.draw(st.lists(st.integers(2, 5), min_size=1, max_size=3)))
    x, y = (data.draw(arrays(shape, "d").filter(lambda a: a.shape == shape)) for _ in range(2))

    def write(x: Any, y: Any, factor: float, result: Any) -> None:
        np.multiply(x, factor, out=result)
        result += y

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(elementwise, "LARGE", data.draw(st.sampled_from([0, LARGE])))
        found = in_blocks(write, x, y, 3.0)
    assert same(found, x * 3.0 + y)
    assert found.base is None


def test_adding_is_shared_too(two: None) -> None:
    total, more = np.arange(LARGE, dtype="f"), np.full(LARGE, 0.1, "f")
    expected = total + more
    add_to(total, more)
    assert same(total, expected)


# --- operators --------------------------------------------------------------------------------------------------------


def of_every_size(op: Operator, patch: pytest.MonkeyPatch) -> None:
    """Have threads share what an operator computes of arrays of every size."""
    functions = [op.function, op.observed, op.inplace_function]
    for node in {op.node_class, op.inplace_node_class} - {None}:
        functions += [getattr(node, name, None) for name in ("apply", "spend")]
    for function in functions:
        while hasattr(function, "__wrapped__"):
            function = function.__wrapped__
        if function is not None and "LARGE" in function.__globals__:
            patch.setitem(function.__globals__, "LARGE", 0)
    patch.setattr(registry, "LARGE", 0)


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64"])
@pytest.mark.parametrize("op", BY_ELEMENT, ids=lambda op: op.name)
def test_every_operator_gives_the_same_on_several_threads(
    op: Operator, kind: str, three: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if kind == "complex64" and not (op.differentiable and "c" in op.supports and op.name not in REAL):
        return
    for name in ("_BLOCK", "_GRAIN"):  # a zero's sign may be another in what is left behind whole vectors
        monkeypatch.setattr(elementwise, name, 64)
    for sample in samples(op, kind) + ([] if kind == "complex64" else extremes(op, kind)):
        with np.errstate(all="ignore"), pytest.MonkeyPatch.context() as patch:
            expected = on_one_thread(results, op, sample)
            of_every_size(op, patch)
            assert results(op, sample) == expected


REAL = ("floor_divide", "remainder.tensor")


def results(op: Operator, sample: Any) -> list[Any]:
    """Return the bits of an operator's result and gradients; and what ``out=``, step by step, and ``name_`` write."""
    outputs = call(op, sample)
    found: list[Any] = [bits(output) for output in outputs]
    if any(output.requires_grad for output in outputs):
        found.append([bits(gradient) for gradient in gradients(outputs, sample)])
    arguments, options = sample
    with gs.no_grad():
        if op.out:
            found.append(bits(op.function(*arguments, **options, out=gs.empty(0, dtype=outputs[0].dtype))))
        if op.inplace_function is not None and isinstance(arguments[0], gs.Tensor):
            target = arguments[0].detach().clone()
            try:
                op.inplace_function(target, *arguments[1:], **options)
            except RuntimeError as error:  # the result is of another shape or dtype
                found.append(str(error))
            found.append(bits(target))
    return found


def bits(tensor: Any) -> Any:
    return None if tensor is None else (str(tensor.dtype), tuple(tensor.shape), tensor.detach().numpy().tobytes())


@pytest.mark.parametrize(
    ("elements", "awake", "shared"),
    [
        (LARGE - 1, True, "none"),
        (LARGE, False, "those that take a while"),
        (3 * LARGE, False, "all"),
        (LARGE, True, "all"),
    ],
    ids=["small", "large", "very large", "large, by threads that wait awake"],
)
def test_threads_share_arrays_that_are_large_enough(
    elements: int, awake: bool, shared: str, two: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(threads, "waits_awake", lambda: awake)
    monkeypatch.setattr(elementwise, "waits_awake", lambda: awake)
    parts: list[slice] = []
    over = threads.over

    def noted(size: int, work: Any, *arguments: Any, **options: Any) -> None:
        over(size, lambda part: (parts.append(part), work(part)), *arguments, **options)

    monkeypatch.setattr(threads, "over", noted)
    x = gs.ones(elements, requires_grad=True)
    slow = {
        "a ufunc": lambda: x.sin(),
        "a ufunc of two": lambda: x * x,
        "a formula": lambda: x.pow(3),
        "a derivative": lambda: gs.autograd.grad(x.log(), x, gs.ones_like(x)),
    }
    quick = {
        "one with a default": lambda: x + 1,
        "one that refuses some dtypes": lambda: x > x,
        "in place": lambda: x.detach().mul_(2),
        "a sum": lambda: x.sum(),
        "a maximum": lambda: x.max(),
        "a loss": lambda: gs.nn.functional.mse_loss(x.detach(), x.detach()),
        "where": lambda: gs.where(x.detach() > 0, x.detach(), x.detach()),
    }
    for name, use in {**slow, **quick}.items():
        parts.clear()
        use()
        assert (len(parts) > 1) == (shared == "all" or (shared != "none" and name in slow)), name


def test_a_ufunc_with_checks_refuses_large_arrays_too(two: None) -> None:
    x = gs.ones(3 * LARGE, dtype=gs.complex64)
    with pytest.raises(NotImplementedError, match='"gt_cpu" not implemented for'):
        x > x  # noqa: B015


@pytest.mark.parametrize("kind", [gs.float32, gs.float64], ids=str)
def test_a_long_expression_gives_the_same_on_two_threads(kind: Any, two: None) -> None:
    generator = np.random.default_rng(0)
    x, w, b = (gs.tensor(generator.standard_normal(s), dtype=kind) for s in ((1030, 1024), (1030, 1024), (1024,)))
    x[0, :4] = gs.tensor([0.0, -0.0, float("inf"), float("nan")])

    def compute() -> list[bytes]:
        for tensor in (x, w):
            tensor.requires_grad_().grad = None
        y = ((x * w + b).tanh() - x.exp() / (w * w + 1)) * (x > 0) + x.pow(3) + w.abs().sqrt() + (x - w).sin().log1p()
        y = y.add_(1).mul_(b)
        y.backward(gs.ones_like(y))
        (x.float() * 2 + w).sum().backward()
        return [tensor.detach().numpy().tobytes() for tensor in (y, x.grad, w.grad)]

    assert compute() == on_one_thread(compute)


def test_gradients_do_not_keep_memory_of_the_parts(two: None) -> None:
    x = gs.ones(2 * LARGE, requires_grad=True)
    (x * 2).sum().backward()
    x.grad = None
    tracemalloc.start()
    try:
        (x * 2).exp().sum().backward()
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 1.5 * x.numel() * 4  # the gradient alone
