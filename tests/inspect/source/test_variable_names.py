"""What a value is called in the program."""

import sys

from gradscope.inspect.source.variable_names import name_of


class Thing:
    pass


def test_a_variable_or_an_attribute_of_self_names_a_value():
    thing = Thing()
    assert name_of(thing, sys._getframe()) == "thing"
    assert name_of(Thing, sys._getframe()) == "Thing"
    unnamed = name_of(object(), sys._getframe())
    assert unnamed == ""
    assert name_of(thing, None) == ""
    self = Thing()
    self.part = Thing()
    assert name_of(self.part, sys._getframe()) == "self.part"
