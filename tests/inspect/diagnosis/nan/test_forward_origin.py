"""Where the NaN of a forward pass begins, by what the nodes of its graph have saved."""

from gradscope.inspect.diagnosis.nan.forward_origin import ForwardOrigin, forward_origin

CHAIN = [[1], [2], [3], []]


def found(bad, leaves=(), *, start=0, targets=CHAIN):
    return forward_origin(start, targets, lambda index: bad.get(index, ""), lambda index: index in leaves)


def test_the_earliest_operator_of_the_forward_pass_is_named():
    assert found({0: "self", 1: "result"}) == ForwardOrigin((), 1, "result")


def test_a_leaf_that_is_not_finite_comes_before_all():
    assert found({0: "self"}, leaves={3}) == ForwardOrigin((3,), 0, "self")


def test_what_the_node_does_not_come_from_is_no_origin():
    aside = [[2], [3], [], []]
    assert found({0: "self", 1: "self", 3: "result"}, leaves={3}, targets=aside) == ForwardOrigin((), 0, "self")
    assert found({0: "self"}, start=1) is None
