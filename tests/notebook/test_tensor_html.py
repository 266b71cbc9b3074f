"""Tensors as heat maps."""

from __future__ import annotations

import warnings

import pytest

pytest.importorskip("treescope")

from gradscope.notebook.tensor_html import tensor_html


def test_a_matrix_is_drawn_with_what_is_known_of_it(fw):
    weight = fw.ones(3, 4, requires_grad=True)
    html = tensor_html(weight)
    assert html.startswith("<div><pre ")
    assert ">float32 (3, 4), requires_grad</pre>" in html
    assert "<script" in html
    assert "grad_fn=MulBackward0" in tensor_html(weight * 2)


def test_its_gradient_is_drawn_below_it(fw):
    weight = fw.ones(3, 4, requires_grad=True)
    (weight * weight).sum().backward()
    html = tensor_html(weight)
    assert ">its gradient</pre>" in html
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert "its gradient" not in tensor_html(weight * 2)  # no leaf: its .grad would warn


@pytest.mark.parametrize("make", ["ones(())", "ones(3)", "ones(0, 4)", "ones(10)"])
def test_of_few_elements_the_text_tells_more(fw, make):
    assert tensor_html(eval(f"fw.{make}")) is None


@pytest.mark.parametrize("dtype", ["bool", "int64", "float16", "bfloat16", "float64", "complex64"])
def test_every_dtype_is_drawn(fw, dtype):
    html = tensor_html(fw.ones(3, 4).to(getattr(fw, dtype)))
    assert f">{dtype} (3, 4)</pre>" in html


def test_what_is_not_finite_is_drawn(fw):
    x = fw.zeros(3, 4)
    nan, infinite = x / x, (x + 1) / x
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert tensor_html(nan) is not None
        assert tensor_html(infinite) is not None


def test_what_has_no_elements_is_not_drawn():
    torch = pytest.importorskip("torch")
    assert tensor_html(torch.ones(3, 4, device="meta")) is None
    assert tensor_html(torch.eye(4).to_sparse()) is not None
