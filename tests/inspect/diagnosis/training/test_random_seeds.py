"""Seeds that a program sets are told of, with its lines."""

import pickle

import pytest

from gradscope.inspect.diagnosis.training.random_seeds import SeedHooks


@pytest.fixture
def told():
    seeds = []
    hooks = SeedHooks(seeds.append)
    hooks.look()
    yield seeds
    hooks.close()


def test_a_seed_is_told_with_the_lines_that_led_to_it(fw, told):
    def seed_everything():
        return fw.manual_seed(3)

    generator = seed_everything()
    assert generator.initial_seed() == 3
    (seed,) = told
    assert (seed.framework, seed.value) == (fw.__name__, 3)
    assert [line.source for line in seed.lines[:2]] == ["return fw.manual_seed(3)", "generator = seed_everything()"]


def test_a_seed_that_is_refused_is_not_told(fw, told):
    with pytest.raises((RuntimeError, TypeError, ValueError)):
        fw.manual_seed("three")
    assert told == []


def test_the_function_can_be_sent_to_another_process(fw, told):
    assert pickle.loads(pickle.dumps(fw.random.manual_seed)) is fw.random.manual_seed


def test_a_function_that_the_program_has_put_there_stays_and_tells_nothing(fw):
    seeds, original = [], fw.manual_seed
    hooks = SeedHooks(seeds.append)
    hooks.look()
    heard = fw.manual_seed

    def own(seed):
        return heard(seed)

    fw.manual_seed = own
    try:
        hooks.close()
        assert fw.manual_seed is own
        fw.manual_seed(3)
        assert seeds == []
    finally:
        fw.manual_seed = original
