"""gs.linalg: norms, and other names of operators that are tested with the operators."""

from __future__ import annotations

import math
from typing import Any

import numpy
import pytest

import gradscope as gs
from tests.runtime.ops.matrix_cases import positive
from tests.runtime.ops.operator_cases import assert_agrees, assert_same_refusal
from tests.side_by_side import same_complaint


@pytest.mark.torch
@pytest.mark.parametrize(
    ("use", "shapes"),
    [
        (lambda m, x: m.linalg.norm(x), [(2, 3)]),
        (lambda m, x: m.linalg.norm(x, 3), [(4,)]),
        (lambda m, x: m.linalg.norm(x, 1, 0), [(2, 3)]),
        (lambda m, x: m.linalg.norm(x, "fro"), [(2, 3)]),
        (lambda m, x: m.linalg.vector_norm(x.detach(), 0), [(2, 3)]),
        (lambda m, x: m.linalg.vector_norm(x, math.inf, (0, 1), True), [(2, 3)]),
        (lambda m, x: m.linalg.matrix_norm(x), [(2, 2, 3)]),
        (lambda m, x: m.linalg.inv(x @ x.mT + m.eye(2, dtype=x.dtype)), [(2, 2)]),
        (lambda m, x, y: m.linalg.cross(x, y), [(2, 3), (2, 3)]),
        (lambda m, x, y: m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y), [(2, 2), (2, 3)]),
        (lambda m, x, y: m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y), [(3, 2, 2), (2,)]),
    ],
)
def test_agrees_with_pytorch(torch: Any, use: Any, shapes: Any) -> None:
    assert_agrees(torch, use, *shapes)


@pytest.mark.torch
@pytest.mark.parametrize("ord", [1, -1, math.inf, -math.inf])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_rows_and_columns(torch: Any, ord: float, keepdim: bool) -> None:
    # The nodes along the way are others.
    assert_agrees(torch, lambda m, x: m.linalg.matrix_norm(x, ord, keepdim=keepdim), (2, 3, 2), nodes=False)
    assert_agrees(torch, lambda m, x: m.linalg.norm(x, ord), (2, 3), nodes=False)


