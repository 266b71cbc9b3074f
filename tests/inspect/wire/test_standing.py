from __future__ import annotations

from gradscope.inspect import Debugger
from gradscope.inspect.wire.standing import StandingSource

from .programs import train


def test_nodes_are_numbered_by_the_order_in_which_they_stand():
    debugger = Debugger.for_call(train)
    source = StandingSource(debugger)
    assert source.read().arrangement == 0
    debugger.start()
    debugger.wait(10)
    first = source.read()
    debugger.step()
    debugger.wait(10)
    second = source.read()
    assert first.arrangement == second.arrangement
    assert first.serial < second.serial
    debugger.next_backward()
    debugger.wait(10)
    third = source.read()
    assert third.arrangement != first.arrangement
    old, new = source.nodes(first.arrangement), source.nodes(third.arrangement)
    assert {node.state for node in old} == {"done"}
    assert new[0].state == "current"
    debugger.abort()
    debugger.wait(10)
