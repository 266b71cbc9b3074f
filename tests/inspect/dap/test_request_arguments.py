from __future__ import annotations

import pytest

from gradscope.inspect.dap.request_arguments import Arguments, AttachArguments, LaunchArguments, converted


def test_what_is_of_another_type_is_refused_with_its_place():
    with pytest.raises(ValueError, match=r"an argument is of another type: Expected `int`, got `str` - at `\$\.line`"):
        converted({"line": "3"}, Arguments)
    with pytest.raises(ValueError, match=r"got `null` - at `\$\.breakpoints\[0\]\.line`"):
        converted({"breakpoints": [{"line": None}]}, Arguments)
    with pytest.raises(ValueError, match=r"got `int` - at `\$\.args\[0\]`"):
        converted({"program": "a.py", "args": [1]}, LaunchArguments)


def test_what_an_editor_adds_of_its_own_is_left_out():
    assert converted({"__sessionId": "1", "type": "gradscope", "processId": "7"}, AttachArguments).process_id == "7"
    assert converted({"granularity": "line", "threadId": 1}, Arguments) == {"threadId": 1}
