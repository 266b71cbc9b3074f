"""What each rank finds in its environment."""

from __future__ import annotations

from gradscope.inspect.ranks.launch import rank_environments


def test_ranks_share_all_but_their_numbers():
    first, second = rank_environments(2)
    assert (first.pop("RANK"), first.pop("LOCAL_RANK")) == ("0", "0")
    assert (second.pop("RANK"), second.pop("LOCAL_RANK")) == ("1", "1")
    assert first == second
    assert (first["WORLD_SIZE"], first["LOCAL_WORLD_SIZE"], first["MASTER_ADDR"]) == ("2", "2", "127.0.0.1")
