"""Finding lines and variables of the user's program."""

import sys

from gradscope.inspect.source.call_sites import caller, fields_of, location_at, user_frame, user_frames


class Thing:
    pass


def test_the_caller_is_the_users_line():
    here = caller()
    assert (here.filename, here.source) == (__file__, "here = caller()")
    assert user_frame() is sys._getframe()


def test_an_instruction_without_a_line_is_at_the_first_one_of_its_function():
    code = compile("\n\nframe = frame_of()", "train.py", "exec").replace(co_linetable=b"", co_firstlineno=3)
    space = {"frame_of": lambda: sys._getframe(1)}
    exec(code, space)
    assert space["frame"].f_lineno is None
    assert location_at(space["frame"], None).lineno == 3


def test_frames_from_here_outwards():
    def inner():
        return [frame.f_code.co_name for frame in user_frames(sys._getframe())]

    assert inner()[:2] == ["inner", "test_frames_from_here_outwards"]


def test_fields_without_waking_anything():
    class Lazy:
        __dict__ = property(lambda self: 1 / 0)

        def __getattribute__(self, name):
            raise AssertionError(name)

    class Slotted:
        __slots__ = ("x",)

    thing = Thing()
    thing.x = 1
    assert fields_of(thing) == {"x": 1}
    assert (fields_of(Lazy()), fields_of(Slotted()), fields_of(3)) == ({}, {}, {})
