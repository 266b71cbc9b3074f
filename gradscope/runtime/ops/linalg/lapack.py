"""BLAS and LAPACK on host arrays, one matrix of a batch at a time, as SciPy has them.

SciPy is imported with the first call. Arrays are in rows and the routines' in columns: what they see of an array is its
transpose, without a copy.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from math import prod
from typing import Any

import numpy

from ..declaration.annotations import Array

__all__ = ["is_quicker", "lu", "multiply_reflections", "product_of_reflections", "solve_triangles"]

_FEW, _WIDE = 8, 16
_BLOCKED = 64
"""Workspace a row or column, for which LAPACK treats reflections in blocks."""


def is_quicker(array: Array) -> bool:
    """Whether these are host arrays for which a routine for each is quicker than NumPy on all of the batch together.

    Measured: a call takes 2 microseconds and NumPy's on a batch ten; then a 4 by 4 matrix takes LAPACK 1.7 microseconds
    and NumPy 0.3, and those of 16 rows and more are LAPACK's.
    """
    if type(array) is not numpy.ndarray or not array.size:
        return False
    return bool(array.shape[-1] >= _WIDE or prod(array.shape[:-2]) < _FEW)


@functools.cache
def routine(name: str, kind: str) -> Callable[..., Any]:
    """Return the routine of BLAS or LAPACK for a dtype's character: ``routine("trsm", "d")`` is dtrsm."""
    # SciPy loads with the first routine that NumPy does not have.
    from scipy.linalg import blas, lapack

    letter = {"f": "s", "d": "d", "F": "c", "D": "z"}[kind]
    return getattr(blas, letter + name, None) or getattr(lapack, letter + name)


def _matrices(*arrays: Array) -> Iterator[tuple[Array, ...]]:
    """Return the matrices of batches side by side; of arrays that are written, contiguous ones, they are views."""
    return zip(*(array.reshape(-1, *array.shape[-2:]) for array in arrays), strict=True)


def solve_triangles(A: Array, B: Array, upper: bool, unitriangular: bool) -> Array:
    """Return X of ``A @ X = B``; a zero on the diagonal divides, as any other number."""
    X = numpy.array(B, order="C")
    if not X.size:
        return X
    trsm = routine("trsm", A.dtype.char)
    for a, x in _matrices(A, X):
        # Transposed, the equation is X' A' = B'. Keywords would take half as long again.
        if a.flags.f_contiguous:
            trsm(1.0, a, x.T, 1, not upper, 1, unitriangular, 1)
        else:
            trsm(1.0, a.T, x.T, 1, upper, 0, unitriangular, 1)
    return X


def lu(A: Array) -> tuple[Array, Array, Array]:
    """Return both LU factors in one array, the pivots counted from 1, and where the first one is 0."""
    LU = numpy.empty(A.shape, dtype=A.dtype)
    pivots = numpy.empty((*A.shape[:-2], min(A.shape[-2:])), dtype="int32")
    infos = numpy.empty(A.shape[:-2], dtype="int32")
    getrf = routine("getrf", A.dtype.char)
    for place in numpy.ndindex(*infos.shape):
        LU[place], pivots[place], infos[place] = getrf(A[place])
    pivots += 1
    return LU, pivots, infos


def product_of_reflections(vectors: Array, factors: Array) -> Array:
    """Return the first columns of products of Householder reflections."""
    Q = numpy.empty(vectors.shape, dtype=vectors.dtype)
    product = routine("ungqr" if vectors.dtype.kind == "c" else "orgqr", vectors.dtype.char)
    for place in numpy.ndindex(*vectors.shape[:-2]):
        Q[place] = product(vectors[place], factors[place], _BLOCKED * vectors.shape[-1])[0]
    return Q


def multiply_reflections(vectors: Array, factors: Array, C: Array, left: bool, adjoint: bool) -> Array:
    """Return C multiplied by products of Householder reflections, or by their adjoints, from the left or the right."""
    result = numpy.empty(C.shape, dtype=C.dtype)
    complex_ = C.dtype.kind == "c"
    multiply = routine("unmqr" if complex_ else "ormqr", C.dtype.char)
    options = ("L" if left else "R", ("C" if complex_ else "T") if adjoint else "N")
    count, work = factors.shape[-1], _BLOCKED * max(C.shape[-2:])
    for place in numpy.ndindex(*C.shape[:-2]):
        result[place] = multiply(*options, vectors[place][:, :count], factors[place], C[place], work)[0]
    return result


def ldl(A: Array, hermitian: bool) -> tuple[Array, Array, Array]:
    """Return L and D in one array, the pivots of ``sytrf`` or ``hetrf``, and where the first zero of D is."""
    LD = numpy.zeros(A.shape, dtype=A.dtype)
    pivots = numpy.empty(A.shape[:-1], dtype="int32")
    infos = numpy.zeros(A.shape[:-2], dtype="int32")
    if A.size:
        factor = routine(_symmetric("trf", A, hermitian), A.dtype.char)
        for place in numpy.ndindex(*infos.shape):
            LD[place], pivots[place], infos[place] = factor(A[place], lower=1)
    return numpy.tril(LD), pivots, infos


def solve_ldl(LD: Array, pivots: Array, B: Array, hermitian: bool) -> Array:
    """Return X of ``A @ X = B``, given the LDL factors of A."""
    X = numpy.empty(B.shape, dtype=B.dtype)
    if X.size:
        solve = routine(_symmetric("trs", LD, hermitian), LD.dtype.char)
        for place in numpy.ndindex(*X.shape[:-2]):
            X[place] = solve(LD[place], pivots[place], B[place], lower=1)[0]
    return X


def _symmetric(name: str, array: Array, hermitian: bool) -> str:
    """Return the name of the routine for symmetric matrices, or for complex Hermitian ones."""
    return ("he" if hermitian and array.dtype.kind == "c" else "sy") + name
