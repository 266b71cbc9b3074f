from __future__ import annotations

from gradscope.inspect.adapters.context_attributes import context_tensors


def is_number(value):
    return isinstance(value, float)


def test_tensors_are_found_as_attributes_and_in_what_holds_them():
    attributes = {"x": 1.0, "pair": [2.0, "text", 3.0], "named": {"y": 4.0, 0: 5.0}, "shape": (2, 3), "text": "x"}
    assert dict(context_tensors(attributes, is_number)) == {
        "x": 1.0,
        "pair[0]": 2.0,
        "pair[2]": 3.0,
        "named['y']": 4.0,
        "named[0]": 5.0,
    }


def test_private_attributes_and_what_lies_deeper_are_left_alone():
    assert list(context_tensors({"_x": 1.0, "deep": [[2.0]]}, is_number)) == []


def test_what_is_given_to_save_for_backward_is_not_kept_beside_it():
    assert list(context_tensors({"to_save": (1.0,), "s_saved_tensors": [2.0], "x": 3.0}, is_number)) == [("x", 3.0)]
