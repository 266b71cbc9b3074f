"""Each operator of PyTorch's own database gives PyTorch's results, gradients and errors, or says where it does not."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest", reason="PyTorch's tests need it")
if not torch.__version__.startswith("2.13."):
    pytest.skip("the database of each version of PyTorch is another one", allow_module_level=True)

from tests.differential import operators_page  # noqa: E402
from tests.differential.operator_database import ENTRIES, counterpart, failures  # noqa: E402
from tests.differential.operators_left_out import aspects_left_out  # noqa: E402

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("name", ENTRIES)
def test_operator_agrees_or_is_left_out_with_a_reason(name: str) -> None:
    found, left_out = failures(name), aspects_left_out().get(name, {})
    unexpected = "\n\n".join(f"{aspect}: {text}" for aspect, text in found.items() if aspect not in left_out)
    assert not unexpected, unexpected
    mended = left_out.keys() - found.keys()
    assert not mended, f"{sorted(mended)} agree now: take them out of tests/differential/operators_left_out.py"


def test_what_is_left_out_is_in_the_database() -> None:
    assert not aspects_left_out(all_samples=True).keys() - ENTRIES.keys()


def test_the_page_is_what_the_table_says() -> None:
    assert operators_page.PATH.read_text() == operators_page.page(), "run python -m tests.differential.operators_page"


def test_a_copied_tensor_shares_what_its_source_shared() -> None:
    source = torch.arange(12.0).reshape(3, 4)
    whole, part, again = counterpart((source, source.t()[1:, ::2], source))
    assert again is whole
    assert (part.stride(), part.storage_offset()) == ((1, 8), 1)
    part.fill_(-1.0)
    assert (whole == -1).sum() == part.numel()
    assert source.min() == 0


def test_a_function_of_pytorchs_tests_is_rewritten_with_what_it_holds() -> None:
    held = torch.ones(2)
    function = ENTRIES["sum_to_size"].op
    assert counterpart(function)(counterpart(torch.ones(3, 2)), (2,)).tolist() == [3.0, 3.0]
    assert counterpart(held).tolist() == [1.0, 1.0]
