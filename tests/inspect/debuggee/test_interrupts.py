import asyncio
import signal
import threading
import time
import traceback
import weakref

import pytest

import gradscope.check
from gradscope.inspect.debuggee.interrupts import interrupting_the_script_only
from gradscope.inspect.debuggee.program import own_traceback

pytestmark = pytest.mark.skipif(not hasattr(signal, "raise_signal"), reason="sends itself a signal")

INSTRUMENT = """
def called_by(script):
    script()

def interrupted():
    signal.raise_signal(signal.SIGINT)
    seen.append("instrument")

def callback(reference):
    signal.raise_signal(signal.SIGINT)
    seen.append("callback")
"""


@pytest.fixture
def instrument():
    """Functions that look as if they stood in a file of an instrument."""
    names = {"signal": signal, "seen": []}
    exec(compile(INSTRUMENT, gradscope.check.__file__, "exec"), names)
    return names


@pytest.mark.parametrize("where", ["interrupted", "callback"])
def test_an_instrument_ends_what_it_does_and_the_script_is_interrupted(instrument, where):
    class Object:
        pass

    def script():
        if where == "interrupted":
            instrument["interrupted"]()
        else:
            thing = Object()
            reference = weakref.ref(thing, instrument["callback"])
            del thing
            assert reference() is None
        time.sleep(60)

    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupting_the_script_only():
        script()
    assert instrument["seen"] == ["instrument" if where == "interrupted" else where]
    assert time.monotonic() - begun < 50


@pytest.mark.parametrize("last", [None, ValueError("of the script")], ids=["ends", "raises"])
def test_an_interrupt_that_meets_an_instrument_as_the_script_ends_is_not_lost(instrument, last):
    def script():
        instrument["interrupted"]()
        if last is not None:
            raise last

    with pytest.raises(KeyboardInterrupt) as interrupt, interrupting_the_script_only():
        script()
    assert interrupt.value.__context__ is last
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.skipif(not hasattr(signal, "pthread_kill"), reason="has another way of sending")
def test_an_interrupt_that_is_lost_on_its_way_is_sent_again(instrument, monkeypatch):
    """Python does not hear a signal that comes between its last look for one and the system's call to sleep."""
    sent, kill = [], signal.pthread_kill

    def lossy(thread, number):
        sent.append(number)
        if len(sent) > 2:
            kill(thread, number)

    def script():
        instrument["interrupted"]()
        time.sleep(60)

    monkeypatch.setattr(signal, "pthread_kill", lossy)
    begun = time.monotonic()
    with pytest.raises(KeyboardInterrupt), interrupting_the_script_only():
        script()
    assert time.monotonic() - begun < 50
    assert len(sent) >= 3


def test_what_an_instrument_calls_of_the_script_is_interrupted_at_once(instrument):
    with pytest.raises(KeyboardInterrupt), interrupting_the_script_only():
        instrument["called_by"](lambda: signal.raise_signal(signal.SIGINT))


def test_an_instrument_that_does_not_come_to_an_end_is_interrupted_too(instrument, monkeypatch):
    monkeypatch.setattr("gradscope.inspect.debuggee.interrupts._GRACE", 0.05)
    exec(compile("def forever():\n    while True:\n        len('')\n", gradscope.check.__file__, "exec"), instrument)
    threading.Timer(0.05, signal.pthread_kill, (threading.get_ident(), signal.SIGINT)).start()
    with pytest.raises(KeyboardInterrupt), interrupting_the_script_only():
        instrument["forever"]()


def test_the_handler_looks_like_pythons_own():
    before, python = signal.getsignal(signal.SIGINT), signal.default_int_handler

    async def main():
        signal.raise_signal(signal.SIGINT)
        try:
            await asyncio.sleep(20)
        except asyncio.CancelledError:
            cancelled.append(True)
            raise

    cancelled = []
    assert before is python
    with interrupting_the_script_only():
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
        with pytest.raises(KeyboardInterrupt):
            asyncio.run(main())
    assert cancelled, "asyncio looks for Python's handler, to put one in its place that ends the task"
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler is python


def test_a_handler_of_the_scripts_stays():
    def handler(number, frame):
        pass

    try:
        with interrupting_the_script_only():
            signal.signal(signal.SIGINT, handler)
        assert signal.getsignal(signal.SIGINT) is handler
        with interrupting_the_script_only():
            assert signal.getsignal(signal.SIGINT) is handler
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def test_the_traceback_ends_with_the_line_of_the_script(instrument):
    exec(compile("def in_gradscope():\n    raise KeyboardInterrupt", "<gradscope operator mul>", "exec"), instrument)
    with pytest.raises(KeyboardInterrupt) as caught:
        instrument["called_by"](instrument["in_gradscope"])
    assert "in_gradscope" in "".join(traceback.format_exception(caught.value))
    text = own_traceback(caught.value)
    assert "gradscope/check" not in text
    assert text.rstrip().endswith("KeyboardInterrupt")
    assert text.splitlines()[-2].strip().startswith(('instrument["called_by"]', "^", "~"))
