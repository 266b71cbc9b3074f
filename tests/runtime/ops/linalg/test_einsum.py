"""Products of batches, einsum and tensordot: beside PyTorch, and random equations beside NumPy."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import gradscope as gs
from gradscope.runtime.ops.execution.bare_functions import matrix_product
from tests.side_by_side import compare, same_complaint

rng = numpy.random.default_rng(0)


@pytest.mark.torch
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij,jk->ik", [(2, 3), (3, 4)]),
        ("ij,jk", [(2, 3), (3, 4)]),
        ("bij,bjk->bik", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,...jk", [(2, 3, 4), (2, 4, 5)]),
        ("...ij,jk->...ik", [(5, 2, 3, 4), (4, 5)]),
        ("ii->i", [(3, 3)]),
        ("ii", [(3, 3)]),
        ("ij->ji", [(2, 3)]),
        ("ij->", [(2, 3)]),
        ("i,j->ij", [(2,), (3,)]),
        ("i,i->", [(3,), (3,)]),
        ("i,i->i", [(3,), (3,)]),
        ("...,...->...", [(2, 3), (3,)]),
        ("ij,kl->", [(2, 3), (4, 5)]),
        ("ij,jk,kl->il", [(2, 3), (3, 4), (4, 5)]),
        ("bhqd,bhkd->bhqk", [(2, 2, 3, 4), (2, 2, 5, 4)]),
        ("iij,jk->ik", [(3, 3, 2), (2, 4)]),
        ("ij,jk->ik", [(2, 1), (3, 4)]),
        ("ij,ij->i", [(2, 3), (1, 3)]),
        ("a...b,bc...->ac...", [(2, 3, 4), (4, 5, 3)]),
        ("bn,anm,bm->ba", [(2, 5), (3, 5, 6), (2, 6)]),
    ],
)
def test_einsum_is_that_of_pytorch(torch: Any, equation: str, shapes: list[tuple[int, ...]]) -> None:
    arrays = [rng.normal(size=shape) for shape in shapes]
    compare(torch, lambda lib, *operands: lib.einsum(equation, *operands), *arrays, names=False)


@pytest.mark.torch
@pytest.mark.parametrize("equation", ["ij,ij->i", "ij,kj->ik", "ij,ij,ij->i"])
@pytest.mark.parametrize(
    "kinds", [("float32", "float64", "float32"), ("bool", "bool", "bool"), ("int64", "uint8", "bool")]
)
def test_a_product_that_is_not_summed_takes_any_dtypes(torch: Any, equation: str, kinds: tuple[str, ...]) -> None:
    found, expected = (
        lib.einsum(equation, *(lib.ones(2, 1, dtype=getattr(lib, kind)) for kind in kinds[: equation.count(",") + 1]))
        for lib in (gs, torch)
    )
    assert found.tolist() == expected.tolist()
    assert str(found.dtype).endswith(str(expected.dtype).removeprefix("torch"))


@settings(max_examples=60)
@given(st.data())
def test_random_equations_are_those_of_numpy(data: st.DataObject) -> None:
    sizes = dict(zip("abcd", data.draw(st.lists(st.integers(0, 3), min_size=4, max_size=4)), strict=True))
    terms = data.draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3))
    used = sorted(set("".join(terms)))
    output = data.draw(st.permutations(used).map(lambda p: "".join(p)))[: data.draw(st.integers(0, len(used)))]
    arrays = [rng.normal(size=[sizes[c] for c in term]) for term in terms]
    equation = f"{','.join(terms)}->{output}"
    found = gs.einsum(equation, *(gs.tensor(a) for a in arrays))
    numpy.testing.assert_allclose(found.numpy(), numpy.einsum(equation, *arrays), rtol=1e-9, atol=1e-9)


def test_sublists_and_lists_of_operands() -> None:
    a, b = gs.tensor(rng.normal(size=(2, 3))), gs.tensor(rng.normal(size=(3, 4)))
    expected = (a @ b).tolist()
    assert gs.einsum(a, [0, 1], b, [1, 2], [0, 2]).tolist() == expected
    assert gs.einsum("ij,jk", [a, b]).tolist() == expected


def test_two_operands_are_one_product_of_matrices() -> None:
    a, b = gs.ones(2, 3, 4, requires_grad=True), gs.ones(2, 4, 5)
    node = gs.einsum("bij,bjk->bik", a, b).grad_fn
    names = set()
    while node is not None:
        names.add(node.name())
        node = node.next_functions[0][0] if node.next_functions else None
    assert "BmmBackward0" in names
    assert "MulBackward0" not in names


@pytest.mark.torch
@pytest.mark.parametrize(
    ("equation", "shapes"),
    [
        ("ij", [(2,)]),
        ("ij,jk", [(2, 3)]),
        ("i", [(2,), (2,)]),
        ("ij,jk", [(2, 3), (4, 5)]),
        ("i->j", [(2,)]),
        ("i->ii", [(2,)]),
    ],
)
def test_wrong_equations_raise_what_pytorch_raises(torch: Any, equation: str, shapes: list[tuple[int, ...]]) -> None:
    same_complaint(torch, lambda lib: lib.einsum(equation, *(lib.ones(shape) for shape in shapes)))


@pytest.mark.parametrize("equation", ["i1", "i..", "ij->i.", "......"])
def test_malformed_equations(equation: str) -> None:
    with pytest.raises(RuntimeError, match=r"einsum\(\): (invalid subscript|found '\.')"):
        gs.einsum(equation, gs.ones(2, 2))


@pytest.mark.torch
@pytest.mark.parametrize(
    ("a", "b", "dims"),
    [
        ((2, 3, 4), (3, 4, 5), 2),
        ((3, 4), (4, 3), 1),
        ((2,), (3,), 0),
        ((3, 4), (4, 3), ([0], [1])),
        ((3, 4), (4, 3), ([1, 0], [0, 1])),
    ],
)
def test_tensordot(torch: Any, a: Any, b: Any, dims: Any) -> None:
    arrays = rng.normal(size=a), rng.normal(size=b)
    compare(torch, lambda lib, x, y: lib.tensordot(x, y, dims), *arrays, names=False)


@pytest.mark.torch
def test_products_with_a_summand(torch: Any) -> None:
    a, b, c = (rng.normal(size=s) for s in ((2, 2, 4), (2, 2, 3), (2, 3, 4)))
    compare(torch, lambda lib, a, b, c: lib.baddbmm(a, b, c, beta=0.5, alpha=2), a, b, c)
    a, b, c = (rng.normal(size=s) for s in ((2,), (2, 3), (3,)))
    compare(torch, lambda lib, a, b, c: lib.addmv(a, b, c), a, b, c)
    compare(torch, lambda lib, b, c: lib.inner(b, c), b, c, names=False)


@pytest.mark.torch
def test_linear(torch: Any) -> None:
    w, b = rng.normal(size=(5, 3)), rng.normal(size=5)
    for shape in ((4, 3), (2, 4, 3), (3,)):
        compare(
            torch, lambda lib, x, w, b: lib.nn.functional.linear(x, w, b), rng.normal(size=shape), w, b, names=False
        )
    compare(torch, lambda lib, x, w: lib.nn.functional.linear(x, w), rng.normal(size=(4, 3)), w)
    same_complaint(torch, lambda lib: lib.nn.functional.linear(lib.zeros(2, 3), lib.zeros(2, 2)))
    same_complaint(torch, lambda lib: lib.nn.functional.linear(lib.zeros(2, 3), lib.zeros(2, 3, dtype=lib.float64)))


@given(
    rows=st.integers(1, 40),
    inputs=st.integers(1, 300),
    outputs=st.integers(1, 90),
    turned=st.booleans(),
    data=st.data(),
)
def test_linear_by_few_rows_and_many(rows: int, inputs: int, outputs: int, turned: bool, data: st.DataObject) -> None:
    """Few and long rows go another way to BLAS: the result is the same, and lies in memory as others do."""
    x = rng.normal(size=(rows, inputs)).astype("f")
    w = rng.normal(size=(inputs, outputs)).astype("f").T if turned else rng.normal(size=(outputs, inputs)).astype("f")
    b = rng.normal(size=data.draw(st.sampled_from([(outputs,), (1,), (rows, outputs)]))).astype("f")
    result = gs.nn.functional.linear(*map(gs.from_numpy, (x, w, b)))
    numpy.testing.assert_allclose(result.numpy(), x.astype("d") @ w.T + b, rtol=0, atol=1e-4)
    assert result.stride() == (outputs, 1)
    assert result._array.base is None


def test_the_weight_takes_over_its_gradient() -> None:
    """The product of the gradients has the weight's layout, and nobody else holds it: no copy is made."""
    x, w = gs.ones(4, 3), gs.ones(5, 3, requires_grad=True)
    gs.nn.functional.linear(x, w, gs.zeros(5)).sum().backward()
    assert w.grad._array.base is None
    assert w.grad._array.flags.c_contiguous


