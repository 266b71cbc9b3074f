"""An observer that has failed hears no more, and the program does not hear of it."""

import warnings

import pytest

from gradscope.inspect.adapters import Observer, event_guards
from gradscope.inspect.adapters.guarded_observer import (
    AdapterGuard,
    GuardedObserver,
    adapter_failed,
    guarded,
    guards_itself,
)


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)


class Quiet(GuardedObserver):
    """Notes what it is told, and by what it has failed."""

    meant = (FloatingPointError,)

    def __init__(self):
        self.heard, self.told = [], []

    def report_fault(self, fault):
        self.told.append(fault)

    def module_entered(self, module):
        self.heard.append(module)
        raise module

    @guards_itself
    def operator_recorded(self, node):
        try:
            raise node
        except Exception as error:
            self.fail(error)

    @guarded
    def stepped(self, optimizer):
        raise optimizer


@pytest.mark.parametrize("event", ["module_entered", "operator_recorded", "stepped"])
def test_an_error_is_told_once_and_not_raised(event):
    observer = Quiet()
    getattr(observer, event)(ValueError("one"))
    getattr(observer, event)(ValueError("two"))
    assert observer.told == [observer.fault]
    assert observer.fault.startswith("ValueError: one (test_guarded_observer.py:")


@pytest.mark.parametrize("error", [FloatingPointError("meant"), KeyboardInterrupt()], ids=repr)
def test_what_is_meant_and_what_is_the_persons_is_raised(error):
    observer = Quiet()
    with pytest.raises(type(error)):
        observer.module_entered(error)
    assert observer.fault == ""


def test_nothing_is_heard_after_an_error():
    observer = Quiet()
    observer.module_entered(ValueError("one"))
    observer.module_entered(ValueError("two"))
    assert len(observer.heard) == 1


def test_what_guards_itself_is_called_without_another_around_it():
    assert Quiet.operator_recorded.guards is Quiet.operator_recorded
    assert Quiet.module_entered.guards is not Quiet.module_entered


def test_the_program_goes_on_where_what_tells_of_an_error_fails_too():
    class Mute(Quiet):
        def report_fault(self, fault):
            raise OSError("closed")

    observer = Mute()
    observer.module_entered(ValueError("one"))
    assert observer.fault


def test_who_has_no_better_way_warns():
    class Plain(GuardedObserver):
        def module_entered(self, module):
            raise ValueError("one")

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        Plain().module_entered(None)
    assert "gradscope's own code failed, and Plain looks no further; please report it: ValueError" in str(
        caught[0].message
    )


def test_an_error_of_the_adapters_is_told_by_all_who_listen():
    first, second = Quiet(), Quiet()
    with AdapterGuard([first, second]):
        raise ValueError("one")
    assert first.told == second.told == [first.fault]


@pytest.mark.parametrize(
    ("observers", "error"), [([Quiet(), Observer()], ValueError("one")), ([Quiet()], FloatingPointError("meant"))]
)
def test_what_one_who_listens_may_have_meant_is_raised(observers, error):
    with pytest.raises(type(error)):
        adapter_failed(observers, error)
    with pytest.raises(type(error)), AdapterGuard(observers):
        raise error


def test_in_tests_of_its_own_code_an_error_is_raised(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", True)
    with pytest.raises(ValueError, match="one"):
        Quiet().module_entered(ValueError("one"))
