"""One backward under the debugger."""

import gradscope as gs
from tests.inspect.sessions import debugging, wait


def test_a_hook_that_ends_the_program_is_no_failure_to_stop_at():
    x = gs.ones(2, requires_grad=True)

    def leave(grad):
        raise SystemExit(3)

    y = x * 2
    y.register_hook(leave)
    with debugging(y.sum().backward) as session:
        session.cont()
        assert wait(session) == "finished"
        assert (session.exit_status, session.error) == (3, None)
