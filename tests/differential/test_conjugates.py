"""Each operator of PyTorch's database takes a conjugate for what its elements are, not for what lies in its memory."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's tests need it")
if not torch.__version__.startswith("2.13."):
    pytest.skip("the database of each version of PyTorch is another one", allow_module_level=True)

import gradscope as gs  # noqa: E402
from tests.differential.operator_database import (  # noqa: E402
    ENTRIES,
    Comparison,
    array,
    error_class,
    filled,
    gradients,
    outcome,
    seed,
    tensors_in,
)
from tests.differential.operators_left_out import aspects_left_out  # noqa: E402
from tests.runtime.ops.operator_cases import convert, lazy  # noqa: E402

pytestmark = pytest.mark.torch

SAMPLES = 4

# They refuse a conjugate, as in PyTorch, or look at what lies around their argument in memory.
OF_MEMORY = {"view_as_real", "view", "view_copy", "as_strided.partial_views"}


def taking_complex() -> list[str]:
    missing = {name for name, aspects in aspects_left_out().items() if "missing" in aspects}
    complex_ones = [name for name, op in ENTRIES.items() if torch.complex128 in op.supported_dtypes("cpu")]
    return [name for name in complex_ones if name not in missing | OF_MEMORY]


def run(function: Any, arguments: tuple[Any, Any], *, graded: bool) -> Any:
    """Return the results of a call as arrays, then gradients by what it was given; or the class of what it raised."""
    seed()
    args, kwargs = arguments
    results, error = outcome(function, *args, **kwargs)
    if error is not None:
        return error_class(error)
    found = [array(tensor) for tensor in tensors_in(results)]
    inputs = [tensor for tensor in tensors_in([args, kwargs]) if tensor.requires_grad and tensor.is_leaf]
    if not graded or not inputs or not any(tensor.requires_grad for tensor in tensors_in(results)):
        return found
    (first,) = gradients(gs, results, inputs, twice=False)
    return found + filled(first, inputs)


@pytest.mark.filterwarnings("ignore")  # what PyTorch warns of while it makes its samples
@pytest.mark.parametrize("name", taking_complex())
def test_a_conjugate_is_what_its_elements_are(name: str) -> None:
    comparison = Comparison(ENTRIES[name], SAMPLES)
    left_out = aspects_left_out().get(name, {})
    graded = torch.complex128 in comparison.graded_dtypes and not {"gradients", "complex"} & left_out.keys()
    for case in comparison.cases(torch.complex128, SAMPLES, grad=graded):
        plain = run(comparison.function, case.mine(), graded=graded and case.compared)
        found = run(comparison.function, convert(case.mine(), lazy), graded=graded and case.compared)
        if isinstance(plain, type) or isinstance(found, type):
            assert found is plain, str(case)
            continue
        for a, b in zip(found, plain, strict=True):
            assert a.shape == b.shape, str(case)
            if case.compared:
                numpy.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8, err_msg=str(case))
