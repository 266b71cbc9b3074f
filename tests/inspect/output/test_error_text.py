from __future__ import annotations

import pytest

from gradscope.inspect.output.error_text import error_text


@pytest.mark.parametrize(
    ("error", "text"),
    [
        (ValueError("one\ntwo\n"), "one\ntwo"),
        (ValueError(), ""),
        (KeyError("name"), "'name'"),
        (SyntaxError("invalid syntax", ("train.py", 3, 1, "a = (")), "invalid syntax (train.py, line 3)"),
    ],
)
def test_it_is_what_the_exception_says(error, text):
    assert error_text(error) == text


def test_an_exception_that_fails_to_tell_is_said_to():
    class MuteError(Exception):
        def __str__(self):
            raise OSError

    assert error_text(MuteError()) == "<exception str() failed>"
