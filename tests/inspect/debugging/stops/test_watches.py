"""Watches tell what changed."""

from gradscope.inspect.debugging.stops.watches import WatchList


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