@pytest.mark.torch
@pytest.mark.parametrize("ord", [1, -1, 2, -2, math.inf, -math.inf, "nuc", "fro"])
@pytest.mark.parametrize("shape", [(0, 0), (0, 2), (2, 0), (3, 0, 2), (0, 2, 2)])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_empty_matrices(torch: Any, ord: Any, shape: Any, keepdim: bool) -> None:
    try:
        expected = torch.linalg.matrix_norm(torch.zeros(shape), ord, keepdim=keepdim)
    except IndexError:
        with pytest.raises(IndexError, match="to have non-zero size"):
            gs.linalg.matrix_norm(gs.zeros(shape), ord, keepdim=keepdim)
        return
    found = gs.linalg.matrix_norm(gs.zeros(shape), ord, keepdim=keepdim)
    assert tuple(found.shape) == tuple(expected.shape)
    assert found.tolist() == expected.tolist()


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.linalg.matrix_norm(m.ones(2)),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), 1),
        lambda m: m.linalg.matrix_norm(m.ones(2, 2), 3),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), "fro"),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), "nuc"),
        lambda m: m.linalg.norm(m.ones(2, 2, 2), None, (0, 1, 2)),
        lambda m: m.linalg.vector_norm(m.ones(0, 3), -2),
        lambda m: m.linalg.vector_norm(m.ones(0, 3), -1, 0),
        lambda m: m.ones(2, 2, 2).norm("nuc"),
    ],
)
def test_wrong_calls_raise_pytorchs_exceptions(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


@pytest.mark.torch
@pytest.mark.parametrize("ord", ["nuc", 2, -2])
@pytest.mark.parametrize("keepdim", [False, True])
def test_norms_of_singular_values(torch: Any, ord: Any, keepdim: bool) -> None:
    assert_agrees(torch, lambda m, x: m.linalg.matrix_norm(x.sin(), ord, keepdim=keepdim), (2, 3, 2), nodes=False)
    assert_agrees(torch, lambda m, x: m.linalg.norm(x.sin(), ord, dim=(2, 0), keepdim=keepdim), (2, 3, 2), nodes=False)


def test_a_singular_matrix_has_no_inverse() -> None:
    with pytest.raises(gs.linalg.LinAlgError, match="the input matrix is singular"):
        gs.linalg.inv(gs.zeros(2, 2))


def test_a_matrix_that_only_lapack_finds_singular_raises_the_same() -> None:
    # Whether a pivot comes out as exactly 0 depends on how products are rounded: here on who computes.
    generator = numpy.random.default_rng(0)
    singular = 0
    for _ in range(200):
        size, rank = 4, int(generator.integers(1, 4))
        factors = generator.integers(-4, 5, (size, rank)), generator.integers(-4, 5, (rank, size))
        matrix = (factors[0] @ factors[1]).astype(numpy.float64)
        try:
            numpy.linalg.inv(matrix)
        except numpy.linalg.LinAlgError:
            singular += 1
            for solve in (gs.linalg.inv, lambda A: gs.linalg.solve(A, gs.ones(4, dtype=A.dtype))):
                with pytest.raises(gs.linalg.LinAlgError, match=r"singular\."):
                    solve(gs.tensor(matrix))
    assert singular > 100


@pytest.mark.torch
def test_equations_with_the_matrix_on_the_right(torch: Any) -> None:
    def use(m: Any, x: Any, y: Any) -> Any:
        return m.linalg.solve(x @ x.mT + m.eye(2, dtype=x.dtype), y, left=False)

    assert_agrees(torch, use, (2, 2), (3, 2), nodes=False)
    out = gs.zeros(1, 2)
    assert gs.linalg.solve(gs.eye(2) * 2, gs.ones(1, 2), left=False, out=out) is out
    assert out.tolist() == [[0.5, 0.5]]


@pytest.mark.torch
@pytest.mark.parametrize(
    "use",
    [
        lambda m: m.linalg.solve(m.eye(2), m.ones(3)),
        lambda m: m.linalg.solve(m.ones(2, 3), m.ones(2)),
        lambda m: m.linalg.solve(m.eye(2), m.ones(2).double()),
    ],
    ids=["sizes", "not square", "dtypes"],
)
def test_equations_without_a_solution(torch: Any, use: Any) -> None:
    assert_same_refusal(torch, use)


def test_equations_of_a_singular_matrix() -> None:
    with pytest.raises(gs.linalg.LinAlgError, match="The solver failed because the input matrix is singular"):
        gs.linalg.solve(gs.zeros(2, 2), gs.ones(2))


# --- the public face --------------------------------------------------------------------------------------------------


@pytest.mark.torch
def test_its_names_are_pytorchs(torch: Any) -> None:
    theirs = {n for n in dir(torch.linalg) if not n.startswith("_") and n != "common_notes"}
    assert set(gs.linalg.__all__) == theirs


NAMED = {
    "cholesky_ex": (lambda m: m.linalg.cholesky_ex(m.eye(2))),
    "eig": (lambda m: m.linalg.eig(m.eye(2))),
    "eigh": (lambda m: m.linalg.eigh(m.eye(2))),
    "inv_ex": (lambda m: m.linalg.inv_ex(m.eye(2))),
    "lstsq": (lambda m: m.linalg.lstsq(m.eye(2), m.eye(2))),
    "lu": (lambda m: m.linalg.lu(m.eye(2))),
    "lu_factor": (lambda m: m.linalg.lu_factor(m.eye(2))),
    "lu_factor_ex": (lambda m: m.linalg.lu_factor_ex(m.eye(2))),
    "lu_unpack": (lambda m: m.lu_unpack(*m.linalg.lu_factor(m.eye(2)))),
    "old svd": (lambda m: m.svd(m.eye(2))),
    "qr": (lambda m: m.linalg.qr(m.eye(2))),
    "slogdet": (lambda m: m.linalg.slogdet(m.eye(2))),
    "solve_ex": (lambda m: m.linalg.solve_ex(m.eye(2), m.eye(2))),
    "svd": (lambda m: m.linalg.svd(m.eye(2))),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", NAMED)
def test_several_results_are_pytorchs_named_tuples(torch: Any, name: str) -> None:
    found, expected = NAMED[name](gs), NAMED[name](torch)
    assert type(found).__name__ == type(expected).__name__
    for field, value in zip(found._fields, expected, strict=True):
        assert getattr(expected, field) is value
        ours = getattr(found, field)
        assert str(ours.dtype).split(".")[-1] == str(value.dtype).split(".")[-1]
        assert tuple(ours.shape) == tuple(value.shape)


ONE_MATRIX = [
    "cholesky",
    "cholesky_ex",
    "cond",
    "det",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "inv",
    "inv_ex",
    "lu",
    "lu_factor",
    "matrix_exp",
    "matrix_norm",
    "matrix_rank",
    "pinv",
    "qr",
    "slogdet",
    "svd",
    "svdvals",
]
UNFIT = {
    "a vector": lambda m: m.ones(2),
    "no square": lambda m: m.ones(2, 3),
    "integers": lambda m: m.eye(2, dtype=m.int64),
    "half precision": lambda m: m.eye(2).half(),
    "bools": lambda m: m.eye(2) > 0,
    "no elements": lambda m: m.zeros(0, 2, 2),
    "no rows": lambda m: m.zeros(0, 2),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", ONE_MATRIX)
@pytest.mark.parametrize("what", UNFIT)
def test_what_is_no_fitting_matrix_is_taken_or_refused_as_in_pytorch(torch: Any, name: str, what: str) -> None:
    try:
        expected = getattr(torch.linalg, name)(UNFIT[what](torch))
    except (RuntimeError, NotImplementedError):
        same_complaint(torch, lambda m: getattr(m.linalg, name)(UNFIT[what](m)))
        return
    found = getattr(gs.linalg, name)(UNFIT[what](gs))
    pairs = zip(found, expected, strict=True) if isinstance(expected, tuple) else [(found, expected)]
    for ours, theirs in pairs:
        assert tuple(ours.shape) == tuple(theirs.shape)
        assert str(ours.dtype).split(".")[-1] == str(theirs.dtype).split(".")[-1]


def _lu(m: Any) -> Any:
    return m.linalg.lu_factor(m.eye(2))


REFUSED = {
    "not positive": lambda m: m.linalg.cholesky(-m.eye(2)),
    "not positive, checked": lambda m: m.linalg.cholesky_ex(-m.eye(2), check_errors=True),
    "not positive in a batch": lambda m: m.linalg.cholesky(m.stack([m.eye(2), -m.eye(2)])),
    "singular": lambda m: m.linalg.inv(m.tensor([[1.0, 2.0], [2.0, 4.0]])),
    "singular in a batch": lambda m: m.linalg.inv(m.stack([m.eye(2), m.zeros(2, 2)])),
    "singular, checked": lambda m: m.linalg.inv_ex(m.zeros(2, 2), check_errors=True),
    "equations": lambda m: m.linalg.solve(m.zeros(2, 2), m.ones(2)),
    "equations in a batch": lambda m: m.linalg.solve(m.stack([m.eye(2), m.zeros(2, 2)]), m.ones(2, 2)),
    "equations, checked": lambda m: m.linalg.solve_ex(m.zeros(2, 2), m.ones(2), check_errors=True),
    "a vector on the left": lambda m: m.linalg.solve(m.eye(2), m.ones(2), left=False),
    "lu_factor": lambda m: m.linalg.lu_factor(m.zeros(2, 2)),
    "lu_factor, checked": lambda m: m.linalg.lu_factor_ex(m.zeros(2, 2), check_errors=True),
    "lu without pivoting": lambda m: m.linalg.lu(m.eye(2), pivot=False),
    "lu_solve sizes": lambda m: m.linalg.lu_solve(*_lu(m), m.eye(3)),
    "lu_solve vector": lambda m: m.linalg.lu_solve(*_lu(m), m.ones(2)),
    "lu_solve dtype": lambda m: m.linalg.lu_solve(*_lu(m), m.eye(2).double()),
    "lu_solve pivots": lambda m: m.linalg.lu_solve(m.eye(2), m.ones(2, dtype=m.int64), m.eye(2)),
    "lu_solve count": lambda m: m.linalg.lu_solve(m.eye(2), m.ones(1, dtype=m.int32), m.eye(2)),
    "UPLO": lambda m: m.linalg.eigh(m.eye(2), UPLO="X"),
    "svd of NaN": lambda m: m.linalg.svd(m.full((2, 2), float("nan"))),
    "svd driver": lambda m: m.linalg.svd(m.eye(2), driver="gesvd"),
    "triangle sizes": lambda m: m.linalg.solve_triangular(m.eye(2), m.eye(3), upper=True),
    "triangle right": lambda m: m.linalg.solve_triangular(m.eye(2), m.ones(2, 3), upper=True, left=False),
    "triangle vector": lambda m: m.linalg.solve_triangular(m.eye(2), m.ones(2), upper=True),
    "triangle not square": lambda m: m.linalg.solve_triangular(m.ones(2, 3), m.eye(2), upper=True),
    "triangle of integers": lambda m: m.linalg.solve_triangular(*[m.eye(2, dtype=m.int64)] * 2, upper=True),
    "lstsq vector": lambda m: m.linalg.lstsq(m.ones(2), m.ones(2)),
    "lstsq sizes": lambda m: m.linalg.lstsq(m.ones(3, 2), m.ones(2, 2)),
    "lstsq dtype": lambda m: m.linalg.lstsq(m.eye(2), m.eye(2).double()),
    "lstsq of integers": lambda m: m.linalg.lstsq(m.eye(2, dtype=m.int64), m.eye(2, dtype=m.int64)),
    "lstsq dimensions": lambda m: m.linalg.lstsq(m.ones(2, 4, 2), m.ones(4)),
    "lstsq batches": lambda m: m.linalg.lstsq(m.ones(2, 4, 2), m.ones(3, 4, 1)),
    "lstsq driver": lambda m: m.linalg.lstsq(m.eye(2), m.eye(2), driver="x"),
    "cholesky_solve vector": lambda m: m.cholesky_solve(m.ones(2), m.eye(2)),
    "cholesky_solve sizes": lambda m: m.cholesky_solve(m.ones(3, 1), m.eye(2)),
    "cholesky_solve dtype": lambda m: m.cholesky_solve(m.ones(2, 1), m.eye(2).double()),
    "cond order": lambda m: m.linalg.cond(m.eye(2), 3),
    "cond not square": lambda m: m.linalg.cond(m.ones(2, 3), 1),
    "norm order": lambda m: m.linalg.matrix_norm(m.eye(2), 3),
    "norm of one dimension twice": lambda m: m.linalg.matrix_norm(m.eye(2), dim=(0, 0)),
    "norm of one dimension": lambda m: m.linalg.matrix_norm(m.eye(2), dim=(0,)),
    "nuclear norm of vectors": lambda m: m.linalg.norm(m.ones(2, 2, 2), "nuc", dim=0),
    "norm of three dimensions": lambda m: m.linalg.norm(m.ones(2, 2, 2), 2, dim=(0, 1, 2)),
    "a power that is no integer": lambda m: m.linalg.matrix_power(m.eye(2), 1.5),
    "one factor": lambda m: m.linalg.multi_dot([m.eye(2)]),
    "factors": lambda m: m.linalg.multi_dot([m.eye(2), m.eye(3)]),
    "a vector between": lambda m: m.linalg.multi_dot([m.eye(2), m.ones(2), m.eye(2)]),
    "factors of two dtypes": lambda m: m.linalg.multi_dot([m.eye(2), m.eye(2).double()]),
    "the last factor": lambda m: m.linalg.multi_dot([m.eye(2), m.zeros(())]),
    "powers": lambda m: m.linalg.vander(m.ones(2), N=1),
    "tensorinv": lambda m: m.linalg.tensorinv(m.ones(2, 3, 4), ind=1),
    "tensorinv ind": lambda m: m.linalg.tensorinv(m.ones(2, 2), ind=0),
    "tensorsolve": lambda m: m.linalg.tensorsolve(m.ones(2, 3), m.ones(2)),
    "a diagonal of a vector": lambda m: m.linalg.diagonal(m.ones(2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", REFUSED)
def test_wrong_calls_say_what_pytorch_says(torch: Any, name: str) -> None:
    same_complaint(torch, REFUSED[name])


@pytest.mark.parametrize("name", ["not positive", "singular", "equations", "svd of NaN"])
def test_failures_of_an_algorithm_have_a_class_of_their_own(name: str) -> None:
    with pytest.raises(gs.linalg.LinAlgError):
        REFUSED[name](gs)


def test_norms_are_written_into_given_tensors() -> None:
    x, out = gs.tensor([[3.0, 0.0], [0.0, 4.0]]), gs.empty(())
    assert gs.linalg.norm(x, 2, out=out) is out
    assert out.item() == 4.0
    assert gs.linalg.matrix_norm(x, "nuc", out=out).item() == 7.0


BY_KEYWORD = {
    "cholesky": lambda m: m.linalg.cholesky(input=m.eye(2), upper=True),
    "cond": lambda m: m.linalg.cond(input=m.eye(2), p="fro"),
    "det": lambda m: m.linalg.det(A=m.eye(2)),
    "eigvalsh": lambda m: m.linalg.eigvalsh(input=m.eye(2), UPLO="U"),
    "lstsq": lambda m: m.linalg.lstsq(input=m.eye(2), b=m.ones(2, 1)).solution,
    "matrix_norm": lambda m: m.linalg.matrix_norm(input=m.eye(2), ord="nuc"),
    "matrix_rank": lambda m: m.linalg.matrix_rank(m.eye(2) * m.tensor([1.0, 1e-3]), tol=0.1),
    "matrix_rank, in place": lambda m: m.linalg.matrix_rank(m.eye(2) * m.tensor([1.0, 1e-3]), 0.1, True),
    "pinv": lambda m: m.linalg.pinv(m.eye(2) * m.tensor([1.0, 1e-3]), rcond=0.1),
    "pinv, in place": lambda m: m.linalg.pinv(m.eye(2) * m.tensor([1.0, 1e-3]), 0.1, True),
    "solve": lambda m: m.linalg.solve(A=m.eye(2), B=m.ones(2)),
    "solve_triangular": lambda m: m.linalg.solve_triangular(input=m.eye(2), B=m.ones(2, 1), upper=True),
    "svdvals": lambda m: m.linalg.svdvals(A=m.eye(2)),
    "tensorsolve": lambda m: m.linalg.tensorsolve(input=m.eye(2), other=m.ones(2)),
}


@pytest.mark.torch
@pytest.mark.parametrize("name", BY_KEYWORD)
def test_arguments_have_pytorchs_keywords(torch: Any, name: str) -> None:
    found, expected = BY_KEYWORD[name](gs), BY_KEYWORD[name](torch)
    assert found.shape == expected.shape
    assert found.flatten().tolist() == pytest.approx(expected.flatten().tolist())


ON_A_DEVICE = {
    "cholesky": lambda x: gs.linalg.cholesky(x),
    "cond": lambda x: gs.linalg.cond(x),
    "cond of order 1": lambda x: gs.linalg.cond(x, 1),
    "eigvals": lambda x: gs.linalg.eigvals(x).abs().sort().values,
    "lstsq": lambda x: gs.linalg.lstsq(x[:, :2], x, driver="gelsd").residuals,
    "lu_factor_ex": lambda x: gs.linalg.lu_factor_ex(x).LU,
    "matrix_exp": lambda x: gs.linalg.matrix_exp(x),
    "matrix_norm": lambda x: gs.linalg.matrix_norm(x, "nuc"),
    "matrix_rank": lambda x: gs.linalg.matrix_rank(x, atol=1e-6),
    "multi_dot": lambda x: gs.linalg.multi_dot([x, x, x]),
    "old svd": lambda x: gs.svd(x, compute_uv=False).S,
    "old vander": lambda x: gs.vander(x[0]),
    "pinv": lambda x: gs.linalg.pinv(x, rtol=1e-9),
    "pinv, hermitian": lambda x: gs.linalg.pinv(x, hermitian=True),
    "slogdet": lambda x: gs.linalg.slogdet(x).logabsdet,
    "svdvals": lambda x: gs.linalg.svdvals(x),
    "tensorinv": lambda x: gs.linalg.tensorinv(x.reshape(3, 3, 1), ind=1),
    "vander": lambda x: gs.linalg.vander(x),
    "vecdot": lambda x: gs.linalg.vecdot(x, x),
}


@pytest.mark.parametrize("name", ON_A_DEVICE)
@pytest.mark.parametrize("recorded", [True, False])
def test_everything_runs_on_a_device_without_copies_to_the_host(name: str, recorded: bool, other_device: str) -> None:
    array = positive(3)
    found, expected = [], []
    for tensor, results in ((gs.from_numpy(array).to(other_device), found), (gs.from_numpy(array), expected)):
        x = tensor.requires_grad_(recorded)
        result = ON_A_DEVICE[name](x)
        assert result.device.type == x.device.type
        results.append(result)
        if result.requires_grad:
            (result * result).sum().backward()
            results.append(x.grad)
    for a, b in zip(found, expected, strict=True):
        assert gs.allclose(a.detach().cpu(), b.detach())
