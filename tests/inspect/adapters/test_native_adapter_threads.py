"""A device runs its nodes on a thread of its own: they belong to the backward, not to whichever thread runs them."""

from concurrent.futures import ThreadPoolExecutor

import gradscope as gs
from gradscope.inspect import Debugger
from gradscope.inspect.adapters import NativeAdapter, Observer
from tests.inspect.sessions import wait, where


class Elsewhere(Observer):
    """Passes on what it hears; of nodes it tells on another thread, and waits, as an engine does."""

    def __init__(self, observer, device):
        self._observer, self._device = observer, device

    def __getattribute__(self, name):
        if name.startswith("_"):
            return super().__getattribute__(name)
        told = getattr(self._observer, name)
        if name in ("node_entered", "node_exited"):
            return lambda *args: self._device.submit(told, *args).result()
        return told


class DeviceAdapter(NativeAdapter):
    def __init__(self, device):
        super().__init__()
        self._device = device

    def observe(self, observer, **wanted):
        return super().observe(Elsewhere(observer, self._device), **wanted)


def test_nodes_on_a_devices_thread_are_stepped_through_and_edited():
    x = gs.tensor([1.0, 2.0], requires_grad=True)
    with ThreadPoolExecutor(1) as device:
        session = Debugger.for_call(lambda: (x.exp() * 2.0).sum().backward(), adapter=DeviceAdapter(device))
        try:
            session.start()
            for index, operator in enumerate(["Sum", "Mul", "Exp"]):
                wait(session)
                assert where(session) == ("paused before", index, operator)
                session.step()
            wait(session)
            assert session.task_index == 1
            session.set_grad(0, 5.0)
            session.cont()
            assert wait(session) == "finished"
        finally:
            session.abort()
            session.wait(20)
    assert x.grad.tolist() == [5.0, 5.0]
