"""Names in expressions, and the user's frames."""

import sys

import pytest

import gradscope as gs
from gradscope.inspect.adapters import NativeAdapter
from gradscope.inspect.debugging.stops.condition_names import Namespace, SavedNamespace, makers, user_frames


def test_the_debuggers_names_come_before_the_programs():
    norm, other = "the program's", "local"
    asked = []
    names = Namespace({"norm": lambda: asked.append("norm") or 3.0}, sys._getframe())
    assert eval("norm, other, pytest.__name__, len('ab')", names) == (3.0, "local", "pytest", 2)
    assert eval("norm + [norm for _ in 'ab'][0]", names) == 6.0
    assert asked == ["norm"]
    assert names.names() == ["norm"]
    assert (norm, other) == ("the program's", "local")
    with pytest.raises(NameError):
        eval("nowhere", names)


def test_counts_give_way_to_the_programs_names():
    iteration = 7
    names = Namespace({}, sys._getframe(), {"iteration": 1, "backward": 2})
    assert eval("iteration, backward", names) == (iteration, 2)
    assert names.names() == ["backward", "iteration"]


def test_names_without_a_frame():
    with pytest.raises(NameError):
        eval("nowhere", Namespace({}, None))


def test_saved_tensors_by_name_and_number():
    x = gs.tensor([2.0, 3.0], requires_grad=True)
    saved = SavedNamespace(list(NativeAdapter().saved((x * x).grad_fn)))
    assert saved["self"].tolist() == saved.other.tolist() == saved[0].tolist() == [2.0, 3.0]
    assert sorted(saved) == ["other", "self"]
    assert len(saved) == 2
    with pytest.raises(AttributeError, match="there is no 'mat1'"):
        saved.mat1
    assert repr(SavedNamespace([])) == "<saved tensors: none>"


def _names(grads):
    return makers(
        NativeAdapter(),
        record=lambda: None,
        index=0,
        grads=lambda: grads,
        produced=lambda: None,
        saved=lambda: SavedNamespace([]),
    )


def test_bad_values_in_one_or_in_all():
    nan, one = gs.tensor([float("nan")]), gs.ones(1)
    names = Namespace(_names([one, None, nan]), None)
    assert eval("isnan(grad), isnan(grads), isinf(grads), isnan(float('nan')), isnan(None)", names) == (
        False, True, False, True, False,
    )  # fmt: skip
    empty = Namespace(_names([]), None)
    assert eval("grad, norm", empty) == (None, 0.0)


def test_user_frames_leave_out_the_library():
    found = []
    x = gs.ones(1, requires_grad=True)
    x.register_hook(lambda grad: found.extend(user_frames()))
    x.backward()
    names = [frame.f_code.co_name for frame in found]
    assert names[:2] == ["<lambda>", "test_user_frames_leave_out_the_library"]
    assert not any("gradscope/runtime" in frame.f_code.co_filename for frame in found)
