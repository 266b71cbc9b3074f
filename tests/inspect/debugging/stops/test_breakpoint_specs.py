"""What names a node: operator, module, line, iteration."""

import pytest

from gradscope.inspect.debugging.stops.breakpoint_specs import BreakpointError, parse_spec, split_spec


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("op:Mul", ("op:Mul", None)),
        ("mod:layers.3.* and norm > 10", ("mod:layers.3.*", "norm > 10")),
        ("Mul if a and b", ("Mul", "a and b")),
        ("isnan(grad) and index > 3", ("*", "isnan(grad) and index > 3")),
        ("nan", ("nan", None)),
        ("node:3", ("node:3", None)),
    ],
)
def test_split_spec(text, found):
    assert split_spec(text) == found


@pytest.mark.parametrize("spec", ["iter:0", "iter:x", "backward:", "backward:-1"])
def test_iterations_are_numbers_from_one(spec):
    with pytest.raises(BreakpointError):
        parse_spec(spec)
