"""What an editor knows of ranks, by numbers that say whose they are."""

from __future__ import annotations

import pytest

from gradscope.inspect.dap.debugged_ranks import DebuggedRanks
from gradscope.inspect.ranks.rank_group import RankGroup


@pytest.fixture
def program_alone(program):
    return DebuggedRanks(RankGroup([program]))


@pytest.fixture
def ranks(program):
    """Two ranks, which are the same program here."""
    return DebuggedRanks(RankGroup([program, program]))


def test_a_process_that_is_no_rank_keeps_its_numbers(program_alone):
    assert [program_alone.here.number(number) for number in (1, 2)] == [1, 2]


def test_a_thread_a_frame_and_a_variable_name_their_rank(ranks):
    first, second = ranks.ranks
    for name in ("threadId", "frameId"):
        for rank in ranks.ranks:
            ranks.turn_to({name: rank.number(3)})
            assert (ranks.here, ranks.group.rank, ranks.own(rank.number(3))) == (rank, rank.rank, 3)
    scopes = {rank.rank: rank.variables.scopes(rank.debugger, rank.frames()[0]) for rank in ranks.ranks}
    numbers = {rank: [scope["variablesReference"] for scope in found] for rank, found in scopes.items()}
    assert not set(numbers[0]) & set(numbers[1])
    for rank in (first, second):
        ranks.turn_to({"variablesReference": numbers[rank.rank][0]})
        assert ranks.here is rank


def test_what_names_no_rank_is_about_the_one_before(ranks):
    ranks.turn_to({"threadId": ranks.ranks[1].number(1)})
    ranks.turn_to({})
    ranks.turn_to({"variablesReference": 10**6})
    assert ranks.here is ranks.ranks[1]


@pytest.mark.parametrize("number", [-1, 200_001])
def test_a_number_of_no_rank_is_refused(ranks, number):
    with pytest.raises(ValueError, match="they are 0 to 1"):
        ranks.turn_to({"threadId": number})


def test_a_rank_that_moves_forgets_where_it_stood_and_the_others_do_not(ranks):
    first, second = ranks.ranks
    found = {
        rank: rank.variables.scopes(rank.debugger, rank.frames()[0])[0]["variablesReference"]
        for rank in (first, second)
    }
    first.moves()
    assert found[first] not in first.variables
    assert found[second] in second.variables