def test_addmm_with_beta_0_ignores_self():
    a = gs.ones(2, 2)
    assert gs.addmm(gs.full((2, 2), float("nan")), a, a, beta=0).tolist() == [[2.0, 2.0], [2.0, 2.0]]


@pytest.mark.torch
def test_a_contracted_dimension_of_size_1_counts_for_all(torch: Any) -> None:
    x, y = numpy.arange(6.0).reshape(2, 3), numpy.arange(2.0).reshape(1, 2)
    for a, b, dims in ((x, y, ([1], [0])), (y.T, x.T, ([1], [0])), (x, y, ([0, 1], [1, 0]))):
        compare(torch, lambda lib, a, b, dims=dims: lib.tensordot(a, b, dims=dims), a, b, names=False)
    same_complaint(torch, lambda lib: lib.tensordot(lib.ones(2, 3), lib.ones(2, 2), dims=([1], [0])))


@pytest.mark.parametrize("order", [(0, 1, 2, 3), (1, 0, 2, 3)], ids=["in rows", "transposed"])
def test_a_batch_times_one_matrix_is_one_product(order: tuple[int, ...]) -> None:
    """Not one for each matrix of the batch, of which BLAS would prepare the second factor anew each time."""

    class Counting:
        shapes: ClassVar[list[tuple[int, ...]]] = []

        def matmul(self, a: Any, b: Any) -> Any:
            self.shapes.append(a.shape)
            return numpy.matmul(a, b)

    batch, matrix = numpy.arange(120.0).reshape(2, 3, 4, 5).transpose(order), numpy.arange(30.0).reshape(5, 6)
    product = matrix_product(Counting(), batch, matrix)
    assert Counting.shapes == [(24, 5)]
    assert product.tolist() == (batch @ matrix).tolist()


@pytest.mark.parametrize("kind", ["float32", "float64", "complex64", "complex128", "int64"])
@pytest.mark.parametrize("sizes", [(1, 1, 1), (1, 5, 7), (7, 5, 1), (8, 8, 8), (3, 1, 4), (64, 33, 17), (5, 0, 3)])
def test_products_are_those_of_numpy_whatever_the_layout(kind: str, sizes: tuple[int, int, int]) -> None:
    rows, inner, columns = sizes
    numbers = numpy.random.default_rng(0)
    left = (numbers.standard_normal((rows, inner)) * 10).astype(kind)
    right = (numbers.standard_normal((inner, columns)) * 10).astype(kind)
    for a in (left, numpy.asfortranarray(left), left[::-1]):
        for b in (right, numpy.asfortranarray(right), right[:, ::-1]):
            product = (gs.from_numpy(a.copy("K")) @ gs.from_numpy(b.copy("K"))).numpy()
            assert (product.shape, product.dtype) == ((rows, columns), numpy.dtype(kind))
            numpy.testing.assert_allclose(product, numpy.matmul(a, b), rtol=1e-5, atol=1e-4)
