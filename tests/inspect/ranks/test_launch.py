"""What each rank finds in its environment."""

from __future__ import annotations

from types import SimpleNamespace

from gradscope.inspect.ranks.launch import conclude_ranks, rank_environments, renew_ranks


def test_ranks_share_all_but_their_numbers():
    first, second = rank_environments(2)
    assert (first.pop("RANK"), first.pop("LOCAL_RANK")) == ("0", "0")
    assert (second.pop("RANK"), second.pop("LOCAL_RANK")) == ("1", "1")
    assert first == second
    assert (first["WORLD_SIZE"], first["LOCAL_WORLD_SIZE"], first["MASTER_ADDR"]) == ("2", "2", "127.0.0.1")


def test_ranks_that_are_started_again_are_another_job():
    processes = [SimpleNamespace(environment=found) for found in rank_environments(2)]
    before = [process.environment for process in processes]
    renew_ranks(processes)
    after = [process.environment for process in processes]
    assert all(old is not new for old, new in zip(before, after, strict=True))
    assert [found["RANK"] for found in after] == ["0", "1"]
    assert len({found["MASTER_PORT"] for found in after}) == 1


def test_a_process_that_is_no_rank_is_started_again_as_it_was():
    process = SimpleNamespace(environment={})
    renew_ranks([process])
    assert process.environment == {}


def test_the_exit_status_is_that_of_the_rank_which_drew_the_others_along():
    def ended(*statuses):
        return [SimpleNamespace(conclude=lambda status=status: (status, f"ended with {status}")) for status in statuses]

    assert conclude_ranks(ended(0, 0)) == (0, "[rank 0] ended with 0\n[rank 1] ended with 0")
    assert [conclude_ranks(ended(*found))[0] for found in [(0, 7), (1, 137), (2, 7), (137, 1)]] == [7, 137, 2, 137]
