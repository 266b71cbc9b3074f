from __future__ import annotations

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.standing import StandingSource
from gradscope.inspect.wire.verb_table import VERBS, nodes, result_type

from .programs import train


def test_a_page_is_cut_at_both_ends():
    debugger = Debugger.for_call(train)
    debugger.start()
    debugger.wait(10)
    source = StandingSource(debugger)
    number = source.read().arrangement
    count = len(debugger.nodes)
    assert len(nodes(source, m.Nodes(number, -5, 10**12))) == count
    assert nodes(source, m.Nodes(number, 3, 1)) == []
    assert [node.index for node in nodes(source, m.Nodes(number, 1, 3))] == [1, 2]
    with pytest.raises(ValueError, match="a page has 0 to"):
        VERBS[m.Elements].answer(debugger, m.Elements("grad", 5, 1))
    with pytest.raises(ValueError, match="a question is one of memory, gradient_flow, why_no_grad, got 'evaluate'"):
        VERBS[m.Ask].answer(debugger, m.Ask("evaluate", "1"))
    assert result_type(m.Step) is None
    debugger.abort()
    debugger.wait(10)
