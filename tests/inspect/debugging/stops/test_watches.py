"""Watches tell what changed."""

from gradscope.inspect.debugging.stops.watches import WatchList


def test_watches_remember_the_latest_numbers():
    watches, values = WatchList(), iter(["1", "-2.5", "tensor([1])", "nan", *map(str, range(60))])
    watches.add("norm")
    for _ in range(4):
        watches.update(lambda expression: next(values))
    (watch,) = watches.all()
    assert [*watch.recent[:2], str(watch.recent[2])] == [1.0, -2.5, "nan"]
    for _ in range(60):
        watches.update(lambda expression: next(values))
    assert watches.all()[0].recent == tuple(map(float, range(20, 60)))


def test_watches_tell_what_changed():
    watches, values = WatchList(), iter(["1", "1", ValueError("no"), "2"])

    def evaluate(expression):
        value = next(values)
        if isinstance(value, Exception):
            raise value
        return value

    watches.add(" norm ")
    seen = []
    for _ in range(4):
        watches.update(evaluate)
        (watch,) = watches.all()
        seen.append((watch.expression, watch.text, watch.changed))
    assert seen == [
        ("norm", "1", False),
        ("norm", "1", False),
        ("norm", "ValueError: no", True),
        ("norm", "2", True),
    ]
