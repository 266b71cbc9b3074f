"""Special functions and linear algebra, which SciPy and LAPACK compute."""

from __future__ import annotations

from typing import Any

import numpy as np

from workloads.case import Work, case, nothing


@case("library", "lgamma, digamma and erfinv of 100,000 float64", target=1.5)
def special_functions(lib: Any) -> Work:
    x = lib.tensor(np.random.default_rng(0).uniform(0.01, 0.99, 100_000))

    def body(prepared: None) -> Any:
        return lib.lgamma(x), lib.digamma(x), lib.erfinv(x)

    return nothing, body


@case("library", "LU factors of a 256×256 matrix, and 64 solutions", target=1.2)
def linear_equations(lib: Any) -> Work:
    rng = np.random.default_rng(0)
    matrix = lib.tensor(rng.standard_normal((256, 256)))
    right = lib.tensor(rng.standard_normal((256, 64)))

    def body(prepared: None) -> Any:
        factors, pivots = lib.linalg.lu_factor(matrix)
        return lib.linalg.lu_solve(factors, pivots, right)

    return nothing, body
