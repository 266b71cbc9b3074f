"""What has changed between two graphs."""

from xml.etree import ElementTree

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


def cells_of(difference):
    rows = ElementTree.fromstring(difference._repr_html_()).iter("tr")
    return [["".join(cell.itertext()) for cell in row.iter("td")] for row in rows if row.find("td") is not None]


def test_in_a_notebook_each_difference_is_a_row(fw):
    w = fw.ones(2, requires_grad=True)
    first = gi.graph((w * 2).sum(), params={"<w>": w})
    second = gi.graph((w * 2).tanh().sum(), params={"<w>": w})
    difference = gi.graph_difference(first, second)
    unnamed = gi.graph_difference(first, gi.graph(w.sum()))
    assert ["-", "AccumulateGrad", "<w>"] in [row[:3] for row in cells_of(unnamed)]
    added, changed = cells_of(difference)
    assert added[:3] == ["+", "TanhBackward0", ""]
    assert changed[:2] == ["~", "SumBackward0"]
    what, before, after = changed[4:]
    assert (what, before.split("  ")[0], after.split("  ")[0]) == (
        "edges",
        "gradient 0 to MulBackward0",
        "gradient 0 to TanhBackward0",
    )
    assert "1 added, 0 removed, 1 changed, 2 the same" in difference._repr_html_()


def test_of_many_differences_a_notebook_shows_the_first(fw):
    x = fw.ones(1, requires_grad=True)
    short, y = gi.graph(x.sum()), x
    for _ in range(300):
        y = y * 1.5
    difference = gi.graph_difference(short, gi.graph(y.sum()))
    assert len(cells_of(difference)) == 200
    assert "301 differences, the first 200 of them" in difference._repr_html_()


def test_where_nothing_differs_there_is_no_table(fw):
    x = fw.ones(2, requires_grad=True)
    same = gi.graph(x.exp().sum())
    assert cells_of(gi.graph_difference(same, same)) == []
    assert "0 added, 0 removed, 0 changed, 3 the same" in gi.graph_difference(same, same)._repr_html_()
