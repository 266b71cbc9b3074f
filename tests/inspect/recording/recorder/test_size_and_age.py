"""Sizes and ages as a person types them."""

import pytest

from gradscope.inspect.recording.recorder.size_and_age import parse_age, parse_bytes


@pytest.mark.parametrize("age", ["", "soon", "0", "-1h", "1y"])
def test_no_age(age):
    with pytest.raises(ValueError, match="is no age; write 90s"):
        parse_age(age)


@pytest.mark.parametrize("size", ["", "many", "-1", "1TB", "1.2.3"])
def test_no_size(size):
    with pytest.raises(ValueError, match="not a size"):
        parse_bytes(size)
