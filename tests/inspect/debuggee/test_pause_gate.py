"""The gate: messages, not permits, and nobody is left waiting."""

import threading

import pytest

from gradscope.inspect.debuggee.pause_gate import Gate, NotParkedError, ProgramAborted


class Program:
    """A thread that parks `stops` times and keeps what it was told."""

    def __init__(self, gate, stops=1):
        self.told, self.error = [], None
        self.parked = threading.Semaphore(0)
        self.thread = threading.Thread(target=self._run, args=(gate, stops))
        self.thread.start()

    def _run(self, gate, stops):
        try:
            for _ in range(stops):
                self.told.append(gate.park(self.parked.release))
        except BaseException as error:
            self.error = error


def test_go_passes_its_order():
    gate = Gate()
    program = Program(gate)
    program.parked.acquire()
    assert gate.parked
    gate.go("step")
    program.thread.join(60)
    assert (program.told, gate.parked) == (["step"], False)


def test_an_order_passes_one_stop_only():
    gate = Gate()
    program = Program(gate, stops=2)
    program.parked.acquire()
    hold = threading.Event()
    gate.submit(hold.wait)
    gate.go(1)
    gate.go("a second press of the key")
    hold.set()
    program.parked.acquire()
    assert program.told == [1]
    gate.go(2)
    program.thread.join(60)
    assert program.told == [1, 2]


def test_functions_run_on_the_parked_thread():
    gate = Gate()
    program = Program(gate)
    program.parked.acquire()
    assert gate.submit(threading.get_ident).result(5) == program.thread.ident
    with pytest.raises(ZeroDivisionError):
        gate.submit(lambda: 1 / 0).result(5)
    nested = gate.submit(lambda: gate.submit(threading.get_ident).result(5))
    assert nested.result(5) == program.thread.ident
    gate.go()
    program.thread.join(60)


def test_abort_raises_in_the_program():
    gate = Gate()
    program = Program(gate)
    program.parked.acquire()
    gate.abort()
    program.thread.join(60)
    assert isinstance(program.error, ProgramAborted)
    assert not isinstance(program.error, Exception)


def test_nothing_is_taken_when_nobody_is_parked():
    gate = Gate()
    for call in (gate.go, gate.abort, lambda: gate.submit(print)):
        with pytest.raises(NotParkedError, match="not paused"):
            call()


def test_an_evaluation_behind_go_fails_instead_of_hanging():
    gate = Gate()
    program = Program(gate)
    program.parked.acquire()
    hold = threading.Event()
    gate.submit(hold.wait)
    gate.go()
    behind = gate.submit(lambda: "never")
    hold.set()
    with pytest.raises(NotParkedError):
        behind.result(5)
    program.thread.join(60)


def test_a_failing_announcement_leaves_the_gate_closed():
    gate = Gate()

    def announce():
        raise ProgramAborted

    with pytest.raises(ProgramAborted):
        gate.park(announce)
    assert not gate.parked
