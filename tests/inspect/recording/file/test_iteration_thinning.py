import itertools
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gradscope.inspect.recording.file.iteration_thinning import around_changes, iterations_to_leave_out


class Itself(dict):
    """An iteration's number is the iteration."""

    def __missing__(self, iteration):
        return iteration


ITSELF = Itself()
NUMBERS = st.sets(st.integers(0, 500), max_size=60).map(sorted)


@given(NUMBERS, st.sets(st.integers(0, 500)))
def test_thinning_ends_with_two_iterations_and_the_newest_quarter_is_never_touched(iterations, special):
    while gone := iterations_to_leave_out(iterations, special, ITSELF):
        newest = iterations[len(iterations) - max(2, len(iterations) // 4) :]
        assert set(gone) < set(iterations)
        assert not set(gone) & set(newest)
        iterations = [number for number in iterations if number not in gone]
    assert len(iterations) <= 2


@given(NUMBERS, st.sets(st.integers(0, 500)))
def test_special_iterations_go_only_when_no_other_is_left_to_go(iterations, special):
    gone = set(iterations_to_leave_out(iterations, special, ITSELF))
    older = set(iterations[: len(iterations) - max(2, len(iterations) // 4)])
    assert not gone & special or older <= special


def test_what_stays_stands_evenly():
    iterations = list(range(1000))
    while len(iterations) > 40:
        gone = iterations_to_leave_out(iterations, set(), ITSELF)
        iterations = [number for number in iterations if number not in gone]
    assert max(after - before for before, after in pairwise(iterations)) < 4 * 1000 / len(iterations)


@given(st.lists(st.integers(1, 40), min_size=2, max_size=60), st.lists(st.integers(1, 40), min_size=2, max_size=60))
def test_ranks_that_thin_at_other_moments_keep_the_same_iterations(one, other):
    """Of what is old on both, one rank keeps each iteration that the other keeps, or each second, fourth, ..."""
    kept = [_kept_of(steps, most=30, last=600) for steps in (one, other)]
    older = [[number for number in numbers if number <= 150] for numbers in kept]
    more, fewer = sorted(older, key=len, reverse=True)
    assert len(set(fewer) - set(more)) <= 1 + len(fewer) // 3


def _kept_of(batches, most, last):
    """Return what a recording keeps to which iterations come in batches."""
    kept, newest = [], 0
    for count in itertools.cycle(batches):
        kept += range(newest + 1, min(newest + count, last) + 1)
        newest += count
        while len(kept) > most:
            gone = iterations_to_leave_out(kept, set(), ITSELF)
            kept = [number for number in kept if number not in gone]
        if newest >= last:
            return kept


@given(st.lists(st.sampled_from([frozenset(), frozenset({"bad"}), frozenset({"bad", "failed"})]), max_size=30))
def test_where_something_begins_to_go_wrong_the_iterations_beside_it_stay_too(what):
    facts = {number: facts for number, facts in enumerate(what) if facts}
    kept = around_changes(range(len(what)), facts)
    for number, now in enumerate(what):
        before = what[number - 1] if number else frozenset()
        if now and now != before:
            assert {number - 1, number, number + 1} & set(range(len(what))) <= kept
    assert bool(kept) == bool(facts)
