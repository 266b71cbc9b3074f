"""A run of many ranks as text."""

from __future__ import annotations

import re

from gradscope.inspect.ranks.recorded_ranks import open_ranks
from gradscope.inspect.ranks.run_view import ranks_text
from tests.inspect.ranks.jobs import record_ranks


def text_of(folder, **options):
    with open_ranks(folder) as ranks:
        return ranks_text(ranks, **options).splitlines()


def test_ranks_and_iterations_stand_side_by_side(tmp_path):
    record_ranks(tmp_path, 2, [0], steps=3)
    record_ranks(tmp_path, 2, [1], steps=2)
    lines = text_of(tmp_path)
    assert re.fullmatch(rf"{tmp_path}: train.py, 2 of 2 ranks  \d{{4}}-\d\d-\d\d \d\d:\d\d:\d\d", lines[0])
    assert lines[1].split() == ["rank", "process", "state", "iterations", "backwards", "nodes"]
    assert re.fullmatch(r"0 +\d+ on \S+ +finished +3 +3 +27", lines[2])
    assert re.fullmatch(r"1 +\d+ on \S+ +finished +2 +2 +18", lines[3])
    assert [line.split()[:2] for line in lines[5:]] == [["1", "2"], ["2", "2"], ["3", "1"]]
    assert lines[7].endswith("rank 0")  # it alone has that iteration


def test_of_many_iterations_the_first_and_the_last_are_shown(tmp_path):
    record_ranks(tmp_path, 1, steps=9)
    lines = text_of(tmp_path, limit=4)[3:]
    assert [line.split()[0] for line in lines] == ["iteration", "1", "2", "...", "8", "9"]
    assert lines[3] == "... 5 more; --limit 0 shows all"
    assert len(text_of(tmp_path, limit=0)) == 3 + 1 + 9
