from __future__ import annotations

import io

import pytest

from gradscope.inspect import Debugger
from gradscope.inspect.wire.attached_prompt import AttachedPrompt

from .programs import served, train


@pytest.mark.parametrize("verb", ["quit", "detach"])
def test_it_leaves_the_program_where_it_is(verb):
    debugger = Debugger.for_call(train)
    with served(debugger) as remote:
        stdout = io.StringIO()
        prompt = AttachedPrompt(remote)
        prompt.stdout = stdout
        prompt.run_commands(["step", verb, "step"])
        said = stdout.getvalue().splitlines()
        assert said[0] == "stopped before node 0 of 9: SumBackward0 - first node of backward 1"
        assert said[-1] == f"(gradscope) {verb}"
        assert debugger.state.paused
