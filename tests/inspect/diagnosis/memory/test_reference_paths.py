"""Who keeps an object alive, asked while the program goes on."""

from gradscope.inspect.diagnosis.memory.reference_paths import Holder, Roots


class Thing:
    pass


def test_a_tuple_in_a_local_variable():
    kept = (1, Thing())
    assert Roots().holder(kept[1]) == Holder("kept", "function test_a_tuple_in_a_local_variable", "kept[1]")


def test_a_tuple_in_a_list():
    history = [(1, Thing())]
    assert Roots().holder(history[0][1]) == Holder("history", "function test_a_tuple_in_a_list", "history[0][1]")


def test_an_attribute_is_written_as_one_wherever_the_object_keeps_it():
    owner = Thing()
    owner.made = {"first": [Thing()]}
    as_attribute = Roots().holder(owner.made["first"][0])
    assert vars(owner)  # now there is a dictionary of its attributes
    as_item = Roots().holder(owner.made["first"][0])
    assert as_attribute is not None
    assert as_attribute.path == "owner.made['first'][0]"
    assert as_item == as_attribute


def test_a_tuple_that_is_being_filled_can_be_filled_on():
    thing, searches = Thing(), []

    def items(roots):
        for _ in range(12):
            yield thing
            # What the search has passed on its way is held on.
            searches.append(roots.search(thing))

    roots = Roots()
    roots._by_id.clear()
    assert tuple(items(roots)) == (thing,) * 12
    assert len(searches) == 12
