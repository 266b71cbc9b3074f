"""What a user's words keep of tensors."""

import pytest

from gradscope.inspect import NodeRecord
from gradscope.inspect.recording.recorder.keep_policy import Policy

NODE = NodeRecord(3, 7, "AddmmBackward0", "Addmm", 12, "layers.3.fc", "", None, ())


@pytest.mark.parametrize(
    ("keep", "summaries", "values", "wants"),
    [
        ("none", False, False, False),
        ("summaries", True, False, False),
        ("all", True, True, True),
        ("mod:layers.3.*", True, True, True),
        ("param:*", True, True, False),
        ("param:*, op:Addmm", True, True, True),
    ],
)
def test_words(keep, summaries, values, wants):
    policy = Policy.parse(keep)
    assert (policy.summaries, policy.values, policy.wants(NODE)) == (summaries, values, wants)


@pytest.mark.parametrize("keep", ["sumaries", "", "foo:bar", "param:", "param:*,", 3])
def test_other_words_are_refused_and_the_right_ones_named(keep):
    with pytest.raises(ValueError, match="keep= is"):
        Policy.parse(keep)


def test_limits():
    assert Policy.parse("all", last=2, budget="1.5 kB").budget == 1500
    assert (Policy.parse(rows=10, age="1.5h").rows, Policy.parse(age="1.5h").age) == (10, 5400)
    with pytest.raises(ValueError, match="at least 1"):
        Policy.parse("all", last=0)
    with pytest.raises(ValueError, match="rows= is a number of nodes, at least 1"):
        Policy.parse("all", rows=0)
