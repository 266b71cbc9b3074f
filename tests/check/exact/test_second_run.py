import gc
import random
import subprocess
import weakref

import numpy as np
import pytest

import gradscope as gs
from gradscope.check.exact.line_finder import SavedOnce
from gradscope.check.exact.second_run import find_lines, seed_all

PROGRAM = """\
import sys
import numpy as np
import gradscope as gs

def main():
    array = np.ones(3)
    w = gs.ones(3, dtype=gs.float64, requires_grad=True)
    loss = (w * gs.from_numpy(array)).sum()
    array += float(sys.argv[1])
    loss.backward()

main()
{end}
"""

WANTED = SavedOnce("gradscope", 1, "MulBackward0", "other")


@pytest.mark.slow
@pytest.mark.parametrize("end", ["", "sys.exit(3)", "raise ValueError", "import os; os._exit(0)"])
def test_a_line_is_found_however_the_program_ends(tmp_path, end):
    (tmp_path / "script.py").write_text(PROGRAM.format(end=end))
    wanted = [WANTED._replace(number=number) for number in range(4)]
    found = find_lines(wanted, "script.py", ["1.5"], directory=str(tmp_path))
    assert [(place.lineno, place.function, place.source) for place in found.values()] == [
        (9, "main", "array += float(sys.argv[1])")
    ]


@pytest.mark.slow
def test_of_a_module_too_and_nothing_where_nothing_is(tmp_path):
    (tmp_path / "package.py").write_text(PROGRAM.format(end=""))
    wanted = [WANTED._replace(number=number) for number in range(4)]
    assert len(find_lines(wanted, "package", ["1"], module=True, directory=str(tmp_path))) == 1
    assert find_lines(wanted, "package", ["0"], module=True, directory=str(tmp_path)) == {}
    assert find_lines(wanted, "missing.py", directory=str(tmp_path)) == {}


def test_what_the_first_run_left_behind_is_gone_before_the_second_begins(tmp_path, monkeypatch):
    class Model:
        """Stands in a circle."""

    model = Model()
    model.itself = model
    left = weakref.ref(model)
    del model
    gone = []
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: gone.append(left() is None))
    gc.disable()  # so that nothing else collects it
    try:
        assert find_lines([], str(tmp_path / "program.py")) == {}
    finally:
        gc.enable()
    assert gone == [True]


def test_seeds_are_the_same_each_time():
    states = random.getstate(), np.random.get_state()  # noqa: NPY002 - what seed_all() seeds
    drawn = []
    for _ in range(2):
        seed_all()
        drawn.append((random.random(), np.random.random(), gs.rand(1).item()))  # noqa: NPY002
    random.setstate(states[0])
    np.random.set_state(states[1])  # noqa: NPY002
    assert drawn[0] == drawn[1]
