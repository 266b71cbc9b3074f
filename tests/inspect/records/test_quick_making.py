"""Records that are made quickly are frozen dataclasses like others."""

import copy
import inspect
import pickle
from dataclasses import FrozenInstanceError, asdict, dataclass, fields, replace

import pytest

from gradscope.inspect.records.quick_making import quickly_made
from gradscope.inspect.records.records import NodeRecord, TensorSummary


@dataclass(frozen=True, slots=True)
class Plain:
    x: int
    y: tuple[int, ...] = ()
    z: "str | None" = None


@quickly_made
@dataclass(frozen=True, slots=True)
class Quick:
    x: int
    y: tuple[int, ...] = ()
    z: "str | None" = None


@pytest.mark.parametrize("given", [((1,), {}), ((1, (2,), "z"), {}), ((), {"z": "z", "x": 3})])
def test_the_fields_are_what_dataclass_makes_them(given):
    args, kwargs = given
    quick, plain = Quick(*args, **kwargs), Plain(*args, **kwargs)
    assert type(quick) is Quick
    assert asdict(quick) == asdict(plain)
    assert repr(quick) == repr(plain).replace("Plain", "Quick")
    assert quick == Quick(*args, **kwargs) != replace(quick, x=-1)
    assert hash(quick) == hash(Quick(*args, **kwargs))


def test_signature_and_annotations_are_those_of_the_fields():
    assert inspect.signature(Quick) == inspect.signature(Plain)
    assert Quick.__init__.__qualname__ == "Quick.__init__"


def test_it_is_frozen():
    record = Quick(1)
    with pytest.raises(FrozenInstanceError):
        record.x = 2
    with pytest.raises(FrozenInstanceError):
        del record.x


@pytest.mark.parametrize("again", [copy.copy, copy.deepcopy, lambda record: pickle.loads(pickle.dumps(record))])
def test_copies_are_equal(again):
    assert again(Quick(1, (2,))) == Quick(1, (2,))


def test_wrong_arguments_are_refused_by_the_name_of_the_class():
    with pytest.raises(TypeError, match=r"Quick.__init__\(\) missing 1 required positional argument: 'x'"):
        Quick()
    with pytest.raises(TypeError, match=r"Quick.__init__\(\) got an unexpected keyword argument 'w'"):
        Quick(1, w=2)


def test_a_subclass_stays_one():
    @dataclass(frozen=True, slots=True)
    class More(Quick):
        w: int = 4

    class Named(Quick):
        __slots__ = ()

    assert More(1) == More(1, (), None, 4)
    assert (type(Named(1)), Named(1).x) == (Named, 1)


@pytest.mark.parametrize("record", [NodeRecord, TensorSummary])
def test_the_records_of_nodes_and_tensors_take_every_field(record):
    values = {place.name: object() for place in fields(record)}
    made = record(**values)
    assert all(getattr(made, name) is value for name, value in values.items())
