"""An error while an event is told goes to whoever guards the observer, whatever the event is told with."""

import pytest

from gradscope.inspect.adapters import Observer, event_guards
from gradscope.inspect.adapters.event_guards import fault_of, guard_events, guarded
from gradscope.inspect.adapters.protocol import hears


def told(self, error):
    self.told = type(error).__name__


@pytest.mark.parametrize(
    "method",
    [
        lambda self: 1 / 0,
        lambda self, one: 1 / 0,
        lambda self, one, two, three: 1 / 0,
        lambda self, one, two=2: 1 / 0,
        lambda self, *all: 1 / 0,
    ],
)
def test_an_error_is_handed_over_whatever_the_arguments(method):
    class Observing:
        heard = guarded(method, told)

    observing = Observing()
    arguments = [3] * (method.__code__.co_argcount - 1 - len(method.__defaults__ or ()))
    assert (observing.heard(*arguments), observing.told) == (None, "ZeroDivisionError")


def test_arguments_and_result_pass():
    class Observing:
        three = guarded(lambda self, one, two, three: (one, two, three), told)
        default = guarded(lambda self, one, two=2: (one, two), told)

    assert Observing().three(1, 2, 3) == (1, 2, 3)
    assert (Observing().default(1), Observing().default(1, 3)) == ((1, 2), (1, 3))


def test_a_guard_keeps_silent_where_the_object_says_so():
    class Observing:
        silent = True
        heard = guarded(lambda self: 3, told, unless="silent")

    observing = Observing()
    assert observing.heard() is None
    observing.silent = False
    assert observing.heard() == 3


def test_only_the_events_that_an_observer_hears_are_guarded():
    class Observing(Observer):
        def module_entered(self, module):
            raise KeyError(module)

        def helper(self):
            raise KeyError

    guard_events(Observing, lambda method: guarded(method, told))
    observing = Observing()
    observing.module_entered(3)
    assert observing.told == "KeyError"
    assert not hears(observing, "module_left")
    with pytest.raises(KeyError):
        observing.helper()


def test_a_fault_has_one_line_and_the_place(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)
    with pytest.raises(ValueError, match="one") as raised:
        raise ValueError("one\ntwo")
    assert fault_of(raised.value).startswith("ValueError: one (test_event_guards.py:")
