"""A history keeps nothing alive."""

import gc
import weakref

from gradscope.inspect import Debugger, HistoryPolicy
from tests.inspect.sessions import mlp, train, wait


def test_a_history_keeps_no_node_and_no_tensor_alive():
    alive = []

    def run():
        model = mlp()
        train(model, steps=3)
        alive.extend(weakref.ref(parameter) for parameter in model.parameters())

    session = Debugger.for_call(run, history=HistoryPolicy(always=True))
    session.start()
    wait(session)
    session.what_if(0, 2.0)
    session.cont()
    assert wait(session) == "finished"
    gc.collect()
    assert [reference() for reference in alive] == [None] * 4
    assert len(session._session.history.positions) == 27
    session.abort()
