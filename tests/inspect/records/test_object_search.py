"""Looking through all objects while the program's other threads make new ones."""

import gc
import sys
import threading
import weakref
from contextlib import contextmanager

import pytest

from gradscope.inspect.records.object_search import (
    collect_set_aside,
    living,
    no_collection,
    referrers,
    setting_aside,
)


class Thing:
    pass


@contextmanager
def another_thread_filling_tuples(items):
    """Run the block beside a thread that does nothing else; yield what that thread got to feel."""
    failures, over, began = [], threading.Event(), threading.Event()

    def fill():
        while not over.is_set():
            began.set()
            try:
                assert len(tuple(item for item in items * 50)) == 50 * len(items)
            except SystemError as error:
                failures.append(error)

    interval, thread = sys.getswitchinterval(), threading.Thread(target=fill)
    sys.setswitchinterval(1e-5)
    thread.start()
    began.wait()
    try:
        yield failures
    finally:
        over.set()
        thread.join()
        sys.setswitchinterval(interval)


@pytest.mark.usefixtures("own_objects")
def test_a_tuple_that_another_thread_fills_is_left_alone():
    thing = Thing()
    around = [thing]
    with another_thread_filling_tuples([thing]) as failures:
        for _ in range(15):
            assert thing in living([Thing])
            assert around in referrers([thing])
    assert failures == []


@pytest.mark.usefixtures("own_objects")
def test_looking_leaves_nothing_behind():
    thing = Thing()
    around = [(thing,)]
    with no_collection():
        for _ in range(3):
            living([Thing])
            referrers([thing])
        before = len(gc.get_objects())
        for _ in range(10):
            living([Thing])
            referrers([thing])
        assert len(gc.get_objects()) < before + 10  # another thread of the process may make one or two
    gone = weakref.ref(thing)
    del thing, around
    assert gone() is None


def test_a_proxy_does_not_wake_up():
    class Proxy:
        @property
        def __class__(self):
            pytest.fail("it was asked what it is")

    proxy, things = Proxy(), [Thing()]
    assert living([Thing]) == things
    del proxy


def test_referrers_of_every_kind():
    thing = Thing()
    listed, named, pair = [thing], {"thing": thing}, [(thing, 1)]
    found = referrers([thing])
    assert {id(item) for item in (listed, named, pair[0])} <= {id(item) for item in found}


def test_a_tuple_that_is_being_filled_is_no_referrer():
    thing, seen = Thing(), []

    def items():
        for _ in range(12):
            yield thing
            seen.append(referrers([thing]))

    assert tuple(items()) == (thing,) * 12
    assert not any(type(item) is tuple for found in seen for item in found)


@pytest.fixture
def _nothing_is_frozen():
    """The collected tests are frozen otherwise, and are again afterwards: nothing walks them in between."""
    enabled = gc.isenabled()
    gc.disable()
    gc.unfreeze()
    yield
    gc.freeze()
    if enabled:
        gc.enable()


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_was_made_in_great_number_is_not_walked_by_the_next_collection_of_what_is_young():
    with no_collection():
        many = [[] for _ in range(50_000)]
    young = {id(item) for generation in (0, 1) for item in gc.get_objects(generation)}
    assert not young.intersection(map(id, many))


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_a_program_has_frozen_stays_frozen():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with no_collection():
        many = [[] for _ in range(50_000)]
    assert gc.get_freeze_count() >= frozen - 100
    assert len(many) == 50_000


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_is_set_aside_is_walked_by_no_collection_until_the_block_ends():
    with setting_aside():
        with no_collection():
            many = [[] for _ in range(50_000)]
        with no_collection():
            more = [[] for _ in range(50_000)]
        made = {*map(id, many), *map(id, more)}
        assert not made.intersection(map(id, gc.get_objects()))
    assert made.issubset(map(id, gc.get_objects()))


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_a_circle_that_was_set_aside_as_garbage_is_found_when_it_is_asked_for():
    with setting_aside():
        thing = Thing()
        thing.itself, gone = thing, weakref.ref(thing)
        with no_collection():
            many = [[] for _ in range(50_000)]
        del thing
        gc.collect()
        assert gone() is not None
        collect_set_aside()
        assert gone() is None
    assert len(many) == 50_000


@pytest.mark.usefixtures("_nothing_is_frozen")
def test_what_somebody_else_has_frozen_is_not_thawed_with_what_is_set_aside():
    gc.freeze()
    frozen = gc.get_freeze_count()
    with setting_aside(), no_collection():
        many = [[] for _ in range(50_000)]
    collect_set_aside()
    assert gc.get_freeze_count() >= frozen - 100
    assert len(many) == 50_000


def test_the_collector_is_held_off_and_comes_back():
    with no_collection():
        assert not gc.isenabled()
        with no_collection():
            assert not gc.isenabled()
        assert not gc.isenabled()
    assert gc.isenabled()
