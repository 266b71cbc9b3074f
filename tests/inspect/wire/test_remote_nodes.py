from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect import NodeRecord
from gradscope.inspect.wire.remote_nodes import KnownNodes, RemoteNodes


def nodes(count, asked=None):
    records = [NodeRecord(i, 10 + i, "MulBackward0", "Mul", i, "", "", None, ()) for i in range(count)]

    def fetch(start, stop):
        if asked is not None:
            asked.append((start, stop))
        return records[start:stop]

    return records, RemoteNodes(KnownNodes(1, count, fetch, dict))


@given(st.integers(0, 700), st.slices(700))
def test_it_is_the_sequence_that_it_stands_for(count, part):
    records, remote = nodes(count)
    assert len(remote) == count
    assert remote[part] == records[part]
    assert list(remote) == list(remote.bare()) == records
    assert [remote.position(record.key) for record in records] == list(range(count))
    assert remote.position(-1) is None
    assert list(remote.candidates(5)) == records[5:]


def test_a_page_is_asked_for_once():
    asked = []
    _, remote = nodes(1000, asked)
    for index in (500, 501, -490, 511):
        assert remote[index].key
    assert asked == [(384, 512)]
    with pytest.raises(IndexError, match="there is no node 1000 in this backward: it has 1000 nodes"):
        remote[1000]


def test_nodes_that_are_gone_are_said_to_be():
    remote = RemoteNodes(KnownNodes(1, 10, lambda start, stop: [], lambda: None))
    assert (remote[3].name, remote[3].index, remote[-1].index) == ("(gone)", 3, 9)
    assert list(remote.bare()) == []


def test_nodes_of_a_program_that_is_gone_are_as_they_were_last():
    records = [NodeRecord(i, 10 + i, "MulBackward0", "Mul", i, "", "", None, ()) for i in range(200)]
    alive = [True]
    known = KnownNodes(1, 200, lambda start, stop: records[start:stop] if alive else [], dict)
    RemoteNodes(known)[3]
    records[3] = NodeRecord(3, 13, "MulBackward0", "Mul", 3, "", "", None, (), state="done")
    RemoteNodes(known)[3]
    alive.clear()
    at_the_end = RemoteNodes(known)
    assert (at_the_end[3].state, at_the_end[4].name, at_the_end[150].name) == ("done", "MulBackward0", "(gone)")


def test_norms_are_asked_for_once_and_no_page_is():
    asked, pages = [], []

    def fetch_norms():
        asked.append("norms")
        return {3: float(len(asked))}

    known = KnownNodes(1, 200, lambda start, stop: pages.append(start), fetch_norms)
    nodes = RemoteNodes(known)
    assert nodes.known_norms() == nodes.known_norms() == {3: 1.0}
    assert RemoteNodes(known).known_norms() == {3: 2.0}
    assert pages == []


def test_norms_of_a_program_that_is_gone_are_those_that_were_last_told():
    told = [{0: 0.5}, {0: 0.5, 1: 2.0}, None]
    known = KnownNodes(1, 200, lambda start, stop: [], lambda: told.pop(0))
    assert [RemoteNodes(known).known_norms() for _ in range(3)] == [{0: 0.5}, {0: 0.5, 1: 2.0}, {0: 0.5, 1: 2.0}]
    assert RemoteNodes(KnownNodes(1, 200, lambda start, stop: [], lambda: None)).known_norms() == {}
