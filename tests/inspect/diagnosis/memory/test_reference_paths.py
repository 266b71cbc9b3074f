"""Who keeps an object alive, asked while the program goes on."""

from gradscope.inspect.diagnosis.memory import reference_paths
from gradscope.inspect.diagnosis.memory.reference_paths import ReferencePath, Roots
from gradscope.inspect.records.object_search import referrers

GONE = None


class Thing:
    pass


def test_a_tuple_in_a_local_variable():
    kept = (1, Thing())
    assert Roots().path_to(kept[1]) == ReferencePath("kept", "function test_a_tuple_in_a_local_variable", "kept[1]")


def test_a_tuple_in_a_list():
    history = [(1, Thing())]
    assert Roots().path_to(history[0][1]) == ReferencePath(
        "history", "function test_a_tuple_in_a_list", "history[0][1]"
    )


def test_an_attribute_is_written_as_one_wherever_the_object_keeps_it():
    owner = Thing()
    owner.made = {"first": [Thing()]}
    as_attribute = Roots().path_to(owner.made["first"][0])
    assert vars(owner)  # now there is a dictionary of its attributes
    as_item = Roots().path_to(owner.made["first"][0])
    assert as_attribute is not None
    assert as_attribute.path == "owner.made['first'][0]"
    assert as_item == as_attribute


def test_a_global_of_what_is_executed_with_names_of_its_own():
    names = {"Roots": Roots, "kept": [Thing()], "__name__": "notebook"}
    exec("found = Roots().path_to(kept[0])", names)
    assert names["found"] == ReferencePath("kept", "module notebook", "kept[0]")


def test_a_search_whose_time_is_over_says_so():
    near, far = [Thing()], [[[Thing()]]]
    hasty, patient = Roots(seconds=0.0), Roots()
    assert (hasty.path_to(near[0]).path, hasty.cut) == ("near[0]", False)
    assert (hasty.path_to(far[0][0][0]), hasty.cut) == (None, True)
    assert (patient.path_to(far[0][0][0]).path, patient.cut) == ("far[0][0][0]", False)


def test_a_variable_that_is_gone_gives_its_name_to_nothing_else():
    global GONE
    GONE = Thing()
    roots = Roots()
    GONE = None
    others = [Thing() for _ in range(10)]
    assert [roots.path_to(other) for other in others] == [None] * 10


def test_a_search_does_not_find_itself(monkeypatch):
    """Else it would go on looking for those who hold what it holds."""
    thing, looks = Thing(), []
    monkeypatch.setattr(reference_paths, "referrers", lambda items: looks.append(len(items)) or referrers(items))
    roots = Roots()
    roots._by_id.clear()
    assert roots.search(thing) == (None, [])
    around = [thing]
    around.append(around)
    assert roots.search(thing) == (None, [around])
    assert looks == [1, 1, 1]


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
