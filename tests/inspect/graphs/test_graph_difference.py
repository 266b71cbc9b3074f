"""What has changed between two graphs."""

from hypothesis import given

import gradscope as gs
import gradscope.inspect as gi
from tests.inspect.random_graphs import backward_graphs


def forward(net, x, extra=False):
    y = net(x)
    if extra:
        y = y.tanh()
    return y.sum()


def graph_of(net, x, **options):
    with gi.track():
        loss = forward(net, x, **options)
    return gi.graph(loss, params=net)


def test_two_runs_of_one_program_do_not_differ():
    first, second = (graph_of(gs.nn.Linear(3, 2), gs.ones(4, 3)) for _ in range(2))
    difference = gi.graph_difference(first, second)
    assert not difference
    assert (str(difference), difference.same) == ("0 added, 0 removed, 0 changed, 4 the same", 4)


def test_another_operator_and_what_it_moves():
    net = gs.nn.Linear(3, 2)
    difference = gi.graph_difference(graph_of(net, gs.ones(4, 3)), graph_of(net, gs.ones(4, 3), extra=True))
    assert [identity.name for identity in difference.added] == ["TanhBackward0"]
    assert difference.removed == ()
    assert [(c.identity.name, c.what) for c in difference.changed] == [("SumBackward0", "edges")]
    assert "+ TanhBackward0  [test_graph_difference.py, forward: y = y.tanh()]" in str(difference)
    back = gi.graph_difference(graph_of(net, gs.ones(4, 3), extra=True), graph_of(net, gs.ones(4, 3)))
    assert [identity.name for identity in back.removed] == ["TanhBackward0"]


def test_another_batch_size_changes_shapes():
    net = gs.nn.Linear(3, 2)
    difference = gi.graph_difference(graph_of(net, gs.ones(4, 3)), graph_of(net, gs.ones(5, 3)))
    assert not difference.added
    assert {(c.identity.name, c.what) for c in difference.changed} == {
        ("AddmmBackward0", "outputs"),
        ("AddmmBackward0", "saved"),
    }
    assert "float32 (4, 2) cpu → float32 (5, 2) cpu" in str(difference)


@given(backward_graphs(), backward_graphs())
def test_the_difference_the_other_way_round(first, second):
    one, other = gi.graph_difference(first, second), gi.graph_difference(second, first)
    assert (set(one.added), set(one.removed)) == (set(other.removed), set(other.added))
    assert {c.identity for c in one.changed} == {c.identity for c in other.changed}
    assert one.same == other.same
    assert not gi.graph_difference(first, first)
