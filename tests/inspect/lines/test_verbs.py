"""Verbs: one name means one thing, and a wrong line is refused in words."""

import pytest

from gradscope.inspect.lines.line_mode import LineMode
from gradscope.inspect.lines.verbs import VERBS, UsageError, find_verb, split_commands


def test_every_name_belongs_to_one_verb():
    names = [name for verb in VERBS for name in verb.names]
    assert len(names) == len(set(names))
    assert {find_verb(f"{verb.name} 1" if verb.argument == "needed" else verb.name)[0] for verb in VERBS} == set(VERBS)


def test_every_verb_can_be_done():
    for verb in VERBS:
        assert callable(getattr(LineMode, "_do_" + verb.name.replace("-", "_")))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("stepp", "there is no command 'stepp'"),
        ("continue 3", "continue takes nothing, got '3'"),
        ("run-to", "usage: run-to NODE"),
        ("delete", "usage: delete NUMBER"),
        ("set", r"usage: set \[SLOT\] EXPRESSION"),
    ],
)
def test_wrong_lines(line, said):
    with pytest.raises(UsageError, match=said):
        find_verb(line)


def test_split_commands():
    assert split_commands(" step;; print 'a;b' ;\nquit; ") == ["step", "print 'a;b'", "quit"]
    assert split_commands('p "it\'s; fine"; q') == ['p "it\'s; fine"', "q"]
    assert split_commands(" ; ") == []
