"""Places to run to."""

import pytest

from gradscope.inspect.debugging.stops.run_targets import RunCommand, RunTarget


@pytest.mark.parametrize(("kind", "then"), [("run-to", "step"), ("out", "step"), ("cont", "cont"), ("until", "until")])
def test_a_place_that_the_backward_never_reached_is_given_up_at_its_end(kind, then):
    target = RunTarget.at(RunCommand(kind, index=5), number=1)
    target.lost()
    assert target.kind == then
