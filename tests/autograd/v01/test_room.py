"""The words of PyTorch 0.1 stand in their room alone."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[3] / "gradscope"
ROOM = PACKAGE / "autograd" / "v01"

# A word is one of that API's names, or speaks of it. REINFORCE, the estimator, is a word of the literature.
WORDS = re.compile(
    r"volatile|\bcreator\b|previous_functions|retain_variables|mark_shared_storage|shared_pairs"
    r"|\breinforce|[Ss]tochastic_?\s?([Ff]unction|sampling)|\bVariable(Meta)?\(|import Variable\b"
    r"|InstanceStyle|autograd\.legacy|\.legacy import|v01\b|PyTorch 0\.1|\b0\.1[- ](style|era)"
)

# What must stand elsewhere, and why.
ELSEWHERE = {
    "autograd/legacy.py": "the public name of the room",
    "autograd/__init__.py": "the public names Variable and legacy, which programs import from here",
    "runtime/names.py": "the names of what loads when it is first used: the room would have to be imported to say them",
    "autograd/function.py": "a Function can be used through its instances: that is one of its bases",
    "autograd/function_context.py": "PyTorch's ctx has mark_shared_storage to this day, and warns",
}


def test_the_words_stand_in_the_room_alone():
    found = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if ROOM not in path.parents and (words := WORDS.findall(path.read_text(encoding="utf-8"))):
            found[path.relative_to(PACKAGE).as_posix()] = len(words)
    assert found.keys() == ELSEWHERE.keys()


def test_nothing_below_is_changed_by_an_import_of_the_room():
    """What the room needs of the floors below it asks for; it assigns nothing there when it is imported."""
    assignment = re.compile(r"^[a-z_]\w*\.[\w.]+ = ", re.MULTILINE)
    assert {path.name: assignment.findall(path.read_text(encoding="utf-8")) for path in ROOM.glob("*.py")} == {
        path.name: [] for path in ROOM.glob("*.py")
    }
