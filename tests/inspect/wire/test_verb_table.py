from __future__ import annotations

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.wire import messages as m
from gradscope.inspect.wire.standing import StandingSource
from gradscope.inspect.wire.verb_table import OF_AN_ORDER, VERBS, result_type

from .programs import train


def answer(source, verb):
    return OF_AN_ORDER[type(verb)].answer(source, verb)


def test_a_page_is_cut_at_both_ends():
    debugger = Debugger.for_call(train)
    debugger.start()
    debugger.wait(10)
    source = StandingSource(debugger)
    number = source.read().arrangement
    count = len(debugger.nodes)
    assert len(answer(source, m.Nodes(number, -5, 10**12))) == count
    assert answer(source, m.Nodes(number, 3, 1)) == []
    assert [node.index for node in answer(source, m.Nodes(number, 1, 3))] == [1, 2]
    with pytest.raises(ValueError, match="a page has 0 to"):
        VERBS[m.Elements].answer(debugger, m.Elements("grad", 5, 1))
    with pytest.raises(ValueError, match="a question is one of memory, gradient_flow, why_no_grad, got 'evaluate'"):
        VERBS[m.Ask].answer(debugger, m.Ask("evaluate", "1"))
    assert result_type(m.Step) is None
    debugger.abort()
    debugger.wait(10)


def test_norms_are_those_of_the_order_that_is_named():
    debugger = Debugger.for_call(train)
    source = StandingSource(debugger)
    assert answer(source, m.Norms(source.read().arrangement)) == {}
    debugger.start()
    debugger.wait(10)
    first = source.read().arrangement
    debugger.step(3)
    debugger.wait(10)
    debugger.next_backward()
    debugger.wait(10)
    assert set(answer(source, m.Norms(first))) > {0, 1, 2, 3}
    assert set(answer(source, m.Norms(source.read().arrangement))) == {0}
    debugger.abort()
    debugger.wait(10)
