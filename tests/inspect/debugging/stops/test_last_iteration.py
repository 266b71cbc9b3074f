"""What a condition remembers of the iteration before."""

import numpy as np

from gradscope.inspect.debugging.stops.last_iteration import Iterations, LastIteration
from gradscope.inspect.records.tensor_statistics import summarize


def test_changed_compares_with_the_iteration_before():
    iterations = Iterations()
    assert [iterations.count("a.py:3"), iterations.count("b.py:1"), iterations.count("a.py:3")] == [1, 1, 2]
    for value, changed in [(1.0, False), (1.0, False), (2.0, True), (np.array([2.0]), True), (np.nan, True)]:
        assert iterations.changed("condition", "node")(value) is changed
    assert iterations.changed("condition", "node")(np.nan) is False
    assert iterations.changed("condition", "another node")(7) is False


def test_last_is_of_the_same_line():
    iterations = Iterations()
    for site, value in (("a.py:3", 3.0), ("b.py:1", 4.0)):
        iterations.count(site)
        iterations.note(site, (site, "Mul", 1), summarize(np.array([value])))
        iterations.ended(site)
    iterations.count("b.py:1")
    iterations.ended("b.py:1")
    assert (iterations.last(("a.py:3", "Mul", 1)).norm, iterations.last(("b.py:1", "Mul", 1)).norm) == (3.0, 4.0)
    assert not iterations.last(("a.py:3", "Mul", 2))
    assert not LastIteration(None)
