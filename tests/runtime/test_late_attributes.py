"""Attributes that are defined elsewhere and load when they are first used."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from gradscope.runtime.late_attributes import ATTACHED, attach


class Definitions:
    """What the module of a floor above defines."""

    @property
    def double(self):
        """Twice the value."""
        return 2 * self.value

    @double.setter
    def double(self, value):
        self.value = value / 2

    def added(self, number):
        return self.value + number


@pytest.fixture
def owner(monkeypatch):
    """Return a class with two late attributes, whose module is not there before ``sys.modules`` is asked for it."""
    module = ModuleType("gradscope_late")
    module.Definitions = Definitions
    monkeypatch.setitem(sys.modules, "gradscope_late", module)

    class Owner:
        value = 3

    attach(Owner, "gradscope_late.Definitions", "double", "added")
    yield Owner
    del ATTACHED[Owner]


def test_the_first_use_puts_the_definition_in_its_place(owner):
    assert owner().double == 6
    assert vars(owner)["double"] is Definitions.double
    assert owner().added(1) == 4
    assert vars(owner)["added"] is Definitions.added


def test_the_first_use_may_be_an_assignment(owner):
    instance = owner()
    instance.double = 10
    assert (instance.value, vars(owner)["double"]) == (5, Definitions.double)
    instance.added = 1  # a method may be hidden by an attribute of the instance, as any other
    assert instance.added == 1


def test_the_class_shows_the_definition(owner):
    assert owner.double is Definitions.double
    assert owner.added is Definitions.added


def test_subclasses_inherit_the_attributes(owner):
    class Derived(owner):
        value = 4

    assert (Derived().double, Derived.added) == (8, Definitions.added)
    assert ATTACHED[owner] == ["double", "added"]
