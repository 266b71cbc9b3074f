"""What the Tab key offers."""

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.debugging.prompt.completion import complete

from ...sessions import debugging, mlp, train, wait


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("sk", ["skip"]),
        ("break mod:", ["mod:0", "mod:1", "mod:2"]),
        ("b param:0", ["param:0.bias", "param:0.weight"]),
        ("tbreak Re", ["Relu"]),
        ("until line:sess", ["line:sessions.py:50"]),
        ("b Relu if no", ["node", "norm"]),
        ("p is", ["isinf(", "isnan("]),
        ("catch v", ["violation"]),
        ("delete ", ["1"]),
        ("help what", ["what-if", "whatif"]),
        ("mem", ["memory"]),
        ("why 2.", ["2.bias", "2.weight"]),
        ("nonsense-", []),
    ],
)
def test_completion(line, found):
    with debugging(lambda: train(mlp())) as session:
        session.add_breakpoint("Relu")
        session.start()
        wait(session)
        offered = complete(session, line)
        assert [word.rpartition(":")[0] if "line:" in line else word for word in offered] == [
            word.rpartition(":")[0] if "line:" in line else word for word in found
        ]


def test_before_the_start_there_are_no_nodes_to_offer():
    assert "op:" in complete(Debugger.for_call(lambda: None), "break ")
