"""Gradients that share memory."""

import json

import pytest

import gradscope.inspect as gi
from gradscope.inspect.adapters.memory_fingerprint import Region


def two(fw):
    return fw.ones(3, requires_grad=True), fw.ones(3, requires_grad=True)


def test_none(fw):
    a, b = two(fw)
    (a * b).sum().backward()
    found = gi.aliasing({"a": a, "b": b})
    assert (bool(found), found.gradients) == (False, 2)
    assert str(found) == "No two of 2 gradients share memory."


def test_two_gradients_in_one_memory(fw):
    a, b = two(fw)
    a.grad = b.grad = fw.zeros(3)
    (entry,) = gi.aliasing({"a": a, "b": b}).shared
    assert (entry.kind, entry.first, entry.second, entry.overlap) == ("gradients", "a", "b", True)


def test_views_of_a_bucket(fw):
    a, b = two(fw)
    bucket = fw.zeros(6)
    a.grad, b.grad = bucket[:3], bucket[3:]
    found = gi.aliasing([("a", a), ("b", b)])
    assert [(e.kind, e.first) for e in found.shared] == [("bucket", "a"), ("bucket", "b")]
    assert found.dangerous == ()
    assert "`a` is a view: 12 B of 24 B" in str(found)


def test_overlapping_views_of_a_bucket(fw):
    a, b = two(fw)
    bucket = fw.zeros(6)
    a.grad, b.grad = bucket[:3], bucket[2:5]
    assert [e.kind for e in gi.aliasing([a, b]).dangerous] == ["gradients"]


def test_the_gradient_that_was_passed_in(fw):
    a, _ = two(fw)
    given = fw.ones(3)
    a.grad = given
    (entry,) = gi.aliasing({"a": a}, others={"grad_output": given}).shared
    assert (entry.kind, entry.second) == ("tensor", "grad_output")


def test_the_parameter_itself(fw):
    a, _ = two(fw)
    a.grad = a.detach()
    (entry,) = gi.aliasing({"a": a}).shared
    assert (entry.kind, entry.second) == ("parameter", "a")


def test_columns_of_one_matrix_have_no_byte_in_common(fw):
    a, b = two(fw)
    matrix = fw.zeros(3, 3)
    a.grad, b.grad = matrix[:, 0], matrix[:, 1]
    assert gi.aliasing([a, b]).dangerous == ()
    b.grad = matrix[1]
    assert [e.kind for e in gi.aliasing([a, b]).dangerous] == ["gradients"]


def test_others_may_be_read_once(fw):
    a, b = two(fw)
    given = fw.zeros(6)
    a.grad, b.grad = given[:3], given[3:]
    found = gi.aliasing([a, b], others=iter([("given", given)]))
    assert [(e.first, e.second) for e in found.dangerous] == [("[0]", "given"), ("[1]", "given")]


def test_forms(fw):
    model = fw.nn.Linear(2, 2)
    assert gi.aliasing(model).gradients == 0
    assert json.loads(gi.aliasing(model).to_json())["shared"] == []
    assert gi.aliasing(model).table().row_count == 0


def test_a_parameter_under_two_names_shares_nothing_with_itself(fw):
    a, _ = two(fw)
    a.grad = fw.zeros(3)
    assert gi.aliasing({"a": a, "tied": a}).shared == ()


def test_two_models_with_the_same_parameters_share_nothing_unduly(fw):
    """So it is with a module and what ``torch.jit.trace`` makes of it."""
    model, other = fw.nn.Linear(2, 1), fw.nn.Linear(2, 1)
    other.weight, other.bias = model.weight, model.bias
    with gi.Doctor() as doctor:
        (model(fw.ones(1, 2)) + other(fw.ones(1, 2))).sum().backward()
    assert doctor.diagnosis.symptoms == ()


def test_views_of_a_large_bucket_are_compared_with_their_neighbours_only(fw, monkeypatch):
    looks, apart = [], Region.apart
    monkeypatch.setattr(Region, "apart", lambda a, b: looks.append(1) or apart(a, b))
    bucket, leaves = fw.zeros(300), [fw.ones(3, requires_grad=True) for _ in range(100)]
    for place, leaf in enumerate(leaves):
        leaf.grad = bucket[3 * place : 3 * place + 3]
    leaves[7].grad, leaves[50].grad = bucket[20:23], bucket[21:24]
    found = gi.aliasing({f"w{place}": leaf for place, leaf in enumerate(leaves)})
    assert [(entry.first, entry.second) for entry in found.dangerous] == [("w6", "w7"), ("w7", "w50")]
    assert len(looks) == 2


def test_sparse_gradients_have_no_memory_to_share_but_are_one_where_they_are_the_same(torch):
    first, second = (torch.nn.Embedding(4, 2, sparse=True) for _ in range(2))
    places = torch.tensor([1, 1])
    (first(places).sum() + second(places).sum()).backward()
    named = {"a": first.weight, "b": second.weight}
    assert not gi.aliasing(named)
    second.weight.grad = first.weight.grad
    assert [(entry.first, entry.second) for entry in gi.aliasing(named).dangerous] == [("a", "b")]


@pytest.mark.parametrize("batch", [1, 2])
def test_the_doctor_looks_at_sparse_gradients(torch, batch):
    bag, head = torch.nn.EmbeddingBag(4, 2, sparse=True, mode="sum"), torch.nn.Linear(2, 1)
    places = torch.tensor([[1, 2]] * batch)
    with gi.Doctor() as doctor:
        for _ in range(2):
            head(bag(places)).sum().backward()
    assert doctor.diagnosis.symptoms == ()
