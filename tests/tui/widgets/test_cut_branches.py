from __future__ import annotations

from gradscope.inspect.debugging.session.session_records import BackwardFinding
from gradscope.inspect.records.records import Location
from gradscope_tui.widgets.cut_branches import by_joint, cut_rows
from gradscope_tui.widgets.graph_rows import Outline


def rows(*parameters, kind="unreached"):
    found = cut_rows([BackwardFinding(kind, "warning", "", parameters=parameters)])
    return [(row.module, row.name, row.names, row.first) for row in found]


def test_a_branch_begins_with_the_module_around_all_that_is_cut_off():
    assert rows("a.b.0.weight", "a.b.0.bias", "a.b.1.weight") == [
        ("a.b", "a.b", (), True),
        ("a.b.0", "0", ("weight", "bias"), False),
        ("a.b.1", "1", ("weight",), False),
    ]


def test_a_module_that_is_cut_off_alone_has_one_row():
    assert rows("head.weight", "head.bias") == [("head", "head", ("weight", "bias"), True)]
    assert rows("scale", "shift") == [("", "", ("scale", "shift"), True)]


def test_names_that_begin_alike_are_no_module():
    assert [row[0] for row in rows("layer10.weight", "layer11.weight")] == ["", "layer10", "layer11"]


def test_a_large_branch_says_how_many_modules_it_leaves_out():
    found = rows(*(f"tower.{layer}.weight" for layer in range(30)))
    assert [name for _, name, _, _ in found] == ["tower", *map(str, range(7)), "… and 23 more modules"]


def test_other_findings_cut_nothing_off():
    assert rows("a.weight", kind="vanishing") == []


def test_a_branch_belongs_to_the_node_that_joins_it_where_that_is_known():
    where = Location("/code/two.py", 20, "forward", "b = b.data")
    cut = BackwardFinding("unreached", "warning", "", "", where, parameters=("text.weight",))
    unused = BackwardFinding("unreached", "warning", "", parameters=("pooler.weight",))
    for joins, joint in (({3: 1}, 3), ({3: 1, 5: 1}, -1), ({}, -1)):
        found = by_joint(cut_rows([unused, cut]), Outline((), (), (), {}, joins))
        assert [(at, [row.module for row in rows]) for at, rows in found] == [(joint, ["text"]), (-1, ["pooler"])]
