"""Finding objects that live, wherever the program keeps them, while its other threads run.

What the collector lists contains objects that a thread has only begun to make. One kind of them bears no second
reference: ``tuple(items)`` fills a tuple that it still resizes, and where somebody holds it at that moment, it raises
``SystemError`` in that thread. So everything here is told apart inside one call of C code, during which no other thread
runs, and what is not asked for is let go before it returns.
"""

from __future__ import annotations

import gc
import operator
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import chain, compress, repeat, starmap
from typing import Any

__all__ = ["collect_set_aside", "living", "no_collection", "referrers", "setting_aside"]

_MANY_YOUNG = 20_000
"""Objects that have been made since the last collection; 20,000 of them take it about 2 ms."""


def living(classes: Iterable[type]) -> list[Any]:
    """Return all objects of some classes, and of their subclasses, that the garbage collector knows.

    A million objects take about 60 ms. They are judged by their type, so that none is asked anything: a proxy that
    claims another ``__class__`` does not wake up. Another thread may not have set all of an object's attributes yet.

    Examples
    --------
    >>> class Thing:
    ...     pass
    >>> one, other = Thing(), type("Other", (Thing,), {})()
    >>> len(living([Thing]))
    2
    """
    waiting = list(classes)
    kinds: set[int] = set()
    while waiting:
        kind = waiting.pop()
        kinds.add(id(kind))
        below: list[type] = type.__subclasses__(kind)
        waiting += [other for other in below if id(other) not in kinds]
    with no_collection():
        return list(_chosen(map(operator.call, (gc.get_objects,)), type, id, kinds.__contains__))


def referrers(things: Sequence[Any]) -> list[Any]:
    """Return what ``gc.get_referrers`` returns, without tuples to which nothing refers that the collector knows.

    Those are the tuples that a thread still fills, and such as only a frame or C code holds.

    Examples
    --------
    >>> thing = []
    >>> outer = [(thing,)]
    >>> outer[0] in referrers([thing])
    True
    """
    with no_collection():
        found = list(_referring(things, id(tuple).__ne__))
        tuples = set(map(id, _referring(things, id(tuple).__eq__)))
        return [*found, *_held(things, tuples)] if tuples else found


def _referring(things: Sequence[Any], test: Callable[[int], bool]) -> Iterator[Any]:
    """Yield what refers to some objects, if the id of its type passes a test."""
    return _chosen(starmap(gc.get_referrers, (things,)), type, id, test)


def _held(things: Sequence[Any], tuples: set[int]) -> list[tuple[Any, ...]]:
    """Return those tuples around `things` to which another object refers."""
    times = Counter(map(id, _chosen(_around(things), id, tuples.__contains__)))
    held = {identity for identity, count in times.items() if count > _asking()}
    found = {id(item): item for item in _chosen(_around(things), id, held.__contains__)} if held else {}
    return [item for item in found.values() if type(item) is tuple]


@cache
def _asking() -> int:
    """Return how often :func:`_around` yields a tuple to which nothing refers.

    From Python 3.13 on get_referrers() copies its arguments, and finds the tuple in which they were.
    """
    thing: Any = type("Thing", (), {})()
    around = (thing,)
    return list(map(id, chain.from_iterable(_around([thing])))).count(id(around))


def _around(things: Sequence[Any]) -> Iterator[Any]:
    """Yield lists of what those objects refer to that refer to tuples around `things`."""
    # The item is popped, so that no iterator is left when referrers are looked for.
    once = iter([None, _referring(things, id(tuple).__eq__)].pop, None)
    return starmap(gc.get_referents, starmap(gc.get_referrers, once))


def _chosen(lists: Iterator[list[Any]], *steps: Callable[[Any], Any]) -> Iterator[Any]:
    """Yield the items of lists for which the last of some functions, each called on what the one before gave, is true.

    With functions in C it is all C, and a list lives as long as it is iterated. The objects that hold it are made after
    it: where ``tee`` is among all objects, its buffer buffers itself, a cycle that keeps all the rest.
    """
    twice = chain.from_iterable(map(repeat, lists, repeat(2)))
    tests: Iterator[Any] = twice
    for step in steps:
        tests = map(map, repeat(step), tests)
    return chain.from_iterable(map(compress, twice, tests))


@contextmanager
def no_collection() -> Iterator[None]:
    """Hold the cyclic garbage collector off: it would walk a growing heap again and again while nothing is garbage.

    And no finalizer runs, with it other threads, where an object is made. What has been made by then in great number
    counts as old afterwards: the next collections of what is young would walk all of it, at a moment when somebody
    waits.
    """
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        try:
            if gc.get_count()[0] > _MANY_YOUNG:
                _grow_old()
        finally:  # an abort may come before the end
            if enabled:
                gc.enable()


def _grow_old() -> None:
    """Move all objects to the oldest generation, as a full collection does, without walking them; or set them aside.

    A program that has frozen objects of its own keeps them so, and the next collection takes its time.
    """
    if _sets_aside:
        gc.freeze()
    elif not gc.get_freeze_count():
        gc.freeze()
        gc.unfreeze()


_sets_aside = False


@contextmanager
def setting_aside() -> Iterator[None]:
    """Set aside what there is, and what is made in great number under :func:`no_collection` while a block runs.

    No collection walks it. Else a full one walks all that there is, and comes whenever a quarter as much has been made:
    where somebody waits, each stops the process for as long as the records of a large graph take. Such a block is for a
    process that runs nobody's program: what is garbage in a circle when objects are set aside stays until
    :func:`collect_set_aside`, or until the end of the block.
    """
    global _sets_aside
    _sets_aside = not gc.get_freeze_count()  # what somebody else has frozen is left so
    if _sets_aside:
        gc.freeze()
    try:
        yield
    finally:
        if _sets_aside:
            _sets_aside = False
            gc.unfreeze()


def collect_set_aside() -> None:
    """Let a full collection walk what has been set aside, when most of it has been let go."""
    if _sets_aside and gc.get_freeze_count():
        gc.unfreeze()
        gc.collect()
