"""An error of the session's own, while the program runs, ends neither the program nor the session."""

import pytest

from gradscope.inspect.adapters import event_guards
from gradscope.inspect.adapters.guarded_observer import guarded
from gradscope.inspect.debugging.session.session_observer import SessionObserver

from ...sessions import debugging, wait


@pytest.fixture(autouse=True)
def as_users_have_it(monkeypatch):
    monkeypatch.setattr(event_guards, "raising", False)


@pytest.fixture(params=["gradscope", pytest.param("torch", marks=pytest.mark.torch)])
def framework(request):
    """Each framework in turn."""
    return pytest.importorskip(request.param)


def broken(self, *args, **options):
    raise ValueError("a bug\nwith two lines")


def training(framework):
    """Return a program that trains, and where it leaves the bits of its parameter."""
    left = []

    def program():
        framework.manual_seed(0)
        model = framework.nn.Linear(2, 1)
        optimizer = framework.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(framework.ones(1, 2)).relu_().sum().backward()
            optimizer.step()
        left.append(model.weight.detach().numpy().tobytes())

    return program, left


EVENTS = ["module_entered", "module_left", "task_started", "node_entered", "node_exited", "task_finished"]


@pytest.mark.parametrize("event", EVENTS)
def test_the_program_runs_on_and_the_log_says_what_has_failed(monkeypatch, framework, event):
    monkeypatch.setattr(SessionObserver, event, guarded(broken))
    program, left = training(framework)
    program()
    with debugging(program) as session:
        for _ in range(3):
            if not session.ended:
                session.step()
                wait(session)
        if not session.ended:
            session.cont()
            wait(session)
        assert (session.state.value, session.error) == ("finished", None)
        (told,) = session.log
        assert told.startswith("gradscope's own code failed; please report it: ValueError: a bug (test_session_obs")
    assert left[0] == left[1]


def test_a_stop_that_fails_is_passed_by_and_later_ones_are_not(monkeypatch, framework):
    kept, failed = SessionObserver._look_at, []

    def fails_once(self, view, *, before):
        if not failed:
            failed.append(view.number)
            raise ValueError("a bug")
        kept(self, view, before=before)

    monkeypatch.setattr(SessionObserver, "_look_at", fails_once)
    with debugging(training(framework)[0]) as session:
        session.step()
        assert wait(session) == "paused before"
        assert (failed, session.reason.text, len(session.log)) == ([1], "first node of backward 2", 1)


def test_the_session_ends_where_the_end_itself_fails(monkeypatch, framework):
    monkeypatch.setattr(SessionObserver, "end", guarded(broken))
    with debugging(training(framework)[0]) as session:
        session.cont()
        assert wait(session) == "finished"


def test_an_error_of_the_programs_is_the_programs(framework):
    def program():
        raise ValueError("the program's")

    with debugging(program) as session:
        session.cont()
        assert (wait(session), session.log) == ("failed", [])
